// Functions of ops, torch or a tensor, and slices: each a cell.
#include "engine/code/class_reader.h"

#include "models/base/text.h"

#include <algorithm>

namespace celloom::engine::code {
namespace {

using Kind = Value::Kind;
using Params = std::map<std::string, graph::ParamValue>;

const std::map<std::string, std::string> kActivations{{"relu", "ReLU"}, {"silu", "SiLU"}, {"tanh", "Tanh"}, {"sigmoid", "Sigmoid"}};
const std::map<std::string, std::string> kSigns{{"add", "+"}, {"sub", "-"},      {"subtract", "-"}, {"mul", "*"},
                                                {"div", "/"}, {"multiply", "*"}, {"divide", "/"}};
const std::map<std::string, std::string> kReductions{{"mean", "ReduceMean"}, {"sum", "ReduceSum"}, {"amax", "ReduceMax"}};
/// One step of a formula: how many tensors or numbers it takes.
const std::map<std::string, std::size_t> kSteps{{"exp", 1},     {"log", 1},     {"sqrt", 1},   {"abs", 1},   {"sin", 1}, {"cos", 1},
                                                {"maximum", 2}, {"minimum", 2}, {"square", 1}, {"rsqrt", 1}, {"neg", 1}, {"pow", 2}};
const std::set<std::string> kNewTensors{"zeros", "ones", "randn", "standard_normal", "normal", "empty", "rand", "initializer"};
const std::set<std::string> kUnchanged{"cast", "astype", "float", "to", "contiguous", "identity"};
const std::set<std::string> kNeedSizes{"swapaxes", "chunk", "unsqueeze", "expand_dims", "squeeze"};

} // namespace

// ---- arguments ----

std::optional<Value> ClassReader::Call::named(std::initializer_list<const char*> keys) {
    for (const char* key : keys)
        if (const auto found = arguments.named.find(key); found != arguments.named.end()) {
            Value out = found->second;
            arguments.named.erase(found);
            return out;
        }
    return {};
}

std::optional<Value> ClassReader::Call::at(std::size_t index, std::initializer_list<const char*> keys) {
    if (auto value = named(keys)) return value;
    if (index < arguments.positional.size()) return arguments.positional[index];
    return {};
}

const Value& ClassReader::Call::tensor() const {
    if (arguments.positional.empty() || arguments.positional[0].kind != Kind::Tensor)
        refuse(place, name + " takes a tensor as its first argument.");
    return arguments.positional[0];
}

void ClassReader::Call::finish(std::size_t most) const {
    if (!arguments.named.empty()) refuse(place, name + " has no argument " + inQuotes(arguments.named.begin()->first, 40) + " here.");
    if (arguments.positional.size() > most) refuse(place, name + " has too many arguments.");
}

// ---- slices ----

/// x[:, 0], x[..., 2:4]: one Slice a dimension.
Value ClassReader::sliced(Value tensor, const Node& node) {
    const std::size_t count = node.of.size() - 1;
    std::size_t dots = count;
    for (std::size_t i = 0; i < count; ++i)
        if (node.of[i + 1].kind == Syntax::Other && node.of[i + 1].text == "...") dots = i;
    std::vector<std::pair<std::int64_t, const Node*>> parts; // axis, index
    for (std::size_t i = 0; i < count; ++i)
        if (i != dots)
            parts.emplace_back(i < dots ? static_cast<std::int64_t>(i) : static_cast<std::int64_t>(i) - static_cast<std::int64_t>(count),
                               &node.of[i + 1]);
    const auto isWhole = [](const Node& part) {
        return part.kind == Syntax::Slice &&
               std::all_of(part.of.begin(), part.of.end(), [](const Node& one) { return one.kind == Syntax::Missing; });
    };
    std::erase_if(parts, [&](const auto& part) { return isWhole(*part.second); });
    std::reverse(parts.begin(), parts.end()); // an index takes its dimension away; those before it stay where they are
    for (std::size_t done = 0; done < parts.size(); ++done) {
        const auto& [axis, part] = parts[done];
        Params params{{"axis", axis}};
        if (part->kind != Syntax::Slice) {
            if (axis < 0 && done + 1 < parts.size() && parts[done + 1].first < 0)
                refuse(*part, "Two indices behind '...' are not available.", "Take them one after the other.");
            params["kind"] = std::string("index");
            params["begin"] = paramOf(evaluate(*part), *part);
        } else {
            const char* names[] = {"begin", "end", "step"};
            for (std::size_t i = 0; i < 3; ++i)
                if (part->of[i].kind != Syntax::Missing) params[names[i]] = paramOf(evaluate(part->of[i]), part->of[i]);
            if (params.contains("end") && params["end"] == graph::ParamValue(std::int64_t(0))) refuse(*part, "This range is empty.", "");
        }
        tensor = function("Slice", std::move(params), {tensor}, done + 1 == parts.size() ? node : *part);
    }
    return tensor;
}

// ---- functions ----

Value ClassReader::callFunction(const std::string& name, Arguments arguments) {
    Call call{name, *arguments.call, std::move(arguments)};
    if (m_isInit) return newTensor(call);
    using Handler = Value (ClassReader::*)(Call&);
    static const std::map<std::string, Handler> kHandlers{
        {"gelu", &ClassReader::gelu},         {"softmax", &ClassReader::softmax}, {"dropout", &ClassReader::dropout},
        {"matmul", &ClassReader::matmul},     {"bmm", &ClassReader::matmul},      {"cat", &ClassReader::concat},
        {"concat", &ClassReader::concat},     {"split", &ClassReader::split},     {"split_groups", &ClassReader::split},
        {"reshape", &ClassReader::reshape},   {"view", &ClassReader::reshape},    {"transpose", &ClassReader::transpose},
        {"permute", &ClassReader::transpose}, {"flatten", &ClassReader::flatten}, {"branch", &ClassReader::branch},
        {"where", &ClassReader::where}};
    if (const auto handler = kHandlers.find(name); handler != kHandlers.end()) return (this->*handler->second)(call);
    if (kActivations.contains(name)) return activation(call);
    if (kReductions.contains(name)) return reduce(call);
    if (kSteps.contains(name)) return formulaStep(call);
    if (const auto sign = kSigns.find(name); sign != kSigns.end()) {
        call.finish(2);
        if (call.arguments.positional.size() != 2) refuse(call.place, name + " takes two arguments.");
        return elementwise(sign->second, call.arguments.positional[0], call.arguments.positional[1], call.place);
    }
    if (kUnchanged.contains(name)) return call.tensor();
    if (kNeedSizes.contains(name))
        refuse(call.place, inQuotes(name, 40) + " needs to know the tensor's sizes, which are not known here.",
               name == "chunk" ? "Write split with the sizes of the pieces." : "Write transpose or reshape with all dimensions.");
    std::vector<std::string> names;
    for (const auto& [known, handler] : kHandlers) names.push_back(known);
    for (const auto* table : {&kActivations, &kSigns, &kReductions})
        for (const auto& [known, type] : *table) names.push_back(known);
    for (const auto& [known, count] : kSteps) names.push_back(known);
    const auto close = nearest(name, names);
    refuse(call.place.of.empty() ? call.place : call.place.of[0], "The catalogue knows no " + inQuotes(name, 40) + ".",
           close.empty() ? "Known are " + joined(names, 60) + "." : "Did you mean " + joined(close) + "?");
}

/// In __init__: what a Parameter begins with, as its sizes; `text` says how.
Value ClassReader::newTensor(Call& call) {
    const std::string& name = call.name;
    const bool isPassedOn = name == "Tensor" || name == "tensor" || name == "astype" || name == "from_numpy";
    if (isPassedOn && !call.arguments.positional.empty()) return call.arguments.positional[0];
    if (!kNewTensors.contains(name))
        refuse(call.place, inQuotes(name, 40) + " is not available in __init__.", "Compute with tensors in construct.");
    std::vector<Value> sizes;
    std::string init = name == "zeros" || name == "empty" ? "zeros" : name == "ones" ? "ones" : "normal";
    for (const Value& one : call.arguments.positional) {
        if (one.kind == Kind::Text) { // initializer("zeros", shape)
            const std::string& text = std::get<std::string>(one.number);
            init = text == "zeros" || text == "ones" ? text : "normal";
        } else if (one.kind == Kind::Items) {
            sizes = one.items;
        } else if (isNumeric(one) && name != "normal") {
            sizes.push_back(one);
        }
    }
    if (const auto given = call.named({"shape", "size"})) sizes = given->kind == Kind::Items ? given->items : std::vector<Value>{*given};
    Value out = itemsOf(sizes);
    out.text = init;
    return out;
}

Value ClassReader::activation(Call& call) {
    call.finish(1);
    return function(kActivations.at(call.name), {}, {call.tensor()}, call.place);
}

Value ClassReader::gelu(Call& call) {
    Params params;
    if (const auto kind = call.at(1, {"approximate"}); kind && kind->kind == Kind::Text) params["approximate"] = kind->number;
    call.finish(2);
    return function("GELU", std::move(params), {call.tensor()}, call.place);
}

Value ClassReader::softmax(Call& call) {
    const auto axis = call.at(1, {"axis", "dim"});
    if (!axis && m_session.dialect == celloom::code::Dialect::PyTorch) refuse(call.place, "softmax needs dim.", "Write softmax(x, -1).");
    call.finish(2);
    return function("Softmax", axis ? Params{{"axis", paramOf(*axis, call.place)}} : Params{}, {call.tensor()}, call.place);
}

Value ClassReader::dropout(Call& call) {
    const auto p = call.at(1, {"p"});
    call.named({"training"});
    call.finish(2);
    return function("Dropout", {{"p", p ? paramOf(*p, call.place) : graph::ParamValue(0.5)}}, {call.tensor()}, call.place);
}

/// A factor as it is written: with its last two dimensions exchanged by x.swapaxes(-1, -2), x.T or, in PyTorch, x.transpose(-1, -2).
Value ClassReader::factor(const Node& node, bool& isTransposed) {
    isTransposed = false;
    if (node.kind == Syntax::Select && node.text == "T") {
        isTransposed = true;
        return evaluate(node.of[0]);
    }
    const bool isSwap =
        node.kind == Syntax::Call && node.of[0].kind == Syntax::Select && node.of.size() == 3 &&
        (node.of[0].text == "swapaxes" || (node.of[0].text == "transpose" && m_session.dialect == celloom::code::Dialect::PyTorch));
    if (!isSwap) return evaluate(node);
    const auto x = known(evaluate(node.of[1])), y = known(evaluate(node.of[2]));
    if (!x || !y || std::min(*x, *y) != -2 || std::max(*x, *y) != -1)
        refuse(node, "Only the last two dimensions can be exchanged here.", "Write (-1, -2).");
    isTransposed = true;
    return evaluate(node.of[0].of[0]);
}

Value ClassReader::matmul(Call& call) {
    if (call.arguments.nodes.size() != 2) refuse(call.place, call.name + " takes two tensors.");
    Params params;
    std::vector<Value> inputs;
    for (std::size_t i = 0; i < 2; ++i) {
        bool isTransposed = false;
        inputs.push_back(call.arguments.positional[i].kind == Kind::Tensor ? call.arguments.positional[i]
                                                                           : factor(*call.arguments.nodes[i], isTransposed));
        if (isTransposed) params[i == 0 ? "transpose_a" : "transpose_b"] = true;
        if (isNumeric(inputs.back())) refuse(call.place, "A product of matrices takes two tensors.", "Write * for a number.");
    }
    return function("MatMul", std::move(params), inputs, call.place);
}

Value ClassReader::concat(Call& call) {
    std::vector<Value> inputs;
    for (const Value& one : call.arguments.positional) {
        if (one.kind == Kind::Items) inputs.insert(inputs.end(), one.items.begin(), one.items.end());
        if (one.kind == Kind::Tensor) inputs.push_back(one);
    }
    const auto axis = call.at(1, {"axis", "dim"});
    if (!call.arguments.named.empty() || inputs.empty()) refuse(call.place, call.name + " takes a tuple of tensors and an axis.");
    const std::int64_t number = axis && isNumeric(*axis) ? wholeOf(*axis, call.place) : 0;
    return function("Concat", {{"inputs", static_cast<std::int64_t>(inputs.size())}, {"axis", number}}, inputs, call.place);
}

Value ClassReader::split(Call& call) {
    auto sizes = call.at(1, {"split_size_or_sections", "split_size", "sizes"});
    if (!sizes) refuse(call.place, call.name + " needs the sizes of its pieces.", "Write ops.split(x, [a, b], -1).");
    if (isNumeric(*sizes)) { // pieces of one size: as many as there are variables for
        if (m_targets.empty() || !m_statement || m_statement->kind != Syntax::Assign || &m_statement->of[1] != &call.place)
            refuse(call.place, "How many pieces there are is not known.", "Write the size of each: [a, a].");
        sizes = itemsOf(std::vector<Value>(m_targets.size(), *sizes));
    }
    Params params{{"sizes", listText(*sizes, call.place)}};
    const bool hasGroups = call.name == "split_groups";
    if (hasGroups) {
        const auto groups = call.at(2, {"groups"});
        if (!groups) refuse(call.place, "split_groups needs groups.");
        params["groups"] = paramOf(*groups, call.place);
    }
    const auto axis = call.at(hasGroups ? 3 : 2, {"axis", "dim"});
    params["axis"] = axis ? wholeOf(*axis, call.place) : std::int64_t(hasGroups ? -1 : 0);
    Value out = function("Split", std::move(params), {call.tensor()}, call.place);
    return out.kind == Kind::Items ? out : itemsOf({out});
}

Value ClassReader::reshape(Call& call) {
    auto shape = call.at(1, {"shape"});
    if (shape && (isNumeric(*shape) || shape->kind == Kind::Size)) shape = itemsOf({*shape});
    if (!shape || shape->kind != Kind::Items)
        refuse(call.place, call.name + " takes the new sizes.", "Write x.reshape(-1, 64), or ops.reshape(x, (-1, 64)).");
    std::string text;
    for (std::size_t i = 0; i < shape->items.size(); ++i) {
        const Value& one = shape->items[i];
        const bool isSize = one.kind == Kind::Size; // as it is at that place: 0
        if (isSize && (one.index < 0 || static_cast<std::size_t>(one.index) != i))
            refuse(call.place, "A size of a tensor keeps its place in reshape.", "Write -1 for what is worked out.");
        if (!isSize && !isNumeric(one)) refuse(call.place, "A number should stand here.");
        text += (text.empty() ? "" : ", ") + (isSize ? std::string("0") : numberText(one));
    }
    call.finish(2);
    return function("Reshape", {{"shape", text}}, {call.tensor()}, call.place);
}

Value ClassReader::transpose(Call& call) {
    const auto perm = call.at(1, {"perm", "dims", "axis", "axes"});
    if (!perm || perm->kind != Kind::Items)
        refuse(call.place, call.name + " takes the order of all dimensions.",
               "Write x.transpose(0, 2, 1), or ops.transpose(x, (0, 2, 1)).");
    call.finish(2);
    return function("Transpose", {{"perm", listText(*perm, call.place)}}, {call.tensor()}, call.place);
}

Value ClassReader::flatten(Call& call) {
    const bool isMindSpore = m_session.dialect == celloom::code::Dialect::MindSpore; // whose second argument is an order
    const auto begin = isMindSpore ? call.named({"start_dim"}) : call.at(1, {"start_dim"});
    const auto end = isMindSpore ? call.named({"end_dim"}) : call.at(2, {"end_dim"});
    call.finish(isMindSpore ? 1 : 3);
    const Params params{{"start_dim", begin ? wholeOf(*begin, call.place) : std::int64_t(isMindSpore ? 1 : 0)},
                        {"end_dim", end ? wholeOf(*end, call.place) : std::int64_t(-1)}};
    return function("Flatten", params, {call.tensor()}, call.place);
}

Value ClassReader::reduce(Call& call) {
    const auto axis = call.at(1, {"axis", "dim"});
    if (!axis || axis->kind == Kind::None)
        refuse(call.place, call.name + " needs the dimensions that go.", "Write " + call.name + "(x, -1).");
    const auto keep = call.at(2, {"keep_dims", "keepdims", "keepdim"});
    Params params{{"axis", listText(*axis, call.place)}};
    if (keep) params["keep_dims"] = paramOf(*keep, call.place);
    call.finish(3);
    return function(kReductions.at(call.name), std::move(params), {call.tensor()}, call.place);
}

Value ClassReader::branch(Call& call) {
    call.finish(3);
    return function("Branch", {}, call.arguments.positional, call.place);
}

Value ClassReader::where(Call& call) {
    if (call.place.kind != Syntax::Call || call.place.of.size() != 4) refuse(call.place, "where takes a condition and two values.", "Write ops.where(x > 0, x, y).");
    std::vector<Value> inputs;
    const std::string text = formulaText(call.place, inputs, 0);
    return formula(text, inputs, call.place);
}

Value ClassReader::formulaStep(Call& call) {
    std::vector<Value> inputs;
    std::vector<std::string> parts;
    for (const Value& one : call.arguments.positional) {
        if (one.kind == Kind::Tensor) {
            std::size_t same = 0; // a tensor that is there already keeps its number
            while (same < inputs.size() && !(inputs[same].end == one.end)) ++same;
            if (same == inputs.size()) inputs.push_back(one);
            parts.push_back("in" + std::to_string(same));
        } else if (const auto number = known(one)) {
            parts.push_back(celloom::numberText(*number));
        } else {
            refuse(call.place, call.name + " takes tensors and numbers.");
        }
    }
    call.finish(2);
    const std::size_t needed = kSteps.at(call.name);
    if (parts.size() != needed || inputs.empty())
        refuse(call.place, call.name + " takes " + std::to_string(needed) + " argument" + (needed == 1 ? "." : "s."));
    const std::string text = call.name == "square"  ? "in0 ** 2"
                             : call.name == "rsqrt" ? "1 / sqrt(in0)"
                             : call.name == "neg"   ? "-in0"
                             : call.name == "pow"   ? (parts[0].starts_with('-') ? "(" + parts[0] + ")" : parts[0]) + " ** " + parts[1]
                                                    : call.name + "(" + joined(parts) + ")";
    return formula(text, inputs, call.place);
}

} // namespace celloom::engine::code
