#include "models/store/resume_plan.h"

#include "models/base/files.h"
#include "models/recipe/checks.h"
#include "models/store/run_store.h"

#include <cmath>
#include <nlohmann/json.hpp>

namespace celloom::store {
namespace fs = std::filesystem;
using nlohmann::json;
namespace {

constexpr std::uint64_t kMaxStateBytes = 64 << 20;
const json::json_pointer kStep("/step"), kFixedRate("/fixed_learning_rate"), kSettings("/settings"), kStepsPerEpoch("/steps_per_epoch");

/// Of a run without a checkpoint, or with one of an earlier version: what it last said of itself.
std::int64_t stepsPerEpochOf(const RunFolder& folder) {
    std::error_code code;
    if (!fs::exists(folder.database(), code)) return 0;
    const auto reader = RunReader::open(folder.database());
    const auto progress = reader ? (*reader)->progress() : Result<Progress>(Progress{});
    return progress && progress->totalEpochs > 0 ? std::llround(static_cast<double>(progress->totalSteps) / progress->totalEpochs) : 0;
}

/// Of a run that makes no steps: a prediction goes on after its last text, an evaluation measures anew.
Result<ResumePlan> planUse(const RunFolder& folder, const recipe::Recipe& recorded, const recipe::Recipe& now) {
    if (recorded.text("kind") != now.text("kind"))
        return fail("was " + recorded.text("kind") + " when the run began and cannot become " + now.text("kind") + " now.", "Start a new run.", "kind");
    std::error_code code;
    const bool hasTexts = fs::exists(folder.path / "predictions.jsonl", code) && fs::file_size(folder.path / "predictions.jsonl", code) > 0;
    if (hasTexts) CELLOOM_TRY_STATUS(recipe::checkResumable(recorded, now, recipe::RunHas::Predictions));
    return ResumePlan{};
}

} // namespace

Result<ResumePlan> planResume(const RunFolder& folder, const recipe::Recipe& now) {
    CELLOOM_TRY(recorded, recipe::Recipe::load(folder.recipe()));
    if (!recipe::trains(recorded)) return planUse(folder, recorded, now);
    const fs::path checkpoint = folder.newestCheckpoint();
    if (std::error_code code; !checkpoint.empty() || fs::exists(folder.path / "corpus.json", code))
        CELLOOM_TRY_STATUS(recipe::checkResumable(recorded, now, checkpoint.empty() ? recipe::RunHas::Data : recipe::RunHas::Checkpoint));

    recipe::Settings before = recipe::settingsOf(recorded);
    std::int64_t step = 0, stepsPerEpoch = 0;
    std::optional<double> fixedRate;
    if (!checkpoint.empty()) {
        const auto text = readFile(checkpoint / "state.json", kMaxStateBytes);
        const json state = text ? json::parse(*text, nullptr, false) : json();
        const auto at = [&](const json::json_pointer& place) { return state.is_object() && state.contains(place) ? state[place] : json(); };
        if (at(kStep).is_number_integer()) step = at(kStep).get<std::int64_t>();
        if (at(kStepsPerEpoch).is_number_integer()) stepsPerEpoch = at(kStepsPerEpoch).get<std::int64_t>();
        if (at(kFixedRate).is_number()) fixedRate = at(kFixedRate).get<double>();
        const json settings = at(kSettings);
        for (const auto& [key, value] : settings.items())
            if (value.is_string()) before[key] = value.get<std::string>();
    }
    if (stepsPerEpoch == 0) stepsPerEpoch = stepsPerEpochOf(folder);
    ResumePlan plan{checkpoint.filename().string(), recipe::resumeEffect(before, now, step, stepsPerEpoch, fixedRate)};
    CELLOOM_TRY_STATUS(recipe::checkSteps(plan.effect, now));
    return plan;
}

} // namespace celloom::store
