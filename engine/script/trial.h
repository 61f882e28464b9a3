// A typed source tried before a run relies on it: read, compiled and called with made-up numbers in a child process whose memory, time and
// files are limited, since a hostile source can make the compiler itself run away. Cells are called on small tensors, forward and backward.
#pragma once

#include "engine/script/limited_child.h"
#include "engine/script/script.h"
#include "models/recipe/recipe.h"

#include <optional>

namespace celloom::engine {

struct Trial {
    ScriptReport report;
    std::optional<ScriptProblem> error;
    bool isCompiled = false; // a cell that has an error all the same failed on made-up sizes, which may not be those of a run
};

/// Forks: call it before the process has started threads. What went wrong while the methods ran with made-up numbers is a warning, unless a
/// limit was exceeded.
Trial tryScript(const ScriptSpec& spec, const TrialLimits& limits = {});

/// All that a recipe holds, its callbacks and metrics and the Script cells of its model: the first that cannot run, with its place.
Status tryScripts(const recipe::Recipe& recipe);

struct CellTrial {
    std::string path; // of the first cell with this code
    Trial trial;
};
/// The Script cells of a model, each code with each shape once. Empty: there are none.
std::vector<CellTrial> tryCells(const graph::ExpandedModel& model, const TrialLimits& limits = {});
/// The first that cannot be compiled or exceeds a limit, with the cell's path and its line and column; cells that fail on made-up sizes pass. What is
/// wrong with the document itself is not looked at here.
Status checkCells(const graph::ExpandedModel& model);
Status checkCells(const graph::Document& document, const std::map<std::string, graph::ParamValue>& overrides = {});

/// The answer of check-script --json: docs/file-formats.md.
std::string toJson(const Trial& trial);
std::string toJson(const std::vector<CellTrial>& cells);

} // namespace celloom::engine
