// What construct does: calls become cells, variables wires.
#include "engine/code/class_reader.h"

#include "models/base/text.h"
#include "models/catalog/catalog.h"
#include "models/graph/parameters.h"

#include <algorithm>
#include <cmath>

namespace celloom::engine::code {
namespace {

using Kind = Value::Kind;
using Params = std::map<std::string, graph::ParamValue>;

bool mentions(const graph::Graph& graph, const std::string& port) {
    return std::any_of(graph.inputs.begin(), graph.inputs.end(), [&](const graph::Port& one) { return one.name == port; });
}

} // namespace

// ---- statements ----

void ClassReader::statement(const Node& node) {
    if (m_returned) return;
    m_session.step(node);
    m_statement = &node;
    m_targets.clear();
    switch (node.kind) {
    case Syntax::Pass:
        return;
    case Syntax::Assign: {
        m_tag = lineComment(node.begin);
        if (node.of[0].kind == Syntax::Name) m_targets = {node.of[0].text};
        for (const Node& one : node.of[0].of)
            if (node.of[0].kind == Syntax::Tuple && one.kind == Syntax::Name) m_targets.push_back(one.text);
        const Value value = m_tag.starts_with("Expression") ? wholeFormula(node.of[1]) : evaluate(node.of[1]);
        assign(node.of[0], value, node);
        m_tag.clear();
        return;
    }
    case Syntax::Return: {
        const Node& value = node.of.at(0);
        m_tag.clear();
        Value result = evaluate(value);
        m_returnNode = &value;
        m_returned = std::move(result);
        return;
    }
    case Syntax::If:
        for (const Node& inner : node.of[truth(node.of[0]) ? 1 : 2].of) statement(inner);
        return;
    case Syntax::For:
        return loop(node);
    case Syntax::Expression:
        if (node.of[0].kind == Syntax::Number || node.of[0].kind == Syntax::String) return; // what a docstring became
        refuse(node, "This statement gives nothing to a variable.", "Assign what it gives, or delete it.");
    default:
        refuse(node, "This statement is not available" + (node.text.empty() ? std::string(".") : ": " + node.text + "."),
               "Assignments, calls, arithmetic, loops over self.layers and return are.");
    }
}

void ClassReader::assign(const Node& target, const Value& value, const Node& statement) {
    if (target.kind == Syntax::Name) {
        m_env[target.text] = value;
        return;
    }
    if (target.kind != Syntax::Tuple) refuse(target, "construct can set variables alone.", "Attributes are set in __init__.");
    for (std::size_t i = 0; i < target.of.size(); ++i) {
        if (target.of[i].kind != Syntax::Name) refuse(target.of[i], "A variable should stand here.", "");
        Value one;
        if (value.kind == Kind::Shape) {
            one = value;
            one.kind = Kind::Size;
            one.index = static_cast<std::int64_t>(i);
        } else {
            if (value.kind != Kind::Items || value.items.size() != target.of.size())
                refuse(statement,
                       "There are " + std::to_string(target.of.size()) + " variables for " +
                           (value.kind == Kind::Items ? std::to_string(value.items.size()) + " values." : "one value."),
                       "");
            one = value.items[i];
        }
        m_env[target.of[i].text] = std::move(one);
    }
}

/// "for layer in self.layers: x = layer(x, mask)": a cell that stands many times in a row, or the layers of a list one by one.
void ClassReader::loop(const Node& node) {
    const Node &target = node.of[0], &range = node.of[1], &body = node.of[2];
    if (target.kind != Syntax::Name) refuse(target, "One variable should stand here.", "");
    const bool isRange =
        range.kind == Syntax::Call && range.of[0].kind == Syntax::Name && range.of[0].text == "range" && range.of.size() == 2;
    if (isRange) {
        const std::int64_t rounds = wholeOf(evaluate(range.of[1]), range.of[1]);
        if (rounds < 0 || rounds > 200)
            refuse(range.of[1], "A loop of construct has 200 rounds at most; this one would have " + std::to_string(rounds) + ".",
                   "Repeat a layer: nn.CellList([Block(…) for _ in range(n)]).");
        for (std::int64_t round = 0; round < rounds; ++round) {
            Value number;
            number.kind = Kind::Number;
            number.number = round;
            m_env[target.text] = number;
            for (const Node& inner : body.of) statement(inner);
        }
        return;
    }
    const Value over = evaluate(range);
    if (over.kind == Kind::Layer && over.layer->kind == Layer::Kind::Cell && !over.layer->repeat.empty()) {
        const Node* call =
            body.of.size() == 1 && body.of[0].kind == Syntax::Assign && body.of[0].of[1].kind == Syntax::Call ? &body.of[0].of[1] : nullptr;
        const bool calls = call && call->of[0].kind == Syntax::Name && call->of[0].text == target.text;
        if (!calls)
            refuse(body.of.empty() ? node : body.of[0], "The body of this loop calls the layer alone: x = " + target.text + "(x).",
                   "Move the rest into the layer's own class.");
        const Node& results = body.of[0].of[0];
        const std::vector<Node> names = results.kind == Syntax::Tuple ? results.of : std::vector<Node>{results};
        for (std::size_t i = 0; i < names.size(); ++i)
            if (names[i].kind != Syntax::Name || call->of.size() <= i + 1 || call->of[i + 1].kind != Syntax::Name ||
                call->of[i + 1].text != names[i].text)
                refuse(body.of[0], "What one layer gives, the next one takes at the same place: x = " + target.text + "(x).", "");
        for (std::size_t i = names.size() + 1; i < call->of.size(); ++i)
            for (const Node& name : names)
                if (call->of[i].kind == Syntax::Name && call->of[i].text == name.text)
                    refuse(call->of[i], "This input changes from layer to layer.", "Only the first inputs follow the outputs.");
        m_env[target.text] = over;
        statement(body.of[0]);
        return;
    }
    std::vector<Value> items = over.items;
    if (over.kind == Kind::Layer && over.layer->kind == Layer::Kind::List)
        items = over.layer->items;
    else if (over.kind != Kind::Items)
        refuse(range, "A loop runs over a list of layers or over range(n).", "");
    std::size_t number = 0;
    for (const Value& item : items) {
        if (item.kind == Kind::Layer && item.layer->name.empty() && over.kind == Kind::Layer)
            item.layer->name = over.layer->attribute + "_" + std::to_string(number);
        ++number;
        m_env[target.text] = item;
        for (const Node& inner : body.of) statement(inner);
    }
    if (over.kind == Kind::Layer) over.layer->isUsed = true;
}

// ---- calls ----

graph::CellInstance ClassReader::instanceOf(const std::string& type, const Params& params, const Node& place) const {
    const catalog::CellType& known = *catalog::find(type);
    graph::CellInstance out;
    out.type = type;
    for (const catalog::ParamDef& def : known.params) {
        const auto given = params.find(def.name);
        if (given == params.end() && !def.standard) refuse(place, type + " needs " + def.name + ".", def.help);
        auto value = graph::resolveParam(def, given == params.end() ? *def.standard : given->second, m_scope);
        if (!value) refuse(place, type + ": " + value.error().message, value.error().hint);
        out.params[def.name] = std::move(*value);
    }
    return out;
}

std::vector<std::string> ClassReader::outputNames(const std::string& type, const Params& params, const Node& place) const {
    std::vector<std::string> out;
    if (const auto composite = m_session.document.composites.find(type); composite != m_session.document.composites.end()) {
        for (const graph::Port& port : composite->second.outputs) out.push_back(port.name);
        return out;
    }
    for (const catalog::PortDef& port : catalog::outputPorts(*catalog::find(type), instanceOf(type, params, place)))
        out.push_back(port.name);
    return out;
}

std::vector<std::string> ClassReader::inputNames(const std::string& type, const Params& params, std::size_t& needed,
                                                 const Node& place) const {
    std::vector<std::string> out;
    needed = 0;
    if (const auto composite = m_session.document.composites.find(type); composite != m_session.document.composites.end()) {
        for (const graph::Port& port : composite->second.inputs) out.push_back(port.name);
        needed = out.size();
        return out;
    }
    for (const catalog::PortDef& port : catalog::inputPorts(*catalog::find(type), instanceOf(type, params, place))) {
        out.push_back(port.name);
        if (!port.isOptional) needed = out.size();
    }
    return out;
}

/// The variable that the statement gives the result to, where it has no other meaning.
std::string ClassReader::cellNameFor(const std::string& fallback) {
    if (const std::string tagged = tagOf(m_tag, "cell"); !tagged.empty() && !m_names.contains(tagged)) return tagged;
    const auto isFree = [&](const std::string& name) {
        return m_assignedOnce.contains(name) && !m_names.contains(name) && !mentions(m_graph, name) &&
               !(m_attributes.contains(name) && m_attributes.at(name).kind == Kind::Layer);
    };
    if (m_targets.size() == 1 && isFree(m_targets[0])) return m_targets[0];
    if (m_targets.size() > 1 && m_targets[0].ends_with("_out0")) {
        const std::string base = m_targets[0].substr(0, m_targets[0].size() - 5);
        bool fits = !base.empty() && !m_names.contains(base) && !(m_attributes.contains(base) && m_attributes.at(base).kind == Kind::Layer);
        for (std::size_t i = 0; i < m_targets.size(); ++i) fits = fits && m_targets[i] == base + "_out" + std::to_string(i);
        if (fits) return base;
    }
    std::string name = fallback;
    for (int number = 2; m_names.contains(name) || m_attributes.contains(name) || mentions(m_graph, name); ++number)
        name = fallback + "_" + std::to_string(number);
    return name;
}

Value ClassReader::addCell(const std::string& name, const std::string& type, Params params, const std::vector<Value>& inputs,
                           const Node& place, const std::string& repeat) {
    if (++m_session.cells > kMaxCells)
        refuse(place, "The source makes more than " + std::to_string(kMaxCells) + " cells.",
               "Repeat a layer: nn.CellList([Block(…) for _ in range(n)]).");
    std::size_t needed = 0;
    const auto ports = inputNames(type, params, needed, place);
    std::size_t given = 0;
    for (std::size_t i = 0; i < inputs.size(); ++i)
        if (inputs[i].kind != Kind::None) given = i + 1;
    if (given > ports.size() || given < needed)
        refuse(place,
               type + " takes " +
                   (needed == ports.size() ? std::to_string(needed) : std::to_string(needed) + " to " + std::to_string(ports.size())) +
                   " inputs and is given " + std::to_string(given) + ".",
               ports.empty() ? "" : "They are " + joined(ports) + ".");
    m_names.insert(name);
    graph::Cell cell;
    cell.name = name;
    cell.type = type;
    cell.params = std::move(params);
    cell.repeat = repeat;
    for (std::size_t i = 0; i < given; ++i) {
        if (inputs[i].kind == Kind::None && i >= needed) continue;
        if (inputs[i].kind != Kind::Tensor)
            refuse(place, "The input " + ports[i] + " of " + type + " is no tensor.",
                   inputs[i].kind == Kind::Undefined ? inputs[i].text : "");
        m_graph.wires.push_back({inputs[i].end, {name, ports[i]}});
    }
    const auto outputs = outputNames(type, cell.params, place);
    m_graph.cells.push_back(std::move(cell));
    if (outputs.size() == 1 || (type == "Embedding" && !outputs.empty())) return tensorAt({name, outputs[0]});
    Value out = itemsOf({});
    for (const std::string& port : outputs) out.items.push_back(tensorAt({name, port}));
    return out;
}

/// A cell that has no attribute: its name is the variable, its note the comment above.
Value ClassReader::function(const std::string& type, Params params, const std::vector<Value>& inputs, const Node& place) {
    if (!catalog::find(type)) refuse(place, "This Celloom has no cell " + type + ".", "");
    for (auto param = params.begin(); param != params.end();) { // as little as possible, so that both ways give the same
        const auto& defs = catalog::find(type)->params;
        const auto def = std::find_if(defs.begin(), defs.end(), [&](const catalog::ParamDef& one) { return one.name == param->first; });
        if (def != defs.end() && def->standard && *def->standard == param->second)
            param = params.erase(param);
        else
            ++param;
    }
    const bool isWhole = m_statement && m_statement->kind == Syntax::Assign && &m_statement->of[1] == &place;
    std::string name;
    if (isWhole) {
        name = cellNameFor(snakeName(type));
    } else {
        name = snakeName(type);
        const std::string base = name;
        for (int number = 2; m_names.contains(name) || m_attributes.contains(name) || mentions(m_graph, name); ++number)
            name = base + "_" + std::to_string(number);
    }
    Value out = addCell(name, type, std::move(params), inputs, place);
    if (isWhole) m_graph.cells.back().note = commentAbove(m_statement->begin);
    return out;
}

bool ClassReader::hasWeights(const std::string& type, const Params& params, const Node& place) const {
    if (const auto composite = m_session.document.composites.find(type); composite != m_session.document.composites.end()) {
        if (const auto known = m_session.withWeights.find(type); known != m_session.withWeights.end()) return known->second;
        bool out = false;
        for (const graph::Cell& cell : composite->second.cells) {
            const catalog::CellType* inner = catalog::find(cell.type);
            out = out || (inner ? static_cast<bool>(inner->weights) : hasWeights(cell.type, {}, place));
        }
        return m_session.withWeights[type] = out;
    }
    const catalog::CellType* known = catalog::find(type);
    return known && known->weights && !known->weights(instanceOf(type, params, place)).empty();
}

Value ClassReader::callLayer(const std::shared_ptr<Layer>& shared, const Arguments& arguments) {
    Layer& layer = *shared;
    Node here;
    const Node& place = arguments.call ? *arguments.call : m_statement ? *m_statement : here;
    if (m_isInit) refuse(place, "Layers are called in construct.", "");
    if (layer.kind == Layer::Kind::Helper) {
        Arguments all = arguments;
        for (const auto& [key, value] : layer.params) {
            Value bound;
            bound.kind = std::holds_alternative<bool>(value)          ? Kind::Flag
                         : std::holds_alternative<std::string>(value) ? Kind::Expression
                                                                      : Kind::Number;
            bound.number = value;
            if (bound.kind == Kind::Expression) bound.text = std::get<std::string>(value);
            all.named.emplace(key, bound);
            all.namedNodes.emplace(key, &place);
        }
        layer.isUsed = true;
        return callFunction(layer.type, std::move(all));
    }
    if (layer.kind == Layer::Kind::List)
        refuse(place, "A list of layers cannot be called.", "Write for layer in self." + layer.attribute + ": x = layer(x).");
    if (layer.kind == Layer::Kind::Sequence) {
        if (layer.items.empty()) { // nn.Identity
            if (arguments.positional.size() != 1) refuse(place, "This takes one input.", "");
            layer.isUsed = true;
            return arguments.positional[0];
        }
        layer.type = sequenceComposite(layer);
        layer.kind = Layer::Kind::Cell;
    }
    std::string name = layer.name.empty() ? snakeName(layer.type) : layer.name;
    if (layer.isUsed) {
        if (hasWeights(layer.type, layer.params, place)) {
            if (layer.type == "Parameter") return tensorAt({name, "out"});
            refuse(place,
                   (layer.attribute.empty() ? "This layer" : "self." + layer.attribute) +
                       " is called a second time; a cell stands at one place, weights are not shared.",
                   "Make a second layer.");
        }
        const std::string base = name;
        for (int number = 2; m_names.contains(name) || m_attributes.contains(name); ++number) name = base + "_" + std::to_string(number);
    } else if (m_names.contains(name)) {
        const std::string base = name;
        for (int number = 2; m_names.contains(name); ++number) name = base + "_" + std::to_string(number);
    }
    layer.isUsed = true;
    std::size_t needed = 0;
    const auto ports = inputNames(layer.type, layer.params, needed, place);
    std::vector<Value> inputs = arguments.positional;
    if (layer.kind == Layer::Kind::Attention) {
        if (inputs.empty() || inputs.size() > 3 || (inputs.size() == 2) || !arguments.named.empty())
            refuse(place, "The attention takes a query, a key and a value, or one input for all three.", "");
        while (inputs.size() < 3) inputs.push_back(inputs[0]);
    }
    for (const auto& [key, value] : arguments.named) {
        const auto port = std::find(ports.begin(), ports.end(), key);
        if (port == ports.end()) {
            const auto close = nearest(key, ports);
            refuse(*arguments.namedNodes.at(key), "There is no input " + inQuotes(key, 40) + ".",
                   close.empty() ? "Inputs are " + joined(ports) + "." : "Did you mean " + joined(close) + "?");
        }
        const auto index = static_cast<std::size_t>(port - ports.begin());
        if (inputs.size() <= index) inputs.resize(index + 1);
        inputs[index] = value;
    }
    Value out = addCell(name, layer.type, layer.params, inputs, place, layer.repeat);
    if (layer.name.empty()) layer.name = name;
    m_graph.cells.back().note = layer.note;
    if (layer.isTuple) {
        Value weights;
        weights.kind = Kind::Undefined;
        weights.text = "The attention's weights are no output of the cell; a probe shows them.";
        out = itemsOf({out, weights});
    }
    return out;
}

/// A method of the class is read in the place of its call.
Value ClassReader::callMethod(const Method& method, const Arguments& arguments) {
    if (m_isInit || m_depth > 600) refuse(*arguments.call, "The method " + method.name + " cannot be called here.", "");
    if (++m_methods > 16) refuse(*arguments.call, "Methods call each other deeper than 16 levels.", "");
    Env outer = std::exchange(m_env, {});
    for (std::size_t i = 0; i < method.parameters.size(); ++i) {
        const Parameter& parameter = method.parameters[i];
        if (i < arguments.positional.size())
            m_env[parameter.name] = arguments.positional[i];
        else if (const auto named = arguments.named.find(parameter.name); named != arguments.named.end())
            m_env[parameter.name] = named->second;
        else if (!parameter.standard.empty())
            m_env[parameter.name] = evaluate(parameter.standard[0]);
        else
            refuse(*arguments.call, method.name + " needs " + parameter.name + ".", "");
    }
    if (arguments.positional.size() > method.parameters.size())
        refuse(*arguments.call, method.name + " takes " + std::to_string(method.parameters.size()) + " arguments.", "");
    const auto once = std::exchange(m_assignedOnce, {});
    const auto targets = m_targets;
    const std::string tag = m_tag;
    const Node* statementBefore = m_statement;
    auto returned = std::exchange(m_returned, std::nullopt);
    const Node* returnBefore = m_returnNode;
    for (const Node& one : method.body) {
        statement(one);
        if (m_returned) break;
    }
    if (!m_returned) refuse(*arguments.call, "The method " + method.name + " returns nothing.", "");
    Value out = *std::exchange(m_returned, std::move(returned));
    m_env = std::move(outer);
    m_assignedOnce = once;
    m_targets = targets;
    m_tag = tag;
    m_statement = statementBefore;
    m_returnNode = returnBefore;
    --m_methods;
    return out;
}

} // namespace celloom::engine::code
