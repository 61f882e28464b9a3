// Callbacks that watch a measurement and act where it stops improving, as MindSpore's EarlyStopping and ReduceLROnPlateau.
#pragma once

#include "engine/train/callback.h"

#include <ATen/core/Tensor.h>

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace celloom::engine {

enum class Better { Auto, Min, Max }; // Auto: losses, errors and perplexities fall, everything else rises
enum class Watch {
    Epochs,     // at the end of each epoch of fit, as MindSpore
    Evaluations // after each evaluation of a run, whenever it is made
};

struct MonitorOptions {
    /// "loss": of the last step, at epochs' ends. Otherwise a metric of the evaluation, "accuracy" or "eval_accuracy"; "eval_loss".
    std::string monitor = "eval_loss";
    std::int64_t patience = 0; // measurements without improvement that are waited for
    Better mode = Better::Auto;
    double minDelta = 0; // what counts as an improvement
    Watch watch = Watch::Epochs;
};

/// The measurement of that name: an evaluation's, with or without "eval_".
std::optional<double> measurement(const std::map<std::string, double>& results, const std::string& name);

class Monitor : public Callback {
public:
    Status begin(RunContext& context) override;
    Status stepEnd(RunContext& context) override;
    Status epochEnd(RunContext& context) override;
    std::map<std::string, double> state() const override;
    void restore(const std::map<std::string, double>& state) override;
    [[nodiscard]] std::optional<double> best() const { return m_best; }
    [[nodiscard]] const MonitorOptions& options() const { return m_options; }

protected:
    explicit Monitor(MonitorOptions options);
    virtual Status measured(double value, RunContext& context) = 0;
    virtual void reset() = 0; // a training begins that was not resumed
    [[nodiscard]] bool isBetter(double value, double than) const;
    /// Whether the value improves on the best so far, which it then is.
    bool improves(double value);

    MonitorOptions m_options;
    std::int64_t m_wait = 0;

private:
    Status look(RunContext& context);

    bool m_isFalling;
    std::optional<double> m_best;
    std::int64_t m_lastStep = -1; // of the last measurement
    bool m_isRestored = false;
};

/// Asks to stop after `patience` measurements without improvement. MindSpore's patience 0 stops after the first epoch whatever it
/// brought; here it stops at the first measurement that does not improve.
class EarlyStopping : public Monitor {
public:
    struct Options {
        MonitorOptions monitor;
        std::optional<double> baseline = {}; // only what is better than this counts as not waiting
        bool restoresBestWeights = false; // those of the best measurement, a second copy of all that learns
    };
    using Report = std::function<void(RunContext&)>;
    explicit EarlyStopping(Options options, Report report = {});
    Status begin(RunContext& context) override;
    std::string stateName() const override { return "EarlyStopping"; }
    std::map<std::string, double> state() const override;
    void restore(const std::map<std::string, double>& state) override;
    std::map<std::string, at::Tensor> stateTensors() const override { return m_bestWeights; }
    Status restoreTensors(const std::map<std::string, at::Tensor>& tensors) override;
    /// 0: it did not stop.
    [[nodiscard]] std::int64_t stoppedEpoch() const { return m_stoppedEpoch; }
    /// The step whose weights the network has again since the stop; 0: those of the last step.
    [[nodiscard]] std::int64_t restoredStep() const { return m_restoredStep; }

protected:
    Status measured(double value, RunContext& context) override;
    void reset() override;

private:
    Options m_settings;
    Report m_report;
    std::int64_t m_stoppedEpoch = 0, m_bestStep = 0, m_restoredStep = 0;
    std::map<std::string, at::Tensor> m_bestWeights; // by the parameters' paths
};

/// Multiplies the learning rate by `factor` after `patience` measurements without improvement. The schedule counts no longer from then on.
class ReduceLROnPlateau : public Monitor {
public:
    struct Options {
        MonitorOptions monitor{.patience = 10, .minDelta = 1e-4};
        double factor = 0.1;       // above 0, below 1
        std::int64_t cooldown = 0; // measurements after a reduction that are not waited for
        double minLr = 0;
    };
    using Report = std::function<void(RunContext&, double before, double after)>;
    explicit ReduceLROnPlateau(Options options, Report report = {});
    std::string stateName() const override { return "ReduceLROnPlateau"; }
    std::map<std::string, double> state() const override;
    void restore(const std::map<std::string, double>& state) override;

protected:
    Status measured(double value, RunContext& context) override;
    void reset() override { m_cooldown = 0; }

private:
    Options m_settings;
    Report m_report;
    std::int64_t m_cooldown = 0;
};

} // namespace celloom::engine
