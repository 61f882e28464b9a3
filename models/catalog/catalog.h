// The one list of cell types: ports, parameters with ranges and help, shape rule, weights, cost rule. One file a family of cells.
// The engine registers a computation under the same type name; a test holds both lists equal.
#pragma once

#include "models/base/result.h"
#include "models/graph/cost.h"
#include "models/graph/expand.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace celloom::catalog {

/// IntegerList: whole numbers as text, each an expression: "heads * head_dim, kv_heads * head_dim". Code: text of many lines.
/// Ports: declared ports as text, dimensions as expressions: "x: [B, T, hidden]; mask: [B, T] bool".
enum class ParamKind { Integer, Real, Flag, Choice, Text, IntegerList, Code, Ports };

struct ParamDef {
    std::string name;
    ParamKind kind = ParamKind::Integer;
    std::optional<graph::ParamValue> standard; // no value: the parameter must be given
    double minimum = -1e300, maximum = 1e300;
    std::vector<std::string> choices; // of a Choice
    std::string unit;
    std::string help, helpZh;
};

struct PortDef {
    std::string name;
    bool isOptional = false;
    std::string dtype = "float";
};

/// What a rule sees: the instance's resolved parameters and the shapes on its input ports (empty where unwired).
struct RuleInput {
    const graph::CellInstance& cell;
    std::vector<graph::Shape> inputs;
};

/// FLOPs of one forward pass, and what it keeps for the backward one: whole inputs and outputs by port index, and values of its own.
struct CellCost {
    double forwardFlops = 0;
    std::vector<int> keptInputs, keptOutputs;
    std::int64_t keptValues = 0;
    /// Inputs that are kept for the gradient of the cell's own weights alone, so not where these are frozen. Among keptInputs.
    std::vector<int> keptForWeights = {};
    std::int64_t forwardWorkspace = 0, backwardWorkspace = 0; // values that exist only while the cell computes
    /// The outputs are the first input seen otherwise, without memory of their own.
    bool areOutputsViews = false;
    /// The output of this number is the cell's weight itself, without memory of its own; -1: none is.
    int weightOutput = -1;
    /// The output's gradient is the inputs' gradient too, without a copy.
    bool passesGradient = false;
};
using Sizes = std::vector<std::vector<std::int64_t>>; // shapes with all symbols replaced by numbers; empty where unwired

/// How the levels of mixed precision treat a type (models/recipe/precision.h; MindSpore's white and black lists).
struct AmpTraits {
    bool isHalfAtO1 = false;  // on the white list: computes in the half type, its output goes back to float32
    bool isFloatAtO2 = false; // on the black list: computes in float32, its output goes on in the half type
    enum class Auto {
        Follows, // the widest of its inputs
        Half,    // products: the half type, and float32 after a bias is added
        Float32
    } atAuto = Auto::Follows;
};

struct CellType {
    std::string name;
    std::string category; // "Dense and embedding", "Attention", "Normalisation", "Activation", "Structure", "Arithmetic", "Image", "Routing", "Output", "Custom"
    std::string summary, summaryZh;
    std::vector<PortDef> inputs;
    std::vector<PortDef> outputs;
    std::vector<ParamDef> params;
    /// Checks across parameters (head counts that divide): Error::place is the parameter. Null: none.
    std::function<Status(const graph::CellInstance&)> check;
    /// Output shapes, or one sentence naming both shapes; Error::place = the parameter to change (empty: the wiring).
    std::function<Result<std::vector<graph::Shape>>(const RuleInput&)> shapeRule;
    std::function<std::vector<graph::WeightSpec>(const graph::CellInstance&)> weights; // null: none
    std::function<CellCost(const graph::CellInstance&, const Sizes& inputs, const Sizes& outputs)> cost;
    AmpTraits amp;
    bool takesAdapter = false; // a LoRA adapter can stand beside its weight matrix [out, in]
    /// Ports that depend on parameters: Split has an output for each of its sizes, Concat as many inputs as it says. Null: as above.
    std::function<std::vector<PortDef>(const graph::CellInstance&)> inputsOf, outputsOf;
};

/// The ports of an instance, in the order of CellInstance::inputs and outputs.
std::vector<PortDef> inputPorts(const CellType& type, const graph::CellInstance& cell);
std::vector<PortDef> outputPorts(const CellType& type, const graph::CellInstance& cell);

const std::vector<CellType>& all(); // sorted by category, then name
const CellType* find(const std::string& name);

} // namespace celloom::catalog
