// Runs that use a model which has learned: of kind evaluate, which measure it on data, and of kind predict, which let it write.
#include "engine/data/packed.h"
#include "engine/exec/runtime.h"
#include "engine/generate/text_predictor.h"
#include "engine/train/llm_trainer.h"
#include "engine/train/recipe_loss.h"
#include "models/base/files.h"
#include "models/base/text.h"
#include "models/families/vocabulary.h"
#include "models/recipe/checks.h"

#include <nlohmann/json.hpp>
#include <utility>

namespace celloom::engine {
namespace fs = std::filesystem;
using nlohmann::json;
using store::RunState;

namespace {

constexpr std::int64_t kShownTexts = 20; // of a prediction, as samples: all of them are in its file

/// Counts the batches of an evaluation, and obeys between them.
class BatchCounter : public Callback {
public:
    BatchCounter(RunReporter& reporter, RunControl& control) : m_reporter(reporter), m_control(control) {}
    Status onEvalStepEnd(RunContext& context) override {
        m_reporter.workDone(++m_done);
        return m_control.atBoundary(context);
    }
    std::int64_t done() const { return m_done; }

private:
    RunReporter& m_reporter;
    RunControl& m_control;
    std::int64_t m_done = 0;
};

std::int64_t batchesOf(const Dataset& rows, std::int64_t batchSize, std::int64_t most) {
    const std::int64_t all = (rows.size() + batchSize - 1) / batchSize;
    return most > 0 ? std::min(all, most) : all;
}

PredictOptions predictOptions(const recipe::Recipe& recipe) {
    PredictOptions out;
    out.sampling.maxNewTokens = static_cast<int>(recipe.integer("predict.max_new_tokens"));
    out.sampling.temperature = recipe.real("predict.temperature");
    out.sampling.topK = static_cast<int>(recipe.integer("predict.top_k"));
    out.sampling.topP = recipe.real("predict.top_p");
    out.sampling.repetitionPenalty = recipe.real("predict.repetition_penalty");
    out.sampling.seed = static_cast<std::uint64_t>(recipe.integer("predict.seed"));
    out.sampling.maxContext = static_cast<int>(recipe.integer("predict.context"));
    out.sampling.whenFull = recipe.text("predict.when_full") == "slide" ? WhenFull::Slide : WhenFull::Stop;
    out.sampling.alternatives = static_cast<int>(recipe.integer("predict.alternatives"));
    out.stopTexts = recipe.list("predict.stop");
    out.chatTemplate = recipe.text("data.template");
    return out;
}

} // namespace

/// The run, in the order in which it happens.
Result<Model::End> LLMTrainer::useTrainedModel() {
    setThreads();
    CELLOOM_TRY_STATUS(openTrainedModel());
    if (m_control.isStopAsked()) return Model::End::Stopped;
    return m_recipe.text("kind") == "evaluate" ? evaluateData() : predictPrompts();
}

Status LLMTrainer::openTrainedModel() {
    m_reporter.stage("loading the model");
    const std::string& weights = m_recipe.text("model.weights");
    CELLOOM_TRY_STATUS(recipe::checkModel(m_recipe));
    CELLOOM_TRY_STATUS(chooseDevice());
    CELLOOM_TRY(folder, openModelFolder(weights));
    if (folder.weightFiles.empty()) return fail("holds no weights.", "Give a model folder, a checkpoint or a run.", weights);
    std::vector<AdapterChoice> adapters;
    for (const std::string& path : m_recipe.list("model.adapters")) adapters.push_back({path});
    NetworkOptions options = networkOptions();
    CELLOOM_TRY(loaded, loadModel(std::move(folder), adapters, options, OtherBase::Refuse, [this](const std::string& sentence) { m_reporter.print(sentence); }));
    m_document = loaded.folder.document;
    m_loaded = std::make_unique<LoadedModel>(std::move(loaded));
    json used = json::array();
    for (const MergedAdapter& adapter : m_loaded->adapters) used.push_back(adapter.folder.string());
    const std::int64_t parameters = m_loaded->network->model().parameterCount();
    m_reporter.info("model", "Opened " + m_loaded->folder.path.string() + ": " + std::to_string(parameters) + " parameters" +
                                 (used.empty() ? "." : ", " + counted(std::ssize(used), "adapter") + " beside them."),
                    json{{"model", m_loaded->folder.path.string()}, {"parameters", parameters}, {"adapters", used}}.dump());
    return {};
}

// ---- evaluate ----

Status LLMTrainer::readMeasuredText() {
    CELLOOM_TRY(split, readTextSplit(m_recipe, m_files));
    CELLOOM_TRY_STATUS(checkCorpus(split.files));
    split.train.clear(); // where a part of them is held out
    if (split.validation.empty()) return fail("hold no text to measure on.", "Name other files.", "data.validation");
    m_reporter.info("measured_data", "Read " + counted(split.files.size(), "file") + ": " + counted(split.validation.size(), "document") + " to measure on.",
                    json{{"files", split.files.size()}, {"documents", split.validation.size()}}.dump());
    m_reporter.stage("tokenising");
    CELLOOM_TRY(hash, sha256OfFile(m_setup.folder.tokenizer()));
    CELLOOM_TRY(data, prepareText(m_recipe, std::move(split), *m_tokenizer, hash, m_setup.cacheFolder, [this] { return !m_control.isStopAsked(); }));
    m_data = std::move(data);
    return {};
}

Status LLMTrainer::readMeasuredConversations() {
    CELLOOM_TRY(split, readInstructionSplit(m_recipe, m_files));
    CELLOOM_TRY_STATUS(checkCorpus(split.files));
    m_conversations = std::move(split);
    m_conversations.train.clear();
    m_reporter.info("measured_data",
                    "Read " + counted(m_conversations.files.size(), "file") + " (" + joined(m_conversations.formats, 3) +
                        "): " + counted(std::ssize(m_conversations.validation), "conversation") + " to measure on.",
                    json{{"files", m_conversations.files.size()}, {"conversations", m_conversations.validation.size()}}.dump());
    return prepareConversations();
}

/// The validation files, or the part of the training files that a training with this seed would hold out.
Status LLMTrainer::readMeasuredData() {
    m_reporter.stage("reading text");
    CELLOOM_TRY(files, findDataFiles(m_recipe));
    m_files = std::move(files);
    if (m_files.areTensors) return readMeasuredRows(prepareTensors(m_recipe, m_files));
    if (!m_files.areTokens || !m_recipe.text("tokenizer.path").empty()) {
        CELLOOM_TRY(tokenizer, obtainTokenizer(m_recipe, {}, m_setup.folder.tokenizer()));
        m_tokenizer = std::move(tokenizer);
    }
    if (m_files.areInstructions) return readMeasuredConversations();
    if (!m_files.areTokens) return readMeasuredText();
    return readMeasuredRows(prepareTokens(m_recipe, m_files, families::vocabularyOf(m_network->model())));
}

Status LLMTrainer::readMeasuredRows(Result<PreparedData> data) {
    if (!data) return tl::unexpected(data.error());
    m_data = std::move(*data);
    CELLOOM_TRY_STATUS(checkCorpus(m_data.files));
    const std::int64_t rows = m_data.validation ? m_data.validation->size() : 0;
    m_reporter.info("measured_data", "Read " + counted(m_data.files.size(), "file") + ": " + counted(rows, "row") + " to measure on.",
                    json{{"files", m_data.files.size()}, {"sequences", rows}}.dump());
    return {};
}

/// Measured anew from the beginning where it was begun before: nothing of an evaluation is worth keeping half done.
Result<Model::End> LLMTrainer::evaluateData() {
    CELLOOM_TRY_STATUS(m_setup.writer.supersedeAfter(-1));
    m_network = std::move(m_loaded->network);
    CELLOOM_TRY_STATUS(readMeasuredData());
    if (!m_data.validation || m_data.validation->size() == 0)
        return fail("Nothing is left to measure on.", "Name other files, or raise train.sequence_length where all are too long.", "data.validation");
    CELLOOM_TRY_STATUS(makeMeasuringModel());
    const std::int64_t most = m_recipe.integer("evaluate.max_batches");
    m_reporter.beginWork(0, batchesOf(*m_data.validation, m_recipe.integer("train.batch_size"), most));
    m_reporter.state(RunState::Running);
    m_reporter.stage("evaluating");
    m_control.setWorkStage("evaluating");
    m_isWorking = true;
    BatchCounter counter(m_reporter, m_control);
    RunContext context;
    std::vector<Callback*> callbacks = m_setup.callbacks;
    const std::vector<Callback*> typed = m_scripts->callbacks();
    callbacks.insert(callbacks.end(), typed.begin(), typed.end());
    callbacks.push_back(&counter);
    CELLOOM_TRY(evaluation, m_model->evaluate(*m_data.validation, context, callbacks, most));
    m_worked = counter.done();
    if (const auto& failure = m_scripts->failures().first(); failure && m_scripts->failures().isStopWanted()) return tl::unexpected(*failure);
    if (!evaluation || context.isStopRequested()) return Model::End::Stopped;
    reportEvaluation(*evaluation);
    CELLOOM_TRY_STATUS(checkAnswers());
    return m_control.isStopAsked() ? Model::End::Stopped : Model::End::Finished;
}

Status LLMTrainer::makeMeasuringModel() {
    ModelOptions options;
    options.batchSize = m_recipe.integer("train.batch_size");
    CELLOOM_TRY(loss, makeLoss(m_recipe, *m_network, *m_data.validation));
    CELLOOM_TRY(metrics, chosenMetrics());
    m_model = std::make_unique<Model>(*m_network, loss, nullptr, metrics, options);
    return {};
}

// ---- predict ----

Result<Model::End> LLMTrainer::predictPrompts() {
    m_reporter.stage("reading prompts");
    const std::string& input = m_recipe.text("predict.input");
    CELLOOM_TRY(columns, InstructionColumns::parse(m_recipe.list("data.columns")));
    CELLOOM_TRY(prompts, readPromptFile({input, m_recipe.text("data.encoding"), m_recipe.text("data.format"), columns}));
    PredictOptions options = predictOptions(m_recipe);
    options.isChat = m_recipe.flag("predict.chat") || prompts.areQuestions();
    if (const std::string& system = m_recipe.text("predict.system"); options.isChat && !system.empty()) options.before = {{ChatRole::System, system}};
    CELLOOM_TRY(predictor, TextPredictor::create(*m_loaded, options, m_recipe.text("tokenizer.path")));
    m_reporter.info("prompts", "Read " + counted(prompts.rows.size(), "prompt") + " from " + input + (prompts.format.empty() ? "" : " (" + prompts.format + ")") + ".",
                    json{{"prompts", prompts.rows.size()}, {"file", input}, {"encoding", prompts.encoding}, {"format", prompts.format}}.dump());
    for (const std::string& sentence : predictor.chat() ? predictor.chat()->fallbacks() : std::vector<std::string>())
        m_reporter.warning("template_fallback", {sentence, {}, {}}, json{{"template", predictor.chat()->chatTemplate().name}, {"sentence", sentence}}.dump());

    BatchOptions batch{.batchSize = static_cast<int>(m_recipe.integer("predict.batch_size")),
                       .precision = m_recipe.text("precision.amp_level") == "O0" ? std::string() : m_recipe.text("precision.amp_level")};
    RunContext context;
    Status obeyed;
    batch.isCancelled = [&] { return !obeyed || m_control.isStopAsked(); };
    batch.onProgress = [&](const BatchOptions::Progress& now) {
        if (!std::exchange(m_isWorking, true)) {
            m_reporter.beginWork(now.rows, now.total);
            m_reporter.state(RunState::Running);
            m_reporter.stage("predicting");
            m_control.setWorkStage("predicting");
        } else {
            m_reporter.workDone(now.rows);
            if (now.tokensPerSecond > 0) m_reporter.metric("predict/tokens_per_s", now.tokensPerSecond);
        }
        m_worked = now.rows;
        if (obeyed) obeyed = m_control.atBoundary(context);
    };
    std::int64_t shown = 0;
    batch.onResult = [&](const PromptRow& row, const TextResult& result) {
        if (shown++ < kShownTexts) m_reporter.sample(row.prompt, result.text);
    };
    CELLOOM_TRY(done, predictFile(predictor, prompts, input, predictions(), batch));
    CELLOOM_TRY_STATUS(obeyed);
    return reportPredictions(done);
}

fs::path LLMTrainer::predictions() const { return m_setup.folder.path / "predictions.jsonl"; }

Model::End LLMTrainer::reportPredictions(const BatchResult& done) {
    json data{{"file", predictions().string()}, {"rows", done.rows}, {"prompts", done.total}, {"new_rows", done.rows - done.before}, {"new_tokens", done.newTokens}};
    std::string said = std::to_string(done.rows) + " of " + counted(done.total, "prompt") + " are in " + predictions().string() + ".";
    m_reporter.metric("predict/rows", static_cast<double>(done.rows));
    if (done.questions > 0 && done.isWhole() && done.before == 0) { // of a part, the share would mislead
        m_reporter.metric("predict/exact_match", static_cast<double>(done.matches) / static_cast<double>(done.questions));
        data["matches"] = done.matches;
        data["questions"] = done.questions;
        said += " " + std::to_string(done.matches) + " of " + counted(done.questions, "question") + " are answered exactly as expected.";
    }
    m_reporter.info("predictions", said, data.dump());
    return done.isWhole() ? Model::End::Finished : Model::End::Stopped;
}

/// Of a run that made no steps.
void LLMTrainer::sayEndOfUse(Model::End end) {
    const bool isEvaluation = m_recipe.text("kind") == "evaluate";
    const std::string what = isEvaluation ? std::to_string(m_worked) + (m_worked == 1 ? " batch" : " batches") : counted(m_worked, "prompt");
    const json data{{isEvaluation ? "batches" : "prompts", m_worked}};
    if (end == Model::End::Finished) m_reporter.info("finished", "Finished: " + what + ".", data.dump());
    else m_reporter.info("stopped", "Stopped after " + what + ".", data.dump());
}

} // namespace celloom::engine
