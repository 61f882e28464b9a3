#include "engine/train/llm_trainer.h"

#include "engine/checkpoint/adapter_folder.h"
#include "engine/checkpoint/loaded_model.h"
#include "engine/data/packed.h"
#include "engine/exec/memory.h"
#include "engine/generate/generate.h"
#include "engine/train/run_callbacks.h"
#include "models/base/disk.h"
#include "models/recipe/estimate.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace celloom::engine {
using store::RunState;
namespace {

std::string decimals(double value, int digits) {
    char text[64];
    std::snprintf(text, sizeof text, "%.*f", digits, value);
    return text;
}

} // namespace

LLMTrainer::LLMTrainer(Setup setup, recipe::Recipe recipe)
    : m_setup(std::move(setup)), m_recipe(std::move(recipe)), m_reporter(m_setup.writer, m_setup.link, m_setup.print),
      m_control(m_reporter, m_setup.link, m_setup.stopSignal) {}

LLMTrainer::~LLMTrainer() = default;

RunResult LLMTrainer::carryOut() {
    Result<Model::End> end = Model::End::Stopped;
    try {
        m_reporter.state(RunState::Preparing);
        resetTensorMemoryPeak(at::kCPU);
        end = work();
    } catch (const std::exception& exception) {
        end = tl::unexpected(errorOf(exception));
    }
    if (m_isTraining) reportMemory();
    if (!end && end.error().message == kStoppedMessage) end = Model::End::Stopped;
    if (!end) return failed(end.error());

    if (recipe::trains(m_recipe)) sayEnd(*end);
    else sayEndOfUse(*end);
    RunResult result; // Finished
    if (*end == Model::End::Stopped) result = {m_isTimeOver || m_isStoppedEarly ? protocol::Ok : protocol::Interrupted, RunState::Stopped, {}};
    if (*end == Model::End::Diverged) result = {protocol::Diverged, RunState::Failed, divergence()};
    m_reporter.state(result.state);
    if (auto status = m_setup.writer.flush(); !status) return failed(status.error());
    return result;
}

/// The run, in the order in which it happens.
Result<Model::End> LLMTrainer::work() {
    CELLOOM_TRY_STATUS(readScripts());
    if (!recipe::trains(m_recipe)) return useTrainedModel();
    CELLOOM_TRY_STATUS(findCheckpoint());
    setThreads();
    CELLOOM_TRY_STATUS(readData());
    CELLOOM_TRY_STATUS(buildNetwork());
    CELLOOM_TRY_STATUS(loadWeightsToStartFrom());
    CELLOOM_TRY_STATUS(measureBaseline());
    CELLOOM_TRY_STATUS(measureBaseAnswers());
    if (m_control.isStopAsked()) return Model::End::Stopped;
    return train();
}

/// What other tools read: the run's adapter as it is now, beside the checkpoints, which serve to go on.
Status LLMTrainer::saveFinishedAdapter() {
    if (!m_treatment.hasAdapters() || m_model->step() == 0) return {};
    const auto folder = m_setup.folder.path / "adapter";
    CELLOOM_TRY_STATUS(saveAdapter(*m_network, m_chat ? m_chat->chatTemplate().name : std::string(), folder,
                                   m_tokenizer ? m_setup.folder.tokenizer() : std::filesystem::path()));
    m_reporter.info("adapter", "Saved the adapter in " + folder.string() + ".", nlohmann::json{{"adapter", folder.string()}}.dump());
    return {};
}

std::int64_t LLMTrainer::totalSteps() const {
    const std::int64_t asked = m_recipe.integer("train.max_steps");
    return asked > 0 ? asked : m_recipe.integer("train.epochs") * m_model->planOf(*m_data.train).stepsPerEpoch();
}

Status LLMTrainer::save(std::int64_t bestStep) {
    m_reporter.stage("saving");
    m_state.model = m_model->state();
    m_state.elapsedSeconds = m_reporter.elapsedSeconds();
    m_state.secondsPerStep = m_reporter.secondsPerStep();
    m_state.settings = recipe::settingsOf(m_recipe);
    collectCallbackState(m_callbacks, m_state);

    const auto folder = m_setup.folder.checkpoints();
    const CheckpointContent content{*m_network, m_document, m_tokenizer ? m_setup.folder.tokenizer() : std::filesystem::path(), *m_optimizer, m_state,
                                    m_chat ? m_chat->chatTemplate().name : std::string(), collectCallbackTensors(m_callbacks)};
    CELLOOM_TRY(path, writeCheckpoint(folder, content, [this] { return m_setup.writer.flush(); }));
    const auto best = bestStep < 0 ? std::filesystem::path() : folder / checkpointName(bestStep);
    CELLOOM_TRY_STATUS(pruneCheckpoints(folder, m_recipe.integer("checkpoint.keep_max"), best));
    m_reporter.info("checkpoint", "Saved " + path.filename().string() + ".", nlohmann::json{{"checkpoint", path.filename().string()}}.dump());
    m_reporter.stage("training");
    return {};
}

Status LLMTrainer::writeSamples() {
    m_reporter.stage("writing a sample");
    SamplingOptions options;
    options.maxNewTokens = static_cast<int>(m_recipe.integer("sample.max_new_tokens"));
    options.temperature = m_recipe.real("sample.temperature");
    options.topK = static_cast<int>(m_recipe.integer("sample.top_k"));
    options.topP = m_recipe.real("sample.top_p");
    options.seed = static_cast<std::uint64_t>(m_recipe.integer("sample.seed"));
    if (m_tokenizer->eos() >= 0) options.stopTokens = {m_tokenizer->eos()};
    if (m_chat) options.stopTokens = m_chat->stopTokens();
    std::vector<std::string> prompts = m_recipe.list("sample.prompts");
    if (prompts.empty()) prompts = {""};
    for (const std::string& prompt : prompts) {
        std::vector<std::int64_t> ids = promptOf(prompt);
        if (ids.empty()) ids = {std::max<std::int64_t>(m_tokenizer->eos(), 0)}; // documents follow an end token
        const std::string given = m_tokenizer->decode(ids);
        CELLOOM_TRY(written, generate(*m_network, ids, options, [this](std::int64_t) { return !m_control.isStopAsked(); }));
        ids.insert(ids.end(), written.begin(), written.end());
        m_reporter.sample(prompt, m_tokenizer->decode(ids).substr(given.size()));
    }
    m_reporter.stage("training");
    return {};
}

void LLMTrainer::reportEvaluation(const Evaluation& evaluation) {
    const bool isOnText = evaluation.metrics.contains("perplexity");
    if (isOnText) m_lastPerplexity = evaluation.perplexity();
    std::string said = "Validation loss " + decimals(evaluation.loss, 4);
    nlohmann::json data{{"loss", evaluation.loss}, {isOnText ? "tokens" : "items", evaluation.items}};
    for (const auto& [name, value] : evaluation.metrics) {
        m_reporter.metric("eval/" + name, value);
        if (name == "perplexity") data[name] = value;
        else if (name != "loss") data["metrics"][name] = value;
        if (name != "loss") said += ", " + name + " " + decimals(value, name == "perplexity" ? 2 : 4);
    }
    m_reporter.info("evaluation", said + " over " + std::to_string(evaluation.items) + (isOnText ? " tokens." : " numbers."), data.dump());
}

namespace {

/// What the graph's symbols are in these rows, all of one shape; B is no row's.
void bindSymbols(const graph::ExpandedModel& model, const Dataset& rows, std::map<std::string, std::int64_t>& symbols) {
    const Row row = rows.get(0);
    for (const graph::NamedValue& input : model.inputs) {
        const auto column = row.columns.find(input.name);
        const graph::Shape& shape = model.values[static_cast<std::size_t>(input.value)].shape;
        for (std::size_t i = 1; column != row.columns.end() && i < shape.size(); ++i)
            if (!shape[i].symbol.empty()) symbols[shape[i].symbol] = column->second.size(static_cast<std::int64_t>(i) - 1) / shape[i].number;
    }
}

} // namespace

/// What tensors took at most, beside what was foretold for these rows: for a user who compares. Silent where nothing was counted.
void LLMTrainer::reportMemory() {
    const std::int64_t counted = tensorMemory(m_device).peak;
    if (counted <= 0) return;
    m_reporter.metric("memory/peak_tensor_bytes", static_cast<double>(counted));
    recipe::MemoryOptions options = recipe::memoryOptions(m_recipe, m_network->model());
    options.symbols["T"] = m_data.sequenceLength;
    if (m_files.areTensors && m_data.train) bindSymbols(m_network->model(), *m_data.train, options.symbols);
    options.isGpu = !m_device.is_cpu();
    options.evaluates = m_data.validation != nullptr;
    const std::int64_t expected = recipe::planTraining(m_network->model(), m_treatment, options).peak.total();
    m_reporter.info("memory", "Tensors took at most " + decimals(static_cast<double>(counted) / 1e6, 1) + " MB; the estimate says " +
                                  decimals(static_cast<double>(expected) / 1e6, 1) + " MB.",
                    nlohmann::json{{"peak_bytes", counted}, {"estimate_bytes", expected}}.dump());
}

void LLMTrainer::sayEnd(Model::End end) {
    const std::int64_t at = m_model ? m_model->step() : 0;
    const std::string step = std::to_string(at);
    if (end == Model::End::Diverged) {
        const Model::Divergence& found = m_model->divergence();
        m_setup.writer.metric(found.step, found.epoch, "train/loss", found.loss);
        m_setup.writer.metric(found.step, found.epoch, "train/grad_norm", found.gradNorm);
        const auto checkpoints = listCheckpoints(m_setup.folder.checkpoints());
        return m_reporter.error("diverged", divergence(),
                                nlohmann::json{{"step", found.step}, {"gradient", std::isfinite(found.loss)},
                                               {"checkpoint", checkpoints.empty() ? "" : checkpoints.back().filename().string()}}.dump());
    }
    if (end == Model::End::Finished) m_reporter.info("finished", "Finished after " + step + " steps.", nlohmann::json{{"step", at}}.dump());
    else m_reporter.info("stopped", (m_isTimeOver ? "The time limit is reached: stopped after step " : "Stopped after step ") + step + ".",
                         nlohmann::json{{"step", at}, {"time_limit", m_isTimeOver}}.dump());
    if (m_lastPerplexity > 0 && m_state.baselinePerplexity > 0)
        m_reporter.info("comparison", "Validation perplexity " + decimals(m_lastPerplexity, 2) + "; an interpolated bigram model over the same tokens has " +
                                          decimals(m_state.baselinePerplexity, 2) + ".",
                        nlohmann::json{{"perplexity", m_lastPerplexity}, {"bigram", m_state.baselinePerplexity}}.dump());
    if (m_lastMatch >= 0 && m_state.baselineMatch >= 0)
        m_reporter.info("answers_comparison", "Before training " + answersText(m_state.baselineMatch) + " were answered exactly as expected, now " +
                                                  answersText(m_lastMatch) + ".",
                        nlohmann::json{{"before", m_state.baselineMatch}, {"after", m_lastMatch}}.dump());
}

} // namespace celloom::engine
