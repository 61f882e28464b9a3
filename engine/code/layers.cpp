// What __init__ makes: layers of the framework, classes of the file, lists and sequences of them.
#include "engine/code/class_reader.h"

#include "models/base/text.h"
#include "models/catalog/catalog.h"
#include "models/code/table.h"
#include "models/library/entry.h"

#include <algorithm>

namespace celloom::engine::code {
namespace {

using celloom::code::Argument;
using celloom::code::Form;

Value layerValue(Layer layer) {
    Value out;
    out.kind = Value::Kind::Layer;
    out.layer = std::make_shared<Layer>(std::move(layer));
    return out;
}

/// Arguments that say how weights begin or where they lie, not what is computed.
const std::set<std::string> kWithoutEffect{
    "weight_init", "bias_init",   "embedding_table", "gamma_init",  "beta_init", "moving_mean_init", "moving_var_init", "dtype",
    "device",      "use_one_hot", "inplace",         "data_format", "name",      "requires_grad"};

bool isStandard(const Value& value, const std::string& standard) {
    ScriptValue parsed;
    if (standard == "None") return value.kind == Value::Kind::None;
    return readScriptValue(standard, parsed) &&
           (value.kind == Value::Kind::Number || value.kind == Value::Kind::Flag || value.kind == Value::Kind::Text) &&
           value.text.empty() && value.number == parsed;
}

/// "TransformerBlock" and "ffn": TransformerBlockFfn.
std::string joinedName(const std::string& name, const std::string& attribute) {
    std::string out = name;
    bool isStart = true;
    for (const char c : attribute) {
        if (c == '_' || c == '-')
            isStart = true;
        else {
            out += isStart && c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
            isStart = false;
        }
    }
    return out;
}

const catalog::ParamDef* paramDef(const std::string& type, const std::string& param) {
    const catalog::CellType* found = catalog::find(type);
    if (!found) return nullptr;
    for (const catalog::ParamDef& def : found->params)
        if (def.name == param) return &def;
    return nullptr;
}

/// MindSpore's primitives that are made once and called later, as functions: ops.MatMul()(x, y).
const std::map<std::string, std::string> kPrimitives{{"MatMul", "matmul"},   {"BatchMatMul", "matmul"},
                                                     {"Reshape", "reshape"}, {"Transpose", "transpose"},
                                                     {"Concat", "concat"},   {"Add", "add"},
                                                     {"Sub", "sub"},         {"Mul", "mul"},
                                                     {"Div", "div"},         {"RealDiv", "div"},
                                                     {"ReduceMean", "mean"}, {"ReduceSum", "sum"},
                                                     {"ReduceMax", "amax"},  {"GeLU", "gelu"},
                                                     {"Exp", "exp"},         {"Sqrt", "sqrt"},
                                                     {"Square", "square"}};

} // namespace

void ClassReader::setParam(Layer& layer, const std::string& type, const std::string& param, const Value& value, const Node& place) const {
    const catalog::ParamDef* def = paramDef(type, param);
    CELLOOM_CHECK(def);
    if (value.kind == Value::Kind::Undefined) refuse(place, value.text, "Layers of a list are alike; write those that differ one by one.");
    graph::ParamValue out;
    switch (def->kind) {
    case catalog::ParamKind::Integer:
    case catalog::ParamKind::Real:
        if (!isNumeric(value)) refuse(place, type + " takes a number for " + param + ".", def->help);
        out = paramOf(value, place);
        break;
    case catalog::ParamKind::Flag:
        if (value.kind != Value::Kind::Flag && !(value.kind == Value::Kind::Expression && m_scope.contains(value.text) &&
                                                 std::holds_alternative<bool>(m_scope.at(value.text))))
            refuse(place, type + " takes True or False for " + param + ".", def->help);
        out = paramOf(value, place);
        break;
    case catalog::ParamKind::IntegerList:
        out = listText(value, place);
        break;
    default:
        if (value.kind != Value::Kind::Text) refuse(place, type + " takes a text for " + param + ".", def->help);
        out = value.number;
    }
    if (def->standard && *def->standard == out) return;
    layer.params[param] = std::move(out);
}

/// The value that the argument's form says; nothing where it says what the cell does anyway.
static std::optional<Value> fromForm(Form form, const Value& value, const Node& place) {
    Value out = value;
    const auto isText = [&](const char* text) { return value.kind == Value::Kind::Text && std::get<std::string>(value.number) == text; };
    switch (form) {
    case Form::Tuple:
        if (value.kind == Value::Kind::Items && value.items.size() == 1) return value.items[0];
        if (value.kind == Value::Kind::Items) refuse(place, "The last dimension alone is normalised here.", "Give one size.");
        return value;
    case Form::Padding:
        if (value.kind == Value::Kind::None) return {};
        return value;
    case Form::TanhFlag:
        if (value.kind != Value::Kind::Flag || !value.text.empty())
            return isText("none") || isText("tanh") ? std::optional<Value>(value) : std::nullopt;
        out.kind = Value::Kind::Text;
        out.number = std::string(std::get<bool>(value.number) ? "tanh" : "none");
        return out;
    case Form::Complement:
        if (value.kind == Value::Kind::Number) {
            const auto* real = std::get_if<double>(&value.number);
            const auto* whole = std::get_if<std::int64_t>(&value.number);
            double shortest = 0; // 1 - 0.1 is 0.9, not the next number below
            CELLOOM_CHECK(celloom::readNumber(std::string_view(celloom::roundedText(1 - (real    ? *real
                                                                                         : whole ? static_cast<double>(*whole)
                                                                                                 : 0))),
                                              shortest));
            out.number = shortest;
            return out;
        }
        if (value.kind == Value::Kind::Expression) {
            out.text = value.text.starts_with("1 - ") ? value.text.substr(4) : "1 - (" + value.text + ")";
            out.level = 1;
            ScriptValue plain; // "1 - 0.8", as it is written for a number
            if (readScriptValue(out.text, plain) && !std::holds_alternative<std::string>(plain)) {
                out.kind = Value::Kind::Number;
                out.number = plain;
                out.text.clear();
            }
        }
        return out;
    case Form::PoolStride:
        if (value.kind == Value::Kind::None) return {};
        return value;
    case Form::PoolMode:
        if (isText("same")) refuse(place, "A pool with pad_mode \"same\" is not in the catalogue.", "Give its padding in numbers.");
        return {};
    case Form::Padding4:
        if (value.kind == Value::Kind::Items && value.items.size() == 4) {
            const auto same = [&](std::size_t i) {
                const Value &a = value.items[i], &b = value.items[i + 1];
                return a.kind == b.kind && a.number == b.number && a.text == b.text;
            };
            if (same(0) && same(2)) return itemsOf({value.items[0], value.items[2]});
        }
        return value;
    case Form::Padding2:
        if (value.kind == Value::Kind::Text) refuse(place, "padding in words is not read here.", "Give it in numbers.");
        return value;
    default:
        return value;
    }
}

Value ClassReader::layerNamed(const std::string& name, Arguments& arguments) {
    if (m_session.classes.contains(name)) return classNamed(name, arguments);
    if (name == "SequentialCell" || name == "Sequential") return sequenceOf(arguments, Layer::Kind::Sequence);
    if (name == "CellList" || name == "ModuleList") return sequenceOf(arguments, Layer::Kind::List);
    if (name == "MultiHeadAttention" || name == "MultiheadAttention") return attentionNamed(name, arguments);
    if (name == "Identity") {
        Value out = sequenceOf({}, Layer::Kind::Sequence);
        return out;
    }
    if (name == "Parameter") return learned(arguments);
    const celloom::code::Layer* known = celloom::code::layerNamed(m_session.dialect, name);
    if (!known && kPrimitives.contains(name)) {
        Layer out{Layer::Kind::Helper, kPrimitives.at(name)};
        for (const auto& [key, value] : arguments.named) {
            Value item = value;
            out.items.push_back(item);
            out.items.back().text = out.items.back().kind == Value::Kind::Flag ? "" : item.text;
            out.params[key] = value.kind == Value::Kind::Flag || value.kind == Value::Kind::Number
                                  ? value.number
                                  : graph::ParamValue(listText(value, *arguments.call));
        }
        if (name == "Concat" && arguments.positional.size() == 1) out.params["axis"] = paramOf(arguments.positional[0], *arguments.call);
        if ((name == "ReduceMean" || name == "ReduceSum" || name == "ReduceMax") && arguments.positional.size() == 1)
            out.params["keep_dims"] = paramOf(arguments.positional[0], *arguments.call);
        return layerValue(std::move(out));
    }
    if (!known) {
        std::vector<std::string> names;
        for (const celloom::code::Layer& layer : celloom::code::layers())
            if (layer.dialect == m_session.dialect) names.push_back(layer.name);
        for (const auto& [other, one] : m_session.classes) names.push_back(other);
        names.insert(names.end(), {"SequentialCell", "CellList", "MultiheadAttention"});
        const auto close = nearest(name, names);
        refuse(arguments.call->of[0], "nn has no " + inQuotes(name, 40) + " that the catalogue knows.",
               close.empty() ? "Known are " + joined(names, 60) + "." : "Did you mean " + joined(close) + "?");
    }
    Layer out{Layer::Kind::Cell, known->type};
    if (!catalog::find(known->type)) refuse(arguments.call->of[0], "This Celloom has no cell " + known->type + ".", "");
    std::set<std::string> given;
    const auto take = [&](const Argument& argument, const Value& value, const Node& place) {
        given.insert(argument.name);
        if (argument.form == Form::Fixed) {
            if (isStandard(value, *argument.standard)) return;
            if (!kWithoutEffect.contains(argument.name))
                refuse(place, name + " can have no other " + argument.name + " than " + *argument.standard + " here.", "Leave it out.");
            return m_session.note(m_class.name + ": " + argument.name + " of " + name +
                                  " was left out; how weights begin is the recipe's.");
        }
        if (auto plain = fromForm(argument.form, value, place)) setParam(out, known->type, argument.param, *plain, place);
    };
    if (arguments.positional.size() > known->arguments.size())
        refuse(*arguments.call, name + " takes " + std::to_string(known->arguments.size()) + " arguments at most.", "");
    for (std::size_t i = 0; i < arguments.positional.size(); ++i) take(known->arguments[i], arguments.positional[i], *arguments.nodes[i]);
    for (const auto& [key, value] : arguments.named) {
        const auto argument = std::find_if(known->arguments.begin(), known->arguments.end(),
                                           [&, &wanted = key](const Argument& one) { return one.name == wanted; });
        if (argument == known->arguments.end()) {
            if (kWithoutEffect.contains(key)) continue;
            std::vector<std::string> names;
            for (const Argument& one : known->arguments) names.push_back(one.name);
            const auto close = nearest(key, names);
            refuse(*arguments.namedNodes.at(key), name + " has no argument " + inQuotes(key, 40) + ".",
                   close.empty() ? "It has " + joined(names) + "." : "Did you mean " + joined(close) + "?");
        }
        if (given.contains(key)) refuse(*arguments.namedNodes.at(key), key + " is given twice.", "");
        take(*argument, value, *arguments.namedNodes.at(key));
    }
    for (const Argument& argument : known->arguments) { // what leaving it out means in the framework
        if (given.contains(argument.name) || argument.form == Form::Fixed) continue;
        if (!argument.standard) {
            if (paramDef(known->type, argument.param)->standard && argument.isByName) continue;
            refuse(*arguments.call, name + " needs " + argument.name + ".", "");
        }
        ScriptValue parsed;
        if (*argument.standard == "None") continue; // as the cell's own default
        CELLOOM_CHECK(readScriptValue(*argument.standard, parsed));
        Value value;
        value.kind = std::holds_alternative<bool>(parsed)          ? Value::Kind::Flag
                     : std::holds_alternative<std::string>(parsed) ? Value::Kind::Text
                                                                   : Value::Kind::Number;
        value.number = parsed;
        if (auto plain = fromForm(argument.form, value, *arguments.call))
            setParam(out, known->type, argument.param, *plain, *arguments.call);
    }
    const auto stride = out.params.find("stride"); // of a pool: the window's own size is what the cell does anyway
    if (stride != out.params.end() && known->type.ends_with("Pool2d") && stride->second == out.params.at("kernel_size")) out.params.erase(stride);
    return layerValue(std::move(out));
}

/// A class that Celloom wrote out for a cell type: its arguments are the cell's parameters.
Value ClassReader::helperNamed(const std::string& type, Arguments& arguments) {
    const catalog::CellType* known = catalog::find(type);
    if (!known) refuse(*arguments.call, "This Celloom has no cell " + type + ".", "");
    Layer out{Layer::Kind::Cell, type};
    if (arguments.positional.size() > known->params.size())
        refuse(*arguments.call, type + " takes " + std::to_string(known->params.size()) + " arguments at most.", "");
    for (std::size_t i = 0; i < arguments.positional.size(); ++i)
        setParam(out, type, known->params[i].name, arguments.positional[i], *arguments.nodes[i]);
    for (const auto& [key, value] : arguments.named) {
        if (!paramDef(type, key)) refuse(*arguments.namedNodes.at(key), type + " has no argument " + inQuotes(key, 40) + ".", "");
        setParam(out, type, key, value, *arguments.namedNodes.at(key));
    }
    for (const catalog::ParamDef& def : known->params)
        if (!def.standard && !out.params.contains(def.name)) refuse(*arguments.call, type + " needs " + def.name + ".", def.help);
    return layerValue(std::move(out));
}

Value ClassReader::classNamed(const std::string& name, Arguments& arguments) {
    Layer out{Layer::Kind::Cell, m_session.compositeOf(name, arguments.call->of[0])};
    const Class& source = *m_session.classes.at(name);
    const graph::Graph& composite = m_session.document.composites.at(out.type);
    const Method* init = source.method("__init__");
    const std::vector<Parameter> parameters = init ? init->parameters : std::vector<Parameter>{};
    const auto give = [&](const std::string& parameter, const Value& value, const Node& place) {
        const auto hyper =
            std::find_if(composite.hyper.begin(), composite.hyper.end(), [&](const auto& one) { return one.name == parameter; });
        if (hyper != composite.hyper.end()) {
            if (value.kind == Value::Kind::None) return; // as its default
            out.params[parameter] = paramOf(value, place);
            return;
        }
        const auto standard =
            std::find_if(parameters.begin(), parameters.end(), [&](const Parameter& one) { return one.name == parameter; });
        const Value usual = standard->standard.empty() ? Value{} : evaluate(standard->standard[0]);
        if (value.kind == usual.kind && value.number == usual.number && value.text == usual.text) return;
        refuse(place, name + " was read with " + parameter + " as its default; another value would make another graph.",
               "Make a class for each.");
    };
    if (arguments.positional.size() > parameters.size())
        refuse(*arguments.call, name + " takes " + std::to_string(parameters.size()) + " arguments at most.", "");
    std::set<std::string> given;
    for (std::size_t i = 0; i < arguments.positional.size(); ++i) {
        give(parameters[i].name, arguments.positional[i], *arguments.nodes[i]);
        given.insert(parameters[i].name);
    }
    for (const auto& [key, value] : arguments.named) {
        const bool isKnown =
            std::any_of(parameters.begin(), parameters.end(), [&, &wanted = key](const Parameter& one) { return one.name == wanted; });
        if (!isKnown || !given.insert(key).second) {
            std::vector<std::string> names;
            for (const Parameter& one : parameters) names.push_back(one.name);
            const auto close = nearest(key, names);
            refuse(*arguments.namedNodes.at(key),
                   name + (isKnown ? " is given " + key + " twice." : " has no argument " + inQuotes(key, 40) + "."),
                   close.empty() ? "" : "Did you mean " + joined(close) + "?");
        }
        give(key, value, *arguments.namedNodes.at(key));
    }
    for (const Parameter& one : parameters)
        if (one.standard.empty() && !given.contains(one.name)) refuse(*arguments.call, name + " needs " + one.name + ".", "");
    return layerValue(std::move(out));
}

Value ClassReader::sequenceOf(const Arguments& arguments, Layer::Kind kind) {
    Layer out{kind};
    for (std::size_t i = 0; i < arguments.positional.size(); ++i) {
        const Value& one = arguments.positional[i];
        std::vector<Value> items{one};
        if (one.kind == Value::Kind::Items)
            items = one.items;
        else if (one.kind == Value::Kind::Layer && one.layer->kind == Layer::Kind::List)
            items = one.layer->items;
        for (Value& item : items) {
            if (item.kind != Value::Kind::Layer) refuse(*arguments.nodes[i], "A layer should stand here.", "");
            if (!item.layer->attribute.empty())
                refuse(*arguments.nodes[i], "A layer has one place: self." + item.layer->attribute + " is it already.",
                       "Make a second layer; weights are not shared.");
            out.items.push_back(std::move(item));
        }
    }
    if (!arguments.named.empty()) refuse(*arguments.namedNodes.begin()->second, "Layers of a list have no names.", "");
    if (kind == Layer::Kind::Sequence && out.items.size() == 1 && out.items[0].layer->kind == Layer::Kind::Cell &&
        !out.items[0].layer->repeat.empty())
        return out.items[0];
    return layerValue(std::move(out));
}

/// A sequence as a composite of its own: its cells one behind the other.
std::string ClassReader::sequenceComposite(Layer& layer) {
    graph::Graph out;
    out.name = m_session.freeName(joinedName(m_class.name, layer.attribute.empty() ? "sequence" : layer.attribute));
    out.inputs = {{"x", {}}};
    out.outputs = {{"out", {}}};
    graph::Endpoint last{"", "x"};
    std::set<std::string> names, hypers;
    const auto collect = [&](const std::string& text) {
        for (const auto& [name, value] : m_scope) {
            for (std::size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + 1)) {
                const auto isPart = [&](std::size_t i) {
                    return i < text.size() && (std::isalnum(static_cast<unsigned char>(text[i])) != 0 || text[i] == '_');
                };
                if ((at == 0 || !isPart(at - 1)) && !isPart(at + name.size())) hypers.insert(name);
            }
        }
    };
    for (Value& item : layer.items) {
        Layer& inner = *item.layer;
        if (inner.kind == Layer::Kind::Sequence) {
            inner.attribute = layer.attribute;
            inner.type = sequenceComposite(inner);
            inner.attribute.clear();
            inner.kind = Layer::Kind::Cell;
        }
        if (inner.kind != Layer::Kind::Cell)
            refuse({Syntax::Other, {}, {}, m_class.begin, m_class.begin + 5}, "This layer cannot stand in a sequence.",
                   "Call it in construct.");
        Node place{Syntax::Other, {}, {}, m_class.begin, m_class.begin + 5};
        std::size_t needed = 0;
        const auto inputs = inputNames(inner.type, inner.params, needed, place);
        const auto outputs = outputNames(inner.type, inner.params, place);
        if (inputs.empty() || needed > 1 || outputs.size() != 1)
            refuse(place, "A " + inner.type + " cannot stand in a sequence: it has not one input and one output.", "Call it in construct.");
        const std::string base = snakeName(inner.type);
        std::string name = base;
        for (int number = 2; !names.insert(name).second; ++number) name = base + "_" + std::to_string(number);
        for (const auto& [param, value] : inner.params)
            if (const auto* text = std::get_if<std::string>(&value)) {
                const catalog::ParamDef* def = paramDef(inner.type, param);
                if (!def || def->kind == catalog::ParamKind::Integer || def->kind == catalog::ParamKind::Real ||
                    def->kind == catalog::ParamKind::IntegerList || def->kind == catalog::ParamKind::Flag)
                    collect(*text);
            }
        collect(inner.repeat);
        out.cells.push_back({name, inner.type, inner.params, inner.repeat, {}, {}});
        out.wires.push_back({last, {name, inputs[0]}});
        last = {name, outputs[0]};
        if (++m_session.cells > kMaxCells) refuse(place, "The source makes more than " + std::to_string(kMaxCells) + " cells.", "");
    }
    out.wires.push_back({last, {"", "out"}});
    for (const graph::HyperParameter& hyper : m_graph.hyper) { // in the class's own order
        if (!hypers.contains(hyper.name)) continue;
        out.hyper.push_back({hyper.name, std::visit([](const auto& held) { return graph::ParamValue(held); }, m_scope.at(hyper.name)), {}});
        layer.params[hyper.name] = hyper.name;
    }
    const std::string key = out.name;
    m_session.document.composites[key] = std::move(out);
    return key;
}

/// The standard library's composite. MultiHeadAttention(d_model, n_head) as articles write it; MultiheadAttention as MindSpore and PyTorch
/// have it.
Value ClassReader::attentionNamed(const std::string& name, Arguments& arguments) {
    const bool isFramework = name == "MultiheadAttention", isMindSpore = m_session.dialect == celloom::code::Dialect::MindSpore;
    Node place = *arguments.call;
    auto copied = library::copyInto(m_session.document, "MultiHeadAttention");
    if (!copied) refuse(place, copied.error().message, copied.error().hint);
    Layer out{Layer::Kind::Attention, copied->type};
    static const std::map<std::string, std::string> kNames{{"embed_dim", "d_model"},   {"d_model", "d_model"},   {"hidden_size", "d_model"},
                                                           {"num_heads", "num_heads"}, {"n_head", "num_heads"},  {"n_heads", "num_heads"},
                                                           {"dropout", "dropout"},     {"has_bias", "has_bias"}, {"bias", "has_bias"},
                                                           {"kdim", "key_dim"},        {"vdim", "value_dim"}};
    const std::vector<std::string> order = isMindSpore ? std::vector<std::string>{"embed_dim", "num_heads", "dropout", "has_bias"}
                                                       : std::vector<std::string>{"embed_dim", "num_heads", "dropout", "bias"};
    if (arguments.positional.size() > order.size())
        refuse(place, name + " takes " + std::to_string(order.size()) + " arguments without names.", "");
    std::map<std::string, std::pair<Value, const Node*>> given;
    for (std::size_t i = 0; i < arguments.positional.size(); ++i) given[order[i]] = {arguments.positional[i], arguments.nodes[i]};
    for (const auto& [key, value] : arguments.named) given[key] = {value, arguments.namedNodes.at(key)};
    bool isBatchFirst = !isFramework;
    for (const auto& [key, one] : given) {
        const auto& [value, node] = one;
        if (key == "batch_first")
            isBatchFirst = value.kind == Value::Kind::Flag && value.text.empty() && std::get<bool>(value.number);
        else if ((key == "add_bias_kv" || key == "add_zero_attn") && isStandard(value, "False"))
            continue;
        else if (kNames.contains(key)) {
            if (value.kind != Value::Kind::None) out.params[kNames.at(key)] = paramOf(value, *node);
        } else if (!kWithoutEffect.contains(key)) {
            refuse(*node, name + " has no argument " + inQuotes(key, 40) + " here.",
                   "It has embed_dim, num_heads, dropout, has_bias, kdim, vdim and batch_first.");
        }
    }
    if (!isBatchFirst)
        refuse(place, name + " takes the sequence first unless it is told otherwise; the graph's wires are [B, T, …].",
               "Write batch_first=True.");
    for (const char* needed : {"d_model", "num_heads"})
        if (!out.params.contains(needed))
            refuse(place, name + " needs " + (std::string(needed) == "d_model" ? "embed_dim." : "num_heads."), "");
    out.isTuple = isFramework;
    return layerValue(std::move(out));
}

/// Parameter(Tensor(np.zeros((1, 16, 32)), ms.float32)) and its like: a learned tensor of its own.
Value ClassReader::learned(const Arguments& arguments) {
    const Node& call = *arguments.call;
    if (!catalog::find("Parameter")) refuse(call, "This Celloom has no cell Parameter.", "");
    // evaluating the inside gave the sizes of what makes it: see callFunction("zeros")
    if (arguments.positional.empty() || arguments.positional[0].kind != Value::Kind::Items || arguments.positional[0].text.empty())
        refuse(call, "What this parameter begins with is not known.",
               "Write Parameter(ops.zeros((1, 16, 32))), or ones or randn in place of zeros.");
    Layer out{Layer::Kind::Cell, "Parameter"};
    setParam(out, "Parameter", "shape", itemsOf(arguments.positional[0].items), call);
    Value init;
    init.kind = Value::Kind::Text;
    init.number = arguments.positional[0].text;
    setParam(out, "Parameter", "init", init, call);
    return layerValue(std::move(out));
}

} // namespace celloom::engine::code
