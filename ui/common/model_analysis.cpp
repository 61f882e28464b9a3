#include "ui/common/model_analysis.h"

#include "models/families/families.h"
#include "models/families/vocabulary.h"
#include "models/recipe/estimate.h"
#include "models/recipe/lora.h"
#include "models/recipe/parameter_table.h"
#include "models/store/run_folder.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

namespace celloom::ui {

namespace {

void resolvePrecision(const recipe::Recipe& recipe, ModelAnalysis& analysis) {
    auto table = recipe::precisionOf(analysis.expansion.model, analysis.treatment, recipe::precisionSettingsOf(recipe));
    if (!table) {
        analysis.precisionError = table.error();
        return;
    }
    analysis.precision = std::move(*table);
    analysis.precisionRows = recipe::foldedPrecision(analysis.expansion.model, analysis.precision);
}

void resolveTreatment(const recipe::Recipe& recipe, ModelAnalysis& analysis) {
    auto table = recipe::treatmentOf(recipe, analysis.expansion.model);
    if (table) {
        analysis.treatment = std::move(*table);
        analysis.trainable.resize(analysis.treatment.cells.size());
        for (const recipe::ParameterRow& row : recipe::parameterTable(analysis.expansion.model, analysis.treatment)) {
            if (!row.isTrainable) continue;
            analysis.trainable[static_cast<std::size_t>(row.cell)] +=
                std::accumulate(row.dims.begin(), row.dims.end(), std::int64_t{1}, std::multiplies<>());
        }
    } else {
        analysis.ruleError = table.error();
    }
}

/// What names the network: of a run that does not train its weights, of a run's folder its newest checkpoint.
std::string sourceOf(const recipe::Recipe& recipe) {
    const recipe::Recipe absolute = recipe.withAbsolutePaths();
    const std::string& weights = absolute.text("model.weights");
    if (recipe::trains(recipe) || weights.empty()) return absolute.text("model.source");
    const auto checkpoint = store::RunFolder{weights}.newestCheckpoint();
    return checkpoint.empty() ? weights : checkpoint.string();
}

bool isAdapterFolder(const std::string& source) {
    std::error_code code;
    return std::filesystem::exists(std::filesystem::path(source) / "adapter_config.json", code);
}

} // namespace

bool ModelAnalysis::hasTokens() const {
    const graph::ExpandedModel& model = expansion.model;
    return std::any_of(model.inputs.begin(), model.inputs.end(), [&](const graph::NamedValue& input) {
        if (input.value < 0) return false; // its shape is wrong, as the problems say
        const graph::ValueInfo& value = model.values[static_cast<std::size_t>(input.value)];
        return value.dtype == "int64" && std::any_of(value.shape.begin(), value.shape.end(), [](const graph::Dim& dim) { return !dim.symbol.empty() && dim.symbol != "B"; });
    });
}

double ModelAnalysis::costUnits() const {
    return static_cast<double>(batch) * (hasTokens() ? static_cast<double>(sequence) : 1.0);
}

ModelAnalysis analyse(const recipe::Recipe& recipe, const DocumentPtr& edited, AnalysisDepth depth) {
    ModelAnalysis analysis;
    analysis.source = sourceOf(recipe);
    analysis.edited = edited;
    analysis.batch = recipe.integer("train.batch_size");
    analysis.sequence = recipe.integer("train.sequence_length");
    auto overrides = recipe.modelOverrides();
    if (!overrides) {
        analysis.openError = overrides.error();
        return analysis;
    }
    if (!recipe::trains(recipe)) overrides->clear(); // weights are used as they are
    const std::string& source = analysis.source;
    std::error_code code; // an untitled model's file is not there, nor is what lies beside it its own
    if (depth == AnalysisDepth::Whole && std::filesystem::path(source).is_absolute() && std::filesystem::exists(source, code)) analysis.folder = families::folderContents(source);
    auto document = edited ? Result<graph::Document>(*edited) : families::openModel(source);
    if (!document && isAdapterFolder(source)) return analysis; // its base is found by the engine
    if (!document) {
        analysis.openError = document.error();
        return analysis;
    }
    analysis.document = std::move(*document);
    // The vocabulary follows the tokenizer that the run trains, unless it is overridden: as the engine does.
    const bool trainsTokenizer = recipe.text("tokenizer.path").empty() && recipe.text("model.weights").empty() && recipe.text("data.format") != "tokens";
    if (trainsTokenizer && families::hasVocabulary(analysis.document))
        analysis.vocabularyFollowsTokenizer = overrides->emplace(families::kVocabulary, recipe.integer("tokenizer.vocab_size")).second;
    analysis.expansion = graph::expand(analysis.document, *overrides);
    analysis.overrides = *overrides;
    if (analysis.folder && !overrides->empty()) analysis.ownParameters = graph::expand(analysis.document).model.parameterCount();
    if (!analysis.expansion.ok()) return analysis;
    if (depth == AnalysisDepth::Outline) return analysis;
    analysis.costs = graph::costs(analysis.expansion.model, recipe::symbolSizes(analysis.expansion.model, analysis.batch, analysis.sequence));
    if (!recipe::trains(recipe)) {
        analysis.treatment.cells.resize(analysis.expansion.model.cells.size());
        analysis.trainable.resize(analysis.treatment.cells.size());
        return analysis;
    }
    resolveTreatment(recipe, analysis);
    if (!analysis.ruleError) resolvePrecision(recipe, analysis);
    if (auto estimate = recipe::estimate(recipe, analysis.expansion.model)) analysis.estimate = std::move(*estimate);
    return analysis;
}

void ModelAnalyser::request(const recipe::Recipe& recipe, const DocumentPtr& edited) {
    ++m_asked;
    if (m_isBusy)
        m_waiting = Request{recipe, edited};
    else
        begin({recipe, edited});
}

void ModelAnalyser::begin(const Request& request) {
    m_isBusy = true;
    m_background.run([request] { return std::make_shared<const ModelAnalysis>(analyse(request.recipe, request.edited)); },
                     [this](const ModelAnalysisPtr& analysis) { finish(analysis); });
}

void ModelAnalyser::finish(const ModelAnalysisPtr& analysis) {
    m_isBusy = false;
    if (m_waiting) {
        begin(*std::exchange(m_waiting, std::nullopt));
        return;
    }
    m_answered = m_asked;
    m_latest = analysis;
    Q_EMIT ready(analysis);
}

} // namespace celloom::ui
