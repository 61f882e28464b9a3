#include "models/recipe/resume.h"

#include "models/base/text.h"
#include "models/recipe/schedule.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace celloom::recipe {
namespace {

Recipe recipeOf(const Settings& settings, const Recipe& otherwise) {
    Recipe recipe = otherwise;
    for (const auto& [key, text] : settings)
        if (findField(key)) static_cast<void>(recipe.setFromText(key, text)); // a value that is no longer allowed stays as it is now
    return recipe;
}

std::int64_t totalOf(const Recipe& recipe, std::int64_t stepsPerEpoch) {
    const std::int64_t asked = recipe.integer("train.max_steps");
    if (const std::string& kind = recipe.text("kind"); kind != "pretrain" && kind != "finetune") return 0;
    return asked > 0 ? asked : recipe.integer("train.epochs") * stepsPerEpoch;
}

double rateOf(const Recipe& recipe, std::int64_t step, std::int64_t total, std::int64_t stepsPerEpoch) {
    if (total <= 0) return std::numeric_limits<double>::quiet_NaN();
    const auto schedule = scheduleOf(recipe, total, stepsPerEpoch);
    return schedule ? schedule->rateAt(std::min(step, total - 1)) : std::numeric_limits<double>::quiet_NaN();
}

bool isOfRate(const std::string& key) { return key == "optimizer.lr" || key.starts_with("schedule."); }

std::string shown(const std::string& text) { return text.empty() ? "(empty)" : text; }

} // namespace

Settings settingsOf(const Recipe& recipe) {
    Settings settings;
    for (const Field& field : fields()) settings[field.key] = recipe.toText(field.key);
    return settings;
}

ResumeEffect resumeEffect(const Settings& before, const Recipe& now, std::int64_t step, std::int64_t stepsPerEpoch, std::optional<double> fixedRate) {
    ResumeEffect effect;
    effect.step = step;
    effect.fixedRate = fixedRate;
    effect.keepsFixedRate = fixedRate.has_value();
    for (const Field& field : fields()) {
        const auto was = before.find(field.key);
        const std::string is = now.toText(field.key);
        if (was == before.end() || was->second == is) continue;
        effect.changes.push_back({field.key, was->second, is});
        if (isOfRate(field.key)) effect.keepsFixedRate = false;
        const bool isOfLevel = field.key == "precision.amp_level" || field.key == "precision.half_type";
        const bool followsLevel = now.text("precision.loss_scale") == "auto";
        if (field.key.starts_with("precision.loss_scale") || (isOfLevel && followsLevel)) effect.restartsLossScale = true;
    }
    const Recipe earlier = recipeOf(before, now);
    effect.totalBefore = totalOf(earlier, stepsPerEpoch);
    effect.total = totalOf(now, stepsPerEpoch);
    effect.rateBefore = rateOf(earlier, step, effect.totalBefore, stepsPerEpoch);
    effect.rate = rateOf(now, step, effect.total, stepsPerEpoch);
    return effect;
}

std::vector<std::string> sentencesOf(const ResumeEffect& effect) {
    std::vector<std::string> lines;
    if (effect.changes.empty()) return lines;
    for (const SettingChange& change : effect.changes) lines.push_back(change.key + ": " + shown(change.before) + " -> " + shown(change.now));
    const std::string next = std::to_string(effect.step + 1);
    if (effect.total != effect.totalBefore && effect.total > 0)
        lines.push_back("The run ends after step " + std::to_string(effect.total) + " instead of " + std::to_string(effect.totalBefore) +
                        "; the schedule is laid out over all of them.");
    if (effect.keepsFixedRate)
        lines.push_back("The rate stays at " + roundedText(*effect.fixedRate) + ", which was set while the run went on; another optimizer.lr or schedule ends that.");
    else if (effect.fixedRate)
        lines.push_back("The rate of " + roundedText(*effect.fixedRate) + " that was set while the run went on ends: the schedule is in force again.");
    const bool isSame = effect.rate == effect.rateBefore || (std::isnan(effect.rate) && std::isnan(effect.rateBefore));
    if (!effect.keepsFixedRate && (!isSame || effect.fixedRate) && !std::isnan(effect.rate)) {
        const double was = effect.fixedRate.value_or(effect.step < effect.totalBefore ? effect.rateBefore : std::numeric_limits<double>::quiet_NaN());
        lines.push_back("Step " + next + " has the rate " + roundedText(effect.rate) + (std::isnan(was) ? "." : "; before the change it would have had " + roundedText(was) + "."));
    }
    if (effect.restartsLossScale) lines.push_back("The loss scale begins anew.");
    return lines;
}

Status checkSteps(const ResumeEffect& effect, const Recipe& now) {
    if (effect.total <= 0 || effect.step <= effect.total) return {};
    const bool isBySteps = now.integer("train.max_steps") > 0;
    return fail(std::to_string(effect.step) + " steps are done already, " + (isBySteps ? "" : "which is ") + "more than the " + std::to_string(effect.total) +
                    (isBySteps ? " asked for." : " of " + std::to_string(now.integer("train.epochs")) + " epochs."),
                "Give more than are done, or start a new run whose model.weights is an earlier checkpoint.", isBySteps ? "train.max_steps" : "train.epochs");
}

std::string moreSteps(const ResumeEffect& effect, const Recipe& now) {
    if (now.integer("train.max_steps") > 0) return "--train.max_steps " + std::to_string(2 * effect.step);
    return "--train.epochs " + std::to_string(now.integer("train.epochs") + 1);
}

} // namespace celloom::recipe
