// Cells, wires, ports and hyper-parameters. Copying and grouping: edit_groups.cpp.
#include "models/graph/edits.h"

#include "models/base/text.h"
#include "models/catalog/catalog.h"
#include "models/graph/edit_parts.h"
#include "models/graph/plan.h"
#include "models/graph/problems.h"

#include <algorithm>
#include <map>
#include <regex>
#include <string_view>

namespace celloom::graph {

namespace {

template <class Items> auto findNamed(Items& items, const std::string& name) -> decltype(&items[0]) {
    const auto found = std::find_if(items.begin(), items.end(), [&](const auto& item) { return item.name == name; });
    return found == items.end() ? nullptr : &*found;
}

std::string suitable(const std::string& wanted) {
    std::string out;
    for (const char c : trimmed(wanted)) out += isCellName(std::string(1, c)) || static_cast<unsigned char>(c) >= 0x80 ? c : '_';
    return isCellName(out) ? out : "cell";
}

std::string freeName(const std::string& wanted, const std::function<bool(const std::string&)>& isTaken) {
    const std::string stem = suitable(wanted);
    if (!isTaken(stem)) return stem;
    for (int number = 2;; ++number)
        if (const std::string name = stem + "_" + std::to_string(number); !isTaken(name)) return name;
}

Status checkNewName(const std::string& name, bool isTaken, const char* what) {
    if (!isCellName(name)) return fail("The name " + inQuotes(name) + " cannot be used.", "Names are letters, digits, _ and -.");
    if (isTaken) return fail("Another " + std::string(what) + " is named " + name + ".", "Choose another name.");
    return {};
}

Status checkEnd(const Graph& graph, const Endpoint& end, const std::vector<Port>& own) {
    const bool isThere = end.cell.empty() ? findNamed(own, end.port) != nullptr : findCell(graph, end.cell) != nullptr && !end.port.empty();
    return isThere ? Status() : Status(fail("There is no " + toText(end) + " to wire."));
}

/// Renames an end in all wires of a graph.
void renameEnds(Graph& graph, bool isFrom, const std::string& cell, const std::string& port, const std::string& name) {
    for (Wire& wire : graph.wires) {
        Endpoint& end = isFrom ? wire.from : wire.to;
        if (end.cell == cell && end.port == port) end.port = name;
    }
}

} // namespace

void eachGraph(Document& document, const std::function<void(Graph&)>& visit) {
    visit(document.main);
    for (auto& [name, graph] : document.composites) visit(graph);
}

void eachExpression(const Document& document, Graph& graph, const std::function<void(std::string&)>& visit) {
    const auto inValue = [&](ParamValue& value) {
        if (auto* text = std::get_if<std::string>(&value)) visit(*text);
    };
    for (HyperParameter& hyper : graph.hyper) inValue(hyper.value);
    for (std::vector<Port>* ports : {&graph.inputs, &graph.outputs})
        for (Port& port : *ports)
            for (std::string& dim : port.shape) visit(dim);
    for (Cell& cell : graph.cells) eachExpression(document, cell, visit);
}

void eachExpression(const Document& document, Cell& cell, const std::function<void(std::string&)>& visit) {
    if (!cell.repeat.empty()) visit(cell.repeat);
    for (auto& [name, value] : cell.params)
        if (auto* text = std::get_if<std::string>(&value); text && isExpression(document, cell, name)) visit(*text);
}

bool isExpression(const Document& document, const Cell& cell, const std::string& param) {
    const catalog::CellType* type = document.composites.contains(cell.type) ? nullptr : catalog::find(cell.type);
    const catalog::ParamDef* def = type ? findNamed(type->params, param) : nullptr;
    using enum catalog::ParamKind;
    return !def || (def->kind != Choice && def->kind != Text && def->kind != Code);
}

Graph* graphOf(Document& document, const GraphName& name) {
    if (name.empty()) return &document.main;
    const auto found = document.composites.find(name);
    return found == document.composites.end() ? nullptr : &found->second;
}
const Graph* graphOf(const Document& document, const GraphName& name) {
    return graphOf(const_cast<Document&>(document), name);
}
Cell* findCell(Graph& graph, const std::string& name) {
    return findNamed(graph.cells, name);
}
const Cell* findCell(const Graph& graph, const std::string& name) {
    return findNamed(graph.cells, name);
}

Result<Graph*> graphFor(Document& document, const GraphName& name) {
    if (Graph* graph = graphOf(document, name)) return graph;
    return fail("The document has no composite " + inQuotes(name) + ".");
}

Result<Cell*> cellFor(Graph& graph, const std::string& name) {
    if (Cell* cell = findCell(graph, name)) return cell;
    return fail("There is no cell " + inQuotes(name) + " here.", didYouMean(name, namesOf(graph.cells), "Cells"));
}

std::string freeCellName(const Graph& graph, const std::string& wanted) {
    return freeName(wanted, [&](const std::string& name) { return findCell(graph, name) != nullptr; });
}

std::string freeCompositeName(const Document& document, const std::string& wanted) {
    return freeName(wanted, [&](const std::string& name) { return document.composites.contains(name) || catalog::find(name) != nullptr; });
}

std::vector<std::string> compositesUsedBy(const Document& document, const Graph& graph) {
    CellNames seen;
    std::vector<const Graph*> waiting{&graph};
    while (!waiting.empty()) {
        const Graph& next = *waiting.back();
        waiting.pop_back();
        for (const Cell& cell : next.cells)
            if (const auto inner = document.composites.find(cell.type); inner != document.composites.end() && seen.insert(cell.type).second)
                waiting.push_back(&inner->second);
    }
    return {seen.begin(), seen.end()};
}

bool wouldRecurse(const Document& document, const GraphName& graph, const std::string& type) {
    if (graph.empty()) return false; // nothing contains the main graph
    CellNames seen;
    std::vector<std::string> waiting{type};
    while (!waiting.empty()) {
        const std::string at = waiting.back();
        waiting.pop_back();
        if (at == graph) return true;
        if (!seen.insert(at).second) continue;
        const auto found = document.composites.find(at);
        if (found == document.composites.end()) continue;
        for (const Cell& cell : found->second.cells) waiting.push_back(cell.type);
    }
    return false;
}

bool leadsTo(const Graph& graph, const std::string& from, const std::string& to) {
    CellNames seen;
    std::vector<std::string> waiting{from};
    while (!waiting.empty()) {
        const std::string at = waiting.back();
        waiting.pop_back();
        if (at == to) return true;
        if (!seen.insert(at).second) continue;
        for (const Wire& wire : graph.wires)
            if (wire.from.cell == at && !wire.to.cell.empty()) waiting.push_back(wire.to.cell);
    }
    return false;
}

// ---- cells ----

namespace {

/// Where at `i` of a type's name a linear unit is written as one word of few letters ("ReLU", "PReLU", "SwiGLU"): how long it is, else 0.
std::size_t unitAt(const std::string& type, std::size_t i) {
    static const std::regex unit("[A-Z]?[A-Z][a-z]{1,2}G?LU(?![a-z])");
    std::smatch found;
    const auto begin = type.begin() + static_cast<std::ptrdiff_t>(i);
    return std::regex_search(begin, type.end(), found, unit, std::regex_constants::match_continuous) ? static_cast<std::size_t>(found.length()) : 0;
}

/// "RMSNorm" -> "rms_norm", "LeakyReLU" -> "leaky_relu".
std::string stemOf(const std::string& type) {
    const auto isUpper = [&](std::size_t at) { return at < type.size() && type[at] >= 'A' && type[at] <= 'Z'; };
    std::string stem;
    std::size_t unitEnd = 0;
    for (std::size_t i = 0; i < type.size(); ++i) {
        const bool begins = i > 0 && i >= unitEnd && isUpper(i) && (!isUpper(i - 1) || (i + 1 < type.size() && !isUpper(i + 1) && type[i + 1] != '_'));
        if (begins && stem.back() != '_') stem += '_';
        if (i >= unitEnd && (begins || i == 0)) unitEnd = i + unitAt(type, i);
        stem += isUpper(i) ? static_cast<char>(type[i] - 'A' + 'a') : type[i];
    }
    return stem;
}

} // namespace

Result<std::string> addCell(Document& document, const GraphName& graphName, const std::string& type, std::optional<Position> position,
                            const std::string& wantedName) {
    CELLOOM_TRY(graph, graphFor(document, graphName));
    if (!catalog::find(type) && !document.composites.contains(type)) return fail("There is no cell type " + inQuotes(type) + ".");
    if (wouldRecurse(document, graphName, type)) return fail(type + " contains " + graphName + " and cannot stand inside it.");
    Cell cell;
    cell.name = freeCellName(*graph, wantedName.empty() ? stemOf(type) : wantedName);
    cell.type = type;
    cell.position = position;
    graph->cells.push_back(std::move(cell));
    return graph->cells.back().name;
}

Status removeCells(Document& document, const GraphName& graphName, const CellNames& cells) {
    CELLOOM_TRY(graph, graphFor(document, graphName));
    for (const std::string& name : cells) CELLOOM_TRY_STATUS(cellFor(*graph, name));
    std::erase_if(graph->cells, [&](const Cell& cell) { return cells.contains(cell.name); });
    std::erase_if(graph->wires, [&](const Wire& wire) { return cells.contains(wire.from.cell) || cells.contains(wire.to.cell); });
    return {};
}

Status renameCell(Document& document, const GraphName& graphName, const std::string& cellName, const std::string& name) {
    CELLOOM_TRY(graph, graphFor(document, graphName));
    CELLOOM_TRY(cell, cellFor(*graph, cellName));
    if (name == cellName) return {};
    CELLOOM_TRY_STATUS(checkNewName(name, findCell(*graph, name) != nullptr, "cell"));
    cell->name = name;
    for (Wire& wire : graph->wires)
        for (Endpoint* end : {&wire.from, &wire.to})
            if (end->cell == cellName) end->cell = name;
    return {};
}

Status setParam(Document& document, const GraphName& graphName, const std::string& cellName, const std::string& param,
                std::optional<ParamValue> value) {
    CELLOOM_TRY(graph, graphFor(document, graphName));
    CELLOOM_TRY(cell, cellFor(*graph, cellName));
    if (!value) {
        cell->params.erase(param);
        return {};
    }
    const auto composite = document.composites.find(cell->type);
    const catalog::CellType* type = catalog::find(cell->type);
    const auto known = composite != document.composites.end() ? namesOf(composite->second.hyper)
                       : type                                 ? namesOf(type->params)
                                                              : std::vector<std::string>{};
    if (std::find(known.begin(), known.end(), param) == known.end())
        return fail(cell->type + " has no parameter " + inQuotes(param) + ".", didYouMean(param, known, "Parameters"));
    cell->params.insert_or_assign(param, std::move(*value));
    return {};
}

Status setRepeat(Document& document, const GraphName& graphName, const std::string& cellName, const std::string& repeat) {
    CELLOOM_TRY(graph, graphFor(document, graphName));
    CELLOOM_TRY(cell, cellFor(*graph, cellName));
    cell->repeat = trimmed(repeat);
    return {};
}

Status setNote(Document& document, const GraphName& graphName, const std::string& cellName, const std::string& note) {
    CELLOOM_TRY(graph, graphFor(document, graphName));
    CELLOOM_TRY(cell, cellFor(*graph, cellName));
    if (!isUtf8(note)) return fail("The note is no text.");
    cell->note = note;
    return {};
}

Status moveCells(Document& document, const GraphName& graphName, const std::map<std::string, Position>& positions) {
    CELLOOM_TRY(graph, graphFor(document, graphName));
    std::map<std::string_view, Cell*> cells;
    for (Cell& cell : graph->cells) cells[cell.name] = &cell;
    for (const auto& [name, position] : positions)
        if (!cells.contains(name)) CELLOOM_TRY_STATUS(cellFor(*graph, name));
    for (const auto& [name, position] : positions) cells[name]->position = position;
    return {};
}

// ---- wires ----

Status addWire(Document& document, const GraphName& graphName, const Wire& wire) {
    CELLOOM_TRY(graph, graphFor(document, graphName));
    CELLOOM_TRY_STATUS(checkEnd(*graph, wire.from, graph->inputs));
    CELLOOM_TRY_STATUS(checkEnd(*graph, wire.to, graph->outputs));
    if (!wire.from.cell.empty() && !wire.to.cell.empty() && leadsTo(*graph, wire.to.cell, wire.from.cell))
        return fail("A wire from " + toText(wire.from) + " to " + toText(wire.to) + " would close a circle.",
                    "Cells run one after another; a repeat does a thing several times.");
    std::erase_if(graph->wires, [&](const Wire& other) { return other.to == wire.to; });
    graph->wires.push_back(wire);
    return {};
}

Status removeWire(Document& document, const GraphName& graphName, const Wire& wire) {
    CELLOOM_TRY(graph, graphFor(document, graphName));
    if (std::erase(graph->wires, wire) > 0) return {};
    return fail("There is no wire " + toText(wire.from) + " -> " + toText(wire.to) + ".");
}

Status insertOnWire(Document& document, const GraphName& graphName, const Wire& wire, const std::string& cellName, const std::string& inPort,
                    const std::string& outPort) {
    Document changed = document;
    CELLOOM_TRY(graph, graphFor(changed, graphName));
    CELLOOM_TRY_STATUS(cellFor(*graph, cellName));
    const auto at = std::find(graph->wires.begin(), graph->wires.end(), wire);
    if (at == graph->wires.end()) return fail("There is no wire " + toText(wire.from) + " -> " + toText(wire.to) + ".");
    if (wire.from.cell == cellName || wire.to.cell == cellName) return fail("The wire ends at " + cellName + " itself.");
    graph->wires.erase(at);
    CELLOOM_TRY_STATUS(addWire(changed, graphName, {wire.from, {cellName, inPort}}));
    CELLOOM_TRY_STATUS(addWire(changed, graphName, {{cellName, outPort}, wire.to}));
    document = std::move(changed);
    return {};
}

// ---- composites as a whole ----

Status renameComposite(Document& document, const std::string& composite, const std::string& name) {
    CELLOOM_TRY_STATUS(graphFor(document, composite));
    if (composite.empty() || name == composite) return {};
    CELLOOM_TRY_STATUS(checkNewName(name, document.composites.contains(name), "composite"));
    if (catalog::find(name)) return fail(name + " is a cell type of the catalogue.", "Choose another name.");
    auto node = document.composites.extract(composite);
    node.key() = name;
    document.composites.insert(std::move(node));
    eachGraph(document, [&](Graph& graph) {
        for (Cell& cell : graph.cells)
            if (cell.type == composite) cell.type = name;
    });
    return {};
}

Status removeComposite(Document& document, const std::string& composite) {
    if (!document.composites.contains(composite)) return fail("The document has no composite " + inQuotes(composite) + ".");
    std::string user;
    eachGraph(document, [&](Graph& graph) {
        for (const Cell& cell : graph.cells)
            if (cell.type == composite) user = cell.name;
    });
    if (!user.empty()) return fail("The cell " + user + " is a " + composite + ".", "Remove the cells that use it first.");
    document.composites.erase(composite);
    return {};
}

// ---- ports ----

namespace {

std::vector<Port>& portsOf(Graph& graph, PortSide side) {
    return side == PortSide::Input ? graph.inputs : graph.outputs;
}

/// Visits the wires at a graph's own port: inside it, and at the cells that use it as a composite.
void eachUser(Document& document, const GraphName& composite, const std::function<void(Graph&, const std::string& cell)>& visit) {
    if (composite.empty()) return;
    eachGraph(document, [&](Graph& graph) {
        for (const Cell& cell : graph.cells)
            if (cell.type == composite) visit(graph, cell.name);
    });
}

} // namespace

Status addPort(Document& document, const GraphName& graphName, PortSide side, const Port& port) {
    CELLOOM_TRY(graph, graphFor(document, graphName));
    auto& ports = portsOf(*graph, side);
    CELLOOM_TRY_STATUS(checkNewName(port.name, findNamed(ports, port.name) != nullptr, "port"));
    ports.push_back(port);
    return {};
}

Status removePort(Document& document, const GraphName& graphName, PortSide side, const std::string& port) {
    CELLOOM_TRY(graph, graphFor(document, graphName));
    auto& ports = portsOf(*graph, side);
    if (!findNamed(ports, port)) return fail("There is no port " + inQuotes(port) + ".", didYouMean(port, namesOf(ports), "Ports"));
    std::erase_if(ports, [&](const Port& other) { return other.name == port; });
    const bool isInput = side == PortSide::Input;
    const auto drop = [](Graph& in, bool isFrom, const std::string& cell, const std::string& name) {
        std::erase_if(in.wires, [&](const Wire& wire) { return (isFrom ? wire.from : wire.to) == Endpoint{cell, name}; });
    };
    drop(*graph, isInput, "", port);
    eachUser(document, graphName, [&](Graph& user, const std::string& cell) { drop(user, !isInput, cell, port); });
    return {};
}

Status changePort(Document& document, const GraphName& graphName, PortSide side, const std::string& port, const Port& changed) {
    CELLOOM_TRY(graph, graphFor(document, graphName));
    auto& ports = portsOf(*graph, side);
    Port* found = findNamed(ports, port);
    if (!found) return fail("There is no port " + inQuotes(port) + ".", didYouMean(port, namesOf(ports), "Ports"));
    if (changed.name != port) CELLOOM_TRY_STATUS(checkNewName(changed.name, findNamed(ports, changed.name) != nullptr, "port"));
    *found = changed;
    const bool isInput = side == PortSide::Input;
    renameEnds(*graph, isInput, "", port, changed.name);
    eachUser(document, graphName, [&](Graph& user, const std::string& cell) { renameEnds(user, !isInput, cell, port, changed.name); });
    return {};
}

// ---- hyper-parameters ----

Status addHyper(Document& document, const GraphName& graphName, const HyperParameter& hyper) {
    CELLOOM_TRY(graph, graphFor(document, graphName));
    CELLOOM_TRY_STATUS(checkNewName(hyper.name, findNamed(graph->hyper, hyper.name) != nullptr, "hyper-parameter"));
    if (!isIdentifier(hyper.name)) return fail("The name " + inQuotes(hyper.name) + " cannot stand in an expression.", "Use letters, digits and _.");
    graph->hyper.push_back(hyper);
    return {};
}

Status removeHyper(Document& document, const GraphName& graphName, const std::string& name) {
    CELLOOM_TRY(graph, graphFor(document, graphName));
    if (!findNamed(graph->hyper, name))
        return fail("There is no hyper-parameter " + inQuotes(name) + ".", didYouMean(name, namesOf(graph->hyper), "Hyper-parameters"));
    std::string user;
    eachExpression(document, *graph, [&](std::string& text) {
        const auto names = namesIn(text);
        if (std::find(names.begin(), names.end(), name) != names.end()) user = text;
    });
    if (!user.empty()) return fail(name + " is used in " + inQuotes(user) + ".", "Change that first.");
    std::erase_if(graph->hyper, [&](const HyperParameter& hyper) { return hyper.name == name; });
    eachUser(document, graphName, [&](Graph& user_, const std::string& cell) { findCell(user_, cell)->params.erase(name); });
    return {};
}

Status changeHyper(Document& document, const GraphName& graphName, const std::string& name, const HyperParameter& changed) {
    CELLOOM_TRY(graph, graphFor(document, graphName));
    HyperParameter* hyper = findNamed(graph->hyper, name);
    if (!hyper) return fail("There is no hyper-parameter " + inQuotes(name) + ".", didYouMean(name, namesOf(graph->hyper), "Hyper-parameters"));
    if (changed.name != name) {
        CELLOOM_TRY_STATUS(checkNewName(changed.name, findNamed(graph->hyper, changed.name) != nullptr, "hyper-parameter"));
        if (!isIdentifier(changed.name))
            return fail("The name " + inQuotes(changed.name) + " cannot stand in an expression.", "Use letters, digits and _.");
    }
    *hyper = changed;
    if (changed.name == name) return {};
    eachExpression(document, *graph, [&](std::string& text) { text = replaceNames(text, {{name, changed.name}}); });
    eachUser(document, graphName, [&](Graph& user, const std::string& cell) {
        auto node = findCell(user, cell)->params.extract(name);
        if (node.empty()) return;
        node.key() = changed.name;
        findCell(user, cell)->params.insert(std::move(node));
    });
    return {};
}

} // namespace celloom::graph
