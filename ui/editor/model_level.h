// One level of a model as it is drawn: the cells of the main graph or of a composite that was stepped into, with what the expansion
// knows of each. Plain data made from an analysis; no widgets.
#pragma once

#include "models/graph/expression.h"
#include "ui/common/model_analysis.h"

#include <QString>
#include <QStringList>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace celloom::ui {

/// One step into the model: a composite cell of the level above, and which of its instances is looked at.
struct LevelStep {
    std::string cell;
    std::int64_t instance = 0; // of a repeated cell
};
using LevelPath = std::vector<LevelStep>;

enum class BoxKind { Input, Cell, Composite, Output };

struct LevelPort {
    std::string name;
    std::string dtype = "float";
    bool isOptional = false;
    std::optional<graph::Shape> shape; // of what is there; not known where the model has an error before it
};

struct LevelBox {
    BoxKind kind = BoxKind::Cell;
    std::string name, type;
    std::string path;                   // of the instance: "layers.0.self_attn"; of a repeated cell its first
    std::string category;               // of the catalogue; empty for composites and ports
    std::int64_t repeat = 0;            // instances of a repeated cell; 0: not repeated, or the model is not complete
    std::string repeatText;             // "32", or the expression while the model is not complete; empty: not repeated
    std::int64_t parameters = 0;        // of all its instances
    std::string shape;                  // of its first output; empty where it is not known
    std::vector<std::size_t> instances; // indices into expansion.model.cells, all that lie in it
    std::vector<LevelPort> inputs, outputs; // a graph's input has one output, a graph's output one input, both named ""
    std::optional<graph::Position> position; // of a cell that has one
};

struct LevelWire {
    std::size_t from = 0, to = 0; // indices into boxes
    std::size_t fromPort = 0, toPort = 0; // indices into their outputs and inputs
    graph::Wire wire;
};

struct ModelLevel {
    const graph::Graph* graph = nullptr; // owned by the analysis
    std::string graphName;               // of edits: "" the main graph, else the composite's type
    std::string prefix;                  // "layers.0." or empty
    std::map<std::string, graph::ResolvedValue> hyper; // of this instance of the graph, evaluated; without those that have an error
    std::vector<LevelBox> boxes;
    std::vector<LevelWire> wires;
};

/// The level at `path`; the path must exist in the document (see isValid).
ModelLevel makeLevel(const ModelAnalysis& analysis, const LevelPath& path);
/// The name of the value on each wire of the level, as a probe calls it ("layers.0.mlp.up_proj.out", an input's name); empty where it is not known.
std::vector<std::string> valuesOnWires(const ModelAnalysis& analysis, const ModelLevel& level);
/// Of each output of a box, or of a graph's own port: the same.
std::vector<std::string> valuesOf(const ModelAnalysis& analysis, const ModelLevel& level, std::size_t box);
/// Whether each step names a composite cell of the graph before it.
bool isValid(const ModelAnalysis& analysis, const LevelPath& path);
/// Where a cell of the expansion ("layers.3.self_attn.q_proj") is drawn: the level, and the box's name in it. Nothing for other paths.
std::optional<std::pair<LevelPath, std::string>> locate(const ModelAnalysis& analysis, const std::string& path);
/// How many instances the last step's cell has; 0 when it is not repeated.
std::int64_t repeatOf(const ModelAnalysis& analysis, const LevelPath& path);

} // namespace celloom::ui
