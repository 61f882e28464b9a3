// LMHead: hidden states to a score for each word.
#include "models/catalog/building.h"

namespace celloom::catalog {
namespace {

bool isTied(const CellInstance& cell) {
    return cell.text("kind") == "tied";
}

} // namespace

void addOutput(std::vector<CellType>& out) {
    CellType type;
    type.name = "LMHead";
    type.category = "Output";
    type.summary = "A score for each word of the vocabulary: x · weightᵀ.";
    type.summaryZh = "给词表中每个词打分：x · weightᵀ。";
    type.inputs = {{"x"}};
    type.outputs = {{"logits"}};
    type.amp = {.isHalfAtO1 = true, .atAuto = AmpTraits::Auto::Half};
    type.params = {integerParam("hidden_size", 1, "Size of the last dimension of x.", "x 最后一维的大小。"),
                   integerParam("vocab_size", 1, "Words of the vocabulary.", "词表大小。"),
                   choiceParam("kind", {"plain", "normalised", "tied"},
                               "normalised: each row of the weight is scaled to length one first (Baichuan 2's NormHead, eps 1e-12); the "
                               "stored weight stays as it is. tied: no weight of its own, but the one wired to its second input, from an "
                               "Embedding that shares it.",
                               "normalised：先把权重的每行缩放到长度一（Baichuan 2 的 NormHead，eps "
                               "1e-12）；保存的权重不变。tied：自身没有权重，使用连到第二个输入的权重，来自共享权重的 Embedding。")};
    type.inputsOf = [](const CellInstance& cell) {
        return isTied(cell) ? std::vector<PortDef>{{"x"}, {"weight"}} : std::vector<PortDef>{{"x"}};
    };
    type.shapeRule = [](const RuleInput& in) -> Shapes {
        CELLOOM_TRY_STATUS(expectLast("x", in.inputs[0], in.cell.integer("hidden_size"), "hidden_size"));
        const Shape rows{fixed(in.cell.integer("vocab_size")), fixed(in.cell.integer("hidden_size"))};
        if (isTied(in.cell) && in.inputs[1] != rows)
            return fail("weight is " + graph::toString(in.inputs[1]) + ", expected " + graph::toString(rows) + ".",
                        "Wire the weight of an Embedding with shares_weight, of this vocabulary and size.", "vocab_size");
        Shape logits = in.inputs[0];
        logits.back() = fixed(in.cell.integer("vocab_size"));
        return std::vector<Shape>{logits};
    };
    type.weights = [](const CellInstance& cell) {
        if (isTied(cell)) return std::vector<WeightSpec>{};
        return std::vector<WeightSpec>{{"weight", {cell.integer("vocab_size"), cell.integer("hidden_size")}, WeightSpec::Init::Normal}};
    };
    type.cost = [](const CellInstance& cell, const Sizes&, const Sizes& outputs) {
        const std::int64_t hidden = cell.integer("hidden_size"), vocab = cell.integer("vocab_size");
        const bool isNormalised = cell.text("kind") == "normalised";
        const double flops = 2.0 * static_cast<double>(hidden) * static_cast<double>(sizeOf(outputs[0]));
        // normalised: squares, sum and division over the weight, and the scaled copy is kept
        const std::int64_t rows = isNormalised ? sizeOf({hidden, vocab}) : 0;
        CellCost cost{flops + 3.0 * static_cast<double>(rows), {0}, {}, rows};
        if (!isTied(cell)) cost.keptForWeights = {0};
        cost.backwardWorkspace = 3 * rows; // the division's two gradients and what leads to them
        return cost;
    };
    out.push_back(std::move(type));
}

} // namespace celloom::catalog
