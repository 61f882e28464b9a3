// The typed sources of one run: compiled from its recipe, at work as callbacks and metrics, and what is done when one fails.
#pragma once

#include "engine/script/typed_callback.h"
#include "engine/train/metric.h"
#include "models/recipe/recipe.h"

#include <memory>
#include <vector>

namespace celloom::engine {

/// `class M(Metric)`. Its predictions are [N, …] and its labels [N] or [N, …], those that count alone (no -100). One that has failed measures NaN.
class TypedMetric : public Metric {
public:
    TypedMetric(std::unique_ptr<Script> script, ScriptFailures& failures);
    void clear() override;
    Status update(const MetricInput& input) override;
    Result<double> eval() const override;

private:
    void note(const ScriptResult<void>& result) const;

    std::unique_ptr<Script> m_script;
    ScriptFailures& m_failures;
    mutable bool m_isOff = false;
};

class RunScripts {
public:
    /// Compiles what callbacks.scripts holds; the first that cannot be is an error with its place. Try them first: tryScripts of trial.h.
    static Result<std::unique_ptr<RunScripts>> compile(const recipe::Recipe& recipe, RunReporter& reporter);

    /// In the recipe's order; the last one asks to stop where a metric failed. They hear of training and of evaluations.
    [[nodiscard]] std::vector<Callback*> callbacks() const;
    const Metrics& metrics() const { return m_metrics; } // by the scripts' names
    const ScriptFailures& failures() const { return m_failures; }

private:
    RunScripts(RunReporter& reporter, OnScriptError policy) : m_failures(reporter, policy) {}

    /// A metric cannot ask to stop itself.
    class StopForMetrics : public Callback {
    public:
        explicit StopForMetrics(const ScriptFailures& failures) : m_failures(failures) {}
        Status stepEnd(RunContext& context) override { return look(context); }
        Status onEvalStepEnd(RunContext& context) override { return look(context); }

    private:
        Status look(RunContext& context) {
            if (m_failures.isStopWanted()) context.requestStop();
            return {};
        }
        const ScriptFailures& m_failures;
    };

    ScriptFailures m_failures;
    std::vector<std::unique_ptr<Callback>> m_callbacks;
    Metrics m_metrics;
};

} // namespace celloom::engine
