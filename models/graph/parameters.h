// A cell's parameters: from what the user wrote to numbers.
#pragma once

#include "models/base/result.h"
#include "models/catalog/catalog.h"
#include "models/graph/expression.h"

namespace celloom::graph {

/// The value as the parameter's kind says: expressions evaluated, kind and range held to.
Result<ResolvedValue> resolveParam(const catalog::ParamDef& def, const ParamValue& given, const Scope& scope);

} // namespace celloom::graph
