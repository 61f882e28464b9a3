// RMSNorm, LayerNorm, Dropout.
#include "models/catalog/building.h"

namespace celloom::catalog {
namespace {

CellType norm(const char* name, const char* summary, const char* summaryZh, bool isLayerNorm, double eps) {
    CellType type;
    type.name = name;
    type.category = "Normalisation";
    type.summary = summary;
    type.summaryZh = summaryZh;
    type.inputs = {{"x"}};
    type.outputs = {{"out"}};
    // RMSNorm is on none of MindSpore's lists, so its own runs in half at O2; here it computes in float32, with the same types on its wires.
    type.amp = {.isFloatAtO2 = true, .atAuto = AmpTraits::Auto::Float32};
    type.params = {integerParam("dim", 1, "Size of the last dimension of x.", "x 最后一维的大小。"),
                   realParam("eps", eps, 0, 1, "Added below the root, against division by zero.", "加在根号内，避免除以零。")};
    type.shapeRule = [](const RuleInput& in) -> Shapes {
        CELLOOM_TRY_STATUS(expectLast("x", in.inputs[0], in.cell.integer("dim"), "dim"));
        return sameShape(in);
    };
    type.weights = [isLayerNorm](const CellInstance& cell) {
        std::vector<WeightSpec> weights{{"weight", {cell.integer("dim")}, WeightSpec::Init::Ones}};
        if (isLayerNorm) weights.push_back({"bias", {cell.integer("dim")}, WeightSpec::Init::Zeros});
        return weights;
    };
    type.cost = [isLayerNorm](const CellInstance& cell, const Sizes&, const Sizes& outputs) {
        const std::int64_t values = sizeOf(outputs[0]), rows = values / cell.integer("dim");
        return CellCost{
            (isLayerNorm ? 8.0 : 5.0) * static_cast<double>(values), {0}, {}, isLayerNorm ? 2 * rows : rows}; // the row statistics
    };
    return type;
}

CellType dropout() {
    CellType type;
    type.name = "Dropout";
    type.category = "Normalisation";
    type.summary = "While training, sets numbers to zero at random and scales the others up; otherwise passes x on.";
    type.summaryZh = "训练时随机把数置零并放大其余的数；否则原样输出。";
    type.inputs = {{"x"}};
    type.outputs = {{"out"}};
    type.params = {realParam("p", 0.1, 0, 0.999999, "Probability of a number to become zero.", "每个数被置零的概率。")};
    type.shapeRule = sameShape;
    type.cost = [](const CellInstance& cell, const Sizes&, const Sizes& outputs) {
        const std::int64_t values = sizeOf(outputs[0]);
        CellCost cost{static_cast<double>(values), {}, {}, values}; // the mask
        if (cell.real("p") > 0) return cost;
        cost = {};
        cost.areOutputsViews = cost.passesGradient = true;
        return cost;
    };
    return type;
}

} // namespace

void addNormalisation(std::vector<CellType>& out) {
    out.push_back(norm("RMSNorm", "Scales each row to a root mean square of one: x / √(mean(x²) + eps) · weight.",
                       "把每行缩放到均方根为一：x / √(mean(x²) + eps) · weight。", false, 1e-6));
    out.push_back(norm("LayerNorm", "Shifts and scales each row to mean 0 and variance 1: (x − mean) / √(var + eps) · weight + bias.",
                       "把每行平移缩放到均值 0、方差 1：(x − mean) / √(var + eps) · weight + bias。", true, 1e-5));
    out.push_back(dropout());
}

} // namespace celloom::catalog
