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

/// Prints "epoch: E step: S, loss is L" (S within the epoch, from 1) every `perPrintTimes` steps; 0: never.
class LossMonitor : public Callback {
public:
    LossMonitor(std::int64_t perPrintTimes, Print print) : m_every(perPrintTimes), m_print(std::move(print)) {}
    Status stepEnd(RunContext& context) override;
    std::string stateName() const override { return "LossMonitor"; }
    std::map<std::string, double> state() const override;
    void restore(const std::map<std::string, double>& state) override;

private:
    std::int64_t m_every, m_last = 0;
    Print m_print;
};

/// Prints "Train epoch time: … ms, per step time: … ms" at the end of each epoch.
class TimeMonitor : public Callback {
public:
    explicit TimeMonitor(Print print) : m_print(std::move(print)) {}
    Status epochBegin(RunContext& context) override;
    Status epochEnd(RunContext& context) override;

private:
    Print m_print;
    std::int64_t m_firstStep = 0;
    double m_start = 0;
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
