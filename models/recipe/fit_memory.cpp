#include "models/recipe/fit_memory.h"

#include "models/recipe/estimate.h"

namespace celloom::recipe {

std::optional<MemoryFit> fitMemory(const Recipe& recipe, const graph::ExpandedModel& model, std::int64_t limitBytes) {
    const std::int64_t batch = recipe.integer("train.batch_size"), accumulation = recipe.integer("train.accumulation");
    if (const auto now = estimate(recipe, model); !now || now->peakBytes <= limitBytes) return {};
    for (std::int64_t parts = 2; parts <= batch; ++parts) {
        if (batch % parts != 0) continue; // or a step would have other rows
        Recipe smaller = recipe;
        if (!smaller.set("train.batch_size", batch / parts) || !smaller.set("train.accumulation", accumulation * parts)) continue;
        if (const auto then = estimate(smaller, model); then && then->peakBytes <= limitBytes) return MemoryFit{batch / parts, accumulation * parts, then->peakBytes};
    }
    return {};
}

} // namespace celloom::recipe
