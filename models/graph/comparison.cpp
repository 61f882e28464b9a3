#include "models/graph/comparison.h"

#include "models/base/text.h"
#include "models/graph/expression.h"
#include "models/graph/problems.h"

#include <algorithm>
#include <map>

namespace celloom::graph {
namespace {

std::string textOf(const ParamValue& value) {
    return toString(std::visit([](const auto& held) { return ResolvedValue(held); }, value));
}

using Fields = std::map<std::string, std::string>;

std::vector<FieldChange> changesOf(const Fields& before, const Fields& after) {
    std::vector<FieldChange> out;
    for (const auto& [field, value] : before) {
        const auto found = after.find(field);
        if (found == after.end()) out.push_back({field, value, {}});
        else if (found->second != value) out.push_back({field, value, found->second});
    }
    for (const auto& [field, value] : after)
        if (!before.contains(field)) out.push_back({field, {}, value});
    return out;
}

Fields fieldsOf(const Cell& cell) {
    Fields out{{"type", cell.type}};
    if (!cell.repeat.empty()) out["repeat"] = cell.repeat;
    if (!cell.note.empty()) out["note"] = cell.note;
    for (const auto& [name, value] : cell.params) out[name] = textOf(value);
    return out;
}
Fields fieldsOf(const Port& port) {
    return {{"dtype", port.dtype}, {"shape", '[' + joined(port.shape, port.shape.size()) + ']'}};
}
Fields fieldsOf(const HyperParameter& hyper) {
    Fields out{{"value", textOf(hyper.value)}};
    if (!hyper.help.empty()) out["help"] = hyper.help;
    return out;
}

/// Items by their names: what only one side has, and what differs.
template <class Item> void compareNamed(const std::vector<Item>& before, const std::vector<Item>& after, Finding::What what, const GraphName& graph, std::vector<Finding>& out) {
    std::map<std::string, const Item*> old, now;
    for (const Item& item : before) old.emplace(item.name, &item);
    for (const Item& item : after) now.emplace(item.name, &item);
    for (const Item& item : before) {
        if (now.contains(item.name)) continue;
        Finding finding{what, Fate::Removed, graph, item.name, {}, {}, {}};
        if constexpr (std::is_same_v<Item, Cell>) finding.before = item;
        out.push_back(std::move(finding));
    }
    for (const Item& item : after) {
        const auto found = old.find(item.name);
        if (found == old.end()) {
            out.push_back({what, Fate::Added, graph, item.name, {}, {}, {}});
            continue;
        }
        auto fields = changesOf(fieldsOf(*found->second), fieldsOf(item));
        if (!fields.empty()) out.push_back({what, Fate::Changed, graph, item.name, std::move(fields), {}, {}});
    }
}

void compareWires(const Graph& before, const Graph& after, const GraphName& graph, std::vector<Finding>& out) {
    const auto text = [](const Wire& wire) { return toText(wire.from) + " -> " + toText(wire.to); };
    const auto missing = [&](const Graph& from, const Graph& in) {
        std::set<std::string> there;
        for (const Wire& wire : in.wires) there.insert(text(wire));
        std::vector<Wire> found;
        for (const Wire& wire : from.wires)
            if (!there.contains(text(wire))) found.push_back(wire);
        return found;
    };
    std::vector<Wire> gone = missing(before, after);
    std::vector<Finding> now;
    for (const Wire& wire : missing(after, before)) {
        const auto old = std::find_if(gone.begin(), gone.end(), [&](const Wire& other) { return other.to == wire.to; });
        if (old == gone.end()) {
            now.push_back({Finding::What::Wire, Fate::Added, graph, text(wire), {}, {}, wire});
            continue;
        }
        now.push_back({Finding::What::Wire, Fate::Changed, graph, text(wire), {{"from", toText(old->from), toText(wire.from)}}, {}, wire, *old});
        gone.erase(old);
    }
    for (const Wire& wire : gone) out.push_back({Finding::What::Wire, Fate::Removed, graph, text(wire), {}, {}, wire});
    out.insert(out.end(), now.begin(), now.end());
}

void compareGraphs(const Graph& before, const Graph& after, const GraphName& name, std::vector<Finding>& out) {
    if (before.note != after.note) out.push_back({Finding::What::Graph, Fate::Changed, name, name, {{"note", before.note, after.note}}, {}, {}});
    compareNamed(before.hyper, after.hyper, Finding::What::Hyper, name, out);
    compareNamed(before.inputs, after.inputs, Finding::What::Input, name, out);
    compareNamed(before.outputs, after.outputs, Finding::What::Output, name, out);
    compareNamed(before.cells, after.cells, Finding::What::Cell, name, out);
    compareWires(before, after, name, out);
}

} // namespace

std::vector<Finding> compare(const Document& before, const Document& after) {
    std::vector<Finding> out;
    compareGraphs(before.main, after.main, {}, out);
    std::set<std::string> names;
    for (const auto& [name, graph] : before.composites) names.insert(name);
    for (const auto& [name, graph] : after.composites) names.insert(name);
    for (const std::string& name : names) {
        const Graph *old = graphOf(before, name), *now = graphOf(after, name);
        if (old && now) compareGraphs(*old, *now, name, out);
        else out.push_back({Finding::What::Composite, now ? Fate::Added : Fate::Removed, name, name, {}, {}, {}});
    }
    return out;
}

std::set<std::string> differingComposites(const Document& document, const std::vector<Finding>& findings) {
    std::set<std::string> differing, out;
    for (const Finding& finding : findings)
        if (!finding.graph.empty()) differing.insert(finding.graph);
    for (const auto& [name, graph] : document.composites) {
        const auto used = compositesUsedBy(document, graph);
        const bool isOutside = std::any_of(used.begin(), used.end(), [&](const std::string& one) { return differing.contains(one); });
        if (differing.contains(name) || isOutside) out.insert(name);
    }
    return out;
}

} // namespace celloom::graph
