// Where an attention cell looks, for probes: the weights that it multiplies its values by and never keeps.
#pragma once

#include "engine/cells/cell.h"

namespace celloom::engine {

/// Queries first .. first + count of a batch row, in one head.
struct QueryRange {
    std::int64_t row = 0, head = 0, first = 0, count = 0;
};

/// In how many heads a cell of this type attends; 0 of types that do not.
std::int64_t attentionHeads(const graph::CellInstance& cell);

/// The weights [count,S], float32, of cells with heads, before dropout. `inputs`: as construct() was given them. `context`: attentionMask and
/// segments of the batch, on the inputs' device; its masks are kept for the next call. No key/value cache.
at::Tensor attentionWeights(const graph::CellInstance& cell, const std::vector<at::Tensor>& inputs, StepContext& context, const QueryRange& range);

} // namespace celloom::engine
