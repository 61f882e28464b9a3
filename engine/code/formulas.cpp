// Arithmetic of tensors: one cell where the catalogue has it, else a step of a formula.
#include "engine/code/class_reader.h"

#include "models/base/text.h"
#include "models/code/forms.h"

namespace celloom::engine::code {
namespace {

using Kind = Value::Kind;
using Params = std::map<std::string, graph::ParamValue>;

} // namespace

Value ClassReader::elementwise(const std::string& sign, const Value& a, const Value& b, const Node& node) {
    static const std::map<std::string, std::string> kTypes{{"+", "Add"}, {"-", "Subtract"}, {"*", "Multiply"}, {"/", "Divide"}};
    const bool areTensors = a.kind == Kind::Tensor && b.kind == Kind::Tensor;
    if (areTensors && kTypes.contains(sign)) return function(kTypes.at(sign), {}, {a, b}, node);
    if (a.kind == Kind::Items && b.kind == Kind::Items && sign == "+") {
        Value out = a;
        out.items.insert(out.items.end(), b.items.begin(), b.items.end());
        return out;
    }
    const bool isFormula = kTypes.contains(sign) || sign == "**";
    const auto usable = [&](const Value& value) { return value.kind == Kind::Tensor || isNumeric(value); };
    if (!isFormula || !usable(a) || !usable(b)) {
        const Value& bad = a.kind == Kind::Undefined ? a : b;
        if (a.kind == Kind::Size || b.kind == Kind::Size)
            refuse(node, "Sizes of a tensor can be handed to reshape alone.", "Write -1 for what is worked out.");
        refuse(node, "'" + sign + "' cannot stand between these.", bad.kind == Kind::Undefined ? bad.text : "");
    }
    std::vector<Value> inputs;
    const auto part = [&](const Value& value) {
        if (value.kind == Kind::Tensor) {
            for (std::size_t i = 0; i < inputs.size(); ++i)
                if (inputs[i].end == value.end) return "in" + std::to_string(i);
            inputs.push_back(value);
            return "in" + std::to_string(inputs.size() - 1);
        }
        if (value.kind == Kind::Expression) m_session.note(m_class.name + ": " + value.text + " stands in a formula as a number.");
        const auto number = known(value);
        if (!number) refuse(node, "This number is not known.", "");
        const std::string text = value.kind == Kind::Number ? scriptValueText(value.number) : celloom::numberText(*number);
        return text.starts_with('-') ? "(" + text + ")" : text;
    };
    const std::string left = part(a), right = part(b);
    return formula(left + " " + sign + " " + right, inputs, node);
}

Value ClassReader::formula(const std::string& text, const std::vector<Value>& inputs, const Node& place) {
    auto plain = celloom::code::plainFormula(text, static_cast<int>(inputs.size()));
    if (!plain) refuse(place, "The formula " + inQuotes(text) + ": " + plain.error().message, plain.error().hint);
    Params params{{"formula", *plain}};
    if (inputs.size() != 1) params["inputs"] = static_cast<std::int64_t>(inputs.size());
    return function("Expression", std::move(params), inputs, place);
}

Value ClassReader::wholeFormula(const Node& node) {
    std::vector<Value> inputs;
    const std::string text = formulaText(node, inputs, 0);
    return formula(text, inputs, node);
}

/// Levels: 0 comparison, 1 sum, 2 product, 3 sign, 4 power, 5 one word.
std::string ClassReader::formulaText(const Node& node, std::vector<Value>& inputs, int level) {
    if (m_depth > 600) refuse(node, "This formula is nested too deep.", "");
    ++m_depth;
    struct Leave {
        int& depth;
        ~Leave() { --depth; }
    } leave{m_depth};
    const auto within = [&](int own, const std::string& text) { return own < level ? "(" + text + ")" : text; };
    if (node.kind == Syntax::Binary) {
        static const std::map<std::string, int> kLevels{{"<", 0}, {">", 0}, {"<=", 0}, {">=", 0}, {"==", 0}, {"!=", 0},
                                                        {"+", 1}, {"-", 1}, {"*", 2},  {"/", 2},  {"**", 4}};
        const auto own = kLevels.find(node.text);
        if (own == kLevels.end()) refuse(node, "'" + node.text + "' is not available in a formula.", "");
        const bool isPower = node.text == "**";
        const std::string a = formulaText(node.of[0], inputs, isPower ? 5 : own->second == 0 ? 1 : own->second);
        const std::string b = formulaText(node.of[1], inputs, isPower ? 4 : own->second + 1);
        return within(own->second, a + " " + node.text + " " + b);
    }
    if (node.kind == Syntax::Unary && node.text == "-") return within(3, "-" + formulaText(node.of[0], inputs, 3));
    if (node.kind == Syntax::Call) {
        const std::string dotted = dottedName(node.of[0]);
        const std::string name = dotted.substr(dotted.rfind('.') + 1);
        static const std::set<std::string> kKnown{"exp",  "log",     "sqrt", "abs",     "sin",     "cos",
                                                  "tanh", "sigmoid", "relu", "maximum", "minimum", "where"};
        if (!kKnown.contains(name))
            refuse(node, inQuotes(name, 40) + " is not available in a formula.",
                   "Known are exp, log, sqrt, abs, sin, cos, tanh, sigmoid, relu, maximum, minimum and where.");
        std::string out;
        for (std::size_t i = 1; i < node.of.size(); ++i) out += (out.empty() ? "" : ", ") + formulaText(node.of[i], inputs, 0);
        return name + "(" + out + ")";
    }
    if (node.kind == Syntax::Number) return node.text;
    const Value value = evaluate(node);
    if (value.kind == Kind::Tensor) {
        for (std::size_t i = 0; i < inputs.size(); ++i)
            if (inputs[i].end == value.end) return "in" + std::to_string(i);
        inputs.push_back(value);
        return "in" + std::to_string(inputs.size() - 1);
    }
    const auto number = known(value);
    if (!number) refuse(node, "This is neither a tensor nor a number.", "");
    if (value.kind == Kind::Expression) m_session.note(m_class.name + ": " + value.text + " stands in a formula as a number.");
    const std::string text = celloom::numberText(*number);
    return text.starts_with('-') ? within(3, text) : text;
}

} // namespace celloom::engine::code
