// Arithmetic between wires, with NumPy's broadcasting: Add, Subtract, Multiply, Divide, MatMul, Expression; and ReduceSum, ReduceMean,
// ReduceMax.
#include "models/base/capped.h"
#include "models/base/text.h"
#include "models/catalog/building.h"
#include "models/catalog/formula.h"

#include <algorithm>
#include <set>

namespace celloom::catalog {
namespace {

using Op = Formula::Op;
using Dims = std::vector<std::int64_t>;

CellType joining(const char* name, const char* summary, const char* summaryZh) {
    CellType type;
    type.name = name;
    type.category = "Arithmetic";
    type.summary = summary;
    type.summaryZh = summaryZh;
    type.inputs = {{"a"}, {"b"}};
    type.outputs = {{"out"}};
    return type;
}

Dims broadcastDims(const Dims& a, const Dims& b) {
    Dims out = a.size() < b.size() ? b : a;
    const Dims& other = a.size() < b.size() ? a : b;
    const std::size_t offset = out.size() - other.size();
    for (std::size_t i = 0; i < other.size(); ++i) out[offset + i] = std::max(out[offset + i], other[i]);
    return out;
}

/// `keepsInputs`: the derivative is computed from them.
CellType pair(const char* name, const char* summary, const char* summaryZh, bool keepsInputs) {
    CellType type = joining(name, summary, summaryZh);
    type.shapeRule = [](const RuleInput& in) -> Shapes {
        CELLOOM_TRY(out, broadcast("a", in.inputs[0], "b", in.inputs[1]));
        return std::vector<Shape>{out};
    };
    type.cost = [keepsInputs](const CellInstance&, const Sizes& inputs, const Sizes& outputs) {
        const std::int64_t values = sizeOf(outputs[0]);
        CellCost cost{static_cast<double>(values), {}, {}, 0};
        if (keepsInputs) {
            cost.keptInputs = {0, 1};
            if (sizeOf(inputs[0]) != values || sizeOf(inputs[1]) != values) cost.backwardWorkspace = values; // before it is added up
        }
        cost.passesGradient = !keepsInputs;
        return cost;
    };
    return type;
}

CellType subtract() {
    CellType type = pair("Subtract", "a − b, broadcast as NumPy does.", "a − b，按 NumPy 规则广播。", false);
    const auto add = type.cost;
    type.cost = [add](const CellInstance& cell, const Sizes& inputs, const Sizes& outputs) {
        CellCost cost = add(cell, inputs, outputs);
        cost.passesGradient = false; // b's is the negative
        return cost;
    };
    return type;
}

// ---- MatMul ----

CellType matMul() {
    CellType type =
        joining("MatMul", "Matrix product of the last two dimensions, a · b; the dimensions before them are broadcast as NumPy does.",
                "对最后两维做矩阵乘 a · b；前面的维按 NumPy 规则广播。");
    type.amp = {.isHalfAtO1 = true, .atAuto = AmpTraits::Auto::Half};
    type.params = {flagParam("transpose_a", false, "Exchange the last two dimensions of a first.", "先交换 a 的最后两维。"),
                   flagParam("transpose_b", false, "Exchange the last two dimensions of b first.", "先交换 b 的最后两维。")};
    type.shapeRule = [](const RuleInput& in) -> Shapes {
        Shape a = in.inputs[0], b = in.inputs[1];
        const std::string both = "a is " + graph::toString(a) + " and b is " + graph::toString(b);
        if (a.size() < 2 || b.size() < 2) return fail(both + "; both need two dimensions or more.", "Put a Reshape before it.");
        if (in.cell.flag("transpose_a")) std::swap(a[a.size() - 1], a[a.size() - 2]);
        if (in.cell.flag("transpose_b")) std::swap(b[b.size() - 1], b[b.size() - 2]);
        if (a.back() != b[b.size() - 2])
            return fail(both + "; the product would need " + graph::toString(Shape{a.back()}) + " = " +
                            graph::toString(Shape{b[b.size() - 2]}) + " between them.",
                        "Change transpose_a or transpose_b, or what feeds them.", "transpose_b");
        const Dim rows = a[a.size() - 2], columns = b.back();
        CELLOOM_TRY(out, broadcast("a without its matrices", {a.begin(), a.end() - 2}, "b without its own", {b.begin(), b.end() - 2}));
        out.push_back(rows);
        out.push_back(columns);
        return std::vector<Shape>{out};
    };
    type.cost = [](const CellInstance& cell, const Sizes& inputs, const Sizes& outputs) {
        const Dims &a = inputs[0], &b = inputs[1];
        const std::int64_t inner = cell.flag("transpose_a") ? a[a.size() - 2] : a.back();
        CellCost cost{2.0 * static_cast<double>(inner) * static_cast<double>(sizeOf(outputs[0])), {0, 1}, {}, 0};
        if (b.size() == 2 && !cell.flag("transpose_a")) return cost; // one product over all rows of a
        const Dims batch(outputs[0].begin(), outputs[0].end() - 2);
        for (int port = 0; port < 2; ++port) { // what is broadcast is repeated for the product
            const Dims& dims = inputs[static_cast<std::size_t>(port)];
            if (Dims(dims.begin(), dims.end() - 2) == batch) continue;
            cost.keptInputs.erase(std::find(cost.keptInputs.begin(), cost.keptInputs.end(), port));
            const std::int64_t repeated = multiplyCapped(sizeOf(batch), multiplyCapped(dims[dims.size() - 1], dims[dims.size() - 2]));
            cost.keptValues = addCapped(cost.keptValues, repeated);
            cost.backwardWorkspace = addCapped(cost.backwardWorkspace, repeated);
        }
        return cost;
    };
    return type;
}

// ---- Reduce ----

CellType reduce(const char* name, const char* summary, const char* summaryZh, bool isMax) {
    CellType type;
    type.name = name;
    type.category = "Arithmetic";
    type.summary = summary;
    type.summaryZh = summaryZh;
    type.inputs = {{"x"}};
    type.outputs = {{"out"}};
    if (!isMax) type.amp = {.isFloatAtO2 = true, .atAuto = AmpTraits::Auto::Float32}; // sums of many numbers
    type.params = {listParam("axis", -8, 7, "-1", "The dimensions that go: one, or several with commas; -1 is the last.",
                             "要归约的维：一个，或用逗号分隔的多个；-1 为最后一维。"),
                   flagParam("keep_dims", false, "They stay with the size 1.", "这些维保留，大小为 1。")};
    type.shapeRule = [](const RuleInput& in) -> Shapes {
        const Shape& x = in.inputs[0];
        const auto rank = static_cast<std::int64_t>(x.size());
        std::set<std::int64_t> gone;
        for (const std::int64_t axis : in.cell.integers("axis")) {
            const std::int64_t at = axis < 0 ? axis + rank : axis;
            if (at < 0 || at >= rank)
                return fail("x is " + graph::toString(x) + ", which has no axis " + std::to_string(axis) + ".",
                            "Give one from " + std::to_string(-rank) + " to " + std::to_string(rank - 1) + ".", "axis");
            if (!gone.insert(at).second)
                return fail("axis = " + in.cell.text("axis") + " names a dimension of " + graph::toString(x) + " twice.", "Name each once.",
                            "axis");
        }
        Shape out;
        for (std::int64_t i = 0; i < rank; ++i) {
            if (!gone.contains(i))
                out.push_back(x[static_cast<std::size_t>(i)]);
            else if (in.cell.flag("keep_dims"))
                out.push_back(fixed(1));
        }
        if (out.empty())
            return fail("x is " + graph::toString(x) + "; no dimension would be left.", "Set keep_dims, or reduce fewer.", "keep_dims");
        return std::vector<Shape>{out};
    };
    type.cost = [isMax](const CellInstance&, const Sizes& inputs, const Sizes&) {
        CellCost cost{static_cast<double>(sizeOf(inputs[0])), {}, {}, 0};
        if (isMax) {
            cost.keptInputs = {0};
            cost.keptOutputs = {0};
        }
        return cost;
    };
    return type;
}

// ---- Expression ----

/// FLOPs of a node for each number that it gives; as the cells of these names count.
double flopsOf(Op op) {
    if (op == Op::Input || op == Op::Number) return 0;
    return op == Op::Tanh ? 5 : op == Op::Sigmoid ? 4 : 1;
}

/// Whether a node's operand, or its result, is kept for its derivative.
bool keepsOperand(const Formula& formula, const Formula::Node& node, std::size_t which) {
    const auto isNumber = [&](std::size_t i) { return formula.nodes[static_cast<std::size_t>(node.of[i])].op == Op::Number; };
    switch (node.op) {
    case Op::Log:
    case Op::Abs:
    case Op::Sin:
    case Op::Cos:
    case Op::Maximum:
    case Op::Minimum:
        return true;
    case Op::Multiply:
        return !isNumber(1 - which);
    case Op::Divide:
        return which == 1 || !isNumber(1);
    case Op::Power:
        return which == 0 || !isNumber(0);
    case Op::Where:
        return which == 0;
    default:
        return false;
    }
}
bool keepsResult(Op op) {
    return op == Op::Exp || op == Op::Sqrt || op == Op::Tanh || op == Op::Sigmoid || op == Op::Relu || op == Op::Power;
}

CellCost expressionCost(const CellInstance& cell, const Sizes& inputs, const Sizes&) {
    const Formula formula = *readFormula(cell.text("formula"), static_cast<int>(cell.integer("inputs")));
    std::vector<Dims> dims;
    std::set<int> kept;
    CellCost cost;
    for (std::size_t i = 0; i < formula.nodes.size(); ++i) {
        const Formula::Node& node = formula.nodes[i];
        Dims own = node.op == Op::Input ? inputs[static_cast<std::size_t>(node.input)] : Dims{};
        for (std::size_t which = 0; which < node.of.size(); ++which) {
            own = broadcastDims(own, dims[static_cast<std::size_t>(node.of[which])]);
            if (keepsOperand(formula, node, which)) kept.insert(node.of[which]);
        }
        if (keepsResult(node.op)) kept.insert(static_cast<int>(i));
        cost.forwardFlops += flopsOf(node.op) * static_cast<double>(sizeOf(own));
        dims.push_back(std::move(own));
    }
    const int result = static_cast<int>(formula.nodes.size()) - 1;
    for (const int at : kept) {
        const Formula::Node& node = formula.nodes[static_cast<std::size_t>(at)];
        if (node.op == Op::Number) continue;
        if (node.op == Op::Input) {
            if (std::find(cost.keptInputs.begin(), cost.keptInputs.end(), node.input) == cost.keptInputs.end())
                cost.keptInputs.push_back(node.input);
        } else if (at == result) {
            cost.keptOutputs = {0};
        } else {
            cost.keptValues = addCapped(cost.keptValues, sizeOf(dims[static_cast<std::size_t>(at)]) /
                                                             (isComparison(node.op) ? 4 : 1)); // a truth value has one byte
        }
    }
    const bool isOneStep = formula.nodes.size() <= 3;
    cost.forwardWorkspace = isOneStep ? 0 : sizeOf(dims.back()); // a term that nobody keeps, before the next one replaces it
    // gradients of terms on their way down; that of a divisor is - gradient · (a / b) / b
    const bool divides = std::any_of(formula.nodes.begin(), formula.nodes.end(), [&](const Formula::Node& node) {
        return node.op == Op::Divide && formula.nodes[static_cast<std::size_t>(node.of[1])].op != Op::Number;
    });
    cost.backwardWorkspace = multiplyCapped(sizeOf(dims.back()), (isOneStep ? 0 : 2) + (divides ? 1 : 0));
    return cost;
}

CellType expression() {
    CellType type = joining("Expression", "A formula of your own, element by element over in0, in1, …, broadcast as NumPy does.",
                            "自定义公式，对 in0、in1……逐元素计算，按 NumPy 规则广播。");
    type.inputs = {{"in0"}};
    ParamDef formula;
    formula.name = "formula";
    formula.kind = ParamKind::Text;
    formula.help = "As Python writes it: + - * / ** and exp, log, sqrt, abs, sin, cos, tanh, sigmoid, relu, maximum(a, b), minimum(a, b), "
                   "where(in0 > 0, a, b). 4000 bytes at most.";
    formula.helpZh = "写法同 Python：+ - * / ** 以及 exp、log、sqrt、abs、sin、cos、tanh、sigmoid、relu、maximum(a, b)、minimum(a, "
                     "b)、where(in0 > 0, a, b)。最多 4000 字节。";
    type.params = {formula, integerParam("inputs", 1, "Number of inputs: in0, in1, …", "输入的个数：in0、in1……", std::int64_t(1))};
    type.params.back().maximum = 16;
    type.amp = {.atAuto = AmpTraits::Auto::Float32};
    type.inputsOf = [](const CellInstance& cell) { return numbered("in", static_cast<std::size_t>(cell.integer("inputs"))); };
    type.check = [](const CellInstance& cell) -> Status {
        auto read = readFormula(cell.text("formula"), static_cast<int>(cell.integer("inputs")));
        if (!read) return tl::unexpected(std::move(read).error());
        return {};
    };
    type.shapeRule = [](const RuleInput& in) -> Shapes {
        Shape out = in.inputs[0];
        for (std::size_t i = 1; i < in.inputs.size(); ++i) {
            CELLOOM_TRY(both, broadcast(i == 1 ? "in0" : "what comes before", out, "in" + std::to_string(i), in.inputs[i]));
            out = std::move(both);
        }
        return std::vector<Shape>{out};
    };
    type.cost = expressionCost;
    return type;
}

} // namespace

void addArithmetic(std::vector<CellType>& out) {
    out.push_back(pair("Add", "a + b, broadcast as NumPy does.", "a + b，按 NumPy 规则广播。", false));
    out.push_back(subtract());
    out.push_back(pair("Multiply", "a · b, number by number, broadcast as NumPy does.", "逐元素相乘 a · b，按 NumPy 规则广播。", true));
    out.push_back(pair("Divide", "a / b, number by number, broadcast as NumPy does.", "逐元素相除 a / b，按 NumPy 规则广播。", true));
    out.push_back(matMul());
    out.push_back(expression());
    out.push_back(reduce("ReduceSum", "The sum over one or more dimensions.", "对一维或多维求和。", false));
    out.push_back(reduce("ReduceMean", "The mean over one or more dimensions.", "对一维或多维求平均。", false));
    out.push_back(reduce("ReduceMax", "The largest number over one or more dimensions; equal ones share the gradient.",
                         "对一维或多维取最大值；并列者平分梯度。", true));
}

} // namespace celloom::catalog
