#include "models/recipe/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace celloom::recipe {
namespace {

/// Part of the way down, 0 at the peak to 1 at the end; `first` is the step at which the fall begins.
double progressAt(std::int64_t step, std::int64_t first, std::int64_t length) {
    if (length <= 0) return step > first ? 1 : 0;
    return std::clamp(static_cast<double>(step - first) / static_cast<double>(length), 0.0, 1.0);
}

} // namespace

double Schedule::rateAt(std::int64_t step) const {
    CELLOOM_CHECK(step >= 0);
    const std::int64_t w = rule == ScheduleRule::MindFormers ? std::max<std::int64_t>(1, warmupSteps) : warmupSteps;
    if (step < w) {
        const std::int64_t done = rule == ScheduleRule::Celloom ? step + 1 : step;
        return peak * static_cast<double>(done) / static_cast<double>(w);
    }
    double progress = 0;
    switch (rule) {
    case ScheduleRule::Celloom:
        progress = progressAt(step, w, totalSteps - 1 - w);
        break;
    case ScheduleRule::Transformers:
        progress = progressAt(step, w, totalSteps - w);
        break;
    case ScheduleRule::MindFormers:
        progress = progressAt(step, w, std::max<std::int64_t>(1, totalSteps - w));
        break;
    case ScheduleRule::MindSpore:
        progress = progressAt(step, 0, totalSteps);
        break;
    }
    if (type == "linear") return peak + (minimum - peak) * progress;
    if (type == "cosine") return minimum + 0.5 * (peak - minimum) * (1 + std::cos(std::numbers::pi * progress));
    return peak;
}

Result<Schedule> scheduleOf(const Recipe& recipe, std::int64_t totalSteps) {
    if (totalSteps < 1) return fail("The run would have no step.", "Give more data, or a smaller batch.", "train.max_steps");
    static const std::map<std::string, ScheduleRule> rules{{"celloom", ScheduleRule::Celloom},
                                                           {"transformers", ScheduleRule::Transformers},
                                                           {"mindformers", ScheduleRule::MindFormers},
                                                           {"mindspore", ScheduleRule::MindSpore}};
    Schedule out;
    out.type = recipe.text("schedule.type");
    out.rule = rules.at(recipe.text("schedule.rule"));
    out.peak = recipe.real("optimizer.lr");
    out.minimum = out.type == "constant" ? out.peak : recipe.real("schedule.min_lr");
    out.totalSteps = totalSteps;
    out.warmupSteps = recipe.integer("schedule.warmup_steps");
    const double ratio = recipe.real("schedule.warmup_ratio");
    if (out.warmupSteps == 0)
        out.warmupSteps = static_cast<std::int64_t>(static_cast<double>(totalSteps) * ratio);
    else if (ratio > 0)
        return fail("Warm-up is given as steps and as a part of the run.", "Set one of the two to 0.", "schedule.warmup_ratio");
    if (out.warmupSteps >= totalSteps)
        return fail("Warm-up takes " + std::to_string(out.warmupSteps) + " steps of a run of " + std::to_string(totalSteps) + ".",
                    "Make the warm-up shorter or the run longer.", "schedule.warmup_steps");
    if (out.minimum > out.peak)
        return fail("The lowest rate is above the peak.", "Lower schedule.min_lr or raise optimizer.lr.", "schedule.min_lr");
    return out;
}

} // namespace celloom::recipe
