// A cell's parameters: from what the user wrote to numbers.
#pragma once

#include "models/base/result.h"
#include "models/catalog/catalog.h"
#include "models/graph/document.h"
#include "models/graph/expression.h"

#include <optional>

namespace celloom::graph {

/// The value as the parameter's kind says: expressions evaluated, kind and range held to.
Result<ResolvedValue> resolveParam(const catalog::ParamDef& def, const ParamValue& given, const Scope& scope);

/// A cell of a catalogue type with its parameters read, without wires; nothing where one of them is wrong or missing, or for composites.
std::optional<CellInstance> readCell(const Cell& cell, const Scope& scope);

} // namespace celloom::graph
