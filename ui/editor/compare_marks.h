// What a comparison draws upon the canvas: a sign and a frame at each cell that came or changed, ghosts of those that went, and the wires that
// came, went or begin elsewhere now.
#pragma once

#include "models/graph/comparison.h"

#include <set>
#include <string>
#include <vector>

namespace celloom::ui {

class GraphView;
class Theme;

/// "+", "−", "≠": what stands for a fate beside its colour.
const char* signOf(graph::Fate fate);
/// A colour's name in the theme.
const char* colorOf(graph::Fate fate);

/// Marks the level on show; its next level comes without. `before`: the graph of that level as it was, null where it was not there.
/// `differing`: composites that hide a difference.
void markLevel(GraphView& view, Theme& theme, const std::vector<graph::Finding>& findings, const graph::Graph* before, const std::set<std::string>& differing);

} // namespace celloom::ui
