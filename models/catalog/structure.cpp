// Cells that join and part wires: Residual, Split, Concat.
#include "models/catalog/building.h"

namespace celloom::catalog {
namespace {

CellType residual() {
    CellType type;
    type.name = "Residual";
    type.category = "Structure";
    type.summary = "The way around a branch: out = x + scale · branch.";
    type.summaryZh = "绕过分支的捷径：out = x + scale · branch。";
    type.inputs = {{"x"}, {"branch"}};
    type.outputs = {{"out"}};
    type.params = {realParam("scale", 1, -1e6, 1e6, "Factor on the branch.", "分支的系数。")};
    type.shapeRule = [](const RuleInput& in) -> Shapes {
        CELLOOM_TRY_STATUS(expectSame("x", in.inputs[0], "branch", in.inputs[1]));
        return std::vector<Shape>{in.inputs[0]};
    };
    type.cost = [](const CellInstance& cell, const Sizes&, const Sizes& outputs) {
        // a scale is one multiplication more
        CellCost cost{(cell.real("scale") == 1 ? 1 : 2) * static_cast<double>(sizeOf(outputs[0])), {}, {}, 0};
        cost.passesGradient = cell.real("scale") == 1;
        return cost;
    };
    return type;
}

CellType split() {
    CellType type;
    type.name = "Split";
    type.category = "Structure";
    type.summary = "Parts a dimension into pieces: out0, out1, …";
    type.summaryZh = "把某一维切成几段：out0、out1……";
    type.inputs = {{"x"}};
    type.outputs = {{"out0"}, {"out1"}};
    type.params = {listParam("sizes", 1, 1e12, {}, "Sizes of the pieces, in order; they add up to the dimension of x.",
                             "各段的大小，按顺序；总和等于 x 的该维。"),
                   integerParam("groups", 1,
                                "The dimension is this many equal groups in a row; sizes are those of one group, and each piece "
                                "gathers its part of every group (InternLM2's wqkv).",
                                "该维由这么多个相等的组排成；sizes 是一组内各段的大小，每段收集所有组中对应的部分（InternLM2 的 wqkv）。",
                                std::int64_t(1)),
                   axisParam("axis", -1, "The dimension; -1 is the last.", "所切的维；-1 为最后一维。")};
    type.outputsOf = [](const CellInstance& cell) { return numbered("out", cell.integers("sizes").size()); };
    type.shapeRule = [](const RuleInput& in) -> Shapes {
        std::vector<Shape> out;
        std::int64_t sum = 0;
        const std::int64_t groups = in.cell.integer("groups");
        CELLOOM_TRY(axis, axisOf(in, "axis"));
        for (const std::int64_t size : in.cell.integers("sizes")) {
            const std::int64_t piece = sizeOf({groups, size});
            if (piece > graph::kMaxDim - sum)
                return fail("The sizes add up to more than a dimension can hold.", "Give smaller sizes.", "sizes");
            sum += piece;
            out.push_back(in.inputs[0]);
            out.back()[axis] = fixed(piece);
        }
        if (in.inputs[0][axis] == fixed(sum)) return out;
        return fail("x is " + graph::toString(in.inputs[0]) + ", but sizes = " + in.cell.text("sizes") + " add up to " +
                        std::to_string(sum) + (groups > 1 ? " in " + std::to_string(groups) + " groups." : "."),
                    "Change sizes, or what feeds x.", "sizes");
    };
    type.cost = [](const CellInstance& cell, const Sizes&, const Sizes&) {
        CellCost cost;
        cost.areOutputsViews = cell.integer("groups") == 1; // pieces of several groups are gathered
        return cost;
    };
    return type;
}

CellType concat() {
    CellType type;
    type.name = "Concat";
    type.category = "Structure";
    type.summary = "Puts inputs one after the other along a dimension: in0, in1, …";
    type.summaryZh = "沿某一维依次拼接输入：in0、in1……";
    type.inputs = {{"in0"}, {"in1"}};
    type.outputs = {{"out"}};
    type.params = {integerParam("inputs", 1, "Number of inputs.", "输入的个数。", std::int64_t(2)),
                   axisParam("axis", -1, "The dimension; -1 is the last.", "拼接所沿的维；-1 为最后一维。")};
    type.params.front().maximum = 64;
    type.inputsOf = [](const CellInstance& cell) { return numbered("in", static_cast<std::size_t>(cell.integer("inputs"))); };
    type.shapeRule = [](const RuleInput& in) -> Shapes {
        CELLOOM_TRY(axis, axisOf(in, "axis"));
        Shape out = in.inputs[0];
        for (std::size_t i = 0; i < in.inputs.size(); ++i) {
            Shape other = in.inputs[i];
            const bool isPlain = other.size() == out.size() && other[axis].symbol.empty();
            const std::int64_t size = isPlain ? other[axis].number : 0;
            if (isPlain) other[axis] = out[axis];
            if (!isPlain || other != out)
                return fail("in" + std::to_string(i) + " is " + graph::toString(in.inputs[i]) + " and in0 is " +
                                graph::toString(in.inputs[0]) + "; all but the " +
                                (in.cell.integer("axis") == -1 ? "last dimension" : "dimension " + std::to_string(axis)) +
                                " must agree, and that be a number.",
                            "Change the cells that feed them so that they agree.", in.cell.integer("axis") == -1 ? "" : "axis");
            if (i > 0) out[axis].number += size;
        }
        return std::vector<Shape>{out};
    };
    type.cost = [](const CellInstance&, const Sizes&, const Sizes&) { return CellCost{}; };
    return type;
}

} // namespace

void addStructure(std::vector<CellType>& out) {
    out.push_back(residual());
    out.push_back(split());
    out.push_back(concat());
}

} // namespace celloom::catalog
