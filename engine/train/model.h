// Training, evaluation and their loop, in the manner of MindSpore's Model: what happens in a step is here, what happens around it in callbacks.
// Letters in shapes: B rows, T tokens, V vocabulary.
#pragma once

#include "engine/data/step_plan.h"
#include "engine/train/callback.h"
#include "engine/train/loss_scale.h"
#include "engine/train/optimizer.h"
#include "models/recipe/schedule.h"

#include <optional>

namespace celloom::engine {

class Dataset;

struct ModelOptions {
    std::int64_t batchSize = 8;
    std::int64_t accumulation = 1; // batches a step
    EpochTail tail = EpochTail::Run;
    bool shuffle = true;
    bool groupsByLength = false; // shuffled batches of rows of about the same length
    std::uint64_t seed = 0; // of the shuffle and of dropout
    double clipNorm = 0;    // 0: off
    double zLossWeight = 0; // 0: off; see z_loss.h. Counts in training, not in an evaluation
    LossScale lossScale;
    bool runsEmptySteps = false; // a step whose labels are all ignored changes nothing; otherwise it is an error
};

struct Evaluation {
    double loss = 0; // mean over all valid tokens of the data
    std::int64_t tokens = 0;
    [[nodiscard]] double perplexity() const;
};

class Model {
public:
    /// Network and optimizer are used, not owned.
    Model(Network& network, Optimizer& optimizer, recipe::Schedule schedule, ModelOptions options);

    enum class End {
        Finished, // all steps done
        Stopped,  // a callback asked for it
        Diverged  // a loss or a gradient was NaN or infinite; the weights are those of the step before: see divergence()
    };
    /// Runs steps step()+1 … totalSteps, epoch after epoch.
    Result<End> train(std::int64_t totalSteps, const Dataset& rows, const std::vector<Callback*>& callbacks);
    /// As train for whole epochs, with an evaluation at the end of each `validFrequency`th one.
    Result<End> fit(std::int64_t epochs, const Dataset& rows, const Dataset& validation, const std::vector<Callback*>& callbacks,
                    std::int64_t validFrequency = 1);
    /// Nothing where a callback asked to stop meanwhile. `maxBatches` 0: all of the data.
    Result<std::optional<Evaluation>> evaluate(const Dataset& rows, RunContext& context, const std::vector<Callback*>& callbacks = {},
                                               std::int64_t maxBatches = 0);

    [[nodiscard]] StepPlan planOf(const Dataset& rows) const;
    [[nodiscard]] std::int64_t step() const { return m_step; } // steps done
    /// The step that could not be made.
    struct Divergence {
        Error error;
        std::int64_t step = 0; // 0: none
        double epoch = 0, loss = 0, gradNorm = 0;
    };
    const Divergence& divergence() const { return m_divergence; }

    /// From now on this rate, whatever the schedule says.
    void fixLearningRate(double rate) { m_fixedRate = rate; }

    /// Where training stands, beside weights and moments; with equal state training goes on bit for bit.
    struct State {
        std::int64_t step = 0;
        std::optional<double> fixedRate;
        LossScale::State lossScale;
    };
    [[nodiscard]] State state() const { return {m_step, m_fixedRate, m_options.lossScale.state()}; }
    void restore(const State& state);

private:
    struct StepResult {
        double loss = 0, gradNorm = 0;
        std::int64_t tokens = 0;
        bool isOverflow = false, isEmpty = false;
    };
    Result<StepResult> trainStep(const Dataset& ordered, const StepPlan& plan, std::int64_t stepInEpoch, double learningRate);
    Result<std::optional<double>> accumulateGradients(const std::vector<Batch>& batches);
    Status runEpoch(const Dataset& rows, RunContext& context, const std::vector<Callback*>& callbacks);
    bool isDiverged(const StepResult& result, const CallbackParams& params);

    Network& m_network;
    Optimizer& m_optimizer;
    recipe::Schedule m_schedule;
    ModelOptions m_options;
    std::int64_t m_step = 0;
    std::optional<double> m_fixedRate;
    Divergence m_divergence;
};

} // namespace celloom::engine
