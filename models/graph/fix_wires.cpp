// Fixes by wires and cells: what has none gets one, what leads nowhere goes.
#include "models/catalog/catalog.h"
#include "models/graph/edit_parts.h"
#include "models/graph/fix_parts.h"
#include "models/graph/problems.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace celloom::graph {
namespace {

using Kind = Fix::Kind;

constexpr std::size_t kMostSources = 12; // tried for one port

Fix wireFix(const GraphName& graph, const Endpoint& from, const Endpoint& to) {
    return {Kind::AddWire, {toText(from), toText(to)}, [=](Document& document) { return addWire(document, graph, {from, to}); }};
}

bool isFed(const Graph& graph, const Endpoint& target) {
    return std::any_of(graph.wires.begin(), graph.wires.end(), [&](const Wire& wire) { return wire.to == target; });
}
bool isUsed(const Graph& graph, const Endpoint& source) {
    return std::any_of(graph.wires.begin(), graph.wires.end(), [&](const Wire& wire) { return wire.from == source; });
}

struct Source {
    Endpoint end;
    std::string dtype;
    std::size_t order = 0; // of the cell in the document, inputs first
    std::optional<Position> position;
};

std::vector<Source> sourcesIn(const FixContext& context) {
    std::vector<Source> out;
    const Graph& graph = context.graph();
    const Scope scope = context.scope();
    for (const Port& port : graph.inputs) out.push_back({{"", port.name}, port.dtype, 0, {}});
    for (std::size_t i = 0; i < graph.cells.size(); ++i)
        for (const PortAbout& port : outputsOf(context.document, graph.cells[i], scope))
            out.push_back({{graph.cells[i].name, port.name}, port.dtype, i + 1, graph.cells[i].position});
    return out;
}

/// How far a source is from what it would feed: drawn above it and close, or before it in the document; used ones stand behind unused ones.
double rankOf(const FixContext& context, const Source& source, const Endpoint& target) {
    const Graph& graph = context.graph();
    const Cell* cell = findCell(graph, target.cell);
    double rank = isUsed(graph, source.end) ? 1000 : 0;
    const auto at = static_cast<std::size_t>(cell ? cell - graph.cells.data() + 1 : static_cast<std::ptrdiff_t>(graph.cells.size()) + 1);
    if (cell && cell->position && source.position) {
        const double dx = source.position->x - cell->position->x, dy = cell->position->y - source.position->y;
        rank += std::min(900.0, (std::hypot(dx, dy) + (dy < 0 ? 300 : 0)) / 10);
    } else {
        rank += source.order < at ? static_cast<double>(at - source.order) : 400 + static_cast<double>(source.order - at);
    }
    if (source.end.port == target.port || source.end.cell == target.port) rank -= 500;
    // keys and values come from where the queries come from, unless they are told apart
    const bool isKey = target.port == "k" || target.port == "v" || target.port == "key" || target.port == "value";
    for (const Wire& wire : graph.wires)
        if (wire.to.cell == target.cell && !target.cell.empty() && wire.from == source.end) rank += isKey ? -2000 : 1500;
    return rank;
}

void addSources(const FixContext& context, const Endpoint& target, const std::string& dtype, Candidates& out) {
    Candidates found;
    for (const Source& source : sourcesIn(context)) {
        if (source.dtype != dtype) continue;
        if (!target.cell.empty() && !source.end.cell.empty() && leadsTo(context.graph(), target.cell, source.end.cell)) continue;
        found.push_back({wireFix(context.graphName(), source.end, target), rankOf(context, source, target)});
    }
    std::stable_sort(found.begin(), found.end(), [](const Candidate& a, const Candidate& b) { return a.rank < b.rank; });
    if (found.size() > kMostSources) found.resize(kMostSources);
    out.insert(out.end(), found.begin(), found.end());
}

/// An input of the cell without a wire, an output of the graph without one.
void findSources(const FixContext& context, Candidates& out) {
    const Graph& graph = context.graph();
    if (const Cell* cell = findCell(graph, context.cell)) {
        for (const PortAbout& port : inputsOf(context.document, *cell, context.scope()))
            if (!port.isOptional && !isFed(graph, {cell->name, port.name})) addSources(context, {cell->name, port.name}, port.dtype, out);
        return;
    }
    for (const Port& port : graph.outputs) {
        if (isFed(graph, {"", port.name})) continue;
        addSources(context, {"", port.name}, port.dtype, out);
        if (graph.outputs.size() > 1)
            out.push_back({{Kind::RemovePort, {port.name}, [name = context.graphName(), port = port.name](Document& document) { return removePort(document, name, PortSide::Output, port); }},
                           5000});
    }
}

/// A cell whose outputs nobody takes: to where something is missing, else away with it.
void findTargets(const FixContext& context, Candidates& out) {
    const Graph& graph = context.graph();
    const Cell* cell = findCell(graph, context.cell);
    if (!cell || context.problem.severity != Problem::Severity::Warning) return;
    const Scope scope = context.scope();
    for (const PortAbout& from : outputsOf(context.document, *cell, scope)) {
        const Endpoint source{cell->name, from.name};
        for (const Port& port : graph.outputs)
            if (port.dtype == from.dtype && !isFed(graph, {"", port.name})) out.push_back({wireFix(context.graphName(), source, {"", port.name}), 0});
        for (const Cell& other : graph.cells) {
            if (other.name == cell->name || leadsTo(graph, other.name, cell->name)) continue;
            for (const PortAbout& port : inputsOf(context.document, other, scope))
                if (port.dtype == from.dtype && !port.isOptional && !isFed(graph, {other.name, port.name}))
                    out.push_back({wireFix(context.graphName(), source, {other.name, port.name}), 1});
        }
    }
    out.push_back({{Kind::RemoveCell, {cell->name}, [name = context.graphName(), cell = cell->name](Document& document) { return removeCells(document, name, {cell}); }}, 100});
}

void addRemoval(const FixContext& context, const Wire& wire, double rank, Candidates& out) {
    out.push_back({{Kind::RemoveWire, {toText(wire.from), toText(wire.to)}, [name = context.graphName(), wire](Document& document) -> Status {
                        CELLOOM_TRY(graph, graphFor(document, name));
                        const auto last = std::find(graph->wires.rbegin(), graph->wires.rend(), wire); // of two that are equal the later one
                        if (last == graph->wires.rend()) return fail("There is no such wire.");
                        graph->wires.erase(std::next(last).base());
                        return {};
                    }},
                   rank});
}

/// The same wire with another end.
void addMove(const FixContext& context, const Wire& wire, const Wire& moved, double rank, Candidates& out) {
    const bool isTarget = !(wire.to == moved.to);
    const Endpoint before = isTarget ? wire.to : wire.from, after = isTarget ? moved.to : moved.from;
    out.push_back({{Kind::MoveWireEnd, {toText(before), toText(after)}, [name = context.graphName(), wire, moved](Document& document) -> Status {
                        CELLOOM_TRY(graph, graphFor(document, name));
                        const auto found = std::find(graph->wires.begin(), graph->wires.end(), wire);
                        if (found == graph->wires.end()) return fail("There is no such wire.");
                        *found = moved;
                        return {};
                    }},
                   rank});
}

template <class Ports> std::vector<std::string> freeOf(const Ports& ports, const std::set<std::string>& taken) {
    std::vector<std::string> out;
    for (const auto& port : ports)
        if (!taken.contains(port.name)) out.push_back(port.name);
    return out;
}

/// Nearest names first, then the only other one.
std::vector<std::string> meant(const std::string& word, const std::vector<std::string>& known) {
    std::vector<std::string> out = nearest(word, known);
    if (out.empty() && known.size() == 1) out = known;
    return out;
}

/// Wires whose ends are misspelt: ports that a cell lacks, cells that are not there.
void findWrongEnds(const FixContext& context, Candidates& out) {
    const Graph& graph = context.graph();
    const Scope scope = context.scope();
    std::set<std::string> fed, cells;
    for (const Cell& cell : graph.cells) cells.insert(cell.name);
    for (const Wire& wire : graph.wires)
        if (wire.to.cell == context.cell) fed.insert(wire.to.port);
    if (const Cell* cell = findCell(graph, context.cell)) {
        const auto inputs = inputsOf(context.document, *cell, scope), outputs = outputsOf(context.document, *cell, scope);
        const auto has = [](const std::vector<PortAbout>& ports, const std::string& name) {
            return std::any_of(ports.begin(), ports.end(), [&](const PortAbout& port) { return port.name == name; });
        };
        for (const Wire& wire : graph.wires) {
            if (wire.to.cell == cell->name && !has(inputs, wire.to.port)) {
                double rank = 0;
                for (const std::string& port : meant(wire.to.port, freeOf(inputs, fed))) addMove(context, wire, {wire.from, {cell->name, port}}, rank++, out);
                addRemoval(context, wire, 50, out);
            }
            if (wire.from.cell == cell->name && !has(outputs, wire.from.port)) {
                double rank = 0;
                for (const std::string& port : meant(wire.from.port, freeOf(outputs, {}))) addMove(context, wire, {{cell->name, port}, wire.to}, rank++, out);
                addRemoval(context, wire, 50, out);
            }
        }
        return;
    }
    const auto names = namesOf(graph.cells);
    for (const Wire& wire : graph.wires) {
        const auto mend = [&](const Endpoint& end, const std::vector<Port>& own, bool isTarget) {
            const bool isThere = end.cell.empty() ? std::any_of(own.begin(), own.end(), [&](const Port& port) { return port.name == end.port; }) : cells.contains(end.cell);
            if (isThere) return;
            double rank = 0;
            for (const std::string& name : nearest(end.cell.empty() ? end.port : end.cell, end.cell.empty() ? namesOf(own) : names)) {
                const Endpoint right = end.cell.empty() ? Endpoint{"", name} : Endpoint{name, end.port};
                addMove(context, wire, isTarget ? Wire{wire.from, right} : Wire{right, wire.to}, rank++, out);
            }
            addRemoval(context, wire, 50, out);
        };
        mend(wire.from, graph.inputs, false);
        mend(wire.to, graph.outputs, true);
    }
}

/// Two wires into one port: one of them, or their sum.
void findDoubles(const FixContext& context, Candidates& out) {
    const Graph& graph = context.graph();
    std::map<std::pair<std::string, std::string>, std::vector<Wire>> byTarget;
    for (const Wire& wire : graph.wires)
        if (wire.to.cell == context.cell) byTarget[{wire.to.cell, wire.to.port}].push_back(wire);
    for (const auto& [target, wires] : byTarget) {
        if (wires.size() < 2) continue;
        for (std::size_t i = wires.size(); i-- > 0;) addRemoval(context, wires[i], 10 + static_cast<double>(wires.size() - i), out);
        if (wires.size() != 2 || wires[0] == wires[1]) continue;
        out.push_back({{Kind::JoinByAdd, {toText(wires[0].to)}, [name = context.graphName(), wires = wires](Document& document) -> Status {
                            CELLOOM_TRY(graph, graphFor(document, name));
                            std::erase_if(graph->wires, [&](const Wire& wire) { return wire.to == wires[0].to; });
                            const Cell* cell = findCell(*graph, wires[0].to.cell);
                            std::optional<Position> place;
                            if (cell && cell->position) place = Position{cell->position->x, cell->position->y - 96};
                            CELLOOM_TRY(sum, addCell(document, name, "Add", place));
                            CELLOOM_TRY_STATUS(addWire(document, name, {wires[0].from, {sum, "a"}}));
                            CELLOOM_TRY_STATUS(addWire(document, name, {wires[1].from, {sum, "b"}}));
                            return addWire(document, name, {{sum, "out"}, wires[0].to});
                        }},
                       5});
    }
}

/// Each wire that lies on the circle of the cell.
void findCircle(const FixContext& context, Candidates& out) {
    const Graph& graph = context.graph();
    if (context.cell.empty()) return;
    for (const Wire& wire : graph.wires) {
        if (wire.from.cell.empty() || wire.to.cell.empty()) continue;
        const bool isOnIt = leadsTo(graph, wire.to.cell, wire.from.cell) && leadsTo(graph, context.cell, wire.from.cell) && leadsTo(graph, wire.to.cell, context.cell);
        if (!isOnIt) continue;
        const Cell *from = findCell(graph, wire.from.cell), *to = findCell(graph, wire.to.cell);
        const bool leadsBack = from && to && (from->position && to->position ? from->position->y >= to->position->y : from >= to);
        addRemoval(context, wire, leadsBack ? 0 : 20, out);
    }
}

} // namespace

void findWires(const FixContext& context, Candidates& out) {
    findWrongEnds(context, out);
    findDoubles(context, out);
    findCircle(context, out);
    findSources(context, out);
    findTargets(context, out);
}

} // namespace celloom::graph
