// Plugin: a cell compiled from C++, of a library or of the program itself.
#include "engine/cells/cell.h"
#include "engine/cells/cell_error.h"
#include "models/base/text.h"

namespace celloom::engine {

/// The standard registry trusts no library: what a workspace trusts is in the registry that pluginCells() of engine/plugin/plugin.h makes.
void addPluginCells(CellRegistry& registry) {
    registry.add("Plugin", [](const graph::CellInstance& instance) -> std::unique_ptr<Cell> {
        const std::string &library = instance.text("library"), &cell = instance.text("cell");
        if (library.empty())
            throw CellError({"This program has no cell " + inQuotes(cell) + " of its own.", "Name the library that has it, or run the graph in the program that adds the cell.", instance.path + ", cell"});
        throw CellError({"The library " + inQuotes(library) + " is not trusted here.", "Look at where it comes from, then: celloom-engine plugin trust FILE.", instance.path + ", library"});
    });
}

} // namespace celloom::engine
