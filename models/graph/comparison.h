// What a reader wants to know of two graphs: which cells, wires, ports and hyper-parameters came, went or changed. By name; where cells stand on a
// canvas does not count. For undo, which must be exact, see difference.h.
#pragma once

#include "models/graph/edits.h"

#include <optional>
#include <set>
#include <string>
#include <vector>

namespace celloom::graph {

enum class Fate { Added, Removed, Changed };

/// One parameter, or "type", "repeat", "note", "shape", "dtype", "value", "help". Texts as they are written; empty: there is none.
struct FieldChange {
    std::string field, before, after;
    bool operator==(const FieldChange&) const = default;
};

struct Finding {
    enum class What { Composite, Cell, Wire, Hyper, Input, Output, Graph } what = What::Cell; // Graph: its own note
    Fate fate = Fate::Changed;
    GraphName graph;                 // that it is in: "" the main graph, else a composite; of a Composite its own name
    std::string name;                // of a wire "norm.out -> lm_head.x"
    std::vector<FieldChange> fields; // of a change
    std::optional<Cell> before;      // of a cell that went
    std::optional<Wire> wire;        // of a change: as it is now
    std::optional<Wire> wireBefore = {}; // of a change: what fed the same port
};

/// In the order of the graphs (the main one first, composites by name), cells before wires. A composite that came or went is one finding, and so is a
/// wire whose port is fed from elsewhere now.
std::vector<Finding> compare(const Document& before, const Document& after);

/// Composites in which something differs, also through the composites that they use: what a cell of such a type hides.
std::set<std::string> differingComposites(const Document& document, const std::vector<Finding>& findings);

} // namespace celloom::graph
