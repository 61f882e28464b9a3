#include "engine/train/recipe_loss.h"

#include "engine/data/dataset.h"
#include "engine/exec/z_loss.h"
#include "engine/train/losses.h"
#include "models/base/text.h"
#include "models/recipe/measures.h"

#include <algorithm>

namespace celloom::engine {
namespace {

bool isIn(const std::vector<std::string>& list, const std::string& name) { return std::find(list.begin(), list.end(), name) != list.end(); }

/// The one that was meant: the named, or the only one.
Result<std::string> chosen(const std::string& name, const std::vector<std::string>& known, const char* what) {
    if (name.empty() && known.size() == 1) return known[0];
    if (name.empty()) return fail(std::string("It is open which ") + what + " the loss compares.", "Write loss.terms; there are: " + joined(known) + ".", "loss.terms");
    if (isIn(known, name)) return name;
    return fail(std::string("There is no ") + what + " \"" + name + "\".", "There are: " + joined(known) + ".", "loss.terms");
}

Result<std::shared_ptr<const Loss>> makeTerm(const recipe::LossTermSpec& spec, const recipe::Recipe& recipe, const Network& network, const Dataset& rows) {
    std::vector<std::string> outputs, labels, inputs;
    for (const graph::NamedValue& output : network.model().outputs) outputs.push_back(output.name);
    for (const graph::NamedValue& input : network.model().inputs) inputs.push_back(input.name);
    for (const std::string& column : rows.columns())
        if (!isIn(inputs, column)) labels.push_back(column);
    CELLOOM_TRY(output, chosen(spec.output, outputs, "output of the graph"));
    CELLOOM_TRY(label, chosen(spec.label, labels, "column of labels"));
    const TermOptions term{.name = output, .output = output, .label = label, .weight = spec.weight};
    const double smoothing = recipe.real("loss.label_smoothing");
    std::shared_ptr<const Loss> out;
    if (spec.type == "SoftmaxCrossEntropyWithLogits") {
        const Row row = rows.get(0);
        const auto found = row.columns.find(label);
        const at::Tensor target = found == row.columns.end() ? row.labels : found->second;
        const bool isSparse = at::isIntegralType(target.scalar_type(), false);
        out = std::make_shared<SoftmaxCrossEntropyWithLogits>(SoftmaxCrossEntropyWithLogits::Options{term, isSparse, smoothing});
    } else if (spec.type == "MSELoss") out = std::make_shared<MSELoss>(term);
    else if (spec.type == "L1Loss") out = std::make_shared<L1Loss>(term);
    else if (spec.type == "BCELoss") out = std::make_shared<BCELoss>(term);
    else if (spec.type == "BCEWithLogitsLoss") out = std::make_shared<BCEWithLogitsLoss>(term);
    CELLOOM_CHECK(out);
    return out;
}

Result<std::shared_ptr<Loss>> languageModel(const recipe::Recipe& recipe, const Network& network) {
    LanguageModelOptions options;
    options.labelSmoothing = recipe.real("loss.label_smoothing");
    options.zLossWeight = recipe.real("train.z_loss") > 0 ? recipe.real("train.z_loss") : zLossWeightOf(network.model());
    if (!(options.zLossWeight >= 0)) return fail("The model's z_loss_weight is " + numberText(options.zLossWeight) + ".", "Give 0 or more.", "model.overrides");
    return std::make_shared<LanguageModelLoss>(options);
}

} // namespace

Result<std::shared_ptr<Loss>> makeLoss(const recipe::Recipe& recipe, const Network& network, const Dataset& rows) {
    if (!recipe::isOnTensors(recipe)) return languageModel(recipe, network);
    CELLOOM_TRY(specs, recipe::lossTermsOf(recipe));
    std::vector<std::shared_ptr<const Loss>> parts;
    for (const recipe::LossTermSpec& spec : specs) {
        CELLOOM_TRY(part, makeTerm(spec, recipe, network, rows));
        parts.push_back(std::move(part));
    }
    return std::make_shared<WeightedLoss>(std::move(parts));
}

Result<Metrics> makeMetrics(const recipe::Recipe& recipe) {
    std::vector<std::string> names{"loss"};
    if (!recipe::isOnTensors(recipe)) names.emplace_back("perplexity");
    for (const std::string& name : recipe.list("evaluate.metrics"))
        if (!recipe::isTextMetric(name)) names.push_back(name);
    return metricsNamed(names);
}

} // namespace celloom::engine
