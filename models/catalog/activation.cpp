// Functions of each number by itself, and Softmax.
#include "models/catalog/building.h"

namespace celloom::catalog {
namespace {

/// `keepsOutput`: the derivative is computed from the result (ReLU, Tanh, Sigmoid), not from x.
CellType activation(const char* name, const char* summary, const char* summaryZh, double flops, bool keepsOutput) {
    CellType type;
    type.name = name;
    type.category = "Activation";
    type.summary = summary;
    type.summaryZh = summaryZh;
    type.inputs = {{"x"}};
    type.outputs = {{"out"}};
    type.shapeRule = sameShape;
    type.cost = keepsOutput ? elementwiseCost(flops, {}, {0}) : elementwiseCost(flops, {0});
    return type;
}

CellType gelu() {
    CellType type = activation("GELU", "x · Φ(x), Φ the normal distribution's cumulative function.",
                               "x · Φ(x)，Φ 为标准正态分布的累积函数。", 8, false);
    type.params = {choiceParam("approximate", {"none", "tanh"}, "none: exact. tanh: the approximation of GPT-2.",
                               "none：精确。tanh：GPT-2 的近似式。")};
    return type;
}

CellType softmax() {
    CellType type =
        activation("Softmax", "Numbers along one axis as probabilities that add up to one.", "把一个轴上的数变成和为一的概率。", 5, true);
    type.amp.atAuto = AmpTraits::Auto::Float32;
    type.params = {integerParam("axis", -8, "The axis; -1 is the last.", "所用的轴；-1 为最后一维。", std::int64_t(-1))};
    type.shapeRule = [](const RuleInput& in) -> Shapes {
        const std::int64_t axis = in.cell.integer("axis"), rank = static_cast<std::int64_t>(in.inputs[0].size());
        if (axis >= -rank && axis < rank) return sameShape(in);
        return fail("x is " + graph::toString(in.inputs[0]) + ", which has no axis " + std::to_string(axis) + ".",
                    "Use -1 for the last one.", "axis");
    };
    return type;
}

} // namespace

void addActivation(std::vector<CellType>& out) {
    out.push_back(activation("SiLU", "x · sigmoid(x).", "x · sigmoid(x)。", 5, false));
    out.push_back(gelu());
    out.push_back(activation("ReLU", "max(x, 0).", "max(x, 0)。", 1, true));
    out.back().amp.isHalfAtO1 = true;
    out.push_back(activation("Tanh", "Hyperbolic tangent.", "双曲正切。", 5, true));
    out.push_back(activation("Sigmoid", "1 / (1 + e⁻ˣ).", "1 / (1 + e⁻ˣ)。", 4, true));
    out.push_back(softmax());
}

} // namespace celloom::catalog
