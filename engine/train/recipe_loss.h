// The loss and the metrics that a recipe names.
#pragma once

#include "engine/train/metric.h"
#include "models/recipe/recipe.h"

namespace celloom::engine {

class Dataset;

/// Of a run on tokens the language-model loss; of one on named columns the terms of loss.terms or loss.type, whose labels are whole numbers (classes)
/// or not as the data have them. An output or a column that does not exist, or a choice that is open, is an error that lists what there is.
Result<std::shared_ptr<Loss>> makeLoss(const recipe::Recipe& recipe, const Network& network, const Dataset& rows);
/// "loss", of language models "perplexity", and those of evaluate.metrics that compare predictions.
Result<Metrics> makeMetrics(const recipe::Recipe& recipe);

} // namespace celloom::engine
