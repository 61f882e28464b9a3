// Typed sources at work in a run: a callback that calls the user's methods, a schedule, and what happens when one fails.
#pragma once

#include "engine/script/script.h"
#include "engine/train/run_reporter.h"

namespace celloom::engine {

enum class OnScriptError { Stop, Disable };

/// Errors of a run's typed sources: said as events, and, where the recipe wants it, the end of the run. Shared by its callbacks and metrics.
class ScriptFailures {
public:
    ScriptFailures(RunReporter& reporter, OnScriptError policy) : m_reporter(reporter), m_policy(policy) {}
    void report(const std::string& script, const ScriptProblem& problem);
    /// The run should save and end.
    [[nodiscard]] bool isStopWanted() const { return m_first && m_policy == OnScriptError::Stop; }
    /// Of a run that ended because of it.
    [[nodiscard]] const std::optional<Error>& first() const { return m_first; }
    RunReporter& reporter() { return m_reporter; }

private:
    RunReporter& m_reporter;
    OnScriptError m_policy;
    std::optional<Error> m_first;
};

/// A line that typed code printed: an event and a line of the log; after many of them the log alone.
class ScriptPrinter {
public:
    ScriptPrinter(RunReporter& reporter, std::string script) : m_reporter(reporter), m_script(std::move(script)) {}
    void operator()(const std::string& line);

private:
    static constexpr int kMaxEvents = 1000;
    RunReporter& m_reporter;
    std::string m_script;
    int m_events = 0;
};

/// `class X(Callback)` or `def f(lr, cur_step_num)`. Its attributes are part of the run's checkpoints, as they are between two steps: a run that
/// stops and goes on calls the methods that an uninterrupted one calls, so that begin comes once, and epoch_end when the epoch is whole. What the
/// methods do when a run stops within an epoch is seen, and not kept.
class TypedCallback : public Callback {
public:
    /// `failures` is used, not owned, and outlives it.
    TypedCallback(std::unique_ptr<Script> script, ScriptFailures& failures);
    const Script& script() const { return *m_script; }

    Status onTrainBegin(RunContext& context) override;
    Status onTrainEpochBegin(RunContext& context) override;
    Status onTrainStepBegin(RunContext& context) override { return fire(context, "on_train_step_begin", "step_begin"); }
    Status onTrainStepEnd(RunContext& context) override;
    Status onTrainEpochEnd(RunContext& context) override;
    Status onTrainEnd(RunContext& context) override;
    Status onEvalBegin(RunContext& context) override { return fire(context, "on_eval_begin"); }
    Status onEvalEpochBegin(RunContext& context) override { return fire(context, "on_eval_epoch_begin"); }
    Status onEvalStepBegin(RunContext& context) override { return fire(context, "on_eval_step_begin"); }
    Status onEvalStepEnd(RunContext& context) override { return fire(context, "on_eval_step_end"); }
    Status onEvalEpochEnd(RunContext& context) override { return fire(context, "on_eval_epoch_end"); }
    Status onEvalEnd(RunContext& context) override { return fire(context, "on_eval_end"); }

    std::string stateName() const override { return "script:" + m_script->name(); }
    std::string stateJson() const override { return m_kept ? *m_kept : currentState(); }
    Status restoreJson(const std::string& state) override;

private:
    std::string currentState() const;
    Status fire(RunContext& context, const char* event, const char* oldEvent = nullptr);
    void followSchedule(RunContext& context);
    void setRate(RunContext& context, double rate, const std::string& method);
    void fail(RunContext& context, const ScriptProblem& problem);

    std::unique_ptr<Script> m_script;
    ScriptFailures& m_failures;
    std::optional<std::string> m_kept; // the state before the methods that a stop alone brings about
    std::int64_t m_epochsEnded = 0;
    bool m_isOff = false, m_isResumed = false;
};

} // namespace celloom::engine
