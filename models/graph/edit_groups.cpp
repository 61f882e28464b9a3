// Edits of several cells: copying, grouping into a composite, and the reverse.
#include "models/graph/edits.h"

#include "models/base/text.h"
#include "models/graph/difference.h"
#include "models/graph/edit_parts.h"
#include "models/graph/json.h"
#include "models/graph/problems.h"

#include <algorithm>
#include <utility>

namespace celloom::graph {
namespace {

bool hasName(const std::vector<std::string>& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
}

/// The hyper-parameters of `from` that some cells use, and those that the values of these use, in the graph's order.
std::vector<HyperParameter> hyperOf(const Document& document, const Graph& from, std::vector<Cell> cells) {
    CellNames used;
    std::vector<std::string> waiting;
    const auto note = [&](std::string& text) {
        for (const std::string& name : namesIn(text)) waiting.push_back(name);
    };
    for (Cell& cell : cells) eachExpression(document, cell, note);
    while (!waiting.empty()) {
        const std::string name = waiting.back();
        waiting.pop_back();
        for (const HyperParameter& hyper : from.hyper) {
            const auto* text = std::get_if<std::string>(&hyper.value);
            if (hyper.name != name || !used.insert(name).second || !text) continue;
            for (const std::string& inner : namesIn(*text)) waiting.push_back(inner);
        }
    }
    std::vector<HyperParameter> out;
    for (const HyperParameter& hyper : from.hyper)
        if (used.contains(hyper.name)) out.push_back(hyper);
    return out;
}

Result<Document> fragmentOf(const Document& document, const GraphName& graphName, const CellNames& cells) {
    const Graph* graph = graphOf(document, graphName);
    if (!graph) return fail("The document has no composite " + inQuotes(graphName) + ".");
    Document out;
    for (const Cell& cell : graph->cells)
        if (cells.contains(cell.name)) out.main.cells.push_back(cell);
    if (out.main.cells.size() != cells.size() || cells.empty()) return fail("Not all of these cells are here.");
    for (const Wire& wire : graph->wires)
        if (cells.contains(wire.from.cell) && cells.contains(wire.to.cell)) out.main.wires.push_back(wire);
    out.main.hyper = hyperOf(document, *graph, out.main.cells);
    for (const std::string& name : compositesUsedBy(document, out.main)) out.composites[name] = document.composites.at(name);
    return out;
}

/// Brings the fragment's composites in; their cells' types are renamed where a name is taken by another composite.
void takeComposites(Document& document, Document& fragment) {
    std::map<std::string, std::string> renamed;
    for (const auto& [name, graph] : fragment.composites) {
        const auto there = document.composites.find(name);
        if (there != document.composites.end() && !isSame(there->second, graph)) renamed[name] = freeCompositeName(document, name);
    }
    // what contains a renamed composite is another one too
    for (bool isDone = false; !isDone;) {
        isDone = true;
        for (const auto& [name, graph] : fragment.composites)
            if (!renamed.contains(name) && document.composites.contains(name) &&
                std::any_of(graph.cells.begin(), graph.cells.end(), [&](const Cell& cell) { return renamed.contains(cell.type); })) {
                renamed[name] = freeCompositeName(document, name);
                isDone = false;
            }
    }
    const auto rename = [&](Graph& graph) {
        for (Cell& cell : graph.cells)
            if (const auto found = renamed.find(cell.type); found != renamed.end()) cell.type = found->second;
    };
    rename(fragment.main);
    for (auto& [name, graph] : fragment.composites) {
        rename(graph);
        const auto found = renamed.find(name);
        document.composites.try_emplace(found == renamed.end() ? name : found->second, graph);
    }
}

Result<std::vector<std::string>> pasteFragment(Document& document, const GraphName& graphName, Document fragment, Position offset,
                                               std::map<std::string, std::string>& renamed) {
    CELLOOM_TRY_STATUS(graphFor(document, graphName));
    takeComposites(document, fragment);
    Graph& graph = *graphOf(document, graphName);
    for (const Cell& cell : fragment.main.cells)
        if (wouldRecurse(document, graphName, cell.type)) return fail(cell.type + " contains " + graphName + " and cannot stand inside it.");
    std::vector<std::string> out;
    for (Cell cell : fragment.main.cells) {
        const std::string name = freeCellName(graph, cell.name);
        renamed[cell.name] = name;
        cell.name = name;
        if (cell.position) *cell.position = {cell.position->x + offset.x, cell.position->y + offset.y};
        graph.cells.push_back(std::move(cell));
        out.push_back(name);
    }
    for (const Wire& wire : fragment.main.wires)
        graph.wires.push_back({{renamed.at(wire.from.cell), wire.from.port}, {renamed.at(wire.to.cell), wire.to.port}});
    for (const HyperParameter& hyper : fragment.main.hyper)
        if (!hasName(namesOf(graph.hyper), hyper.name)) graph.hyper.push_back(hyper);
    return out;
}

Status checkFragment(const Graph& graph) {
    CellNames names;
    std::set<std::pair<std::string, std::string>> fed;
    for (const Cell& cell : graph.cells)
        if (!names.insert(cell.name).second || cell.name.empty()) return fail("What is to be pasted has two cells named " + cell.name + ".");
    for (const Wire& wire : graph.wires)
        if (!names.contains(wire.from.cell) || !names.contains(wire.to.cell) || !fed.insert({wire.to.cell, wire.to.port}).second)
            return fail("What is to be pasted has a wire without an end: " + toText(wire.from) + " -> " + toText(wire.to) + ".");
    return {};
}

} // namespace

Result<std::string> copyCells(const Document& document, const GraphName& graph, const CellNames& cells) {
    CELLOOM_TRY(fragment, fragmentOf(document, graph, cells));
    return toJson(fragment);
}

Result<std::vector<std::string>> pasteCells(Document& document, const GraphName& graph, const std::string& text, Position offset) {
    auto fragment = fromJson(text);
    if (!fragment && !isMeantAsDocument(text)) return fail("The clipboard holds no cells.", "Copy cells of a Celloom document, or classes derived from nn.Cell or nn.Module.");
    if (!fragment) {
        const Error& why = fragment.error();
        if (why.place.empty()) return fail("The clipboard's cells cannot be read: " + why.message, why.hint);
        return fail("The clipboard's cells cannot be read at " + why.place + ": " + why.message, why.hint);
    }
    // A whole document has wires to its own ports: they stay behind.
    std::erase_if(fragment->main.wires, [](const Wire& wire) { return wire.from.cell.empty() || wire.to.cell.empty(); });
    CELLOOM_TRY_STATUS(checkFragment(fragment->main));
    Document changed = document;
    std::map<std::string, std::string> renamed;
    CELLOOM_TRY(names, pasteFragment(changed, graph, std::move(*fragment), offset, renamed));
    document = std::move(changed);
    return names;
}

Result<std::vector<std::string>> duplicateCells(Document& document, const GraphName& graphName, const CellNames& cells, Position offset) {
    CELLOOM_TRY(fragment, fragmentOf(document, graphName, cells));
    std::map<std::string, std::string> renamed;
    CELLOOM_TRY(names, pasteFragment(document, graphName, std::move(fragment), offset, renamed));
    Graph& graph = *graphOf(document, graphName);
    std::vector<Wire> more;
    for (const Wire& wire : graph.wires)
        if (cells.contains(wire.to.cell) && !cells.contains(wire.from.cell)) more.push_back({wire.from, {renamed.at(wire.to.cell), wire.to.port}});
    graph.wires.insert(graph.wires.end(), more.begin(), more.end());
    return names;
}

// ---- grouping ----

namespace {

/// Whether a way leads out of the group and back into it.
bool isTornApart(const Graph& graph, const CellNames& cells) {
    CellNames outside; // cells outside that the group feeds
    std::vector<std::string> waiting;
    const auto follow = [&](const std::string& from) {
        for (const Wire& wire : graph.wires)
            if (wire.from.cell == from && !wire.to.cell.empty()) waiting.push_back(wire.to.cell);
    };
    for (const std::string& cell : cells)
        for (const Wire& wire : graph.wires)
            if (wire.from.cell == cell && !wire.to.cell.empty() && !cells.contains(wire.to.cell)) waiting.push_back(wire.to.cell);
    while (!waiting.empty()) {
        const std::string at = waiting.back();
        waiting.pop_back();
        if (cells.contains(at)) return true;
        if (outside.insert(at).second) follow(at);
    }
    return false;
}

std::string freePort(const std::vector<Port>& ports, const std::string& wanted) {
    const auto names = namesOf(ports);
    std::string name = wanted;
    for (int number = 2; hasName(names, name); ++number) name = wanted + "_" + std::to_string(number);
    return name;
}

std::optional<Position> middleOf(const std::vector<Cell>& cells) {
    Position sum;
    int count = 0;
    for (const Cell& cell : cells)
        if (cell.position) {
            sum = {sum.x + cell.position->x, sum.y + cell.position->y};
            ++count;
        }
    if (count == 0) return std::nullopt;
    return Position{sum.x / count, sum.y / count};
}

} // namespace

Result<std::string> groupCells(Document& document, const GraphName& graphName, const CellNames& cells, const std::string& compositeName) {
    Document changed = document;
    CELLOOM_TRY(fragment, fragmentOf(document, graphName, cells));
    Graph& graph = *graphOf(changed, graphName);
    if (isTornApart(graph, cells))
        return fail("A way leads out of these cells and into them again.", "Add the cells between them to the selection.");
    Graph inner = std::move(fragment.main);
    Cell cell;
    cell.type = freeCompositeName(changed, compositeName);
    cell.name = [&] { // the cells that it replaces give their names up
        Graph rest = graph;
        std::erase_if(rest.cells, [&](const Cell& other) { return cells.contains(other.name); });
        return freeCellName(rest, compositeName);
    }();
    cell.position = middleOf(inner.cells);
    for (const HyperParameter& hyper : inner.hyper) cell.params[hyper.name] = hyper.name;
    std::vector<Wire> wires; // of the graph, afterwards
    std::vector<std::pair<Endpoint, std::string>> ins, outs; // outer sources and inner sources, by port
    const auto portFor = [](std::vector<std::pair<Endpoint, std::string>>& known, const Endpoint& end, std::vector<Port>& ports,
                            const std::string& wanted, bool& isNew) {
        for (const auto& [other, name] : known)
            if (other == end) return name;
        isNew = true;
        ports.push_back({freePort(ports, wanted), {}});
        known.emplace_back(end, ports.back().name);
        return ports.back().name;
    };
    for (const Wire& wire : graph.wires) {
        const bool fromInside = cells.contains(wire.from.cell), toInside = cells.contains(wire.to.cell);
        bool isNew = false;
        if (!fromInside && !toInside) {
            wires.push_back(wire);
        } else if (!fromInside) {
            const std::string port = portFor(ins, wire.from, inner.inputs, wire.from.cell.empty() ? wire.from.port : wire.to.port, isNew);
            inner.wires.push_back({{"", port}, wire.to});
            if (isNew) wires.push_back({wire.from, {cell.name, port}});
        } else if (!toInside) {
            const std::string port = portFor(outs, wire.from, inner.outputs, wire.from.port, isNew);
            if (isNew) inner.wires.push_back({wire.from, {"", port}});
            wires.push_back({{cell.name, port}, wire.to});
        }
    }
    inner.name = cell.type;
    changed.composites.emplace(cell.type, std::move(inner));
    std::vector<Cell> rest; // the new one stands where the first of them stood
    bool isPlaced = false;
    for (Cell& other : graph.cells) {
        if (!cells.contains(other.name)) rest.push_back(std::move(other));
        else if (!std::exchange(isPlaced, true)) rest.push_back(cell);
    }
    graph.cells = std::move(rest);
    graph.wires = std::move(wires);
    document = std::move(changed);
    return cell.name;
}

Result<std::vector<std::string>> ungroupCell(Document& document, const GraphName& graphName, const std::string& cellName) {
    Document changed = document;
    CELLOOM_TRY(graphPointer, graphFor(changed, graphName));
    CELLOOM_TRY(cellPointer, cellFor(*graphPointer, cellName));
    Graph& graph = *graphPointer;
    const Cell cell = *cellPointer;
    const auto composite = changed.composites.find(cell.type);
    if (composite == changed.composites.end()) return fail(cellName + " is a " + cell.type + " and has no inside.");
    if (!cell.repeat.empty())
        return fail(cellName + " is repeated.", "Clear its repeat first, or group it once more and repeat that.");
    const Graph inner = composite->second;

    // What each hyper-parameter of the inside is, in terms of the outside.
    std::map<std::string, std::string> meanings;
    for (std::size_t round = 0; round <= inner.hyper.size() && meanings.size() < inner.hyper.size(); ++round)
        for (const HyperParameter& hyper : inner.hyper) {
            if (meanings.contains(hyper.name)) continue;
            const auto given = cell.params.find(hyper.name);
            const ParamValue& value = given == cell.params.end() ? hyper.value : given->second;
            std::string text = toString(std::visit([](const auto& held) { return ResolvedValue(held); }, value));
            if (given == cell.params.end()) {
                const auto names = namesIn(text);
                if (std::any_of(names.begin(), names.end(), [&](const std::string& name) {
                        return hasName(namesOf(inner.hyper), name) && !meanings.contains(name);
                    }))
                    continue; // another one comes first
                text = replaceNames(text, meanings);
            }
            meanings.emplace(hyper.name, std::move(text));
        }

    const auto at = graph.cells.begin() + (cellPointer - graph.cells.data());
    const std::size_t index = static_cast<std::size_t>(at - graph.cells.begin());
    graph.cells.erase(at);
    std::map<std::string, std::string> renamed;
    std::vector<std::string> out;
    std::vector<Cell> pieces;
    const auto middle = middleOf(inner.cells);
    for (Cell piece : inner.cells) {
        Graph taken; // names of the graph and of the pieces so far
        taken.cells = graph.cells;
        taken.cells.insert(taken.cells.end(), pieces.begin(), pieces.end());
        const std::string name = freeCellName(taken, findCell(taken, piece.name) ? cellName + "_" + piece.name : piece.name);
        renamed[piece.name] = name;
        piece.name = name;
        eachExpression(changed, piece, [&](std::string& text) { text = replaceNames(text, meanings); });
        for (auto& [param, value] : piece.params) { // a number that was handed down is a number again
            const auto* text = isExpression(changed, piece, param) ? std::get_if<std::string>(&value) : nullptr;
            std::int64_t whole = 0;
            double real = 0;
            if (text && readNumber(*text, whole)) value = whole;
            else if (text && readNumber(*text, real)) value = real;
            else if (text && (*text == "true" || *text == "false")) value = *text == "true";
        }
        if (piece.position && middle && cell.position)
            *piece.position = {piece.position->x - middle->x + cell.position->x, piece.position->y - middle->y + cell.position->y};
        out.push_back(name);
        pieces.push_back(std::move(piece));
    }
    graph.cells.insert(graph.cells.begin() + static_cast<std::ptrdiff_t>(index), pieces.begin(), pieces.end());

    std::map<std::string, Endpoint> feeds; // of the composite's inputs, by port
    for (const Wire& wire : graph.wires)
        if (wire.to.cell == cellName) feeds.emplace(wire.to.port, wire.from);
    /// The outside's name of a source inside; nothing where it is an input that nothing feeds.
    const auto outer = [&](const Endpoint& source) -> std::optional<Endpoint> {
        if (!source.cell.empty()) return Endpoint{renamed.at(source.cell), source.port};
        const auto fed = feeds.find(source.port);
        if (fed == feeds.end()) return std::nullopt;
        return fed->second;
    };
    std::vector<Wire> wires;
    for (const Wire& wire : graph.wires) {
        if (wire.to.cell == cellName) continue;
        if (wire.from.cell != cellName) {
            wires.push_back(wire);
            continue;
        }
        for (const Wire& inside : inner.wires)
            if (inside.to == Endpoint{"", wire.from.port})
                if (const auto source = outer(inside.from)) wires.push_back({*source, wire.to});
    }
    for (const Wire& inside : inner.wires)
        if (!inside.to.cell.empty())
            if (const auto source = outer(inside.from)) wires.push_back({*source, {renamed.at(inside.to.cell), inside.to.port}});
    graph.wires = std::move(wires);
    bool isUsed = false;
    eachGraph(changed, [&](Graph& other) {
        for (const Cell& user : other.cells) isUsed = isUsed || user.type == cell.type;
    });
    if (!isUsed && !inner.origin) changed.composites.erase(cell.type);
    document = std::move(changed);
    return out;
}

} // namespace celloom::graph
