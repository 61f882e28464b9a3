#include "models/recipe/schedule.h"

#include "models/base/text.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace celloom::recipe {
namespace {

constexpr const char* kPieces = "schedule.pieces";

double real(std::int64_t number) { return static_cast<double>(number); }

/// Part of the way down, 0 at the peak to 1 at the end, `done` steps after the fall began.
double progressAt(std::int64_t done, std::int64_t length) {
    if (length <= 0) return done > 0 ? 1 : 0;
    return std::clamp(real(done) / real(length), 0.0, 1.0);
}

/// As MindSpore's update_decay_steps: the length grows by itself as often as it is exceeded.
double extendedProgressAt(std::int64_t done, std::int64_t length) {
    length = std::max<std::int64_t>(length, 1);
    const std::int64_t times = std::max<std::int64_t>((done + length - 1) / length, 1);
    return real(done) / real(length * times);
}

Result<std::vector<std::pair<std::int64_t, double>>> piecesOf(const Recipe& recipe) {
    std::vector<std::pair<std::int64_t, double>> out;
    for (const std::string& item : recipe.list(kPieces)) {
        const auto equals = item.find('=');
        std::int64_t end = 0;
        double rate = 0;
        const bool isRead = equals != std::string::npos && readNumber(std::string_view(item).substr(0, equals), end) &&
                            readNumber(std::string_view(item).substr(equals + 1), rate) && std::isfinite(rate);
        if (!isRead) return fail(inQuotes(item) + " is no end and rate.", "Write 1000=3e-4: the rate before step 1000.", kPieces);
        if (end < 1 || (!out.empty() && end <= out.back().first))
            return fail("The end " + std::to_string(end) + " does not come after the one before it.", "List the ends in rising order, from 1.", kPieces);
        if (rate < 0) return fail("The rate " + numberText(rate) + " is negative.", "Give 0 or more.", kPieces);
        out.emplace_back(end, rate);
    }
    if (out.empty()) return fail("A piecewise schedule has no pieces.", "Add some: 1000=3e-4, 2000=1e-4.", kPieces);
    return out;
}

} // namespace

double Schedule::rateAt(std::int64_t step) const {
    CELLOOM_CHECK(step >= 0);
    const bool byEpoch = stepsPerEpoch > 0;
    const std::int64_t s = byEpoch ? step / stepsPerEpoch : step;
    const std::int64_t total = byEpoch ? (totalSteps + stepsPerEpoch - 1) / stepsPerEpoch : totalSteps;
    const std::int64_t w = rule == ScheduleRule::MindFormers ? std::max<std::int64_t>(1, warmupSteps) : warmupSteps;
    const double top = type == "piecewise" ? pieces.front().second : peak;
    if (s < w) return top * real(rule == ScheduleRule::Celloom ? s + 1 : s) / real(w);
    return fallAt(s, w, total);
}

double Schedule::fallAt(std::int64_t step, std::int64_t warmup, std::int64_t total) const {
    if (type == "constant") return peak;
    if (type == "piecewise") {
        const auto piece = std::find_if(pieces.begin(), pieces.end(), [&](const auto& p) { return step < p.first; });
        return piece == pieces.end() ? pieces.back().second : piece->second;
    }
    const std::int64_t done = rule == ScheduleRule::MindSpore ? step : step - warmup;
    std::int64_t length = decaySteps;
    if (length == 0) {
        const std::int64_t left = rule == ScheduleRule::MindSpore ? total : total - warmup;
        length = rule == ScheduleRule::Celloom ? left - 1 : rule == ScheduleRule::MindFormers ? std::max<std::int64_t>(1, left) : left;
    }
    const double progress = type == "polynomial" && extends ? extendedProgressAt(done, length) : progressAt(done, length);
    if (type == "linear") return peak + (minimum - peak) * progress;
    if (type == "cosine") return minimum + 0.5 * (peak - minimum) * (1 + std::cos(std::numbers::pi * progress));
    if (type == "polynomial") return minimum + (peak - minimum) * std::pow(1 - progress, power);
    const double each = real(std::max<std::int64_t>(length, 1));
    const bool isStair = isStaircase || type == "step";
    const double lengths = isStair ? std::floor(real(done) / each) : real(done) / each;
    double rate = 0;
    if (type == "natural_exp")
        rate = peak * std::exp(-decayRate * (isStair ? lengths * each : real(done)));
    else if (type == "inverse")
        rate = peak / (1 + decayRate * lengths);
    else {
        CELLOOM_CHECK(type == "exponential" || type == "step");
        rate = peak * std::pow(decayRate, lengths);
    }
    return std::max(rate, minimum);
}

Result<Schedule> scheduleOf(const Recipe& recipe, std::int64_t totalSteps, std::int64_t stepsPerEpoch) {
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
    out.decaySteps = recipe.integer("schedule.decay_steps");
    out.power = recipe.real("schedule.power");
    out.decayRate = recipe.real("schedule.decay_rate");
    out.isStaircase = recipe.flag("schedule.staircase");
    out.extends = recipe.flag("schedule.extends");
    const bool byEpoch = recipe.text("schedule.unit") == "epoch";
    if (byEpoch) out.stepsPerEpoch = stepsPerEpoch > 0 ? stepsPerEpoch : std::max<std::int64_t>(1, totalSteps / recipe.integer("train.epochs"));
    const std::int64_t counted = byEpoch ? (totalSteps + out.stepsPerEpoch - 1) / out.stepsPerEpoch : totalSteps;
    out.warmupSteps = recipe.integer("schedule.warmup_steps");
    const double ratio = recipe.real("schedule.warmup_ratio");
    if (out.warmupSteps == 0)
        out.warmupSteps = static_cast<std::int64_t>(static_cast<double>(counted) * ratio);
    else if (ratio > 0)
        return fail("Warm-up is given as steps and as a part of the run.", "Set one of the two to 0.", "schedule.warmup_ratio");
    if (out.warmupSteps >= counted)
        return fail("Warm-up takes " + std::to_string(out.warmupSteps) + (byEpoch ? " epochs" : " steps") + " of a run of " +
                        std::to_string(counted) + ".",
                    "Make the warm-up shorter or the run longer.", "schedule.warmup_steps");
    if (out.type == "piecewise") {
        CELLOOM_TRY(pieces, piecesOf(recipe));
        out.pieces = std::move(pieces);
        out.peak = std::max_element(out.pieces.begin(), out.pieces.end(), [](const auto& a, const auto& b) { return a.second < b.second; })->second;
        return out;
    }
    if (out.minimum > out.peak)
        return fail("The lowest rate is above the peak.", "Lower schedule.min_lr or raise optimizer.lr.", "schedule.min_lr");
    if (out.type == "step" && out.decaySteps == 0)
        return fail("A step schedule needs the length of a step.", "Set schedule.decay_steps.", "schedule.decay_steps");
    return out;
}

} // namespace celloom::recipe
