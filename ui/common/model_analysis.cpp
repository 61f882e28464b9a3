#include "ui/common/model_analysis.h"

#include "models/families/families.h"
#include "models/recipe/lora.h"
#include "models/recipe/parameter_table.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

namespace celloom::ui {

namespace {

constexpr const char* kVocabulary = "vocab"; // of every family: see families.h

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

} // namespace

ModelAnalysis analyse(const recipe::Recipe& recipe) {
    ModelAnalysis analysis;
    analysis.source = recipe.text("model.source");
    analysis.batch = recipe.integer("train.batch_size");
    analysis.sequence = recipe.integer("train.sequence_length");
    auto overrides = recipe.modelOverrides();
    if (!overrides) {
        analysis.openError = overrides.error();
        return analysis;
    }
    const std::string source = recipe.withAbsolutePaths().text("model.source");
    if (std::filesystem::path(source).is_absolute()) analysis.folder = families::folderContents(source);
    auto document = families::openModel(source);
    if (!document) {
        analysis.openError = document.error();
        return analysis;
    }
    analysis.document = std::move(*document);
    // The vocabulary follows the tokenizer that the run trains, unless it is overridden: as the engine does.
    const bool trainsTokenizer = recipe.text("tokenizer.path").empty() && recipe.text("model.weights").empty() && recipe.text("data.format") != "tokens";
    const auto& hyper = analysis.document.main.hyper;
    const bool hasVocabulary =
        std::any_of(hyper.begin(), hyper.end(), [](const graph::HyperParameter& one) { return one.name == kVocabulary; });
    if (trainsTokenizer && hasVocabulary)
        analysis.vocabularyFollowsTokenizer = overrides->emplace(kVocabulary, recipe.integer("tokenizer.vocab_size")).second;
    analysis.expansion = graph::expand(analysis.document, *overrides);
    if (analysis.folder && !overrides->empty()) analysis.ownParameters = graph::expand(analysis.document).model.parameterCount();
    if (!analysis.expansion.ok()) return analysis;
    analysis.costs = graph::costs(analysis.expansion.model, {{"B", analysis.batch}, {"T", analysis.sequence}});
    resolveTreatment(recipe, analysis);
    if (auto estimate = recipe::estimate(recipe)) analysis.estimate = std::move(*estimate);
    return analysis;
}

ModelAnalyser::ModelAnalyser(QObject* parent) : QObject(parent), m_worker(new QObject) {
    m_thread.setObjectName(QStringLiteral("celloom-analysis"));
    m_worker->moveToThread(&m_thread);
    connect(&m_thread, &QThread::finished, m_worker, &QObject::deleteLater);
    m_thread.start();
}

ModelAnalyser::~ModelAnalyser() {
    m_thread.quit();
    m_thread.wait();
}

void ModelAnalyser::request(const recipe::Recipe& recipe) {
    ++m_asked;
    if (m_isBusy) {
        m_waiting = recipe;
    } else {
        begin(recipe);
    }
}

void ModelAnalyser::begin(const recipe::Recipe& recipe) {
    m_isBusy = true;
    QMetaObject::invokeMethod(m_worker, [this, recipe] {
        auto analysis = std::make_shared<const ModelAnalysis>(analyse(recipe));
        QMetaObject::invokeMethod(this, [this, analysis] { finish(analysis); });
    });
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
