// Learning-rate schedules as pure functions: the engine steps through them and the Train page draws them.
// The warm-up and end rules differ between frameworks; `rule` names which one is meant.
#pragma once

#include "models/base/result.h"
#include "models/recipe/recipe.h"

#include <cstdint>
#include <string>
#include <vector>

namespace celloom::recipe {

/// How warm-up and decay count steps (s from 0, w warm-up steps, n total):
///  - Celloom:      s < w: peak (s+1)/w; then progress (s-w)/(n-1-w): the first step is above 0, the last is min.
///  - Transformers: s < w: peak s/w; then progress (s-w)/(n-w), as Hugging Face's get_*_schedule_with_warmup.
///  - MindFormers:  as its CosineWithWarmUpLR: s < w: peak s/max(1,w); then (s-w)/max(1,n-w); step 0 is 0 even with w = 0… see reference.
///  - MindSpore:    nn.WarmUpLR and nn.CosineDecayLR: s < w: peak s/w; then cosine over decay_steps n counted from s = 0.
enum class ScheduleRule { Celloom, Transformers, MindFormers, MindSpore };

struct Schedule {
    std::string type = "cosine"; // constant, linear, cosine
    ScheduleRule rule = ScheduleRule::Celloom;
    double peak = 3e-4;
    double minimum = 0;
    std::int64_t warmupSteps = 0;
    std::int64_t totalSteps = 1;

    [[nodiscard]] double rateAt(std::int64_t step) const; // step counts from 0
};

Result<Schedule> scheduleOf(const Recipe& recipe, std::int64_t totalSteps);

} // namespace celloom::recipe
