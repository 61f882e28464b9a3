#include "models/graph/difference.h"

#include "models/base/result.h"

#include <algorithm>
#include <tuple>

namespace celloom::graph {
namespace {

bool isSame(const Position& a, const Position& b) {
    return std::tie(a.x, a.y) == std::tie(b.x, b.y);
}
bool isSame(const Port& a, const Port& b) {
    return std::tie(a.name, a.shape, a.dtype) == std::tie(b.name, b.shape, b.dtype);
}
bool isSame(const HyperParameter& a, const HyperParameter& b) {
    return std::tie(a.name, a.value, a.help) == std::tie(b.name, b.value, b.help);
}
bool isSame(const Cell& a, const Cell& b) {
    const bool arePlaced = a.position.has_value() == b.position.has_value() && (!a.position || isSame(*a.position, *b.position));
    return arePlaced && std::tie(a.name, a.type, a.params, a.repeat, a.note) == std::tie(b.name, b.type, b.params, b.repeat, b.note);
}
bool isSame(const Wire& a, const Wire& b) {
    return a == b;
}
template <class Item> bool areSame(const std::vector<Item>& a, const std::vector<Item>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Item& x, const Item& y) { return isSame(x, y); });
}

template <class Item> Difference::ListChange<Item> changeOf(const std::vector<Item>& before, const std::vector<Item>& after) {
    Difference::ListChange<Item> out;
    const auto add = [&](std::size_t from, std::size_t endBefore, std::size_t endAfter) {
        const auto part = [](const std::vector<Item>& list, std::size_t begin, std::size_t end) {
            return std::vector<Item>(list.begin() + static_cast<std::ptrdiff_t>(begin), list.begin() + static_cast<std::ptrdiff_t>(end));
        };
        out.parts.push_back({from, part(before, from, endBefore), part(after, from, endAfter)});
    };
    if (before.size() == after.size()) {
        for (std::size_t i = 0; i < before.size(); ++i) {
            std::size_t end = i;
            while (end < before.size() && !isSame(before[end], after[end])) ++end;
            if (end == i) continue;
            add(i, end, end);
            i = end;
        }
        return out;
    }
    std::size_t head = 0, tail = 0;
    const std::size_t shorter = std::min(before.size(), after.size());
    while (head < shorter && isSame(before[head], after[head])) ++head;
    while (tail < shorter - head && isSame(before[before.size() - 1 - tail], after[after.size() - 1 - tail])) ++tail;
    add(head, before.size() - tail, after.size() - tail);
    return out;
}

template <class Value> void noteChange(std::optional<Difference::Change<Value>>& out, const Value& before, const Value& after) {
    if (before != after) out = {before, after};
}

Difference::GraphChange changeOf(const Graph& before, const Graph& after) {
    Difference::GraphChange out;
    noteChange(out.name, before.name, after.name);
    noteChange(out.note, before.note, after.note);
    noteChange(out.origin, before.origin, after.origin);
    out.hyper = changeOf(before.hyper, after.hyper);
    out.inputs = changeOf(before.inputs, after.inputs);
    out.outputs = changeOf(before.outputs, after.outputs);
    out.cells = changeOf(before.cells, after.cells);
    out.wires = changeOf(before.wires, after.wires);
    return out;
}

/// Forward or back: puts the one side of each change where the other is.
struct Walk {
    bool isForward;

    template <class Value> void one(const std::optional<Difference::Change<Value>>& change, Value& value) const {
        if (!change) return;
        CELLOOM_CHECK(value == (isForward ? change->before : change->after));
        value = isForward ? change->after : change->before;
    }
    template <class Item> void list(const Difference::ListChange<Item>& change, std::vector<Item>& items) const {
        for (const auto& part : change.parts) {
            const auto& from = isForward ? part.before : part.after;
            const auto& to = isForward ? part.after : part.before;
            CELLOOM_CHECK(part.at + from.size() <= items.size());
            const auto begin = items.begin() + static_cast<std::ptrdiff_t>(part.at);
            CELLOOM_CHECK(std::equal(from.begin(), from.end(), begin, [](const Item& a, const Item& b) { return isSame(a, b); }));
            const auto next = items.erase(begin, begin + static_cast<std::ptrdiff_t>(from.size()));
            items.insert(next, to.begin(), to.end());
        }
    }
    void graph(const Difference::GraphChange& change, Graph& graph) const {
        one(change.name, graph.name);
        one(change.note, graph.note);
        one(change.origin, graph.origin);
        list(change.hyper, graph.hyper);
        list(change.inputs, graph.inputs);
        list(change.outputs, graph.outputs);
        list(change.cells, graph.cells);
        list(change.wires, graph.wires);
    }
};

} // namespace

bool isSame(const Graph& a, const Graph& b) {
    return std::tie(a.name, a.note, a.origin) == std::tie(b.name, b.note, b.origin) && areSame(a.hyper, b.hyper) &&
           areSame(a.inputs, b.inputs) && areSame(a.outputs, b.outputs) && areSame(a.cells, b.cells) && areSame(a.wires, b.wires);
}

bool isSame(const Document& a, const Document& b) {
    return std::tie(a.schema, a.family) == std::tie(b.schema, b.family) && isSame(a.main, b.main) &&
           std::equal(a.composites.begin(), a.composites.end(), b.composites.begin(), b.composites.end(),
                      [](const auto& x, const auto& y) { return x.first == y.first && isSame(x.second, y.second); });
}

Difference Difference::between(const Document& before, const Document& after) {
    CELLOOM_CHECK(before.schema == after.schema);
    Difference out;
    noteChange(out.m_family, before.family, after.family);
    if (!isSame(before.main, after.main)) out.m_main = changeOf(before.main, after.main);
    for (const auto& [name, graph] : before.composites) {
        const auto other = after.composites.find(name);
        if (other == after.composites.end())
            out.m_replaced[name] = {graph, std::nullopt};
        else if (!isSame(graph, other->second))
            out.m_changed[name] = changeOf(graph, other->second);
    }
    for (const auto& [name, graph] : after.composites)
        if (!before.composites.contains(name)) out.m_replaced[name] = {std::nullopt, graph};
    return out;
}

bool Difference::isEmpty() const {
    return !m_family && !m_main && m_changed.empty() && m_replaced.empty();
}

namespace {

void replace(Document& document, const std::string& name, const std::optional<Graph>& from, const std::optional<Graph>& to) {
    CELLOOM_CHECK(document.composites.contains(name) == from.has_value());
    if (to)
        document.composites.insert_or_assign(name, *to);
    else
        document.composites.erase(name);
}

} // namespace

void Difference::apply(Document& document) const {
    const Walk walk{true};
    walk.one(m_family, document.family);
    if (m_main) walk.graph(*m_main, document.main);
    for (const auto& [name, change] : m_changed) walk.graph(change, document.composites.at(name));
    for (const auto& [name, change] : m_replaced) replace(document, name, change.before, change.after);
}

void Difference::revert(Document& document) const {
    const Walk walk{false};
    walk.one(m_family, document.family);
    if (m_main) walk.graph(*m_main, document.main);
    for (const auto& [name, change] : m_changed) walk.graph(change, document.composites.at(name));
    for (const auto& [name, change] : m_replaced) replace(document, name, change.after, change.before);
}

std::set<std::string> Difference::graphs() const {
    std::set<std::string> out;
    if (m_main) out.insert("");
    for (const auto& [name, change] : m_changed) out.insert(name);
    for (const auto& [name, change] : m_replaced) out.insert(name);
    return out;
}

} // namespace celloom::graph
