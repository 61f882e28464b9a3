#include "models/recipe/checks.h"

#include "models/base/text.h"
#include "models/families/families.h"
#include "models/recipe/estimate.h"
#include "models/recipe/lora.h"
#include "models/recipe/parameter_table.h"
#include "models/recipe/precision.h"

#include <vector>

namespace celloom::recipe {
namespace {

/// Of an evaluation or a prediction. The engine knows more about folders; this is what can be said before one starts.
Status checkWeightsAreThere(const Recipe& recipe) {
    const std::string& given = recipe.text("model.weights");
    std::error_code code;
    if (std::filesystem::exists(recipe.resolvePath(given), code)) return {};
    const std::string name = std::filesystem::path(given).filename().string();
    if (families::buildPreset(name))
        return fail(inQuotes(name) + " is a preset, which has no weights: it has learned nothing.", "Give a model folder, a checkpoint or a run.",
                    "model.weights");
    return fail("there is no model " + inQuotes(given) + ".", "Give a model folder, a checkpoint or a run.", "model.weights");
}

} // namespace

Status checkModel(const Recipe& recipe) {
    if (!trains(recipe)) return checkWeightsAreThere(recipe);
    CELLOOM_TRY(model, modelOf(recipe));
    CELLOOM_TRY(treatment, treatmentOf(recipe, model));
    if (treatment.hasAdapters() && recipe.text("model.weights").empty())
        return fail("No weights are named for the base that the adapters stand beside.", "Give the base's folder.", "model.weights");
    if (auto precision = precisionOf(model, treatment, precisionSettingsOf(recipe)); !precision) return tl::unexpected(precision.error());
    return checkTreatment(model, treatment);
}

Status checkTreatment(const graph::ExpandedModel& model, const TreatmentTable& treatment) {
    for (std::size_t i = 0; i < model.cells.size(); ++i) CELLOOM_TRY_STATUS(checkSupported(treatment.cells[i], model.cells[i].path));
    if (!treatment.hasAdapters()) return {};
    for (const ParameterRow& row : parameterTable(model, treatment))
        if (row.isTrainable && row.adapterName.empty())
            return fail("would learn beside the adapters, but no adapter's file holds it.",
                        "Freeze it (a rule \"**: freeze\" first), or add \"save\" to its rule.", row.path);
    return {};
}

std::int64_t exceededPositions(const graph::ExpandedModel& model, std::int64_t sequenceLength) {
    const std::int64_t longest = model.hyperInteger("max_positions", 0);
    return longest > 0 && sequenceLength > longest ? longest : 0;
}

std::vector<Problem> modelWarnings(const Recipe& recipe, const graph::ExpandedModel& model) {
    const std::int64_t length = recipe.integer("train.sequence_length"), longest = exceededPositions(model, length);
    if (longest == 0 || recipe.text("kind") == "predict") return {};
    return {{Problem::Severity::Warning, "train.sequence_length",
             "Sequences of " + std::to_string(length) + " tokens are longer than the model's max_positions, " + std::to_string(longest) + ".",
             "Shorten them; for a model that begins empty, set max_positions=" + std::to_string(length) + " in model.overrides instead."}};
}

Status checkSupported(const Treatment& treatment, const std::string& path) {
    if (treatment.lora && treatment.saveWhole) return fail("cannot both get an adapter and be saved whole.", "Remove one of the two rules.", path);
    if (treatment.stage != 0)
        return fail("belongs to pipeline stage " + std::to_string(treatment.stage) + ", but this version runs one stage.",
                    "Remove the rule.", path);
    return {};
}

Status checkResumable(const Recipe& before, const Recipe& now, RunHas has) {
    static const std::vector<std::string> ofData{"data.train", "data.validation"};
    static const std::vector<std::string> ofCheckpoint{"data.train",
                                                       "data.validation",
                                                       "data.format",
                                                       "data.encoding",
                                                       "data.documents",
                                                       "data.attention",
                                                       "data.shuffle",
                                                       "data.columns",
                                                       "data.template",
                                                       "data.mask_prompt",
                                                       "data.truncation",
                                                       "data.untrainable",
                                                       "data.packing",
                                                       "data.group_by_length",
                                                       "data.validation_fraction",
                                                       "kind",
                                                       "seed",
                                                       "model.source",
                                                       "model.overrides",
                                                       "model.weights",
                                                       "model.init_std",
                                                       "tokenizer.path",
                                                       "tokenizer.vocab_size",
                                                       "tokenizer.type",
                                                       "tokenizer.character_coverage",
                                                       "tokenizer.control_symbols",
                                                       "tokenizer.user_symbols",
                                                       "train.batch_size",
                                                       "train.accumulation",
                                                       "train.sequence_length",
                                                       "train.drop_last",
                                                       "optimizer.type"};
    static const std::vector<std::string> ofPredictions{"kind", "model.weights", "model.adapters", "tokenizer.path", "data.format",
                                                        "data.columns", "data.encoding", "data.template"};
    std::vector<std::string> keys = has == RunHas::Checkpoint ? ofCheckpoint : has == RunHas::Predictions ? ofPredictions : ofData;
    for (const Field& field : fields())
        if ((has == RunHas::Checkpoint && field.section == "lora" && field.key != "lora.dropout") ||
            (has == RunHas::Predictions && field.section == "predict" && field.key != "predict.batch_size"))
            keys.push_back(field.key);
    for (const std::string& key : keys) {
        const std::string was = before.toText(key), is = now.toText(key);
        if (was != is)
            return fail("was " + (was.empty() ? "empty" : was) + " when the run began and cannot become " + (is.empty() ? "empty" : is) +
                            " now.",
                        "Leave it as it was, or start a new run; model.weights can begin with a checkpoint of this one.", key);
    }
    return {};
}

} // namespace celloom::recipe
