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

enum class ParamKind { Integer, Real, Flag, Choice, Text };

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

struct CellType {
    std::string name;
    std::string category;         // "Dense and embedding", "Attention", "Normalisation", "Activation", "Structure", "Output"
    std::string summary, summaryZh;
    std::vector<PortDef> inputs;
    std::vector<PortDef> outputs; // Split gives as many as its `sizes`: see outputCount
    std::vector<ParamDef> params;
    /// Output shapes, or one sentence naming both shapes and the parameter to change (Error::place = the parameter).
    std::function<Result<std::vector<graph::Shape>>(const RuleInput&)> shapeRule;
    std::function<std::vector<graph::WeightSpec>(const graph::CellInstance&)> weights;
    /// Inputs and outputs with all symbols replaced by numbers.
    std::function<graph::Cost(const graph::CellInstance&, const std::vector<std::vector<std::int64_t>>& inputs,
                              const std::vector<std::vector<std::int64_t>>& outputs)> cost;
};

const std::vector<CellType>& all(); // sorted by category, then name
const CellType* find(const std::string& name);

} // namespace celloom::catalog
