#include "models/graph/bring_in.h"

#include "models/graph/problems.h"

#include <algorithm>

namespace celloom::graph {
namespace {

void keepPlaces(const Graph& before, Graph& after) {
    for (Cell& cell : after.cells)
        if (const Cell* same = findCell(before, cell.name); same && !cell.position) cell.position = same->position;
    const bool isWhole = std::all_of(after.cells.begin(), after.cells.end(), [](const Cell& cell) { return cell.position.has_value(); });
    if (isWhole) return;
    for (Cell& cell : after.cells) cell.position.reset(); // half a layout is none
}

} // namespace

void replaceBy(Document& document, Document other) {
    keepPlaces(document.main, other.main);
    for (auto& [name, graph] : other.composites)
        if (const auto before = document.composites.find(name); before != document.composites.end()) keepPlaces(before->second, graph);
    document = std::move(other);
}

Result<std::string> insertDocument(Document& document, const GraphName& graph, const Document& other, const std::string& wanted,
                                   std::optional<Position> position) {
    Document fragment = other;
    std::string type = wanted;
    if (!fragment.composites.contains(type)) {
        if (fragment.main.cells.empty()) return fail("The graph has no cells.", "There is nothing to insert.");
        type = freeCompositeName(fragment, wanted.empty() ? fragment.main.name : wanted);
        fragment.composites[type] = std::move(fragment.main);
        fragment.composites[type].name = type;
    }
    fragment.main = {};
    CELLOOM_TRY(name, addCell(fragment, "", type, position));
    CELLOOM_TRY(text, copyCells(fragment, "", {name}));
    CELLOOM_TRY(names, pasteCells(document, graph, text, {}));
    return names.front();
}

} // namespace celloom::graph
