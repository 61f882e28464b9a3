// What forbids to run a recipe, or to resume it changed, as far as that is known before an engine has read any data.
#pragma once

#include "models/base/result.h"
#include "models/recipe/recipe.h"
#include "models/recipe/rules.h"

#include <string>

namespace celloom::recipe {

/// The model, its overrides and the rules, as the engine will see them: the first problem. Of runs that do not train: whether the weights
/// are there.
Status checkModel(const Recipe& recipe);

/// What is allowed but most likely not meant: rows longer than the model's max_positions.
std::vector<Problem> modelWarnings(const Recipe& recipe, const graph::ExpandedModel& model);
/// max_positions of a model whose rows would be longer; 0 where all is well, or where the model does not say.
std::int64_t exceededPositions(const graph::ExpandedModel& model, std::int64_t sequenceLength);

/// Refuses treatments that no engine of this version carries out, and, beside adapters, weights that would learn and be saved nowhere.
Status checkTreatment(const graph::ExpandedModel& model, const TreatmentTable& treatment);
/// Refuses a treatment of one cell that no engine of this version carries out (pipeline stages). Nothing is skipped silently.
Status checkSupported(const Treatment& treatment, const std::string& path);

/// Refuses changes of the fields that made what a run has already: before its first checkpoint its data files, after it also tokenizer,
/// model, batches and the kind of optimizer; of predictions all that they depend on.
enum class RunHas { Data, Checkpoint, Predictions };
Status checkResumable(const Recipe& before, const Recipe& now, RunHas has);

} // namespace celloom::recipe
