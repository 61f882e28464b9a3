// The part of a recipe that says what is made small and what is measured: terms of the loss, names of metrics, what callbacks watch.
#pragma once

#include "models/recipe/recipe.h"

namespace celloom::recipe {

/// One term of a loss over named outputs: "logits -> label: SoftmaxCrossEntropyWithLogits weight=0.3".
struct LossTermSpec {
    std::string output, label; // empty: the only one there is
    std::string type;          // one of lossTypes()
    double weight = 1;
    bool operator==(const LossTermSpec&) const = default;
};

/// SoftmaxCrossEntropyWithLogits, MSELoss, L1Loss, BCELoss, BCEWithLogitsLoss.
const std::vector<std::string>& lossTypes();
/// An error says what is wrong with the text, and how it is to look.
Result<LossTermSpec> parseLossTerm(const std::string& text);
/// loss.terms, or one term of loss.type. Only of a run on named columns (data.format=tensors or images).
Result<std::vector<LossTermSpec>> lossTermsOf(const Recipe& recipe);
bool isOnTensors(const Recipe& recipe);

/// What evaluate.metrics may name, beside loss and perplexity, which are always measured where they mean something.
const std::vector<std::string>& metricNames();
/// Of these, the ones that compare texts: answers to held-out questions (evaluate.generate).
bool isTextMetric(const std::string& name);

/// What early stopping and a plateau can watch: "loss" (the training's), "eval_loss" and the metrics of the evaluation.
std::vector<std::string> monitorsOf(const Recipe& recipe);
/// Problems of the fields loss.*, evaluate.metrics, callbacks.early_stopping_* and callbacks.reduce_lr_*.
std::vector<Problem> checkMeasures(const Recipe& recipe);

} // namespace celloom::recipe
