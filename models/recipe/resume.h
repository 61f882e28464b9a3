// What a resume with changed settings means, as pure functions: the command line and the window say it before, the run when it goes on.
#pragma once

#include "models/recipe/recipe.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace celloom::recipe {

/// Every field as text, by key: a checkpoint remembers what it was trained with.
using Settings = std::map<std::string, std::string>;
Settings settingsOf(const Recipe& recipe);

struct SettingChange {
    std::string key, before, now;
};

/// A run that goes on.
struct ResumeEffect {
    std::int64_t step = 0;                   // done; it goes on with the one after
    std::int64_t totalBefore = 0, total = 0; // steps of the whole run; 0: not known before the data are read
    std::vector<SettingChange> changes;      // in the order of the recipe's fields
    double rateBefore = 0, rate = 0;         // of the next step, by the schedule before and now; NaN: not known
    std::optional<double> fixedRate;         // set while the run went on, in place of the schedule
    bool keepsFixedRate = false;             // a rate fixed while running stays until optimizer.lr or the schedule is changed
    bool restartsLossScale = false;          // precision.loss_scale… was changed: it begins anew at the recipe's value

    [[nodiscard]] bool isComplete() const { return total > 0 && step >= total; }
};

/// `before`: what the checkpoint was trained with; keys it does not know count as unchanged. `stepsPerEpoch` 0: not known.
ResumeEffect resumeEffect(const Settings& before, const Recipe& now, std::int64_t step, std::int64_t stepsPerEpoch, std::optional<double> fixedRate);

/// In English, for the command line and the log; empty where nothing changes. "optimizer.lr: 0.001 -> 0.0001".
std::vector<std::string> sentencesOf(const ResumeEffect& effect);

/// Fails where fewer steps are asked for than are done; a run that is just complete is no failure.
Status checkSteps(const ResumeEffect& effect, const Recipe& now);
/// How a complete run is trained on: "--train.max_steps 24", "--train.epochs 4".
std::string moreSteps(const ResumeEffect& effect, const Recipe& now);

} // namespace celloom::recipe
