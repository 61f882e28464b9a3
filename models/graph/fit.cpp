#include "models/graph/fit.h"

#include "models/graph/parameters.h"

#include <algorithm>
#include <optional>
#include <set>
#include <vector>

namespace celloom::graph {
namespace {

/// Whether the shape rule takes the inputs; else which parameter it wants otherwise, which may be none.
struct Answer {
    bool isFit = false;
    std::string wrong;
};

Answer ask(const catalog::CellType& type, const Cell& cell, const std::map<std::string, Shape>& inputs, const Scope& scope) {
    const auto instance = readCell(cell, scope);
    if (!instance) return {};
    catalog::RuleInput rule{*instance, {}};
    for (const catalog::PortDef& port : catalog::inputPorts(type, *instance)) {
        const auto known = inputs.find(port.name);
        if (known == inputs.end() && !port.isOptional) return {};
        rule.inputs.push_back(known == inputs.end() ? Shape{} : known->second);
    }
    const auto shapes = type.shapeRule(rule);
    return shapes ? Answer{true, {}} : Answer{false, shapes.error().place};
}

void fitPrimitive(Cell& cell, const catalog::CellType& type, const std::map<std::string, Shape>& inputs, const Scope& scope) {
    std::set<std::int64_t> sizes;
    for (const auto& [port, shape] : inputs)
        for (const Dim& dim : shape)
            if (dim.symbol.empty()) sizes.insert(dim.number);
    std::set<std::string> open;
    for (const catalog::ParamDef& def : type.params)
        if (def.kind == catalog::ParamKind::Integer && !def.standard && !cell.params.contains(def.name)) open.insert(def.name);
    if (sizes.empty() || open.empty()) return;
    std::int64_t unlike = 1; // a size that no input has, and small: kernels must fit
    while (sizes.contains(unlike)) ++unlike;
    Cell trial = cell;
    for (const catalog::ParamDef& def : type.params) {
        if (open.contains(def.name)) trial.params[def.name] = unlike;
        else if (def.kind == catalog::ParamKind::IntegerList && !def.standard) trial.params.try_emplace(def.name, std::string("1")); // a kernel
    }
    // One parameter after the other that the rule complains of; a size is right where it complains of it no more.
    for (std::size_t round = 0; round < open.size(); ++round) {
        const Answer answer = ask(type, trial, inputs, scope);
        if (answer.isFit || !open.contains(answer.wrong)) break;
        const auto right = std::find_if(sizes.begin(), sizes.end(), [&](std::int64_t size) {
            trial.params[answer.wrong] = size;
            const Answer after = ask(type, trial, inputs, scope);
            return after.isFit || (!after.wrong.empty() && after.wrong != answer.wrong);
        });
        if (right == sizes.end()) return;
        cell.params[answer.wrong] = sizeInWords(*right, scope);
    }
}

void fitComposite(Cell& cell, const Graph& inner, const std::map<std::string, Shape>& inputs, const Scope& scope) {
    for (const Port& port : inner.inputs) {
        const auto known = inputs.find(port.name);
        if (known == inputs.end() || known->second.size() != port.shape.size()) continue;
        for (std::size_t i = 0; i < port.shape.size(); ++i) {
            const Dim& dim = known->second[i];
            if (isHyper(inner, port.shape[i]) && dim.symbol.empty()) cell.params.try_emplace(port.shape[i], sizeInWords(dim.number, scope));
        }
    }
}

} // namespace

ParamValue sizeInWords(std::int64_t size, const Scope& scope) {
    std::string name;
    for (const auto& [known, value] : scope) {
        const auto* number = std::get_if<std::int64_t>(&value);
        if (!number || *number != size) continue;
        if (!name.empty()) return size;
        name = known;
    }
    if (name.empty()) return size;
    return name;
}

bool isHyper(const Graph& graph, const std::string& name) {
    return std::any_of(graph.hyper.begin(), graph.hyper.end(), [&](const HyperParameter& hyper) { return hyper.name == name; });
}

void fitToInputs(Document& document, const GraphName& graph, const std::string& cell, const std::map<std::string, Shape>& inputs, const Scope& scope) {
    Graph* owner = graphOf(document, graph);
    Cell* target = owner ? findCell(*owner, cell) : nullptr;
    if (!target) return;
    if (const Graph* inner = graphOf(document, target->type)) fitComposite(*target, *inner, inputs, scope);
    else if (const catalog::CellType* type = catalog::find(target->type)) fitPrimitive(*target, *type, inputs, scope);
}

} // namespace celloom::graph
