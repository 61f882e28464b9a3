// Callbacks that tie training to a run's folder: metric rows, the time limit, a place for recovery tests.
#pragma once

#include "engine/train/callbacks.h"
#include "engine/train/run_reporter.h"

namespace celloom::engine {

/// After each step a row of "train/loss", "train/lr", "train/grad_norm", "train/tokens_per_s" (of a run on named columns "train/rows_per_s"), "system/memory_bytes" and, where one is used,
/// "train/loss_scale"; where cells add to the loss "train/auxiliary_loss". First in the list: what the others say then bears the new step.
class MetricsCallback : public Callback {
public:
    explicit MetricsCallback(RunReporter& reporter) : m_reporter(reporter) {}
    Status stepEnd(RunContext& context) override;

private:
    void sayOverflow(const CallbackParams& params);

    RunReporter& m_reporter;
    std::int64_t m_overflows = 0; // in a row, in this process
    bool m_isStormSaid = false;
};

/// Asks to stop once the run has trained for so many minutes, all its parts together.
class TimeLimit : public Callback {
public:
    TimeLimit(RunReporter& reporter, double minutes) : m_reporter(reporter), m_minutes(minutes) {}
    Status stepEnd(RunContext& context) override;
    bool isReached() const { return m_isReached; }

private:
    RunReporter& m_reporter;
    double m_minutes;
    bool m_isReached = false;
};

/// A kill point after each step as long as nothing is saved.
class BeforeFirstCheckpoint : public Callback {
public:
    explicit BeforeFirstCheckpoint(const ModelCheckpoint& checkpoint) : m_checkpoint(checkpoint) {}
    Status stepEnd(RunContext& context) override;

private:
    const ModelCheckpoint& m_checkpoint;
};

} // namespace celloom::engine
