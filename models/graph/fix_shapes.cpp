// Fixes of shapes and names: what is declared follows what is there, a cell that brings one shape to the other comes between, names become usable.
#include "models/catalog/catalog.h"
#include "models/graph/edit_parts.h"
#include "models/graph/fit.h"
#include "models/graph/fix_parts.h"
#include "models/graph/plan.h"
#include "models/graph/problems.h"

#include <algorithm>
#include <set>

namespace celloom::graph {
namespace {

using Kind = Fix::Kind;

constexpr double kBelow = 96; // a cell that comes between stands this far under what feeds it

/// [B, T, 64] as it would be declared: sizes by name where one has it.
SymbolicShape inWords(const Shape& shape, const Scope& scope) {
    SymbolicShape out;
    for (const Dim& dim : shape) {
        if (!dim.symbol.empty()) {
            out.push_back(toString(dim));
            continue;
        }
        const ParamValue size = sizeInWords(dim.number, scope);
        out.push_back(std::holds_alternative<std::string>(size) ? std::get<std::string>(size) : std::to_string(dim.number));
    }
    return out;
}

void declare(const FixContext& context, PortSide side, const Port& port, Port changed, double rank, Candidates& out) {
    const bool isShape = port.shape != changed.shape;
    const std::string word = isShape ? "[" + joined(changed.shape) + "]" : changed.dtype;
    out.push_back({{isShape ? Kind::DeclareShape : Kind::DeclareType, {port.name, word},
                    [graph = context.graphName(), side, name = port.name, changed](Document& document) { return changePort(document, graph, side, name, changed); }},
                   rank});
}

const Wire* wireTo(const Graph& graph, const Endpoint& target) {
    const auto found = std::find_if(graph.wires.begin(), graph.wires.end(), [&](const Wire& wire) { return wire.to == target; });
    return found == graph.wires.end() ? nullptr : &*found;
}

/// The graph's own ports against what comes out, and inputs whose shape is open.
void findDeclared(const FixContext& context, Candidates& out) {
    const Graph& graph = context.graph();
    const Scope scope = context.scope();
    for (const Port& port : graph.outputs) {
        const Wire* wire = wireTo(graph, {"", port.name});
        if (!wire) continue;
        if (const auto shape = context.shape(wire->from); shape && !port.shape.empty()) {
            Port changed = port;
            changed.shape = inWords(*shape, scope);
            declare(context, PortSide::Output, port, changed, 20, out);
        }
        const Cell* cell = findCell(graph, wire->from.cell);
        std::string dtype;
        if (cell) {
            for (const PortAbout& one : outputsOf(context.document, *cell, scope))
                if (one.name == wire->from.port) dtype = one.dtype;
        }
        if (dtype.empty() || dtype == port.dtype) continue;
        Port changed = port;
        changed.dtype = dtype;
        declare(context, PortSide::Output, port, changed, 20, out);
    }
    if (context.levels.size() > 1 || !context.graphName().empty()) return;
    std::vector<std::string> sizes;
    for (const auto& [name, value] : scope)
        if (std::holds_alternative<std::int64_t>(value)) sizes.push_back(name);
    for (const Port& port : graph.inputs) {
        if (!port.shape.empty()) continue;
        double rank = 10;
        Port changed = port;
        const auto offer = [&](SymbolicShape shape) {
            changed.shape = std::move(shape);
            declare(context, PortSide::Input, port, changed, rank++, out);
        };
        if (port.dtype == "int64") offer({"B", "T"});
        for (const std::string& size : sizes) offer({"B", "T", size});
        if (port.dtype != "int64") offer({"B", "T"});
    }
}

/// A wire into the cell whose value has another dtype than the port takes: the graph's own input may be declared wrongly, ids want an Embedding.
void findDtypes(const FixContext& context, const Cell& cell, Candidates& out) {
    const Graph& graph = context.graph();
    const Scope scope = context.scope();
    for (const PortAbout& port : inputsOf(context.document, cell, scope)) {
        const Wire* wire = wireTo(graph, {cell.name, port.name});
        if (!wire) continue;
        const auto own = std::find_if(graph.inputs.begin(), graph.inputs.end(), [&](const Port& one) { return wire->from.cell.empty() && one.name == wire->from.port; });
        if (own == graph.inputs.end() || own->dtype == port.dtype) continue;
        Port changed = *own;
        changed.dtype = port.dtype;
        const bool isAlone = std::count_if(graph.wires.begin(), graph.wires.end(), [&](const Wire& one) { return one.from == wire->from; }) == 1;
        if (context.levels.size() == 1 && isAlone) declare(context, PortSide::Input, *own, changed, own->dtype == "int64" ? 30 : 10, out);
        const bool hasNames = scope.contains("vocab") && scope.contains("hidden");
        if (own->dtype != "int64" || port.dtype != "float" || !hasNames) continue;
        out.push_back({{Kind::PutBetween, {"Embedding", toText(wire->from), toText(wire->to)}, [graph = context.graphName(), wire = *wire](Document& document) -> Status {
                            CELLOOM_TRY(name, addCell(document, graph, "Embedding"));
                            CELLOOM_TRY_STATUS(setParam(document, graph, name, "vocab_size", std::string("vocab")));
                            CELLOOM_TRY_STATUS(setParam(document, graph, name, "embedding_size", std::string("hidden")));
                            return insertOnWire(document, graph, wire, name, "ids", "out");
                        }},
                       20});
    }
}

/// A Transpose of the last two dimensions, or a Flatten of them, before one input: offered only where it alone makes the shapes fit.
void findBetween(const FixContext& context, const Cell& cell, Candidates& out) {
    const Graph& graph = context.graph();
    struct Way {
        const char* type;
        const char* param;
        ParamValue value;
    };
    for (const Wire& wire : graph.wires) {
        if (wire.to.cell != cell.name) continue;
        const auto shape = context.shape(wire.from);
        if (!shape || shape->size() < 2) continue;
        std::string perm;
        for (std::size_t i = 0; i < shape->size(); ++i) {
            const std::size_t from = i + 2 == shape->size() ? i + 1 : i + 1 == shape->size() ? i - 1 : i;
            perm += (i ? ", " : "") + std::to_string(from);
        }
        std::vector<Way> ways{{"Transpose", "perm", perm}};
        if (shape->size() > 3) ways.push_back({"Flatten", "start_dim", std::int64_t{-2}});
        for (const Way& way : ways)
            out.push_back({{Kind::PutBetween, {way.type, toText(wire.from), toText(wire.to)},
                            [graph = context.graphName(), wire, way](Document& document) -> Status {
                                CELLOOM_TRY(owner, graphFor(document, graph));
                                const Cell* source = findCell(*owner, wire.from.cell);
                                std::optional<Position> place;
                                if (source && source->position) place = Position{source->position->x, source->position->y + kBelow};
                                CELLOOM_TRY(name, addCell(document, graph, way.type, place));
                                CELLOOM_TRY_STATUS(setParam(document, graph, name, way.param, way.value));
                                return insertOnWire(document, graph, wire, name, "x", "out");
                            }},
                           500});
    }
}

/// The sizes that a composite was told against what is wired to it.
void findComposite(const FixContext& context, const Cell& cell, const Graph& inner, Candidates& out) {
    const auto inputs = context.inputShapes();
    const Scope scope = context.scope();
    for (const Port& port : inner.inputs) {
        const auto known = inputs.find(port.name);
        if (known == inputs.end() || known->second.size() != port.shape.size()) continue;
        for (std::size_t i = 0; i < port.shape.size(); ++i) {
            const Dim& dim = known->second[i];
            if (!isHyper(inner, port.shape[i]) || !dim.symbol.empty()) continue;
            const ParamValue size = sizeInWords(dim.number, scope);
            const std::string word = std::holds_alternative<std::string>(size) ? std::get<std::string>(size) : std::to_string(dim.number);
            out.push_back({{Kind::SetValue, {port.shape[i], word},
                            [graph = context.graphName(), name = cell.name, param = port.shape[i], size](Document& document) { return setParam(document, graph, name, param, size); }},
                           5});
        }
    }
}

// ---- names ----

std::string usable(const std::string& name) {
    std::string out;
    for (const char c : name) out += isCellName(std::string(1, c)) || static_cast<unsigned char>(c) >= 0x80 ? c : '_';
    return out.empty() || !isCellName(out) ? "cell" : out;
}

void renameCells(const FixContext& context, Candidates& out) {
    const Graph& graph = context.graph();
    std::set<std::string> seen;
    for (std::size_t i = 0; i < graph.cells.size(); ++i) {
        const std::string& name = graph.cells[i].name;
        const bool isTwin = !seen.insert(name).second;
        const bool isConcerned = context.cell.empty() ? !isCellName(name) : isTwin && name == context.cell;
        if (!isConcerned) continue;
        const std::string right = freeCellName(graph, usable(name));
        out.push_back({{Kind::Rename, {name, right}, [owner = context.graphName(), i, name, right, isTwin](Document& document) -> Status {
                            CELLOOM_TRY(target, graphFor(document, owner));
                            if (i >= target->cells.size() || target->cells[i].name != name) return fail("The cell is not there.");
                            target->cells[i].name = right; // of two, wires mean the first
                            if (isTwin) return {};
                            for (Wire& wire : target->wires)
                                for (Endpoint* end : {&wire.from, &wire.to})
                                    if (end->cell == name) end->cell = right;
                            return {};
                        }},
                       0});
        if (isTwin)
            out.push_back({{Kind::RemoveCell, {name}, [owner = context.graphName(), i, name](Document& document) -> Status {
                                CELLOOM_TRY(target, graphFor(document, owner));
                                if (i >= target->cells.size() || target->cells[i].name != name) return fail("The cell is not there.");
                                target->cells.erase(target->cells.begin() + static_cast<std::ptrdiff_t>(i));
                                return {};
                            }},
                           10});
    }
}

template <class Item> void renameTwins(const FixContext& context, std::vector<Item> Graph::* list, Candidates& out) {
    const std::vector<Item>& items = context.graph().*list;
    std::set<std::string> seen;
    for (std::size_t i = 0; i < items.size(); ++i) {
        if (seen.insert(items[i].name).second) continue;
        std::string right = items[i].name;
        const auto isTaken = [&](const std::string& name) { return std::any_of(items.begin(), items.end(), [&](const Item& one) { return one.name == name; }); };
        for (int number = 2; isTaken(right); ++number) right = items[i].name + "_" + std::to_string(number);
        out.push_back({{Kind::Rename, {items[i].name, right}, [owner = context.graphName(), list, i, right](Document& document) -> Status {
                            CELLOOM_TRY(target, graphFor(document, owner));
                            if (i >= (target->*list).size()) return fail("It is not there.");
                            (target->*list)[i].name = right;
                            return {};
                        }},
                       0});
    }
}

} // namespace

void findNames(const FixContext& context, Candidates& out) {
    renameCells(context, out);
    if (!context.cell.empty()) return;
    renameTwins(context, &Graph::hyper, out);
    renameTwins(context, &Graph::inputs, out);
    renameTwins(context, &Graph::outputs, out);
    if (!context.graphName().empty() && catalog::find(context.graphName())) {
        const std::string right = freeCompositeName(context.document, context.graphName());
        out.push_back({{Kind::Rename, {context.graphName(), right},
                        [name = context.graphName(), right](Document& document) { return renameComposite(document, name, right); }},
                       0});
    }
}

void findShapes(const FixContext& context, Candidates& out) {
    const Cell* cell = findCell(context.graph(), context.cell);
    if (!cell) {
        findDeclared(context, out);
        return;
    }
    if (context.problem.severity == Problem::Severity::Warning || isStillMissing(context.problem)) return;
    findDtypes(context, *cell, out);
    if (const auto composite = context.document.composites.find(cell->type); composite != context.document.composites.end())
        findComposite(context, *cell, composite->second, out);
    else
        findBetween(context, *cell, out);
}

} // namespace celloom::graph
