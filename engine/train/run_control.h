// Commands from outside: pause, go on, stop, save, evaluate, sample, another learning rate. Looked at between steps and between the
// batches of an evaluation.
#pragma once

#include "engine/train/callbacks.h"
#include "engine/train/run_reporter.h"

#include <atomic>
#include <deque>

namespace celloom::engine {

class RunControl : public Callback {
public:
    /// `stopSignal` is set by a signal handler and means Stop. Either may be null.
    RunControl(RunReporter& reporter, protocol::ChildLink* link, const std::atomic<bool>* stopSignal)
        : m_reporter(reporter), m_link(link), m_stopSignal(stopSignal) {}
    /// What commands act on; null where the run has none.
    void attach(EvaluationCallback* evaluation, SampleCallback* sample, ModelCheckpoint* checkpoint);

    /// For work before the first step: true once a stop was asked for. Other commands wait.
    bool isStopAsked();

    /// Of a run that makes no steps: the stage in which it works ("evaluating").
    void setWorkStage(const std::string& stage) { m_workStage = stage; }
    /// For a run that makes no steps, between batches or prompts: pause, go on, stop. What such a run cannot do is answered.
    Status atBoundary(RunContext& context) { return stepEnd(context); }

    Status begin(RunContext& context) override;
    Status stepEnd(RunContext& context) override; // last in the list: the step is complete, measured and saved
    Status onEvalBegin(RunContext& context) override;
    Status onEvalStepEnd(RunContext& context) override;
    Status onEvalEnd(RunContext& context) override;

private:
    void collect();
    /// A run that makes no steps has nothing to attach.
    bool trains() const { return m_checkpoint != nullptr; }
    Status refuse(const protocol::Command& command);
    Status save(RunContext& context);
    Status sample(RunContext& context);
    void say(const std::string& kind, const std::string& message, std::int64_t step);
    Status obey(const protocol::Command& command, RunContext& context);
    void waitForSomethingToDo();
    void stop(RunContext& context);

    RunReporter& m_reporter;
    protocol::ChildLink* m_link;
    const std::atomic<bool>* m_stopSignal;
    EvaluationCallback* m_evaluation = nullptr;
    SampleCallback* m_sample = nullptr;
    ModelCheckpoint* m_checkpoint = nullptr;
    std::deque<protocol::Command> m_pending;
    std::string m_workStage = "training"; // where a pause goes on
    bool m_isStopAsked = false, m_isPaused = false;
};

} // namespace celloom::engine
