// The part of a run that trains: its list of callbacks, and the call that they listen to.
#include "engine/train/data_watch.h"
#include "engine/train/llm_trainer.h"
#include "engine/train/monitors.h"
#include "engine/train/run_callbacks.h"
#include "models/base/text.h"

#include <nlohmann/json.hpp>

namespace celloom::engine {
using store::RunState;
namespace {

/// A monitor's fields of the recipe: callbacks.early_stopping_…, callbacks.reduce_lr_….
MonitorOptions monitorOf(const recipe::Recipe& recipe, const std::string& name) {
    const std::string key = "callbacks." + name + "_", &mode = recipe.text(key + "mode");
    return {.monitor = recipe.text(key + "monitor"),
            .patience = recipe.integer(key + "patience"),
            .mode = mode == "min" ? Better::Min : mode == "max" ? Better::Max : Better::Auto,
            .minDelta = recipe.real(key + "min_delta"),
            .watch = Watch::Evaluations};
}

nlohmann::json best(const Monitor& monitor) { return monitor.best() ? nlohmann::json(*monitor.best()) : nlohmann::json(); }

} // namespace

/// The callbacks of a run. Their order is the order of what happens after a step: say it, measure, write, save, obey.
struct LLMTrainer::Callbacks {
    MetricsCallback metrics;
    LossMonitor lossMonitor;
    TimeMonitor timeMonitor;
    std::unique_ptr<EvaluationCallback> evaluation; // null without validation data
    std::unique_ptr<SampleCallback> sample;         // null without a tokenizer
    std::unique_ptr<ReduceLROnPlateau> plateau;     // null where the recipe asks for none
    std::unique_ptr<EarlyStopping> earlyStopping;   // likewise
    ModelCheckpoint checkpoint;
    BeforeFirstCheckpoint beforeFirstCheckpoint{checkpoint};
    TimeLimit timeLimit;
    std::vector<Callback*> typed; // by the user

    explicit Callbacks(LLMTrainer& run);
    void makeMonitors(LLMTrainer& run);
    void makeEarlyStopping(LLMTrainer& run);
    std::vector<Callback*> list(const recipe::Recipe& recipe, const std::vector<Callback*>& own, RunControl& control) {
        std::vector<Callback*> all{&metrics, &lossMonitor};
        if (recipe.flag("callbacks.time_monitor")) all.push_back(&timeMonitor);
        if (evaluation) all.push_back(evaluation.get());
        if (sample) all.push_back(sample.get());
        if (plateau) all.push_back(plateau.get());
        if (earlyStopping) all.push_back(earlyStopping.get());
        all.insert(all.end(), own.begin(), own.end()); // of whoever made the trainer
        all.insert(all.end(), typed.begin(), typed.end()); // before the checkpoint, which keeps their state
        all.insert(all.end(), {&beforeFirstCheckpoint, &checkpoint, &timeLimit, &control});
        return all;
    }
};

LLMTrainer::Callbacks::Callbacks(LLMTrainer& run)
    : metrics(run.m_reporter), lossMonitor(run.m_recipe.integer("callbacks.loss_monitor_steps"), [&run](const std::string& line) { run.m_reporter.print(line); }),
      timeMonitor([&run](const std::string& line) { run.m_reporter.print(line); }),
      checkpoint(run.m_recipe.integer("checkpoint.every_steps"), run.m_recipe.flag("checkpoint.keep_best"),
                 [&run](RunContext&, std::int64_t bestStep) { return run.save(bestStep); }),
      timeLimit(run.m_reporter, run.m_recipe.real("train.max_minutes")) {
    typed = run.m_scripts->callbacks();
    std::vector<Callback*> listeners = typed;
    listeners.push_back(&run.m_control);
    if (run.m_data.validation)
        evaluation = std::make_unique<EvaluationCallback>(*run.m_data.validation, run.m_recipe.integer("evaluate.every_steps"),
                                                          run.m_recipe.integer("evaluate.max_batches"), listeners,
                                                          [&run](RunContext&, const Evaluation& result) { run.reportEvaluation(result); },
                                                          [&run] { return run.checkAnswers(); });
    if (run.m_tokenizer)
        sample = std::make_unique<SampleCallback>(run.m_recipe.integer("sample.every_steps"), [&run](RunContext&) { return run.writeSamples(); });
    makeMonitors(run);
}

/// What watches the evaluations, and what the run says when it acts.
void LLMTrainer::Callbacks::makeMonitors(LLMTrainer& run) {
    const recipe::Recipe& recipe = run.m_recipe;
    if (recipe.integer("callbacks.reduce_lr_patience") > 0) {
        const ReduceLROnPlateau::Options options{.monitor = monitorOf(recipe, "reduce_lr"),
                                                 .factor = recipe.real("callbacks.reduce_lr_factor"),
                                                 .cooldown = recipe.integer("callbacks.reduce_lr_cooldown"),
                                                 .minLr = recipe.real("callbacks.reduce_lr_min")};
        plateau = std::make_unique<ReduceLROnPlateau>(options, [this, &run](RunContext& context, double before, double after) {
            const std::string& monitor = plateau->options().monitor;
            run.m_reporter.info("plateau", "\"" + monitor + "\" improved no more: the learning rate goes from " + numberText(before) + " to " + numberText(after) + ".",
                                nlohmann::json{{"step", context.originalArgs().curStepNum + 1}, {"monitor", monitor}, {"best", best(*plateau)}, {"before", before}, {"lr", after}}.dump());
        });
    }
    if (recipe.integer("callbacks.early_stopping_patience") > 0)
        makeEarlyStopping(run);
}

void LLMTrainer::Callbacks::makeEarlyStopping(LLMTrainer& run) {
    const double baseline = run.m_recipe.real("callbacks.early_stopping_baseline");
    const EarlyStopping::Options options{.monitor = monitorOf(run.m_recipe, "early_stopping"),
                                         .baseline = baseline == 0 ? std::nullopt : std::optional(baseline),
                                         .restoresBestWeights = run.m_recipe.flag("callbacks.early_stopping_restore_best")};
    earlyStopping = std::make_unique<EarlyStopping>(options, [this, &run](RunContext& context) {
        const std::string& monitor = earlyStopping->options().monitor;
        const std::int64_t restored = earlyStopping->restoredStep();
        if (restored > 0) { // what was measured last are other weights
            run.m_lastPerplexity = 0;
            run.m_lastMatch = -1;
        }
        run.m_reporter.info("early_stopping", "\"" + monitor + "\" improved no more" +
                                                  (earlyStopping->best() ? " than to " + roundedText(*earlyStopping->best()) : std::string()) + ": the run ends early" +
                                                  (restored > 0 ? ", with the weights of step " + std::to_string(restored) : std::string()) + ".",
                            nlohmann::json{{"step", context.originalArgs().curStepNum}, {"monitor", monitor}, {"best", best(*earlyStopping)}, {"restored_step", restored}}.dump());
    });
}

Result<Model::End> LLMTrainer::train() {
    Callbacks callbacks(*this);
    DataWatch watch(m_state.corpus, m_reporter);
    m_callbacks = callbacks.list(m_recipe, m_setup.callbacks, m_control);
    m_callbacks.insert(m_callbacks.begin(), &watch);
    CELLOOM_TRY_STATUS(restoreCallbackState(m_state, m_callbacks));
    if (!m_found.path.empty()) CELLOOM_TRY_STATUS(restoreCallbackTensors(m_found.path, m_callbacks));
    m_control.attach(callbacks.evaluation.get(), callbacks.sample.get(), &callbacks.checkpoint);

    m_reporter.beginTraining(m_model->step(), totalSteps(), m_model->planOf(*m_data.train).stepsPerEpoch(), m_state.elapsedSeconds, m_state.secondsPerStep);
    m_reporter.state(RunState::Running);
    m_reporter.stage("training");
    m_isTraining = true;
    auto end = trainToTheEnd();
    m_isTimeOver = callbacks.timeLimit.isReached();
    if (!end) keepWhatWasLearned(callbacks.checkpoint, end.error());
    m_isStoppedEarly = callbacks.earlyStopping && callbacks.earlyStopping->stoppedEpoch() > 0;
    m_callbacks.clear();
    if (const auto& failure = m_scripts->failures().first(); end && failure && m_scripts->failures().isStopWanted()) return tl::unexpected(*failure);
    if (end && *end != Model::End::Diverged) CELLOOM_TRY_STATUS(saveFinishedAdapter());
    return end;
}

} // namespace celloom::engine
