// Cells that join and part wires: Add, Multiply, Residual, Split, Concat.
#include "models/catalog/building.h"

namespace celloom::catalog {
namespace {

CellType pair(const char* name, const char* summary, const char* summaryZh, const char* a, const char* b) {
    CellType type;
    type.name = name;
    type.category = "Structure";
    type.summary = summary;
    type.summaryZh = summaryZh;
    type.inputs = {{a}, {b}};
    type.outputs = {{"out"}};
    type.shapeRule = [a = std::string(a), b = std::string(b)](const RuleInput& in) -> Shapes {
        CELLOOM_TRY_STATUS(expectSame(a, in.inputs[0], b, in.inputs[1]));
        return std::vector<Shape>{in.inputs[0]};
    };
    type.cost = [](const CellInstance&, const Sizes&, const Sizes& outputs) {
        CellCost cost{static_cast<double>(sizeOf(outputs[0])), {}, {}, 0};
        cost.passesGradient = true;
        return cost;
    };
    return type;
}

CellType residual() {
    CellType type =
        pair("Residual", "The way around a branch: out = x + scale · branch.", "绕过分支的捷径：out = x + scale · branch。", "x", "branch");
    type.params = {realParam("scale", 1, -1e6, 1e6, "Factor on the branch.", "分支的系数。")};
    type.cost = [](const CellInstance& cell, const Sizes&, const Sizes& outputs) {
        CellCost cost{static_cast<double>(sizeOf(outputs[0])), {}, {}, 0};
        cost.passesGradient = cell.real("scale") == 1;
        return cost;
    };
    return type;
}

std::vector<PortDef> numbered(const char* prefix, std::size_t count) {
    std::vector<PortDef> ports;
    for (std::size_t i = 0; i < count; ++i) ports.push_back({prefix + std::to_string(i)});
    return ports;
}

CellType split() {
    CellType type;
    type.name = "Split";
    type.category = "Structure";
    type.summary = "Parts the last dimension into pieces: out0, out1, …";
    type.summaryZh = "把最后一维切成几段：out0、out1……";
    type.inputs = {{"x"}};
    type.outputs = {{"out0"}, {"out1"}};
    ParamDef sizes;
    sizes.name = "sizes";
    sizes.kind = ParamKind::IntegerList;
    sizes.minimum = 1;
    sizes.maximum = 1e12;
    sizes.help = "Sizes of the pieces, in order; they add up to the last dimension of x.";
    sizes.helpZh = "各段的大小，按顺序；总和等于 x 的最后一维。";
    type.params = {
        sizes, integerParam("groups", 1,
                            "The last dimension is this many equal groups in a row; sizes are those of one group, and each piece "
                            "gathers its part of every group (InternLM2's wqkv).",
                            "最后一维由这么多个相等的组排成；sizes 是一组内各段的大小，每段收集所有组中对应的部分（InternLM2 的 wqkv）。",
                            std::int64_t(1))};
    type.outputsOf = [](const CellInstance& cell) { return numbered("out", cell.integers("sizes").size()); };
    type.shapeRule = [](const RuleInput& in) -> Shapes {
        std::vector<Shape> out;
        std::int64_t sum = 0;
        const std::int64_t groups = in.cell.integer("groups");
        for (const std::int64_t size : in.cell.integers("sizes")) {
            const std::int64_t piece = sizeOf({groups, size});
            if (piece > graph::kMaxDim - sum)
                return fail("The sizes add up to more than a dimension can hold.", "Give smaller sizes.", "sizes");
            sum += piece;
            out.push_back(in.inputs[0]);
            if (!out.back().empty()) out.back().back() = fixed(piece);
        }
        if (!in.inputs[0].empty() && in.inputs[0].back() == fixed(sum)) return out;
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
    type.summary = "Puts inputs one after the other along the last dimension: in0, in1, …";
    type.summaryZh = "沿最后一维依次拼接输入：in0、in1……";
    type.inputs = {{"in0"}, {"in1"}};
    type.outputs = {{"out"}};
    type.params = {integerParam("inputs", 1, "Number of inputs.", "输入的个数。", std::int64_t(2))};
    type.params.back().maximum = 64;
    type.inputsOf = [](const CellInstance& cell) { return numbered("in", static_cast<std::size_t>(cell.integer("inputs"))); };
    type.shapeRule = [](const RuleInput& in) -> Shapes {
        Shape out = in.inputs[0];
        for (std::size_t i = 0; i < in.inputs.size(); ++i) {
            const Shape& other = in.inputs[i];
            const bool isPlain = !other.empty() && other.back().symbol.empty();
            Shape rest = other, first = in.inputs[0];
            if (isPlain) rest.pop_back();
            if (!first.empty()) first.pop_back();
            if (!isPlain || rest != first)
                return fail("in" + std::to_string(i) + " is " + graph::toString(other) + " and in0 is " + graph::toString(in.inputs[0]) +
                                "; all but the last dimension must agree, and the last be a number.",
                            "Change the cells that feed them so that they agree.");
            if (i > 0) out.back().number += other.back().number;
        }
        return std::vector<Shape>{out};
    };
    type.cost = [](const CellInstance&, const Sizes&, const Sizes&) { return CellCost{}; };
    return type;
}

} // namespace

void addStructure(std::vector<CellType>& out) {
    out.push_back(pair("Add", "a + b.", "a + b。", "a", "b"));
    out.push_back(pair("Multiply", "a · b, number by number.", "逐元素相乘 a · b。", "a", "b"));
    out.back().cost = elementwiseCost(1, {0, 1});
    out.push_back(residual());
    out.push_back(split());
    out.push_back(concat());
}

} // namespace celloom::catalog
