// Dense and Embedding.
#include "models/catalog/building.h"

namespace celloom::catalog {
namespace {

CellType dense() {
    CellType type;
    type.name = "Dense";
    type.category = "Dense and embedding";
    type.summary = "Linear layer: out = x · weightᵀ + bias over the last dimension.";
    type.summaryZh = "全连接层：对最后一维计算 out = x · weightᵀ + bias。";
    type.inputs = {{"x"}};
    type.outputs = {{"out"}};
    type.params = {integerParam("in_channels", 1, "Size of the last dimension of x.", "x 最后一维的大小。"),
                   integerParam("out_channels", 1, "Size of the last dimension of out.", "out 最后一维的大小。"),
                   flagParam("has_bias", false, "Add a learned bias.", "是否加可学习的偏置。")};
    type.shapeRule = [](const RuleInput& in) -> Shapes {
        CELLOOM_TRY_STATUS(expectLast("x", in.inputs[0], in.cell.integer("in_channels"), "in_channels"));
        Shape out = in.inputs[0];
        out.back() = fixed(in.cell.integer("out_channels"));
        return std::vector<Shape>{out};
    };
    type.takesAdapter = true;
    type.amp = {.isHalfAtO1 = true, .atAuto = AmpTraits::Auto::Half};
    type.weights = [](const CellInstance& cell) {
        const std::int64_t in = cell.integer("in_channels"), out = cell.integer("out_channels");
        std::vector<WeightSpec> weights{{"weight", {out, in}, WeightSpec::Init::Normal}};
        if (cell.flag("has_bias")) weights.push_back({"bias", {out}, WeightSpec::Init::Zeros});
        return weights;
    };
    type.cost = [](const CellInstance& cell, const Sizes&, const Sizes& outputs) {
        const double perValue = 2.0 * static_cast<double>(cell.integer("in_channels")) + (cell.flag("has_bias") ? 1 : 0);
        CellCost cost{perValue * static_cast<double>(sizeOf(outputs[0])), {0}, {}, 0};
        cost.keptForWeights = {0};
        return cost;
    };
    return type;
}

CellType embedding() {
    CellType type;
    type.name = "Embedding";
    type.category = "Dense and embedding";
    type.summary = "A learned row for each id of the vocabulary.";
    type.summaryZh = "词表中每个编号对应一行可学习的向量。";
    type.inputs = {{"ids", false, "int64"}};
    type.outputs = {{"out"}};
    type.params = {integerParam("vocab_size", 1, "Rows: ids run from 0 to one below this.", "行数：编号从 0 到该值减一。"),
                   integerParam("embedding_size", 1, "Size of each row.", "每行的大小。"),
                   integerParam("padding_idx", -1, "Row whose gradient is always zero (the padding id); -1: none.",
                                "梯度恒为零的行（填充编号）；-1：没有。", std::int64_t(-1)),
                   flagParam("shares_weight", false, "A second output, weight: the rows themselves, for a tied LMHead.",
                             "增加输出 weight，即各行向量本身，供共享权重的 LMHead 使用。")};
    type.outputsOf = [](const CellInstance& cell) {
        return cell.flag("shares_weight") ? std::vector<PortDef>{{"out"}, {"weight"}} : std::vector<PortDef>{{"out"}};
    };
    type.check = [](const CellInstance& cell) -> Status {
        const std::int64_t vocab = cell.integer("vocab_size"), padding = cell.integer("padding_idx");
        if (padding < vocab) return {};
        return fail("padding_idx = " + std::to_string(padding) + " is outside the vocabulary of " + std::to_string(vocab) + ".",
                    "Give an id below vocab_size, or -1.", "padding_idx");
    };
    type.shapeRule = [](const RuleInput& in) -> Shapes {
        Shape out = in.inputs[0];
        out.push_back(fixed(in.cell.integer("embedding_size")));
        std::vector<Shape> shapes{out};
        if (in.cell.flag("shares_weight"))
            shapes.push_back({fixed(in.cell.integer("vocab_size")), fixed(in.cell.integer("embedding_size"))});
        return shapes;
    };
    type.weights = [](const CellInstance& cell) {
        return std::vector<WeightSpec>{{"weight", {cell.integer("vocab_size"), cell.integer("embedding_size")}, WeightSpec::Init::Normal}};
    };
    type.cost = [](const CellInstance& cell, const Sizes&, const Sizes&) {
        CellCost cost{0, {0}, {}, 0};
        if (cell.flag("shares_weight")) cost.weightOutput = 1;
        return cost;
    };
    return type;
}

} // namespace

void addDense(std::vector<CellType>& out) {
    out.push_back(dense());
    out.push_back(embedding());
}

} // namespace celloom::catalog
