#include "models/code/forms.h"

#include "models/base/text.h"
#include "models/catalog/formula.h"
#include "models/code/python.h"

#include <algorithm>

#include <map>

namespace celloom::code {
namespace {

using Inputs = std::vector<std::string>;

struct Context {
    Dialect dialect;
    const graph::CellInstance& cell;
    const Inputs& in;
    const ValueText& value;
    std::set<std::string>& needs;
    [[nodiscard]] bool isMindSpore() const { return dialect == Dialect::MindSpore; }
    [[nodiscard]] std::string module() const { return isMindSpore() ? "ops" : "torch"; }
};
using Write = Result<ExpressionText> (*)(const Context&);

template <char sign> Result<ExpressionText> infix(const Context& c) {
    return ExpressionText{c.in[0] + " " + sign + " " + c.in[1], {}};
}

Result<ExpressionText> residual(const Context& c) {
    if (c.cell.real("scale") == 1) return ExpressionText{c.in[0] + " + " + c.in[1], "Residual"};
    CELLOOM_TRY(scale, c.value("scale"));
    const bool isSimple = scale.find(' ') == std::string::npos;
    return ExpressionText{c.in[0] + " + " + (isSimple ? scale : "(" + scale + ")") + " * " + c.in[1], "Residual"};
}

std::string inTuple(const Inputs& items) {
    return "(" + joined(items, 100000) + (items.size() == 1 ? ",)" : ")");
}

/// The items of "[a, b]": "a, b".
std::string inside(const std::string& list) {
    return list.size() >= 2 && list.front() == '[' ? list.substr(1, list.size() - 2) : list;
}
bool isOne(const std::string& list) {
    return listItems(inside(list)).size() == 1;
}
/// "a", or "(a, b)".
std::string pairText(const std::string& list) {
    return isOne(list) ? inside(list) : "(" + inside(list) + ")";
}

Result<ExpressionText> concat(const Context& c) {
    CELLOOM_TRY(axis, c.cell.params.contains("axis") ? c.value("axis") : Result<std::string>("-1"));
    return ExpressionText{c.module() + ".cat(" + inTuple(c.in) + ", " + axis + ")", {}};
}

Result<ExpressionText> split(const Context& c) {
    CELLOOM_TRY(sizes, c.value("sizes"));
    CELLOOM_TRY(axis, c.cell.params.contains("axis") ? c.value("axis") : Result<std::string>("-1"));
    const std::string first = c.cell.integers("sizes").size() == 1 ? "[0]" : "";
    if (c.cell.integer("groups") == 1)
        return ExpressionText{c.module() + ".split(" + c.in[0] + ", " + sizes + ", " + axis + ")" + first, {}};
    c.needs.insert("split_groups");
    CELLOOM_TRY(groups, c.value("groups"));
    return ExpressionText{"split_groups(" + c.in[0] + ", " + sizes + ", " + groups + (axis == "-1" ? "" : ", " + axis) + ")" + first, {}};
}

/// A 0 keeps the dimension at its place: x.shape[1].
Result<ExpressionText> reshape(const Context& c) {
    CELLOOM_TRY(list, c.value("shape"));
    const auto sizes = c.cell.integers("shape");
    const auto items = listItems(inside(list));
    std::string out;
    for (std::size_t i = 0; i < items.size(); ++i)
        out += (out.empty() ? "" : ", ") + (sizes[i] == 0 ? c.in[0] + ".shape[" + std::to_string(i) + "]" : items[i]);
    return ExpressionText{c.in[0] + ".reshape(" + out + ")", {}};
}

Result<ExpressionText> transpose(const Context& c) {
    CELLOOM_TRY(perm, c.value("perm"));
    return ExpressionText{c.in[0] + (c.isMindSpore() ? ".transpose(" : ".permute(") + inside(perm) + ")", {}};
}

Result<ExpressionText> flatten(const Context& c) {
    CELLOOM_TRY(begin, c.value("start_dim"));
    CELLOOM_TRY(end, c.value("end_dim"));
    if (c.isMindSpore()) return ExpressionText{"ops.flatten(" + c.in[0] + ", start_dim=" + begin + ", end_dim=" + end + ")", {}};
    return ExpressionText{"torch.flatten(" + c.in[0] + ", " + begin + ", " + end + ")", {}};
}

/// x[:, 2:4], x[..., 0], x[..., 0, :].
Result<ExpressionText> slice(const Context& c) {
    const std::int64_t axis = c.cell.integer("axis");
    CELLOOM_TRY(begin, c.value("begin"));
    CELLOOM_TRY(end, c.value("end"));
    CELLOOM_TRY(step, c.value("step"));
    std::string index = begin;
    if (c.cell.text("kind") == "range")
        index =
            (begin == "0" ? "" : begin) + ":" + (c.cell.integer("end") == 0 ? "" : end) + (c.cell.integer("step") == 1 ? "" : ":" + step);
    std::string out;
    for (std::int64_t i = 0; i < axis; ++i) out += ":, ";
    if (axis < 0) out += "..., ";
    out += index;
    for (std::int64_t i = axis; i < -1; ++i) out += ", :";
    return ExpressionText{c.in[0] + "[" + out + "]", {}};
}

Result<ExpressionText> reduce(const Context& c) {
    static const std::map<std::string, std::string> kNames{{"ReduceMean", "mean"}, {"ReduceSum", "sum"}, {"ReduceMax", "amax"}};
    CELLOOM_TRY(axis, c.value("axis"));
    CELLOOM_TRY(keep, c.value("keep_dims"));
    return ExpressionText{
        c.module() + "." + kNames.at(c.cell.type) + "(" + c.in[0] + ", " + pairText(axis) + (keep == "False" ? "" : ", " + keep) + ")", {}};
}

Result<ExpressionText> matMul(const Context& c) {
    std::string out;
    for (const char* port : {"a", "b"}) {
        const std::string flag = std::string("transpose_") + port;
        CELLOOM_TRY(text, c.value(flag));
        if (text != "True" && text != "False")
            return fail("takes its " + flag + " from a hyper-parameter, which cannot be written as code.", "Give true or false.");
        out += (out.empty() ? "" : ", ") + c.in[port[0] == 'a' ? 0 : 1] +
               (text == "False"   ? ""
                : c.isMindSpore() ? ".swapaxes(-1, -2)"
                                  : ".transpose(-1, -2)");
    }
    return ExpressionText{c.module() + ".matmul(" + out + ")", {}};
}

Result<ExpressionText> branch(const Context& c) {
    c.needs.insert("branch");
    return ExpressionText{"branch(" + joined(c.in, 100) + ")", {}};
}

// ---- Expression ----

using catalog::Formula;

/// How functions and inputs are called where the formula is written.
struct FormulaWords {
    const std::vector<std::string>& inputs;
    std::string prefix;           // "ops."
    bool clampsToNumbers = false; // torch.maximum takes tensors alone
};

/// A node with the level at which it binds: 0 a comparison, 1 a sum, 2 a product, 3 a sign, 4 a power, 5 one word.
std::string formulaText(const FormulaWords& words, const Formula& formula, int at, int level) {
    using Op = Formula::Op;
    const Formula::Node& node = formula.nodes[static_cast<std::size_t>(at)];
    const auto operand = [&](std::size_t which, int own) { return formulaText(words, formula, node.of[which], own); };
    const auto within = [&](int own, const std::string& text) { return own < level ? "(" + text + ")" : text; };
    if (node.op == Op::Input) return words.inputs[static_cast<std::size_t>(node.input)];
    if (node.op == Op::Number) {
        const std::string text = numberText(node.number);
        return text.starts_with('-') ? within(3, text) : text;
    }
    if (node.op == Op::Negate) return within(3, "-" + operand(0, 3));
    if (catalog::isInfix(node.op)) {
        const int own = catalog::isComparison(node.op)                  ? 0
                        : node.op == Op::Add || node.op == Op::Subtract ? 1
                        : node.op == Op::Power                          ? 4
                                                                        : 2;
        const bool isPower = node.op == Op::Power;
        return within(own, operand(0, isPower    ? 5
                                      : own == 0 ? 1
                                                 : own) +
                               " " + catalog::nameOf(node.op) + " " + operand(1, isPower ? 4 : own + 1));
    }
    const auto isNumber = [&](std::size_t which) { return formula.nodes[static_cast<std::size_t>(node.of[which])].op == Op::Number; };
    if (words.clampsToNumbers && (node.op == Op::Maximum || node.op == Op::Minimum) &&
        (isNumber(0) || isNumber(1))) // torch.maximum takes tensors alone
        return words.prefix + "clamp(" + operand(isNumber(0) ? 1 : 0, 0) + ", " + (node.op == Op::Maximum ? "min=" : "max=") +
               operand(isNumber(0) ? 0 : 1, 0) + ")";
    std::string arguments;
    for (std::size_t i = 0; i < node.of.size(); ++i) arguments += (arguments.empty() ? "" : ", ") + operand(i, 0);
    return words.prefix + catalog::nameOf(node.op) + "(" + arguments + ")";
}

Result<ExpressionText> expression(const Context& c) {
    CELLOOM_TRY(formula, catalog::readFormula(c.cell.text("formula"), static_cast<int>(c.cell.integer("inputs"))));
    const FormulaWords words{c.in, c.module() + ".", !c.isMindSpore()};
    return ExpressionText{formulaText(words, formula, static_cast<int>(formula.nodes.size()) - 1, 0), "Expression"};
}

const std::map<std::string, Write>& forms() {
    static const std::map<std::string, Write> all{
        {"Add", infix<'+'>}, {"Subtract", infix<'-'>},   {"Multiply", infix<'*'>}, {"Divide", infix<'/'>},   {"Residual", residual},
        {"Concat", concat},  {"Split", split},           {"Reshape", reshape},     {"Transpose", transpose}, {"Flatten", flatten},
        {"Slice", slice},    {"ReduceMean", reduce},     {"ReduceSum", reduce},    {"ReduceMax", reduce},    {"MatMul", matMul},
        {"Branch", branch},  {"Expression", expression},
    };
    return all;
}

} // namespace

Result<std::string> plainFormula(const std::string& text, int inputs) {
    CELLOOM_TRY(formula, catalog::readFormula(text, inputs));
    std::vector<std::string> names;
    for (int i = 0; i < inputs; ++i) names.push_back("in" + std::to_string(i));
    return formulaText({names, {}}, formula, static_cast<int>(formula.nodes.size()) - 1, 0);
}

bool isExpressionForm(const std::string& type) {
    return forms().contains(type);
}

Result<ExpressionText> expressionForm(Dialect dialect, const graph::CellInstance& cell, const Inputs& inputs, const ValueText& value,
                                      std::set<std::string>& needs) {
    return forms().at(cell.type)({dialect, cell, inputs, value, needs});
}

Result<std::optional<std::string>> inForm(const Argument& argument, const graph::CellInstance& cell, const ValueText& valueText) {
    using Text = std::optional<std::string>;
    if (argument.form == Form::PoolMode) {
        const bool isPadded = cell.flag("ceil_mode") || cell.text("padding").find_first_not_of("0,") != std::string::npos;
        return Text(isPadded ? "\"pad\"" : "\"valid\"");
    }
    CELLOOM_TRY(value, valueText(argument.param));
    std::int64_t whole = 0;
    switch (argument.form) {
    case Form::Tuple:
        return Text("(" + value + ",)");
    case Form::Padding:
        if (readNumber(std::string_view(value), whole)) return Text(whole < 0 ? "None" : value);
        return Text(value + " if " + value + " >= 0 else None");
    case Form::TanhFlag:
        return Text(value == "\"tanh\"" ? "True" : "False");
    case Form::Complement:
        return Text(numberText(1 - cell.real(argument.param)) == numberText(0.1) || value == "0.9" ? std::string("0.1") : "1 - " + value);
    case Form::Pair:
        return Text(pairText(value));
    case Form::PoolStride: {
        const auto steps = cell.integers(argument.param);
        if (std::all_of(steps.begin(), steps.end(), [](std::int64_t step) { return step != 0; })) return Text(pairText(value));
        if (argument.standard == "None" && steps.size() == 1) return Text();
        CELLOOM_TRY(window, valueText("kernel_size"));
        const auto windows = listItems(inside(window)), items = listItems(inside(value));
        if (steps.size() == 1) return Text(pairText(window));
        return Text("(" + (steps[0] == 0 ? windows.front() : items[0]) + ", " + (steps[1] == 0 ? windows.back() : items[1]) + ")");
    }
    case Form::Padding4: {
        const auto items = listItems(inside(value));
        if (items.size() == 2) return Text("(" + items[0] + ", " + items[0] + ", " + items[1] + ", " + items[1] + ")");
        return Text(pairText(value));
    }
    case Form::Padding2: {
        if (cell.text("pad_mode") == "same") return Text("\"same\"");
        const auto items = listItems(inside(value));
        return Text(items.size() == 4 ? "(" + items[0] + ", " + items[2] + ")" : pairText(value));
    }
    default:
        return Text(value);
    }
}

bool fitsLayer(Dialect dialect, const graph::CellInstance& cell) {
    if (dialect != Dialect::PyTorch || cell.type != "Conv2d") return true;
    const auto padding = cell.integers("padding"), stride = cell.integers("stride");
    const bool isEven = padding.size() < 4 || (padding[0] == padding[1] && padding[2] == padding[3]);
    return isEven &&
           (cell.text("pad_mode") != "same" || std::all_of(stride.begin(), stride.end(), [](std::int64_t step) { return step == 1; }));
}

} // namespace celloom::code
