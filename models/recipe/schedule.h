// Learning-rate schedules as pure functions: the engine steps through them and the Train page draws them.
// The warm-up and end rules differ between frameworks; `rule` names which one is meant.
#pragma once

#include "models/base/result.h"
#include "models/recipe/recipe.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace celloom::recipe {

/// How warm-up and decay count steps (s from 0, w warm-up steps, n total or the decay length):
///  - Celloom:      s < w: peak (s+1)/w; then progress (s-w)/(n-1-w): the first step is above 0, the last is min.
///  - Transformers: s < w: peak s/w; then progress (s-w)/(n-w), as Hugging Face's get_*_schedule_with_warmup.
///  - MindFormers:  as its CosineWithWarmUpLR: s < w: peak s/max(1,w); then (s-w)/max(1,n-w); step 0 is 0 even with w = 0… see reference.
///  - MindSpore:    nn.WarmUpLR and nn.*DecayLR: s < w: peak s/w; the decay over n counts from s = 0.
enum class ScheduleRule { Celloom, Transformers, MindFormers, MindSpore };

/// Types, with x the steps since the decay began and d = decaySteps:
///  constant; linear, cosine, polynomial (power): from peak to minimum; exponential: peak decayRate^(x/d); natural_exp: peak e^(-decayRate x);
///  inverse: peak / (1 + decayRate x/d); step: peak decayRate^floor(x/d); piecewise: `pieces`. With isStaircase x/d is rounded down
///  (natural_exp: x to a multiple of d). No type but piecewise falls below the minimum.
struct Schedule {
    std::string type = "cosine";
    ScheduleRule rule = ScheduleRule::Celloom;
    double peak = 3e-4;
    double minimum = 0;
    std::int64_t warmupSteps = 0;
    std::int64_t totalSteps = 1;
    std::int64_t decaySteps = 0; // 0: what warm-up leaves of the run
    double power = 1;
    double decayRate = 0.9;
    bool isStaircase = false;
    bool extends = false; // polynomial: MindSpore's update_decay_steps
    std::vector<std::pair<std::int64_t, double>> pieces; // end, rate
    /// Above 0: warm-up, decay and pieces count epochs of that many steps, and the rate stands still within one (MindSpore's
    /// nn.warmup_lr, nn.cosine_decay_lr, …).
    std::int64_t stepsPerEpoch = 0;

    [[nodiscard]] double rateAt(std::int64_t step) const; // step counts from 0

private:
    [[nodiscard]] double fallAt(std::int64_t step, std::int64_t warmup, std::int64_t total) const;
};

/// `stepsPerEpoch` 0: told from the total and train.epochs.
Result<Schedule> scheduleOf(const Recipe& recipe, std::int64_t totalSteps, std::int64_t stepsPerEpoch = 0);

} // namespace celloom::recipe
