// Cells that choose at run time what computes: Branch and MixtureOfExperts.
#include "models/base/capped.h"
#include "models/catalog/building.h"

#include <algorithm>

namespace celloom::catalog {
namespace {

CellType branch() {
    CellType type;
    type.name = "Branch";
    type.category = "Routing";
    type.summary = "Chooses between two inputs at run time, row by row: rows whose condition is above 0 take when_true, the others "
                   "when_false. Cells that feed one arm alone run only where a row takes it.";
    type.summaryZh =
        "运行时逐行选择：condition 大于 0 的行取 when_true，其余取 when_false。只供一个分支使用的单元仅在有行选择该分支时才计算。";
    type.inputs = {{"condition"}, {"when_true"}, {"when_false"}};
    type.outputs = {{"out"}};
    type.shapeRule = [](const RuleInput& in) -> Shapes {
        const Shape &condition = in.inputs[0], &arm = in.inputs[1];
        CELLOOM_TRY_STATUS(expectSame("when_true", arm, "when_false", in.inputs[2]));
        bool fits = condition.size() <= arm.size();
        for (std::size_t i = 0; i < condition.size() && fits; ++i) fits = condition[i] == arm[i] || condition[i] == fixed(1);
        if (fits) return std::vector<Shape>{arm};
        return fail("condition is " + graph::toString(condition) + " and when_true is " + graph::toString(arm) +
                        "; condition needs the first dimensions of when_true, or 1 in their place.",
                    "Give one number for each row: [B] or [B, 1].");
    };
    type.cost = [](const CellInstance&, const Sizes& inputs, const Sizes& outputs) { // both arms are counted where they are
        return CellCost{static_cast<double>(addCapped(sizeOf(inputs[0]), sizeOf(outputs[0]))),
                        {},
                        {},
                        sizeOf(inputs[0]) / 4}; // which rows: a byte each
    };
    return type;
}

bool isGated(const CellInstance& cell) {
    return cell.text("kind") == "swiglu";
}

CellType mixtureOfExperts() {
    CellType type;
    type.name = "MixtureOfExperts";
    type.category = "Routing";
    type.summary = "A router sends each token to the top_k likeliest of several feed-forward networks and adds up what they give, weighed "
                   "by its probabilities.";
    type.summaryZh = "路由器把每个词元送到概率最高的 top_k 个前馈网络（专家），按概率加权求和。";
    type.inputs = {{"x"}};
    type.outputs = {{"out"}};
    type.amp = {.isHalfAtO1 = true, .atAuto = AmpTraits::Auto::Half};
    type.params = {
        integerParam("hidden_size", 1, "Size of the last dimension of x and out.", "x 与输出最后一维的大小。"),
        integerParam("intermediate_size", 1, "Size inside an expert.", "专家内部的大小。"),
        integerParam("num_experts", 1, "Feed-forward networks.", "前馈网络（专家）的个数。"),
        integerParam("top_k", 1, "Experts that a token goes to.", "每个词元使用的专家数。", std::int64_t(2)),
        choiceParam("kind", {"swiglu", "gelu"}, "An expert: down(SiLU(gate(x)) · up(x)), or down(GELU(up(x))).",
                    "专家的结构：down(SiLU(gate(x)) · up(x))，或 down(GELU(up(x)))。"),
        flagParam("renormalise", true, "The probabilities of the chosen experts are scaled to add up to one (Mixtral).",
                  "把所选专家的概率缩放到和为一（Mixtral）。"),
        realParam("balance", 0.01, 0, 100,
                  "Weight of the loss that keeps the experts equally busy, in training: experts · Σ (share of the tokens · mean "
                  "probability), as in Switch and Mixtral; it is top_k where all are.",
                  "训练时均衡各专家负载的损失的权重：专家数 · Σ（词元占比 · 平均概率），同 Switch 与 Mixtral；完全均衡时等于 top_k。")};
    for (ParamDef& param : type.params)
        if (param.name == "num_experts" || param.name == "top_k") param.maximum = 4096;
    type.check = [](const CellInstance& cell) -> Status {
        const std::int64_t experts = cell.integer("num_experts"), chosen = cell.integer("top_k");
        if (chosen <= experts) return {};
        return fail("top_k = " + std::to_string(chosen) + " is more than num_experts = " + std::to_string(experts) + ".",
                    "Choose fewer, or give more experts.", "top_k");
    };
    type.shapeRule = [](const RuleInput& in) -> Shapes {
        CELLOOM_TRY_STATUS(expectLast("x", in.inputs[0], in.cell.integer("hidden_size"), "hidden_size"));
        return sameShape(in);
    };
    type.weights = [](const CellInstance& cell) {
        const std::int64_t experts = cell.integer("num_experts"), hidden = cell.integer("hidden_size"),
                           inside = cell.integer("intermediate_size");
        std::vector<WeightSpec> weights{{"router", {experts, hidden}}};
        if (isGated(cell)) weights.push_back({"gate", {experts, inside, hidden}});
        weights.push_back({"up", {experts, inside, hidden}});
        weights.push_back({"down", {experts, hidden, inside}});
        return weights;
    };
    type.cost = [](const CellInstance& cell, const Sizes& inputs, const Sizes&) {
        const std::int64_t hidden = cell.integer("hidden_size"), inside = cell.integer("intermediate_size"),
                           experts = cell.integer("num_experts");
        const std::int64_t tokens = sizeOf(inputs[0]) / hidden, sent = multiplyCapped(tokens, cell.integer("top_k"));
        const std::int64_t products = isGated(cell) ? 3 : 2;
        // the router's product and softmax; for each token sent: its products, the function between them, the weighing and adding up
        const double perSent = 2.0 * static_cast<double>(products) * static_cast<double>(hidden) * static_cast<double>(inside) +
                               (isGated(cell) ? 6.0 : 8.0) * static_cast<double>(inside) + 2.0 * static_cast<double>(hidden) +
                               (cell.flag("renormalise") ? 2 : 0);
        CellCost cost{static_cast<double>(sent) * perSent +
                          static_cast<double>(tokens) * static_cast<double>(experts) * (2.0 * static_cast<double>(hidden) + 5),
                      {0},
                      {},
                      0};
        // kept: probabilities; of each token sent its row, what the products gave, what goes into the last one, and its result before the
        // weighing
        const std::int64_t perToken = addCapped(multiplyCapped(inside, isGated(cell) ? 4 : 2), multiplyCapped(hidden, 2));
        cost.keptValues = addCapped(multiplyCapped(tokens, experts), multiplyCapped(sent, perToken));
        cost.backwardWorkspace = multiplyCapped(sent, inside);
        return cost;
    };
    return type;
}

} // namespace

void addRouting(std::vector<CellType>& out) {
    out.push_back(branch());
    out.push_back(mixtureOfExperts());
}

} // namespace celloom::catalog
