// A run that needs more memory than there is: the same steps in smaller pieces.
#pragma once

#include "models/recipe/recipe.h"

#include <cstdint>
#include <optional>

namespace celloom::recipe {

/// A step's rows stay as many: `batch` of them at once, `accumulation` times.
struct MemoryFit {
    std::int64_t batch = 1, accumulation = 1;
    std::int64_t peakBytes = 0;
};
/// The largest batch below the recipe's own whose step fits into `limitBytes`; nothing where not even one row does, or where it fits as it is.
std::optional<MemoryFit> fitMemory(const Recipe& recipe, const graph::ExpandedModel& model, std::int64_t limitBytes);

} // namespace celloom::recipe
