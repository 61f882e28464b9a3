#include "engine/code/class_reader.h"

#include "models/base/text.h"
#include "models/catalog/catalog.h"

#include <algorithm>

namespace celloom::engine::code {
namespace {

/// What a parameter without a default most likely is, by the end of its name.
std::optional<graph::ParamValue> guessFor(const std::string& name) {
    static const std::vector<std::pair<std::string, graph::ParamValue>> kGuesses{{"heads", std::int64_t(8)},
                                                                                 {"head", std::int64_t(8)},
                                                                                 {"layers", std::int64_t(6)},
                                                                                 {"layer", std::int64_t(6)},
                                                                                 {"depth", std::int64_t(6)},
                                                                                 {"blocks", std::int64_t(6)},
                                                                                 {"vocab_size", std::int64_t(32000)},
                                                                                 {"vocab", std::int64_t(32000)},
                                                                                 {"n_vocab", std::int64_t(32000)},
                                                                                 {"classes", std::int64_t(10)},
                                                                                 {"experts", std::int64_t(8)},
                                                                                 {"ffn_hidden_size", std::int64_t(2048)},
                                                                                 {"intermediate_size", std::int64_t(2048)},
                                                                                 {"intermediate", std::int64_t(2048)},
                                                                                 {"d_ff", std::int64_t(2048)},
                                                                                 {"ff", std::int64_t(2048)},
                                                                                 {"ffn_dim", std::int64_t(2048)},
                                                                                 {"ratio", std::int64_t(4)},
                                                                                 {"dropout", 0.1},
                                                                                 {"rate", 0.1},
                                                                                 {"p", 0.1},
                                                                                 {"eps", 1e-5},
                                                                                 {"epsilon", 1e-5},
                                                                                 {"d_model", std::int64_t(512)},
                                                                                 {"model", std::int64_t(512)},
                                                                                 {"hidden", std::int64_t(512)},
                                                                                 {"dim", std::int64_t(512)},
                                                                                 {"size", std::int64_t(512)},
                                                                                 {"channels", std::int64_t(512)},
                                                                                 {"features", std::int64_t(512)},
                                                                                 {"width", std::int64_t(512)}};
    for (const auto& [ending, value] : kGuesses)
        if (name == ending || name.ends_with("_" + ending) || (ending.size() > 3 && name.ends_with(ending))) return value;
    return {};
}

std::string withoutIndent(const std::string& text) {
    std::string out;
    for (std::size_t from = 0; from <= text.size();) {
        const auto end = std::min(text.find('\n', from), text.size());
        out += (from ? "\n" : "") + trimmed(text.substr(from, end - from));
        from = end + 1;
    }
    return trimmed(out);
}

/// What a cell or a port can be named.
bool isName(const std::string& name) {
    const auto isPart = [](char c) {
        return static_cast<unsigned char>(c) >= 0x80 || c == '_' || c == '-' || std::isalnum(static_cast<unsigned char>(c)) != 0;
    };
    return !name.empty() && name.size() <= 128 && std::all_of(name.begin(), name.end(), isPart);
}

std::string unescaped(const std::string& text) {
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '\\' && i + 1 < text.size()) ++i;
        out += text[i];
    }
    return out;
}

} // namespace

void Session::note(const std::string& text) {
    if (notes.size() < 50 && std::find(notes.begin(), notes.end(), text) == notes.end()) notes.push_back(text);
}

void Session::step(const Node& node) {
    if (++steps > kMaxSteps)
        refuse(node, "Reading this source takes too many steps.", "Methods that call each other, or loops in loops, may be the reason.");
}

std::string Session::freeName(const std::string& wanted) const {
    std::string name = wanted;
    for (int number = 2; catalog::find(name) || document.composites.contains(name); ++number) name = wanted + std::to_string(number);
    return name;
}

void refuse(const Node& node, std::string message, std::string hint) {
    throw Refusal{node.begin, node.end, std::move(message), std::move(hint)};
}

std::string snakeName(const std::string& type) {
    if (type == "ReLU" || type == "SiLU") return type == "ReLU" ? "relu" : "silu";
    std::string out;
    for (std::size_t i = 0; i < type.size(); ++i) {
        const auto isUpper = [&](std::size_t at) { return at < type.size() && type[at] >= 'A' && type[at] <= 'Z'; };
        const auto isLower = [&](std::size_t at) { return at < type.size() && type[at] >= 'a' && type[at] <= 'z'; };
        // before a capital that follows a small letter, and before the last one of several: LMHead is lm_head
        if (isUpper(i) && i > 0 && type[i - 1] != '_' && (!isUpper(i - 1) || isLower(i + 1))) out += '_';
        out += isUpper(i) ? static_cast<char>(type[i] - 'A' + 'a') : type[i];
    }
    return out;
}

bool readPortText(const std::string& text, graph::Port& port) {
    const auto open = text.find('['), close = text.rfind(']');
    if (open == std::string::npos || close == std::string::npos || close < open || !trimmed(text.substr(0, open)).empty()) return false;
    port.dtype = trimmed(text.substr(close + 1));
    if (port.dtype.empty()) port.dtype = "float";
    if (port.dtype != "float" && port.dtype != "int64" && port.dtype != "bool") return false;
    port.shape.clear();
    const std::string inside = trimmed(text.substr(open + 1, close - open - 1));
    int depth = 0;
    std::string dim;
    for (const char c : inside + ",") {
        depth += c == '(' ? 1 : c == ')' ? -1 : 0;
        if (c != ',' || depth > 0) {
            dim += c;
            continue;
        }
        if (!trimmed(dim).empty()) port.shape.push_back(trimmed(dim));
        dim.clear();
    }
    return port.shape.size() <= 16;
}

ClassReader::ClassReader(Session& session, const Class& source) : m_session(session), m_class(source) {}

graph::Graph ClassReader::read() {
    m_graph.name = m_class.name;
    if (const Method* init = m_class.method("__init__")) {
        readHyper(*init);
        m_statement = nullptr;
        for (const Node& statement : init->body) initStatement(statement);
    }
    for (auto& [name, value] : m_attributes) { // a list that a loop filled with one layer, many times
        const bool isRepeated = value.kind == Value::Kind::Layer && value.layer->kind == Layer::Kind::List && value.layer->items.size() == 1 &&
                                value.layer->items[0].kind == Value::Kind::Layer && !value.layer->items[0].layer->repeat.empty();
        if (!isRepeated) continue;
        const std::shared_ptr<Layer> inner = value.layer->items[0].layer;
        inner->attribute = value.layer->attribute;
        inner->name = value.layer->name;
        inner->note = value.layer->note;
        std::replace(m_layers.begin(), m_layers.end(), value.layer, inner);
        value.layer = inner;
    }
    std::erase_if(m_graph.hyper, [&](const graph::HyperParameter& hyper) { return !m_scope.contains(hyper.name); });
    readComments();
    m_isInit = false;
    readConstruct();
    for (const auto& layer : m_layers)
        if (!layer->isUsed && !layer->attribute.empty())
            m_session.note(m_class.name + ": self." + layer->attribute + " is never called and was left out.");
    return std::move(m_graph);
}

bool ClassReader::hasShapes() const {
    return std::all_of(m_graph.inputs.begin(), m_graph.inputs.end(), [](const graph::Port& port) { return !port.shape.empty(); });
}

// ---- comments ----

std::string ClassReader::lineComment(std::size_t offset) const {
    const std::string& text = m_session.source->text;
    const std::size_t lineBegin = offset == 0 ? 0 : text.rfind('\n', offset - 1) + 1,
                      lineEnd = std::min(text.find('\n', offset), text.size());
    for (const ScriptComment& comment : m_session.source->comments)
        if (comment.offset > lineBegin && comment.offset >= offset && comment.offset < lineEnd) return trimmed(comment.text.substr(1));
    return {};
}

std::string ClassReader::commentAbove(std::size_t offset) const {
    const std::string& text = m_session.source->text;
    std::size_t lineBegin = offset == 0 ? 0 : text.rfind('\n', offset - 1) + 1;
    std::vector<std::string> lines;
    while (lineBegin > 0 && lines.size() < 100) {
        const std::size_t end = lineBegin - 1, begin = end == 0 ? 0 : text.rfind('\n', end - 1) + 1;
        const auto found = std::find_if(m_session.source->comments.begin(), m_session.source->comments.end(),
                                        [&](const ScriptComment& comment) { return comment.offset >= begin && comment.offset < end; });
        if (found == m_session.source->comments.end() || !trimmed(text.substr(begin, end - begin)).empty()) break;
        std::string line = found->text.substr(1);
        if (line.starts_with(' ')) line.erase(0, 1);
        if (line.starts_with("celloom: ")) break;
        graph::Port port;
        const auto colon = line.find(':');
        if (line.starts_with("-> ") ||
            (colon != std::string::npos && readPortText(line.substr(colon + 1, line.find(", port:") - colon - 1), port)))
            break;
        lines.push_back(line);
        lineBegin = begin;
    }
    std::string out;
    for (auto line = lines.rbegin(); line != lines.rend(); ++line) out += (out.empty() ? "" : "\n") + *line;
    return out;
}

/// "layer-norm" of the comment "Residual, cell: layer-norm".
std::string ClassReader::tagOf(const std::string& comment, const std::string& key) {
    const auto at = comment.find(key + ": ");
    if (at == std::string::npos) return {};
    const std::size_t from = at + key.size() + 2;
    const std::string name = trimmed(comment.substr(from, comment.find(',', from) - from));
    return isName(name) ? name : std::string();
}

void ClassReader::readComments() {
    // a docstring between the class and its first method: the note, then "Args:" with the hyper-parameters' help
    const std::size_t first = m_class.methods.empty() ? m_class.end : m_class.methods.front().begin;
    for (const ScriptComment& docstring : m_session.source->docstrings) {
        if (docstring.offset < m_class.begin || docstring.offset >= first || docstring.text.size() < 6) continue;
        const bool isTriple = docstring.text.starts_with("\"\"\"") || docstring.text.starts_with("'''");
        const std::size_t quotes = isTriple ? 3 : 1;
        const std::string text = unescaped(docstring.text.substr(quotes, docstring.text.size() - 2 * quotes));
        const std::string plain = withoutIndent(text);
        const auto arguments = plain.starts_with("Args:\n") ? 0 : plain.find("\nArgs:\n");
        m_graph.note = trimmed(plain.substr(0, arguments));
        if (arguments == std::string::npos) break;
        std::string* help = nullptr;
        std::string line;
        for (const char c : plain.substr(arguments + (plain[arguments] == '\n' ? 7 : 6)) + "\n") {
            if (c != '\n') {
                line += c;
                continue;
            }
            const auto colon = line.find(": ");
            const auto hyper = std::find_if(m_graph.hyper.begin(), m_graph.hyper.end(), [&](const auto& one) {
                return colon != std::string::npos && one.name == line.substr(0, colon);
            });
            if (hyper != m_graph.hyper.end()) {
                help = &hyper->help;
                *help = line.substr(colon + 2);
            } else if (help && !line.empty()) {
                *help += "\n" + line;
            }
            line.clear();
        }
        break;
    }
}

// ---- __init__ ----

void ClassReader::readHyper(const Method& method) {
    for (const Parameter& parameter : method.parameters) {
        Node place;
        place.begin = parameter.begin;
        place.end = parameter.begin + parameter.name.size();
        std::optional<graph::ParamValue> value;
        if (const auto given = m_session.values.find(parameter.name); m_class.name == m_session.asked && given != m_session.values.end()) {
            value = given->second;
        } else if (!parameter.standard.empty()) {
            const Value standard = evaluate(parameter.standard[0]);
            if (standard.kind == Value::Kind::None || standard.kind == Value::Kind::Text || standard.kind == Value::Kind::Items) {
                m_env[parameter.name] = standard;
                if (standard.kind == Value::Kind::None)
                    m_graph.hyper.push_back({parameter.name, std::int64_t(0), {}}); // until a default is set
                continue;
            }
            if (!isNumeric(standard) && standard.kind != Value::Kind::Flag)
                refuse(parameter.standard[0], "The default of " + parameter.name + " is no number, flag or None.", "");
            value = paramOf(standard, place);
        } else {
            value = guessFor(parameter.name);
            if (!value)
                refuse(place, "The parameter " + parameter.name + " has no default, and the graph needs a value for it.",
                       "Write " + parameter.name + "=512 in its place, or give one: --set " + parameter.name + "=512.");
            m_session.note(m_class.name + ": " + parameter.name + " has no default; " +
                           (std::holds_alternative<double>(*value) ? celloom::numberText(std::get<double>(*value))
                                                                   : std::to_string(std::get<std::int64_t>(*value))) +
                           " was taken.");
        }
        m_graph.hyper.push_back({parameter.name, *value, {}});
        if (const auto* text = std::get_if<std::string>(&*value)) {
            const auto known = graph::evaluate(*text, m_scope);
            if (!known) refuse(place, "The value of " + parameter.name + ": " + known.error().message, known.error().hint);
            m_scope[parameter.name] = *known;
        } else {
            m_scope[parameter.name] = std::visit([](const auto& held) { return graph::ResolvedValue(held); }, *value);
        }
        Value here = expressionOf(parameter.name, 3);
        if (std::holds_alternative<bool>(m_scope[parameter.name])) here.kind = Value::Kind::Flag;
        m_env[parameter.name] = std::move(here);
    }
}

void ClassReader::setDefault(const std::string& name, const Value& value, const Node& place) {
    const auto hyper = std::find_if(m_graph.hyper.begin(), m_graph.hyper.end(), [&](const auto& one) { return one.name == name; });
    if (hyper == m_graph.hyper.end() || m_scope.contains(name)) return; // it has a value already
    if (!isNumeric(value) && value.kind != Value::Kind::Flag) {
        m_env[name] = value;
        return;
    }
    hyper->value = paramOf(value, place);
    const auto* text = std::get_if<std::string>(&hyper->value);
    const auto known =
        text ? graph::evaluate(*text, m_scope)
             : Result<graph::ResolvedValue>(std::visit([](const auto& held) { return graph::ResolvedValue(held); }, hyper->value));
    if (!known) refuse(place, "The default of " + name + ": " + known.error().message, known.error().hint);
    m_scope[name] = *known;
    m_env[name] = expressionOf(name, 3);
}

void ClassReader::initStatement(const Node& statement) {
    m_statement = &statement;
    m_session.step(statement);
    switch (statement.kind) {
    case Syntax::Pass:
        return;
    case Syntax::Assign: {
        const Node &target = statement.of[0], &value = statement.of[1];
        // "kv_heads = heads if kv_heads is None else kv_heads", "kv_heads = kv_heads or heads"
        if (target.kind == Syntax::Name && m_env.contains(target.text) && m_env[target.text].kind == Value::Kind::None) {
            const auto isSelf = [&](const Node& node) { return node.kind == Syntax::Name && node.text == target.text; };
            if (value.kind == Syntax::Conditional && value.of[0].kind == Syntax::Binary && isSelf(value.of[0].of[0]) &&
                value.of[0].of[1].kind == Syntax::None) {
                const bool isDirect = value.of[0].text == "is" || value.of[0].text == "==";
                return setDefault(target.text, evaluate(isDirect ? value.of[1] : value.of[2]), value);
            }
            if (value.kind == Syntax::Binary && value.text == "or" && isSelf(value.of[0]))
                return setDefault(target.text, evaluate(value.of[1]), value);
        }
        return assignInit(target, evaluate(value), statement);
    }
    case Syntax::If: {
        const Node& condition = statement.of[0];
        const bool isDefault = condition.kind == Syntax::Binary && condition.text == "is" && condition.of[0].kind == Syntax::Name &&
                               condition.of[1].kind == Syntax::None && statement.of[1].of.size() == 1 &&
                               statement.of[1].of[0].kind == Syntax::Assign && statement.of[1].of[0].of[0].kind == Syntax::Name &&
                               statement.of[1].of[0].of[0].text == condition.of[0].text && m_env.contains(condition.of[0].text);
        if (isDefault && m_env[condition.of[0].text].kind == Value::Kind::None)
            return setDefault(condition.of[0].text, evaluate(statement.of[1].of[0].of[1]), statement.of[1].of[0]);
        for (const Node& inner : statement.of[truth(condition) ? 1 : 2].of) initStatement(inner);
        return;
    }
    case Syntax::For:
        return initLoop(statement);
    case Syntax::Expression:
        if (statement.of[0].kind == Syntax::Call && statement.of[0].of[0].kind == Syntax::Select &&
            statement.of[0].of[0].text == "append") {
            Value list = evaluate(statement.of[0].of[0].of[0]);
            const Node& argument = statement.of[0].of.size() == 2 ? statement.of[0].of[1] : statement.of[0];
            Value item = evaluate(argument);
            if (list.kind == Value::Kind::Layer && list.layer->kind == Layer::Kind::List) {
                list.layer->items.push_back(std::move(item));
                return;
            }
            if (list.kind == Value::Kind::Items && statement.of[0].of[0].of[0].kind == Syntax::Name) {
                m_env[statement.of[0].of[0].of[0].text].items.push_back(std::move(item));
                return;
            }
        }
        if (statement.of[0].kind == Syntax::Number || statement.of[0].kind == Syntax::String) return; // what a docstring became
        refuse(statement, "This statement of __init__ is not known.", "Assign layers and numbers to attributes: self.name = nn.Dense(…).");
    case Syntax::Return:
        if (statement.of.empty() || statement.of[0].kind == Syntax::None) return;
        [[fallthrough]];
    default:
        refuse(statement,
               "This statement is not available in __init__" + (statement.text.empty() ? std::string(".") : ": " + statement.text + "."),
               "Assign layers and numbers to attributes.");
    }
}

/// "for _ in range(n): layers.append(Block(…))": n blocks in a row, however large n is.
void ClassReader::initLoop(const Node& loop) {
    const Node &target = loop.of[0], &range = loop.of[1], &body = loop.of[2];
    const bool isRange =
        range.kind == Syntax::Call && range.of[0].kind == Syntax::Name && range.of[0].text == "range" && range.of.size() == 2;
    if (target.kind != Syntax::Name || !isRange) refuse(range, "A loop of __init__ runs over range(n).", "");
    const Node* append =
        body.of.size() == 1 && body.of[0].kind == Syntax::Expression && body.of[0].of[0].kind == Syntax::Call ? &body.of[0].of[0] : nullptr;
    if (!append || append->of[0].kind != Syntax::Select || append->of[0].text != "append" || append->of.size() != 2)
        refuse(body.of.empty() ? loop : body.of[0], "A loop of __init__ appends one layer to a list.",
               "Write self.layers = nn.CellList([Block(…) for _ in range(n)]).");
    Node each{Syntax::Each, {}, {append->of[1], target, range}, append->begin, append->end};
    Value value = evaluate(each).items.at(0);
    Value list = evaluate(append->of[0].of[0]);
    if (list.kind == Value::Kind::Layer && list.layer->kind == Layer::Kind::List)
        list.layer->items.push_back(std::move(value));
    else if (list.kind == Value::Kind::Items && append->of[0].of[0].kind == Syntax::Name)
        m_env[append->of[0].of[0].text].items.push_back(std::move(value));
    else
        refuse(append->of[0], "There is no list of layers to append to.", "Begin with self.layers = nn.CellList().");
}

void ClassReader::assignInit(const Node& target, Value value, const Node& statement) {
    if (target.kind == Syntax::Tuple) {
        if (value.kind != Value::Kind::Items || value.items.size() != target.of.size())
            refuse(statement, "The two sides have not the same number of values.", "");
        for (std::size_t i = 0; i < target.of.size(); ++i) assignInit(target.of[i], value.items[i], statement);
        return;
    }
    if (target.kind == Syntax::Name) {
        m_env[target.text] = std::move(value);
        return;
    }
    if (target.kind != Syntax::Select || target.of[0].kind != Syntax::Name || target.of[0].text != "self")
        refuse(target, "__init__ can set variables and attributes of self alone.", "");
    if (value.kind == Value::Kind::Layer) {
        const std::shared_ptr<Layer> layer = value.layer; // held, since value becomes one of its items
        if (layer->kind == Layer::Kind::List && layer->items.size() == 1 && layer->items[0].kind == Value::Kind::Layer &&
            !layer->items[0].layer->repeat.empty())
            value = layer->items[0];
        if (!value.layer->attribute.empty())
            refuse(statement, "A layer has one place: self." + value.layer->attribute + " is it already.",
                   "Make a second layer; weights are not shared.");
        value.layer->attribute = target.text;
        value.layer->note = commentAbove(statement.begin);
        value.layer->name = tagOf(lineComment(statement.begin), "cell");
        if (value.layer->name.empty()) value.layer->name = target.text;
        m_layers.push_back(value.layer);
    }
    m_attributes[target.text] = std::move(value);
}

// ---- construct ----

namespace {
void countAssignments(const Node& node, std::map<std::string, int>& counts) {
    if (node.kind == Syntax::Assign) {
        const Node& target = node.of[0];
        if (target.kind == Syntax::Name) ++counts[target.text];
        for (const Node& one : target.of)
            if (target.kind == Syntax::Tuple && one.kind == Syntax::Name) ++counts[one.text];
    }
    for (const Node& inner : node.of)
        if (node.kind == Syntax::If || node.kind == Syntax::For || node.kind == Syntax::Block) countAssignments(inner, counts);
}
} // namespace

void ClassReader::readPorts(const Method& method) {
    const std::size_t end = method.body.empty() ? m_class.end : method.body.back().end;
    for (const ScriptComment& comment : m_session.source->comments) {
        if (comment.offset < method.begin || comment.offset > end) continue;
        const std::string text = trimmed(comment.text.substr(1));
        graph::Port port;
        if (text.starts_with("-> ")) {
            const auto colon = text.find(": ");
            port.name = trimmed(text.substr(3, colon == std::string::npos ? std::string::npos : colon - 3));
            if (colon != std::string::npos && !readPortText(text.substr(colon + 1), port)) continue;
            if (isName(port.name)) m_declaredOutputs.push_back(std::move(port));
            continue;
        }
        const auto colon = text.find(':');
        if (colon == std::string::npos) continue;
        const auto more = text.find(", port: ", colon);
        const std::string variable = trimmed(text.substr(0, colon));
        if (!readPortText(text.substr(colon + 1, more == std::string::npos ? std::string::npos : more - colon - 1), port)) continue;
        port.name = more == std::string::npos ? variable : trimmed(text.substr(more + 8));
        if (isName(port.name)) m_declared.emplace(variable, std::move(port));
    }
}

void ClassReader::readConstruct() {
    const bool isMindSpore = m_session.dialect == celloom::code::Dialect::MindSpore;
    const Method* method = m_class.method(isMindSpore ? "construct" : "forward");
    Node place;
    place.begin = m_class.begin;
    place.end = m_class.begin + 5;
    if (!method)
        refuse(place, "The class " + m_class.name + " has no method " + (isMindSpore ? "construct." : "forward."),
               "It says how the outputs follow from the inputs.");
    readPorts(*method);
    std::map<std::string, int> counts;
    for (const Node& statement : method->body) countAssignments(statement, counts);
    for (const auto& [name, count] : counts)
        if (count == 1) m_assignedOnce.insert(name);
    m_env.clear();
    for (const Parameter& parameter : method->parameters) {
        m_assignedOnce.erase(parameter.name);
        const auto declared = m_declared.find(parameter.name);
        if (!parameter.standard.empty() && declared == m_declared.end()) { // optional, and nothing says that it is there
            if (parameter.standard[0].kind != Syntax::None) refuse(parameter.standard[0], "An optional input has the default None.", "");
            m_env[parameter.name] = Value{};
            m_session.note(m_class.name + ": the optional input " + parameter.name + " was left out; a comment such as # " +
                           parameter.name + ": [B, T] brings it in.");
            continue;
        }
        graph::Port port = declared == m_declared.end() ? graph::Port{parameter.name, {}} : declared->second;
        m_env[parameter.name] = tensorAt({"", port.name});
        m_graph.inputs.push_back(std::move(port));
    }
    for (const Node& one : method->body) {
        statement(one);
        if (m_returned) break;
    }
    place.begin = method->begin;
    place.end = method->begin + method->name.size();
    if (!m_returned) refuse(place, "The method " + method->name + " returns nothing.", "Return the outputs.");
    nameOutputs(*m_returned, m_returnNode);
}

void ClassReader::nameOutputs(const Value& value, const Node* node) {
    std::vector<Value> results = value.kind == Value::Kind::Items ? value.items : std::vector<Value>{value};
    std::set<std::string> taken;
    for (std::size_t i = 0; i < results.size(); ++i) {
        if (results[i].kind != Value::Kind::Tensor)
            refuse(*node, "What is returned is no tensor.",
                   results[i].kind == Value::Kind::Undefined ? results[i].text : "Return the outputs, parted by commas.");
        graph::Port port{results.size() == 1 ? "out" : "out" + std::to_string(i), {}};
        if (node->kind == Syntax::Tuple && node->of.size() == results.size() && node->of[i].kind == Syntax::Name &&
            !taken.contains(node->of[i].text))
            port.name = node->of[i].text;
        if (m_declaredOutputs.size() == results.size()) port = m_declaredOutputs[i];
        taken.insert(port.name);
        m_graph.wires.push_back({results[i].end, {"", port.name}});
        m_graph.outputs.push_back(std::move(port));
    }
}

} // namespace celloom::engine::code
