// The callbacks that come with Celloom, under MindSpore's names where it has them.
#pragma once

#include "engine/train/callback.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace celloom::engine {

class Dataset;
struct Evaluation;

/// Where lines for people go (the run's log).
using Print = std::function<void(const std::string&)>;

/// Prints "epoch: E step: S, loss is L" (S within the epoch, from 1) every `perPrintTimes` steps; 0: never. At the end of an epoch that was
/// evaluated "Eval result: epoch E, metrics: {'accuracy': …}". A NaN needs no monitor to end a training: see Model::divergence.
class LossMonitor : public Callback {
public:
    LossMonitor(std::int64_t perPrintTimes, Print print) : m_every(perPrintTimes), m_print(std::move(print)) {}
    Status stepEnd(RunContext& context) override;
    Status epochEnd(RunContext& context) override;
    std::string stateName() const override { return "LossMonitor"; }
    std::map<std::string, double> state() const override;
    void restore(const std::map<std::string, double>& state) override;

private:
    std::int64_t m_every, m_last = 0;
    Print m_print;
};

/// Prints "Train epoch time: … ms, per step time: … ms" at the end of each epoch, "Eval epoch time: …" at that of an evaluation.
class TimeMonitor : public Callback {
public:
    /// `hasDataTime`: adds "(data time: … ms)", the mean time in which a step waited for its data.
    explicit TimeMonitor(Print print, bool hasDataTime = false) : m_print(std::move(print)), m_hasDataTime(hasDataTime) {}
    Status epochBegin(RunContext& context) override;
    Status stepEnd(RunContext& context) override;
    Status epochEnd(RunContext& context) override;
    Status onEvalEpochBegin(RunContext& context) override;
    Status onEvalEpochEnd(RunContext& context) override;

private:
    Print m_print;
    bool m_hasDataTime;
    std::int64_t m_firstStep = 0;
    double m_start = 0, m_evalStart = 0, m_dataSeconds = 0;
};

/// Sets the learning rate of the next step to what the function makes of the rate and the number of the step just done.
class LearningRateScheduler : public Callback {
public:
    using Function = std::function<double(double rate, std::int64_t step)>;
    explicit LearningRateScheduler(Function function) : m_function(std::move(function)) {}
    Status stepEnd(RunContext& context) override;

private:
    Function m_function;
};

/// Keeps the loss of each epoch's last step ("net_output") and what its evaluation measured.
class History : public Callback {
public:
    Status begin(RunContext& context) override;
    Status epochEnd(RunContext& context) override;
    [[nodiscard]] const std::vector<std::int64_t>& epoch() const { return m_epoch; }
    [[nodiscard]] const std::map<std::string, std::vector<double>>& history() const { return m_history; }
    std::string stateName() const override { return "History"; }
    std::string stateJson() const override;
    Status restoreJson(const std::string& text) override;

private:
    std::vector<std::int64_t> m_epoch;
    std::map<std::string, std::vector<double>> m_history;
    bool m_isRestored = false;
};

/// A callback made of functions; those that are not set do nothing.
class LambdaCallback : public Callback {
public:
    using Function = std::function<Status(RunContext&)>;
    struct Functions {
        Function onTrainBegin = {}, onTrainEpochBegin = {}, onTrainStepBegin = {}, onTrainStepEnd = {}, onTrainEpochEnd = {}, onTrainEnd = {};
        Function onEvalBegin = {}, onEvalEpochBegin = {}, onEvalStepBegin = {}, onEvalStepEnd = {}, onEvalEpochEnd = {}, onEvalEnd = {};
    };
    explicit LambdaCallback(Functions functions) : m_functions(std::move(functions)) {}
    Status onTrainBegin(RunContext& context) override { return call(m_functions.onTrainBegin, context); }
    Status onTrainEpochBegin(RunContext& context) override { return call(m_functions.onTrainEpochBegin, context); }
    Status onTrainStepBegin(RunContext& context) override { return call(m_functions.onTrainStepBegin, context); }
    Status onTrainStepEnd(RunContext& context) override { return call(m_functions.onTrainStepEnd, context); }
    Status onTrainEpochEnd(RunContext& context) override { return call(m_functions.onTrainEpochEnd, context); }
    Status onTrainEnd(RunContext& context) override { return call(m_functions.onTrainEnd, context); }
    Status onEvalBegin(RunContext& context) override { return call(m_functions.onEvalBegin, context); }
    Status onEvalEpochBegin(RunContext& context) override { return call(m_functions.onEvalEpochBegin, context); }
    Status onEvalStepBegin(RunContext& context) override { return call(m_functions.onEvalStepBegin, context); }
    Status onEvalStepEnd(RunContext& context) override { return call(m_functions.onEvalStepEnd, context); }
    Status onEvalEpochEnd(RunContext& context) override { return call(m_functions.onEvalEpochEnd, context); }
    Status onEvalEnd(RunContext& context) override { return call(m_functions.onEvalEnd, context); }

private:
    static Status call(const Function& function, RunContext& context) { return function ? function(context) : Status(); }
    Functions m_functions;
};

/// Measures the validation data every `everySteps` steps (0: only at the end) and after the last step.
class EvaluationCallback : public Callback {
public:
    using Report = std::function<void(RunContext&, const Evaluation&)>;
    /// `afterwards` follows each report: answers to held-out questions, say.
    EvaluationCallback(const Dataset& validation, std::int64_t everySteps, std::int64_t maxBatches, std::vector<Callback*> listeners, Report report,
                       std::function<Status()> afterwards = {});
    Status begin(RunContext& context) override; // makes up for an evaluation that a stop cut short
    Status stepEnd(RunContext& context) override;
    Status evaluateNow(RunContext& context);
    std::string stateName() const override { return "EvaluationCallback"; }
    std::map<std::string, double> state() const override;
    void restore(const std::map<std::string, double>& state) override;

private:
    bool isDue(const CallbackParams& params) const;

    const Dataset& m_validation;
    std::int64_t m_every, m_maxBatches, m_lastStep = -1;
    std::vector<Callback*> m_listeners;
    Report m_report;
    std::function<Status()> m_afterwards;
};

/// Lets the model write: after every `everySteps` steps and after the last one; 0: never.
class SampleCallback : public Callback {
public:
    using Write = std::function<Status(RunContext&)>;
    SampleCallback(std::int64_t everySteps, Write write) : m_every(everySteps), m_write(std::move(write)) {}
    Status stepEnd(RunContext& context) override;
    Status writeNow(RunContext& context) { return m_write(context); }

private:
    std::int64_t m_every;
    Write m_write;
};

/// Saves every `everySteps` steps (0: only at the end) and after the last step; remembers which checkpoint was best on the validation data.
class ModelCheckpoint : public Callback {
public:
    /// Writes the checkpoint of the current step and deletes those no longer kept; `bestStep` is to be kept whatever its age (-1: none).
    using Save = std::function<Status(RunContext&, std::int64_t bestStep)>;
    ModelCheckpoint(std::int64_t everySteps, bool keepsBest, Save save) : m_every(everySteps), m_keepsBest(keepsBest), m_save(std::move(save)) {}
    Status stepEnd(RunContext& context) override;
    Status end(RunContext& context) override { return saveNow(context); } // also where a stop was asked for
    Status saveNow(RunContext& context);                                  // unless this step is saved already
    std::int64_t lastStep() const { return m_lastStep; }
    std::string stateName() const override { return "ModelCheckpoint"; }
    std::map<std::string, double> state() const override;
    void restore(const std::map<std::string, double>& state) override;

private:
    std::int64_t m_every;
    bool m_keepsBest;
    Save m_save;
    std::int64_t m_lastStep = -1, m_bestStep = -1;
    double m_bestLoss = 0;
};

} // namespace celloom::engine
