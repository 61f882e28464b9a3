// The part of a run that trains: its list of callbacks, and the call that they listen to.
#include "engine/train/data_watch.h"
#include "engine/train/llm_trainer.h"
#include "engine/train/run_callbacks.h"

namespace celloom::engine {
using store::RunState;

/// The callbacks of a run. Their order is the order of what happens after a step: say it, measure, write, save, obey.
struct LLMTrainer::Callbacks {
    MetricsCallback metrics;
    LossMonitor lossMonitor;
    TimeMonitor timeMonitor;
    std::unique_ptr<EvaluationCallback> evaluation; // null without validation data
    std::unique_ptr<SampleCallback> sample;         // null without a tokenizer
    ModelCheckpoint checkpoint;
    BeforeFirstCheckpoint beforeFirstCheckpoint{checkpoint};
    TimeLimit timeLimit;

    explicit Callbacks(LLMTrainer& run);
    std::vector<Callback*> list(const recipe::Recipe& recipe, RunControl& control) {
        std::vector<Callback*> all{&metrics, &lossMonitor};
        if (recipe.flag("callbacks.time_monitor")) all.push_back(&timeMonitor);
        if (evaluation) all.push_back(evaluation.get());
        if (sample) all.push_back(sample.get());
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
    if (run.m_data.validation)
        evaluation = std::make_unique<EvaluationCallback>(*run.m_data.validation, run.m_recipe.integer("evaluate.every_steps"),
                                                          run.m_recipe.integer("evaluate.max_batches"), std::vector<Callback*>{&run.m_control},
                                                          [&run](RunContext&, const Evaluation& result) { run.reportEvaluation(result); },
                                                          [&run] { return run.checkAnswers(); });
    if (run.m_tokenizer)
        sample = std::make_unique<SampleCallback>(run.m_recipe.integer("sample.every_steps"), [&run](RunContext&) { return run.writeSamples(); });
}

Result<Model::End> LLMTrainer::train() {
    Callbacks callbacks(*this);
    DataWatch watch(m_state.corpus, m_reporter);
    m_callbacks = callbacks.list(m_recipe, m_control);
    m_callbacks.insert(m_callbacks.begin(), &watch);
    CELLOOM_TRY_STATUS(restoreCallbackState(m_state, m_callbacks));
    m_control.attach(callbacks.evaluation.get(), callbacks.sample.get(), &callbacks.checkpoint);

    m_reporter.beginTraining(m_model->step(), totalSteps(), m_model->planOf(*m_data.train).stepsPerEpoch(), m_state.elapsedSeconds, m_state.secondsPerStep);
    m_reporter.state(RunState::Running);
    m_reporter.stage("training");
    m_isTraining = true;
    auto end = trainToTheEnd();
    m_isTimeOver = callbacks.timeLimit.isReached();
    if (!end) keepWhatWasLearned(callbacks.checkpoint, end.error());
    m_callbacks.clear();
    if (end && *end != Model::End::Diverged) CELLOOM_TRY_STATUS(saveFinishedAdapter());
    return end;
}

} // namespace celloom::engine
