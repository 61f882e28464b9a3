// RotaryEmbedding and Attention. Wires carry heads side by side: [B, T, heads * head_dim], head 0 first.
#include "models/catalog/building.h"

#include <algorithm>

namespace celloom::catalog {
namespace {

/// [B, T, heads * head_dim], the two factors named by their parameters.
Status expectHeads(const std::string& port, const Shape& shape, const CellInstance& cell, const std::string& headsParam) {
    const std::int64_t heads = cell.integer(headsParam), headDim = cell.integer("head_dim");
    if (shape.size() == 3 && shape[2] == fixed(heads * headDim)) return {};
    return fail(port + " is " + graph::toString(shape) + ", but " + headsParam + " = " + std::to_string(heads) +
                    " and head_dim = " + std::to_string(headDim) + " expect [B, T, " + std::to_string(heads * headDim) + "].",
                "Change " + headsParam + " or head_dim, or what feeds " + port + ".", headsParam);
}

CellType rotaryEmbedding() {
    CellType type;
    type.name = "RotaryEmbedding";
    type.category = "Attention";
    type.summary = "Turns each head's numbers by an angle that grows with the position (RoPE, halves layout).";
    type.summaryZh = "按位置旋转每个头的向量（RoPE，前后两半配对）。";
    type.inputs = {{"x"}};
    type.outputs = {{"out"}};
    type.params = {
        integerParam("num_heads", 1, "Heads side by side in x.", "x 中并排的头数。"),
        integerParam("head_dim", 2, "Numbers of one head; even: number i is paired with i + head_dim / 2.",
                     "每个头的维数；须为偶数：第 i 个与第 i + head_dim / 2 个配对。"),
        realParam("base", 10000, 1, 1e15, "Base of the wave lengths: the angle of pair i is position / base^(2i / head_dim).",
                  "波长的底数：第 i 对的角度为 位置 / base^(2i / head_dim)。"),
        choiceParam(
            "scaling", {"none", "linear", "dynamic", "llama3"},
            "For inputs longer than trained on. linear: positions divided by factor. dynamic: the base grows with the length beyond "
            "max_positions (dynamic NTK, stateless). llama3: long waves are slowed down by factor, short ones stay (Llama 3.1).",
            "用于超过训练长度的输入。linear：位置除以 factor。dynamic：超过 max_positions 后底数随长度增大（无状态的动态 "
            "NTK）。llama3：长波放慢 factor 倍，短波不变（Llama 3.1）。"),
        realParam("factor", 1, 1e-6, 1e6, "Strength of the scaling.", "缩放的强度。"),
        integerParam("max_positions", 1, "Length that dynamic scaling starts beyond; of llama3 the length trained on before it.",
                     "超过该长度时 dynamic 缩放生效；对 llama3 是缩放前的训练长度。", std::int64_t(4096)),
        realParam("low_freq_factor", 1, 1e-6, 1e6, "llama3: waves longer than max_positions / this are slowed down in full.",
                  "llama3：波长大于 max_positions / 该值的波完全放慢。"),
        realParam("high_freq_factor", 4, 1e-6, 1e6, "llama3: waves shorter than max_positions / this stay; in between it is a line.",
                  "llama3：波长小于 max_positions / 该值的波不变；两者之间线性过渡。")};
    type.check = [](const CellInstance& cell) -> Status {
        if (cell.text("scaling") == "llama3" && cell.real("low_freq_factor") >= cell.real("high_freq_factor"))
            return fail("low_freq_factor is not below high_freq_factor.", "Llama 3.1 has 1 and 4.", "low_freq_factor");
        if (cell.text("scaling") == "dynamic" && cell.integer("head_dim") == 2)
            return fail("dynamic scaling needs heads of at least 4 numbers.", "Give a larger head_dim.", "head_dim");
        if (cell.integer("head_dim") % 2 == 0) return {};
        return fail("head_dim = " + std::to_string(cell.integer("head_dim")) + " is odd; rotation pairs numbers.", "Give an even head_dim.",
                    "head_dim");
    };
    type.shapeRule = [](const RuleInput& in) -> Shapes {
        CELLOOM_TRY_STATUS(expectHeads("x", in.inputs[0], in.cell, "num_heads"));
        return sameShape(in);
    };
    type.cost = elementwiseCost(3, {}); // the angles are few and made anew; the rotation itself is linear
    return type;
}

CellType attention() {
    CellType type;
    type.name = "Attention";
    type.category = "Attention";
    type.summary = "Scaled dot-product attention of several heads: softmax(q · kᵀ / √head_dim + position) · v. Key/value heads may be "
                   "fewer (grouped query).";
    type.summaryZh = "多头缩放点积注意力：softmax(q · kᵀ / √head_dim + 位置偏置) · v。键值头可以更少（分组查询）。";
    type.inputs = {{"q"}, {"k"}, {"v"}, {"mask", true, "bool"}};
    type.outputs = {{"out"}};
    type.amp = {.isHalfAtO1 = true, .atAuto = AmpTraits::Auto::Half};
    type.params = {integerParam("num_heads", 1, "Query heads.", "查询头数。"),
                   integerParam("num_kv_heads", 1, "Key and value heads; each serves num_heads / num_kv_heads query heads in a row.",
                                "键值头数；每个键值头服务相邻的 num_heads / num_kv_heads 个查询头。"),
                   integerParam("head_dim", 1, "Numbers of one head.", "每个头的维数。"),
                   flagParam("causal", true, "No position sees a later one.", "任何位置都看不到后面的位置。"),
                   choiceParam("position", {"none", "alibi"},
                               "alibi: adds slope · (key − query) to the scaled scores, a slope for each head.",
                               "alibi：在缩放后的分数上加 斜率 ·（键位置 − 查询位置），每个头一个斜率。"),
                   realParam("dropout", 0, 0, 0.999999, "Part of the attention weights set to zero while training.",
                             "训练时随机置零的注意力权重比例。")};
    type.check = [](const CellInstance& cell) -> Status {
        const std::int64_t heads = cell.integer("num_heads"), kvHeads = cell.integer("num_kv_heads");
        if (heads % kvHeads == 0) return {};
        return fail("num_heads = " + std::to_string(heads) + " is no multiple of num_kv_heads = " + std::to_string(kvHeads) + ".",
                    "Give a number of key/value heads that divides the query heads.", "num_kv_heads");
    };
    type.shapeRule = [](const RuleInput& in) -> Shapes {
        CELLOOM_TRY_STATUS(expectHeads("q", in.inputs[0], in.cell, "num_heads"));
        CELLOOM_TRY_STATUS(expectHeads("k", in.inputs[1], in.cell, "num_kv_heads"));
        CELLOOM_TRY_STATUS(expectSame("k", in.inputs[1], "v", in.inputs[2]));
        const Shape &q = in.inputs[0], &k = in.inputs[1], &mask = in.inputs[3];
        if (q[0] != k[0])
            return fail("q is " + graph::toString(q) + " and k is " + graph::toString(k) + "; their batches differ.",
                        "Feed both from one batch.");
        if (in.cell.flag("causal") && q[1] != k[1])
            return fail("q is " + graph::toString(q) + " and k is " + graph::toString(k) + "; causal attention needs one length.",
                        "Set causal to false.", "causal");
        if (!mask.empty() && mask != Shape{q[0], q[1], k[1]})
            return fail("mask is " + graph::toString(mask) + ", expected " + graph::toString({q[0], q[1], k[1]}) +
                            " (true where a query may see a key).",
                        "Change what feeds mask, or leave it unwired.");
        return std::vector<Shape>{q};
    };
    type.cost = [](const CellInstance& cell, const Sizes& inputs, const Sizes&) {
        // two products of [T, head_dim] with [head_dim, S] for each head, and the softmax between them
        const auto heads = static_cast<double>(cell.integer("num_heads")), headDim = static_cast<double>(cell.integer("head_dim"));
        const double pairs =
            static_cast<double>(inputs[0][0]) * heads * static_cast<double>(inputs[0][1]) * static_cast<double>(inputs[1][1]);
        const std::int64_t rowStatistics = sizeOf({inputs[0][0], inputs[0][1], cell.integer("num_heads")});
        CellCost cost{pairs * (4 * headDim + 5), {0, 1, 2}, {0}, rowStatistics};
        if (cell.integer("num_kv_heads") < cell.integer("num_heads")) { // keys and values are repeated for the query heads
            const std::int64_t repeated = 2 * sizeOf({inputs[1][0], inputs[1][1], cell.integer("num_heads") * cell.integer("head_dim")});
            cost.keptInputs = {0};
            cost.keptValues += repeated;
            cost.backwardWorkspace = repeated; // their gradients, before they are added up
        }
        if (cell.real("dropout") > 0) { // written out: weights, mask and thinned-out weights are kept
            const auto scores = static_cast<std::int64_t>(std::min(pairs, 9e18));
            cost.keptValues += 3 * scores;
            cost.forwardWorkspace = scores;
            cost.backwardWorkspace += 2 * scores;
        }
        return cost;
    };
    return type;
}

} // namespace

void addAttention(std::vector<CellType>& out) {
    out.push_back(rotaryEmbedding());
    out.push_back(attention());
}

} // namespace celloom::catalog
