// Values of Python expressions, in __init__ and in construct alike.
#include "engine/code/class_reader.h"

#include "models/base/text.h"

#include <algorithm>
#include <cmath>

namespace celloom::engine::code {
namespace {

constexpr int kMaxDepth = 700; // of an expression: the source's bound on words of a line keeps it below

graph::ParamValue literal(const Node& node) {
    ScriptValue value;
    if (!readScriptValue(node.text, value)) refuse(node, inQuotes(node.text) + " is not a number.");
    return value;
}

/// Items in items, all told; it stops counting where they are too many.
std::size_t weightOf(const Value& value) {
    std::size_t out = 1;
    for (const Value& item : value.items)
        if ((out += weightOf(item)) > kMaxItems) break;
    return out;
}

Value valueOf(graph::ParamValue value, Value::Kind kind) {
    Value out;
    out.kind = kind;
    out.number = std::move(value);
    return out;
}

} // namespace

bool ClassReader::isNumeric(const Value& value) {
    return value.kind == Value::Kind::Number || value.kind == Value::Kind::Expression;
}

std::string ClassReader::numberText(const Value& value) {
    return value.kind == Value::Kind::Number ? scriptValueText(value.number) : value.text;
}

Value ClassReader::expressionOf(std::string text, int level) {
    Value out;
    out.kind = Value::Kind::Expression;
    out.text = std::move(text);
    out.level = level;
    return out;
}

std::optional<double> ClassReader::known(const Value& value) const {
    if (value.kind == Value::Kind::Number) {
        if (const auto* whole = std::get_if<std::int64_t>(&value.number)) return static_cast<double>(*whole);
        if (const auto* real = std::get_if<double>(&value.number)) return *real;
        return {};
    }
    if (value.kind != Value::Kind::Expression) return {};
    const auto result = graph::evaluate(value.text, m_scope);
    if (!result) return {};
    if (const auto* whole = std::get_if<std::int64_t>(&*result)) return static_cast<double>(*whole);
    if (const auto* real = std::get_if<double>(&*result)) return *real;
    return {};
}

graph::ParamValue ClassReader::paramOf(const Value& value, const Node& place) const {
    switch (value.kind) {
    case Value::Kind::Number:
    case Value::Kind::Text:
        return value.number;
    case Value::Kind::Flag:
        return value.text.empty() ? value.number : graph::ParamValue(value.text);
    case Value::Kind::Expression:
        return value.text;
    default:
        refuse(place, "A number should stand here.", value.kind == Value::Kind::Undefined ? value.text : "");
    }
}

std::string ClassReader::listText(const Value& value, const Node& place) const {
    if (isNumeric(value)) return numberText(value);
    if (value.kind != Value::Kind::Items) refuse(place, "A number or a list of numbers should stand here.", "");
    std::string out;
    for (const Value& item : value.items) {
        if (!isNumeric(item)) refuse(place, "A list of numbers should stand here.", "");
        out += (out.empty() ? "" : ", ") + numberText(item);
    }
    return out;
}

std::int64_t ClassReader::wholeOf(const Value& value, const Node& place) const {
    const auto number = known(value);
    if (!number || *number != std::floor(*number) || std::abs(*number) > 1e15) refuse(place, "A whole number should stand here.", "");
    return static_cast<std::int64_t>(*number);
}

std::string ClassReader::dottedName(const Node& node) {
    if (node.kind == Syntax::Name) return node.text;
    if (node.kind != Syntax::Select) return {};
    const std::string before = dottedName(node.of[0]);
    return before.empty() ? std::string() : before + "." + node.text;
}

Value ClassReader::evaluate(const Node& node) {
    if (m_depth > kMaxDepth) refuse(node, "This expression is nested too deep.", "Give parts of it names, in lines of their own.");
    m_session.step(node);
    ++m_depth;
    struct Leave {
        int& depth;
        ~Leave() { --depth; }
    } leave{m_depth};
    switch (node.kind) {
    case Syntax::Name:
        return evaluateName(node);
    case Syntax::Number:
        return valueOf(literal(node), Value::Kind::Number);
    case Syntax::String:
        return valueOf(node.text, Value::Kind::Text);
    case Syntax::True:
    case Syntax::False:
        return valueOf(node.kind == Syntax::True, Value::Kind::Flag);
    case Syntax::None:
        return {};
    case Syntax::Tuple:
    case Syntax::List: {
        Value out = itemsOf({});
        for (const Node& item : node.of) {
            if (item.kind != Syntax::Starred) {
                out.items.push_back(evaluate(item));
                continue;
            }
            Value inner = evaluate(item.of[0]);
            if (inner.kind == Value::Kind::Layer && inner.layer->kind == Layer::Kind::List) inner = itemsOf(inner.layer->items);
            if (inner.kind == Value::Kind::Items)
                out.items.insert(out.items.end(), inner.items.begin(), inner.items.end());
            else
                out.items.push_back(std::move(inner));
        }
        const std::size_t weight = weightOf(out);
        if (weight > kMaxItems) refuse(node, "This list would hold more than " + std::to_string(kMaxItems) + " items.", "");
        return out;
    }
    case Syntax::Select:
        return select(node);
    case Syntax::Subscript:
        return subscript(node);
    case Syntax::Binary:
        return binary(node);
    case Syntax::Unary: {
        Value inner = evaluate(node.of[0]);
        if (node.text == "not") return valueOf(!truth(node.of[0]), Value::Kind::Flag);
        if (node.text == "-" && inner.kind == Value::Kind::Number) {
            if (const auto* whole = std::get_if<std::int64_t>(&inner.number)) return valueOf(-*whole, Value::Kind::Number);
            if (const auto* real = std::get_if<double>(&inner.number)) return valueOf(-*real, Value::Kind::Number);
        }
        if (node.text == "-" && inner.kind == Value::Kind::Expression)
            return expressionOf("-" + (inner.level < 3 ? "(" + inner.text + ")" : inner.text), 2);
        if (node.text == "-" && inner.kind == Value::Kind::Tensor) return formula("-in0", {inner}, node);
        refuse(node, "'" + node.text + "' cannot stand before this.", "");
    }
    case Syntax::Conditional:
        return conditional(node);
    case Syntax::Each:
        return each(node);
    case Syntax::Call:
        return call(node);
    default:
        refuse(node, "This expression is not available" + (node.text.empty() ? std::string(".") : ": " + node.text + "."), "");
    }
}

Value ClassReader::evaluateName(const Node& node) {
    if (!m_loopVariable.empty() && node.text == m_loopVariable) m_usesLoopVariable = true;
    const auto found = m_env.find(node.text);
    if (found != m_env.end()) return found->second;
    if (const auto constant = m_session.source->constants.find(node.text); constant != m_session.source->constants.end()) {
        const bool isText = std::holds_alternative<std::string>(constant->second), isFlag = std::holds_alternative<bool>(constant->second);
        return valueOf(constant->second, isText ? Value::Kind::Text : isFlag ? Value::Kind::Flag : Value::Kind::Number);
    }
    if (node.text == "int" || node.text == "float" || node.text == "bool") {
        Value out;
        out.kind = Value::Kind::Dtype;
        return out;
    }
    std::vector<std::string> names;
    for (const auto& [name, value] : m_env) names.push_back(name);
    for (const auto& [name, one] : m_session.classes) names.push_back(name);
    const auto close = nearest(node.text, names);
    refuse(node, node.text + " is not defined.", close.empty() ? "" : "Did you mean " + joined(close) + "?");
}

Value ClassReader::select(const Node& node) {
    const Node& before = node.of[0];
    if (before.kind == Syntax::Name && before.text == "self") {
        const auto found = m_attributes.find(node.text);
        if (found == m_attributes.end()) {
            std::vector<std::string> names;
            for (const auto& [name, value] : m_attributes) names.push_back(name);
            const auto close = nearest(node.text, names);
            refuse(node, "self." + node.text + " is not set in __init__.", close.empty() ? "" : "Did you mean self." + joined(close) + "?");
        }
        if (!m_isInit && found->second.kind == Value::Kind::Layer && found->second.layer->type == "Parameter" &&
            found->second.layer->kind == Layer::Kind::Cell)
            return callLayer(found->second.layer, {});
        return found->second;
    }
    const std::string dotted = dottedName(node);
    const std::string root = dotted.substr(0, dotted.find('.'));
    if (!dotted.empty() && root != "self" && !m_env.contains(root)) { // of a module: ms.float32, math.pi
        if (dotted == "math.pi") return valueOf(3.14159265358979323846, Value::Kind::Number);
        Value out;
        out.kind = Value::Kind::Dtype;
        out.text = dotted;
        return out;
    }
    // the rows of an Embedding: self.embedding.embedding_table
    if (before.kind == Syntax::Select && before.of[0].kind == Syntax::Name && before.of[0].text == "self") {
        const Value value = select(before);
        if (value.kind == Value::Kind::Layer && value.layer->type == "Embedding" &&
            (node.text == "embedding_table" || node.text == "weight")) {
            for (graph::Cell& cell : m_graph.cells)
                if (cell.name == value.layer->name) {
                    cell.params["shares_weight"] = true;
                    return tensorAt({cell.name, "weight"});
                }
            refuse(node, "self." + before.text + " has not been called yet.", "Take its rows after the call.");
        }
    }
    const Value value = evaluate(before);
    if (value.kind == Value::Kind::Tensor) {
        if (node.text == "shape") {
            Value out = tensorAt(value.end);
            out.kind = Value::Kind::Shape;
            return out;
        }
        if (node.text == "dtype") {
            Value out;
            out.kind = Value::Kind::Dtype;
            return out;
        }
        refuse(node, "A tensor has no " + inQuotes(node.text, 40) + " here.", "Known are shape and dtype; T stands in a product alone.");
    }
    refuse(node, inQuotes(node.text, 40) + " cannot be read here.", "");
}

Value ClassReader::subscript(const Node& node) {
    Value value = evaluate(node.of[0]);
    if (value.kind == Value::Kind::Tensor) return sliced(std::move(value), node);
    if (node.of.size() != 2) refuse(node, "One index should stand here.", "");
    if (value.kind == Value::Kind::Shape) {
        Value out = value;
        out.kind = Value::Kind::Size;
        out.index = wholeOf(evaluate(node.of[1]), node.of[1]);
        return out;
    }
    std::vector<Value> items =
        value.kind == Value::Kind::Layer && value.layer->kind == Layer::Kind::List ? value.layer->items : value.items;
    if (value.kind != Value::Kind::Items && !(value.kind == Value::Kind::Layer && value.layer->kind == Layer::Kind::List)) {
        if (value.kind == Value::Kind::Tensor) refuse(node, "This index is not known.", "");
        refuse(node, "This has no items.", "");
    }
    std::int64_t index = wholeOf(evaluate(node.of[1]), node.of[1]);
    if (index < 0) index += static_cast<std::int64_t>(items.size());
    if (index < 0 || index >= static_cast<std::int64_t>(items.size()))
        refuse(node.of[1], "There is no item of this number.", "There are " + std::to_string(items.size()) + ".");
    return items[static_cast<std::size_t>(index)];
}

std::optional<Value> ClassReader::arithmetic(const std::string& sign, const Value& a, const Value& b, const Node& node) {
    if (!isNumeric(a) || !isNumeric(b)) return {};
    if (sign == "**") {
        const auto x = known(a), y = known(b);
        if (b.kind == Value::Kind::Number && y && *y == 2 && a.kind == Value::Kind::Expression) return arithmetic("*", a, a, node);
        if (!x || !y) refuse(node, "A power of hyper-parameters cannot stand in an expression.", "");
        if (a.kind == Value::Kind::Expression || b.kind == Value::Kind::Expression)
            m_session.note(m_class.name + ": " + numberText(a) + " ** " + numberText(b) + " stands in the graph as a number.");
        const double power = std::pow(*x, *y);
        if (!std::isfinite(power)) refuse(node, "This gives no finite number.", "");
        const bool isWhole = power == std::floor(power) && std::abs(power) < 1e15 && *y >= 0 &&
                             !(a.kind == Value::Kind::Number && std::holds_alternative<double>(a.number));
        return isWhole ? valueOf(static_cast<std::int64_t>(power), Value::Kind::Number) : valueOf(power, Value::Kind::Number);
    }
    static const std::map<std::string, int> kLevels{{"+", 1}, {"-", 1}, {"*", 2}, {"/", 2}, {"//", 2}, {"%", 2}};
    const auto level = kLevels.find(sign);
    if (level == kLevels.end()) return {};
    const auto in = [](const Value& value, int need) {
        return (value.kind == Value::Kind::Number ? 3 : value.level) < need ? "(" + numberText(value) + ")" : numberText(value);
    };
    const std::string text = in(a, level->second) + " " + (sign == "//" ? "/" : sign) + " " + in(b, level->second + 1);
    if (text.size() > 900) refuse(node, "This expression is too long.", "Give parts of it names as parameters of __init__.");
    if (sign != "//") return expressionOf(text, level->second);
    const bool isExact = graph::evaluateInteger(text, m_scope).has_value();
    return isExact ? expressionOf(text, 2) : expressionOf("floor(" + text + ")", 3);
}

Value ClassReader::binary(const Node& node) {
    static const std::set<std::string> kTruth{"==", "!=", "<", ">", "<=", ">=", "is", "is not", "and", "or", "in", "not in"};
    if (kTruth.contains(node.text)) {
        if (!m_isInit &&
            (node.text == "<" || node.text == ">" || node.text == "<=" || node.text == ">=" || node.text == "==" || node.text == "!=")) {
            const Value a = evaluate(node.of[0]), b = evaluate(node.of[1]);
            if (a.kind == Value::Kind::Tensor || b.kind == Value::Kind::Tensor)
                refuse(node, "A comparison of tensors stands in ops.where alone.", "Write ops.where(a > b, x, y).");
        }
        return valueOf(truth(node), Value::Kind::Flag);
    }
    if (node.text == "@") {
        Arguments arguments;
        arguments.positional = {Value{}, Value{}};
        arguments.nodes = {&node.of[0], &node.of[1]};
        arguments.call = &node;
        return callFunction("matmul", std::move(arguments));
    }
    const bool wasStatement = m_tag.starts_with("Residual");
    const Value a = evaluate(node.of[0]);
    if (wasStatement && node.text == "+" && a.kind == Value::Kind::Tensor && m_statement && m_statement->kind == Syntax::Assign &&
        &m_statement->of[1] == &node) {
        const Node& right = node.of[1];
        if (right.kind == Syntax::Binary && right.text == "*") { // x + scale * branch
            const Value scale = evaluate(right.of[0]);
            if (isNumeric(scale)) return function("Residual", {{"scale", paramOf(scale, right.of[0])}}, {a, evaluate(right.of[1])}, node);
        }
        return function("Residual", {}, {a, evaluate(right)}, node);
    }
    const Value b = evaluate(node.of[1]);
    if (auto number = arithmetic(node.text, a, b, node)) return *number;
    return elementwise(node.text, a, b, node);
}

Value ClassReader::conditional(const Node& node) {
    // padding_idx=pad_id if pad_id >= 0 else None: the cell's own parameter says none by -1
    if (node.of[2].kind == Syntax::None && node.of[0].kind == Syntax::Binary && node.of[0].text == ">=") {
        Value value = evaluate(node.of[1]);
        if (isNumeric(value)) return value;
    }
    return evaluate(node.of[truth(node.of[0]) ? 1 : 2]);
}

bool ClassReader::truth(const Node& node) {
    if (node.kind == Syntax::Binary && (node.text == "and" || node.text == "or")) {
        const bool first = truth(node.of[0]);
        return node.text == "and" ? first && truth(node.of[1]) : first || truth(node.of[1]);
    }
    if (node.kind == Syntax::Unary && node.text == "not") return !truth(node.of[0]);
    if (node.kind == Syntax::Binary) {
        const Value a = evaluate(node.of[0]), b = evaluate(node.of[1]);
        const bool isEqual = node.text == "is" || node.text == "==", isOther = node.text == "is not" || node.text == "!=";
        if ((isEqual || isOther) && (a.kind == Value::Kind::None || b.kind == Value::Kind::None)) return (a.kind == b.kind) == isEqual;
        if ((isEqual || isOther) && a.kind == Value::Kind::Text && b.kind == Value::Kind::Text) return (a.number == b.number) == isEqual;
        const auto x = known(a), y = known(b);
        if (!x || !y)
            refuse(node, "Whether this holds is not known before the network runs.",
                   "Conditions are on None, flags and numbers of __init__; for tensors there is ops.where.");
        if (a.kind == Value::Kind::Expression || b.kind == Value::Kind::Expression)
            m_session.note(m_class.name + ": the condition " + numberText(a) + " " + node.text + " " + numberText(b) +
                           " was decided for good.");
        if (isEqual) return *x == *y;
        if (isOther) return *x != *y;
        if (node.text == "<") return *x < *y;
        if (node.text == ">") return *x > *y;
        if (node.text == "<=") return *x <= *y;
        if (node.text == ">=") return *x >= *y;
        refuse(node, "This condition is not available.", "");
    }
    const Value value = evaluate(node);
    if (value.kind == Value::Kind::Flag) {
        if (value.text.empty()) return std::get<bool>(value.number);
        m_session.note(m_class.name + ": the condition " + value.text + " was decided for good.");
        return std::get<bool>(m_scope.at(value.text));
    }
    if (value.kind == Value::Kind::None) return false;
    if (value.kind == Value::Kind::Text) return !std::get<std::string>(value.number).empty();
    if (const auto number = known(value)) return *number != 0;
    refuse(node, "Whether this holds is not known before the network runs.",
           "Conditions are on None, flags and numbers of __init__; for tensors there is ops.where.");
}

/// [Block(…) for _ in range(n)]: one layer, n times.
Value ClassReader::each(const Node& node) {
    const Node &value = node.of[0], &target = node.of[1], &range = node.of[2];
    const bool isRange =
        range.kind == Syntax::Call && range.of[0].kind == Syntax::Name && range.of[0].text == "range" && range.of.size() == 2;
    if (!isRange || target.kind != Syntax::Name)
        refuse(range, "A list of layers is made over range(n).", "Write [Block(…) for _ in range(n)].");
    const Value count = evaluate(range.of[1]);
    if (!isNumeric(count)) refuse(range.of[1], "The number of layers should stand here.", "");
    const auto number = known(count);
    if (number && (*number < 1 || *number > 200000))
        refuse(range.of[1], "There would be " + std::to_string(wholeOf(count, range.of[1])) + " layers.", "Give a number from 1 to 200000.");
    const auto before = m_env.find(target.text);
    const std::optional<Value> hidden = before == m_env.end() ? std::nullopt : std::optional<Value>(before->second);
    Value inside;
    inside.kind = Value::Kind::Undefined;
    inside.text = "Each layer would be another one: " + target.text + " cannot be used.";
    m_env[target.text] = inside;
    const bool wasUsed = std::exchange(m_usesLoopVariable, false);
    const std::string outer = std::exchange(m_loopVariable, target.text);
    Value made = evaluate(value);
    m_loopVariable = outer;
    if (std::exchange(m_usesLoopVariable, wasUsed))
        refuse(value, inside.text, "Layers of a list are alike; write those that differ one by one.");
    if (hidden)
        m_env[target.text] = *hidden;
    else
        m_env.erase(target.text);
    if (made.kind != Value::Kind::Layer) refuse(value, "A layer should stand here.", "");
    if (made.layer->kind == Layer::Kind::Sequence) {
        made.layer->type = sequenceComposite(*made.layer);
        made.layer->kind = Layer::Kind::Cell;
    }
    if (made.layer->kind != Layer::Kind::Cell || !made.layer->repeat.empty())
        refuse(value, "This cannot be repeated.", "Put it into a class of its own.");
    made.layer->repeat = numberText(count);
    return itemsOf({made});
}

ClassReader::Arguments ClassReader::argumentsOf(const Node& call) {
    Arguments out;
    out.call = &call;
    for (std::size_t i = 1; i < call.of.size(); ++i) {
        const Node& argument = call.of[i];
        if (argument.kind == Syntax::Keyword) {
            if (!out.named.emplace(argument.text, evaluate(argument.of[0])).second)
                refuse(argument, argument.text + " is given twice.", "");
            out.namedNodes[argument.text] = &argument.of[0];
        } else if (argument.kind == Syntax::Starred) {
            Value inner = evaluate(argument.of[0]);
            if (inner.kind == Value::Kind::Layer && inner.layer->kind == Layer::Kind::List) inner = itemsOf(inner.layer->items);
            if (inner.kind != Value::Kind::Items) refuse(argument, "A list should stand behind '*'.", "");
            for (Value& item : inner.items) {
                out.positional.push_back(std::move(item));
                out.nodes.push_back(&argument);
            }
        } else {
            out.positional.push_back(evaluate(argument));
            out.nodes.push_back(&argument);
        }
    }
    return out;
}

Value ClassReader::call(const Node& node) {
    const Node& callee = node.of[0];
    const std::string dotted = dottedName(callee);
    const std::string root = dotted.substr(0, dotted.find('.'));
    if (dotted == "self") refuse(callee, "self cannot be called.", "Name one of its layers: self.dense(x).");
    if (root == "self") {
        const std::string name = dotted.substr(std::min(dotted.size(), std::size_t(5)));
        if (name.find('.') == std::string::npos) {
            if (const Method* method = m_attributes.contains(name) ? nullptr : m_class.method(name))
                return callMethod(*method, argumentsOf(node));
            const auto attribute = m_attributes.find(name); // not select(): a learned tensor stands for itself there
            const Value value = attribute == m_attributes.end() ? select(callee) : attribute->second;
            if (value.kind == Value::Kind::Layer) return callLayer(value.layer, argumentsOf(node));
            refuse(callee, "self." + name + " cannot be called.", "");
        }
    }
    if (!dotted.empty() && root != "self" && !m_env.contains(root)) {
        if (dotted.find('.') == std::string::npos) return callNamed(dotted, node, {});
        const std::string last = dotted.substr(dotted.rfind('.') + 1);
        if (root == "math" && (last == "sqrt" || last == "floor" || last == "ceil" || last == "log" || last == "exp")) {
            const Arguments arguments = argumentsOf(node);
            if (arguments.positional.size() != 1 || !isNumeric(arguments.positional[0])) refuse(node, dotted + " takes a number.", "");
            const Value& x = arguments.positional[0];
            if (last == "floor" || last == "ceil") return expressionOf(last + "(" + numberText(x) + ")", 3);
            const auto number = known(x);
            const double result = !number          ? NAN
                                  : last == "sqrt" ? std::sqrt(*number)
                                  : last == "log"  ? std::log(*number)
                                                   : std::exp(*number);
            if (!std::isfinite(result)) refuse(node, "This gives no finite number.", "");
            if (x.kind == Value::Kind::Expression)
                m_session.note(m_class.name + ": " + dotted + "(" + x.text + ") stands in the graph as a number.");
            return valueOf(result, Value::Kind::Number);
        }
        const bool isLayer = !last.empty() && last[0] >= 'A' && last[0] <= 'Z';
        if (last == "matmul" || last == "bmm" || last == "where") { // their arguments are looked at as they are written
            Arguments arguments;
            arguments.call = &node;
            for (std::size_t i = 1; i < node.of.size(); ++i) {
                if (node.of[i].kind == Syntax::Keyword || node.of[i].kind == Syntax::Starred)
                    refuse(node.of[i], "Write the arguments of " + last + " without names.", "");
                arguments.positional.emplace_back();
                arguments.nodes.push_back(&node.of[i]);
            }
            return callFunction(last, std::move(arguments));
        }
        Arguments arguments = argumentsOf(node);
        return isLayer ? layerNamed(last, arguments) : callFunction(last, std::move(arguments));
    }
    if (callee.kind == Syntax::Select && root != "self") { // a tensor's method
        const Value value = evaluate(callee.of[0]);
        if (value.kind == Value::Kind::Tensor) {
            Arguments arguments = argumentsOf(node);
            arguments.positional.insert(arguments.positional.begin(), value);
            arguments.nodes.insert(arguments.nodes.begin(), &callee.of[0]);
            if (callee.text == "reshape" || callee.text == "view" || callee.text == "transpose" ||
                callee.text == "permute") { // numbers may stand singly
                const bool isSingle = arguments.positional.size() > 1 && arguments.positional[1].kind != Value::Kind::Items &&
                                      arguments.positional[1].kind != Value::Kind::Shape;
                if (isSingle && arguments.positional.size() > 2) {
                    Value rest = itemsOf({arguments.positional.begin() + 1, arguments.positional.end()});
                    arguments.positional.resize(1);
                    arguments.nodes.resize(1);
                    arguments.positional.push_back(std::move(rest));
                    arguments.nodes.push_back(&node);
                    if (callee.text == "transpose" && m_session.dialect == celloom::code::Dialect::PyTorch)
                        refuse(node, "transpose of two dimensions needs to know how many there are.", "Write permute(…) with all of them.");
                }
            }
            return callFunction(callee.text, std::move(arguments));
        }
        if (value.kind == Value::Kind::Items && callee.text == "append") refuse(node, "append stands in __init__ alone.", "");
        refuse(callee, inQuotes(callee.text, 40) + " cannot be called here.", "");
    }
    if (callee.kind == Syntax::Name && m_env.contains(callee.text)) {
        const Value value = evaluateName(callee);
        if (value.kind == Value::Kind::Layer) return callLayer(value.layer, argumentsOf(node));
        refuse(callee, callee.text + " cannot be called.", "");
    }
    const Value value = evaluate(callee); // nn.ReLU()(x), self.layers[0](x)
    if (value.kind == Value::Kind::Layer) return callLayer(value.layer, argumentsOf(node));
    refuse(callee, "This cannot be called.", "");
}

/// A name of the file or of Python itself.
Value ClassReader::callNamed(const std::string& name, const Node& node, Arguments arguments) {
    if (m_session.functions.contains(name))
        refuse(node.of[0], "The function " + name + " of the source cannot be read.", "Make it a method of the class that calls it.");
    arguments = argumentsOf(node);
    if (m_session.classes.contains(name)) return classNamed(name, arguments);
    if (const auto helper = m_session.helpers.find(name); helper != m_session.helpers.end() && !helper->second.empty())
        return helperNamed(helper->second, arguments);
    if (name == "round_up" && arguments.positional.size() == 2 && isNumeric(arguments.positional[0]) && isNumeric(arguments.positional[1]))
        return expressionOf("roundUp(" + numberText(arguments.positional[0]) + ", " + numberText(arguments.positional[1]) + ")", 3);
    if ((name == "min" || name == "max") && !arguments.positional.empty() &&
        std::all_of(arguments.positional.begin(), arguments.positional.end(), isNumeric)) {
        std::string text;
        for (const Value& one : arguments.positional) text += (text.empty() ? "" : ", ") + numberText(one);
        return expressionOf(name + "(" + text + ")", 3);
    }
    if (name == "int" && arguments.positional.size() == 1 && isNumeric(arguments.positional[0])) {
        const std::string text = numberText(arguments.positional[0]);
        return graph::evaluateInteger(text, m_scope) ? arguments.positional[0] : expressionOf("floor(" + text + ")", 3);
    }
    if (name == "float" && arguments.positional.size() == 1 && isNumeric(arguments.positional[0])) return arguments.positional[0];
    if ((name == "tuple" || name == "list") && arguments.positional.size() == 1 && arguments.positional[0].kind == Value::Kind::Items)
        return arguments.positional[0];
    if (name == "len" && arguments.positional.size() == 1 && arguments.positional[0].kind == Value::Kind::Items)
        return valueOf(static_cast<std::int64_t>(arguments.positional[0].items.size()), Value::Kind::Number);
    if (name == "Parameter") return learned(arguments);
    const bool isLayer = !name.empty() && name[0] >= 'A' && name[0] <= 'Z';
    if (isLayer) return layerNamed(name, arguments);
    return callFunction(name, std::move(arguments));
}

} // namespace celloom::engine::code
