// Rules as they are made and changed for the cells that one looks at: what reaches them, what a new rule would reach, the list with it.
#pragma once

#include "models/base/result.h"
#include "models/graph/expand.h"
#include "models/recipe/rules.h"

#include <string>
#include <vector>

namespace celloom::recipe {

/// The cells that a rule reaches, as indices: those that its pattern matches, and, where it only says recompute, those inside of a group that
/// it names. Fails where the pattern is malformed; none is no error here.
Result<std::vector<std::size_t>> cellsOf(const graph::ExpandedModel& model, const Rule& rule);

/// How a rule bears on some cells.
struct RuleBearing {
    std::size_t rule = 0;  // its place in the list
    std::size_t cells = 0; // of the model that it reaches
    std::size_t here = 0;  // of those one looks at
    bool isOverridden = false; // later rules say otherwise for all that it gives to these
};
/// Those that reach any of the cells, in the list's order.
std::vector<RuleBearing> bearingsOn(const graph::ExpandedModel& model, const std::vector<Rule>& rules, const std::vector<std::size_t>& cells);

enum class Reach { Instance, AllRepeats };
/// "layers.3.mlp.up_proj", or "layers.*.mlp.up_proj" for the same cell in all repeats; of a group of cells with ".**" behind it. An empty path
/// is the whole model.
std::string patternFor(const graph::ExpandedModel& model, const std::string& path, Reach reach);

/// The list with one more rule at its end, where it wins. Rules of the same pattern lose what it says anew.
Result<std::vector<std::string>> withRule(const std::vector<std::string>& rules, const Rule& rule);

} // namespace celloom::recipe
