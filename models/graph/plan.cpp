#include "models/graph/plan.h"

#include <algorithm>
#include <set>

namespace celloom::graph {
namespace {

constexpr std::size_t kMaxNameBytes = 128;

void checkNames(const Graph& graph, const std::string& path, ProblemList& problems) {
    std::set<std::string> cells, inputs, outputs;
    for (const Cell& cell : graph.cells) {
        if (!isCellName(cell.name))
            problems.error(path, "The cell name " + inQuotes(cell.name) + " cannot be used.", "Names are letters, digits, _ and -.");
        else if (!cells.insert(cell.name).second)
            problems.error(below(path, cell.name), "Two cells have this name.", "Rename one of them.");
    }
    for (const auto& [ports, seen] : {std::pair(&graph.inputs, &inputs), std::pair(&graph.outputs, &outputs)})
        for (const Port& port : *ports) {
            if (!isCellName(port.name))
                problems.error(path, "The port name " + inQuotes(port.name) + " cannot be used.", "Names are letters, digits, _ and -.");
            else if (!seen->insert(port.name).second)
                problems.error(path, "Two ports are named " + port.name + ".", "Rename one of them.");
            if (port.dtype != "float" && port.dtype != "int64" && port.dtype != "bool")
                problems.error(path, "The port " + port.name + " has the unknown type " + inQuotes(port.dtype) + ".",
                               "Types are float, int64 and bool.");
        }
}

void collectFeeds(const Graph& graph, const std::string& path, Plan& plan, ProblemList& problems) {
    const auto cells = namesOf(graph.cells);
    const std::set<std::string> known(cells.begin(), cells.end());
    const auto hasPort = [](const std::vector<Port>& ports, const std::string& name) {
        return std::any_of(ports.begin(), ports.end(), [&](const Port& port) { return port.name == name; });
    };
    std::set<std::pair<std::string, std::string>> taken;
    std::set<std::string> sources;
    for (const Wire& wire : graph.wires) {
        if (problems.isFull()) return;
        const std::string text = toText(wire.from) + " -> " + toText(wire.to);
        const auto check = [&](const Endpoint& end, const std::vector<Port>& own, const char* what) {
            if (end.cell.empty() ? hasPort(own, end.port) : known.count(end.cell) > 0) return true;
            const bool isCell = !end.cell.empty();
            problems.error(path,
                           "The wire " + text + " names " +
                               (isCell ? "the cell " + inQuotes(end.cell) : std::string("the ") + what + " " + inQuotes(end.port)) +
                               ", which is not there.",
                           didYouMean(isCell ? end.cell : end.port, isCell ? cells : namesOf(own), isCell ? "Cells" : "Ports"));
            return false;
        };
        const bool isSound = check(wire.from, graph.inputs, "input") & check(wire.to, graph.outputs, "output");
        if (!isSound) continue;
        if (!taken.insert({wire.to.cell, wire.to.port}).second) {
            problems.error(below(path, wire.to.cell), "Two wires end at " + toText(wire.to) + "; one of them is " + text + ".",
                           "Remove one, or join them with an Add.");
            continue;
        }
        sources.insert(wire.from.cell);
        plan.feeds[wire.to.cell].emplace_back(wire.to.port, wire.from);
    }
    for (const Cell& cell : graph.cells)
        if (!sources.count(cell.name))
            problems.warning(below(path, cell.name), "Nothing uses what this cell gives.", "Wire its output, or remove the cell.");
}

/// Kahn's algorithm; among cells that are ready the document's order decides, so that it is the same on each run.
void sortCells(const Graph& graph, const std::string& path, Plan& plan, ProblemList& problems) {
    std::map<std::string, std::size_t> index;
    for (std::size_t i = 0; i < graph.cells.size(); ++i) index.emplace(graph.cells[i].name, i);
    std::vector<std::set<std::size_t>> before(graph.cells.size()), after(graph.cells.size());
    for (const auto& [target, feeds] : plan.feeds) {
        if (target.empty()) continue;
        for (const auto& [port, source] : feeds) {
            if (source.cell.empty()) continue;
            before[index.at(target)].insert(index.at(source.cell));
            after[index.at(source.cell)].insert(index.at(target));
        }
    }
    std::set<std::size_t> ready;
    for (std::size_t i = 0; i < before.size(); ++i)
        if (before[i].empty()) ready.insert(i);
    std::vector<std::size_t> waiting(before.size());
    for (std::size_t i = 0; i < before.size(); ++i) waiting[i] = before[i].size();
    while (!ready.empty()) {
        const std::size_t next = *ready.begin();
        ready.erase(ready.begin());
        plan.order.push_back(&graph.cells[next]);
        for (const std::size_t follower : after[next])
            if (--waiting[follower] == 0) ready.insert(follower);
    }
    if (plan.order.size() == graph.cells.size()) return;
    // every cell left waits for another one left: walking back must come round
    std::size_t at = 0;
    while (waiting[at] == 0) ++at;
    std::vector<std::size_t> walk;
    while (std::find(walk.begin(), walk.end(), at) == walk.end()) {
        walk.push_back(at);
        for (const std::size_t previous : before[at])
            if (waiting[previous] > 0) {
                at = previous;
                break;
            }
    }
    std::string circle = graph.cells[at].name;
    for (std::size_t i = walk.size(); i-- > 0;) {
        circle += " -> " + graph.cells[walk[i]].name;
        if (walk[i] == at) break;
    }
    problems.error(below(path, graph.cells[at].name), "Cells wait for each other in a circle: " + circle + ".",
                   "Remove one of these wires.");
}

} // namespace

bool isCellName(const std::string& name) {
    if (name.empty() || name.size() > kMaxNameBytes || !isUtf8(name)) return false;
    return std::all_of(name.begin(), name.end(), [](char c) {
        const auto byte = static_cast<unsigned char>(c);
        return byte >= 0x80 || c == '_' || c == '-' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    });
}

Plan planOf(const Graph& graph, const std::string& path, ProblemList& problems) {
    Plan plan;
    const std::size_t before = problems.errors();
    checkNames(graph, path, problems);
    collectFeeds(graph, path, plan, problems);
    sortCells(graph, path, plan, problems);
    plan.isUsable = problems.errors() == before;
    return plan;
}

} // namespace celloom::graph
