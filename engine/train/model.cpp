#include "engine/train/model.h"

#include "engine/data/dataset.h"
#include "engine/exec/z_loss.h"
#include "models/base/kill_points.h"

#include <ATen/ops/_foreach_mul.h>

#include <chrono>
#include <cmath>
#include <memory>

namespace celloom::engine {
namespace {

using Event = Status (Callback::*)(RunContext&);

Status tell(const std::vector<Callback*>& callbacks, Event event, RunContext& context) {
    for (Callback* callback : callbacks) CELLOOM_TRY_STATUS((callback->*event)(context));
    return {};
}

Batch onDevice(Batch batch, at::Device device) {
    if (device.is_cpu()) return batch;
    for (at::Tensor* tensor : {&batch.inputIds, &batch.labels, &batch.attentionMask, &batch.segments, &batch.positions})
        if (tensor->defined()) *tensor = tensor->to(device);
    return batch;
}

std::vector<Batch> gather(const Dataset& rows, const StepPlan& plan, std::int64_t step) {
    std::vector<Batch> out;
    for (const auto& [first, count] : plan.microBatches(step)) out.push_back(collate(rows, first, count));
    return out;
}

/// Each forward pass draws its dropout from a number of its own, so that a resume needs no more than the step.
std::uint64_t dropoutSeed(std::uint64_t seed, std::int64_t step, std::size_t batch) {
    return (seed * 0x9E3779B97F4A7C15ull + static_cast<std::uint64_t>(step)) * 0xBF58476D1CE4E5B9ull + batch;
}

/// Where less than this part of the positions counts in the loss, the head computes those alone.
constexpr double kFewLabels = 0.9;

/// Loss and, where they were computed, all logits of a forward pass over the batch.
struct Pass {
    LossSum loss;
    at::Tensor logits; // of all positions, or undefined
};

Result<Pass> lossOf(Network& network, const Batch& batch, ForwardOptions options, bool needsAllLogits) {
    if (!needsAllLogits && network.logitsComeFromTheHead()) {
        const LossTargets targets = lossTargets(batch.labels, batch.segments);
        if (targets.targets.size(0) == 0) return Pass{}; // nothing to compute
        if (static_cast<double>(targets.targets.size(0)) < kFewLabels * static_cast<double>(targets.all)) {
            options.headPositions = targets.positions;
            CELLOOM_TRY(outputs, network.forward(batch, options));
            return Pass{languageModelLoss(outputs.at("logits"), targets), {}};
        }
    }
    CELLOOM_TRY(outputs, network.forward(batch, options));
    const at::Tensor& logits = outputs.at("logits");
    return Pass{languageModelLoss(logits, batch.labels, batch.segments), logits};
}

double secondsSince(std::chrono::steady_clock::time_point start) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// MindSpore's fit evaluates at epoch ends.
class EpochEvaluation : public Callback {
public:
    EpochEvaluation(Model& model, const Dataset& validation, const std::vector<Callback*>& callbacks, std::int64_t frequency)
        : m_model(model), m_validation(validation), m_callbacks(callbacks), m_frequency(frequency) {}
    Status onTrainEpochEnd(RunContext& context) override {
        if (context.originalArgs().curEpochNum % m_frequency != 0) return {};
        return m_model.evaluate(m_validation, context, m_callbacks).map([](const auto&) {});
    }

private:
    Model& m_model;
    const Dataset& m_validation;
    const std::vector<Callback*>& m_callbacks;
    std::int64_t m_frequency;
};

} // namespace

double Evaluation::perplexity() const { return std::exp(loss); }

Model::Model(Network& network, Optimizer& optimizer, recipe::Schedule schedule, ModelOptions options)
    : m_network(network), m_optimizer(optimizer), m_schedule(std::move(schedule)), m_options(std::move(options)) {}

Result<std::map<std::string, at::Tensor>> Model::predict(const Batch& inputs) {
    return m_network.forward(inputs);
}

StepPlan Model::planOf(const Dataset& rows) const { return {rows.size(), m_options.batchSize, m_options.accumulation, m_options.tail}; }

void Model::restore(const State& state) {
    m_step = state.step;
    m_fixedRate = state.fixedRate;
    m_options.lossScale.restore(state.lossScale);
}

Result<Model::End> Model::train(std::int64_t totalSteps, const Dataset& rows, const std::vector<Callback*>& callbacks) {
    RunContext context;
    CallbackParams& params = context.originalArgs();
    params.batchNum = planOf(rows).stepsPerEpoch();
    CELLOOM_CHECK(params.batchNum > 0);
    params.epochNum = (totalSteps + params.batchNum - 1) / params.batchNum;
    params.totalSteps = totalSteps;
    params.curStepNum = m_step;
    params.curEpochNum = m_step / params.batchNum;
    params.hasLossScale = m_options.lossScale.isOn();
    params.trainNetwork = this;
    params.network = &m_network;
    params.optimizer = &m_optimizer;

    CELLOOM_TRY_STATUS(tell(callbacks, &Callback::onTrainBegin, context));
    while (m_step < totalSteps && !context.isStopRequested()) {
        params.curEpochNum = m_step / params.batchNum + 1;
        CELLOOM_TRY_STATUS(tell(callbacks, &Callback::onTrainEpochBegin, context));
        CELLOOM_TRY_STATUS(runEpoch(rows, context, callbacks));
        if (m_divergence.step > 0) return End::Diverged;
        CELLOOM_TRY_STATUS(tell(callbacks, &Callback::onTrainEpochEnd, context));
    }
    CELLOOM_TRY_STATUS(tell(callbacks, &Callback::onTrainEnd, context));
    return m_step < totalSteps ? End::Stopped : End::Finished;
}

/// The steps from m_step to the end of its epoch, or to the end of the run.
Status Model::runEpoch(const Dataset& rows, RunContext& context, const std::vector<Callback*>& callbacks) {
    CallbackParams& params = context.originalArgs();
    const StepPlan plan = planOf(rows);
    const std::int64_t epoch = m_step / params.batchNum, end = std::min((epoch + 1) * params.batchNum, params.totalSteps);
    const auto shuffled = m_options.shuffle ? std::make_unique<ShuffledDataset>(rows, m_options.seed, epoch, m_options.groupsByLength ? m_options.batchSize : 0) : nullptr;
    const Dataset& ordered = shuffled ? static_cast<const Dataset&>(*shuffled) : rows;

    while (m_step < end && !context.isStopRequested()) {
        params.curStepNum = m_step + 1;
        params.learningRate = m_fixedRate.value_or(m_schedule.rateAt(m_step));
        params.lossScale = m_options.lossScale.value();
        CELLOOM_TRY_STATUS(tell(callbacks, &Callback::onTrainStepBegin, context));
        const auto start = std::chrono::steady_clock::now();
        CELLOOM_TRY(result, trainStep(ordered, plan, m_step % params.batchNum, params.learningRate));
        params.netOutputs = result.loss;
        params.gradNorm = result.gradNorm;
        params.tokens = result.tokens;
        params.isOverflow = result.isOverflow;
        params.isEmpty = result.isEmpty;
        params.stepSeconds = secondsSince(start);
        if (isDiverged(result, params)) return {};
        ++m_step;
        CELLOOM_TRY_STATUS(tell(callbacks, &Callback::onTrainStepEnd, context));
    }
    return {};
}

Result<Model::StepResult> Model::trainStep(const Dataset& ordered, const StepPlan& plan, std::int64_t stepInEpoch, double learningRate) {
    StepResult result;
    const std::vector<Batch> batches = gather(ordered, plan, stepInEpoch);
    for (const Batch& batch : batches) result.tokens += batch.inputIds.numel();
    m_optimizer.zeroGrad();
    CELLOOM_TRY(loss, accumulateGradients(batches));
    killPoint("step");
    result.isEmpty = !loss;
    if (result.isEmpty) return result;
    result.loss = *loss;

    const std::vector<at::Tensor> gradients = m_optimizer.gradients();
    if (m_options.lossScale.isOn()) at::_foreach_mul_(gradients, 1 / m_options.lossScale.value());
    result.gradNorm = globalNorm(gradients); // not finite as soon as one gradient is not
    const bool isFinite = std::isfinite(result.loss) && std::isfinite(result.gradNorm);
    if (m_options.lossScale.isOn()) {
        result.isOverflow = !isFinite;
        CELLOOM_TRY_STATUS(m_options.lossScale.update(result.isOverflow));
    }
    if (!isFinite) return result;

    if (m_options.clipNorm > 0) clipByNorm(gradients, result.gradNorm, m_options.clipNorm);
    m_isIntact = false;
    m_optimizer.step(learningRate);
    m_isIntact = true;
    return result;
}

/// Forward and backward of each batch; the loss is the sum over all valid tokens of the step divided by their number, so that it does
/// not matter how the rows are spread over batches. A z-loss is averaged alike, over all positions of the step. Nothing: no label counts.
Result<std::optional<double>> Model::accumulateGradients(const std::vector<Batch>& batches) {
    std::int64_t valid = 0;
    for (const Batch& batch : batches) valid += validLabels(batch);
    if (valid == 0 && m_options.runsEmptySteps) return std::optional<double>();
    if (valid == 0)
        return fail("Step " + std::to_string(m_step + 1) + " has no token to learn from: all its labels are -100.", "Check the labels of the data.", "data.train");
    std::int64_t positions = 0;
    for (const Batch& batch : batches) positions += batch.inputIds.size(0) * (batch.inputIds.size(1) - 1);
    const double perPosition = m_options.zLossWeight / static_cast<double>(positions);
    at::Tensor total, zTotal;
    const auto add = [](at::Tensor& sum, const at::Tensor& part) { sum = sum.defined() ? sum.add(part.detach()) : part.detach(); };
    for (std::size_t b = 0; b < batches.size(); ++b) {
        if (validLabels(batches[b]) == 0 && m_options.zLossWeight <= 0) continue;
        const Batch batch = onDevice(batches[b], m_network.options().device);
        ForwardOptions options;
        options.training = true;
        options.dropoutSeed = dropoutSeed(m_options.seed, m_step, b);
        CELLOOM_TRY(pass, lossOf(m_network, batch, options, m_options.zLossWeight > 0));
        at::Tensor objective = pass.loss.sum.mul(m_options.lossScale.value() / static_cast<double>(valid));
        add(total, pass.loss.sum);
        if (m_options.zLossWeight > 0) {
            const ZLossSum squares = zLossSum(pass.logits);
            objective = objective.add(squares.sum.mul(m_options.lossScale.value() * perPosition));
            add(zTotal, squares.sum);
        }
        objective.backward();
    }
    const double zLoss = zTotal.defined() ? zTotal.item<double>() * perPosition : 0; // sync
    return std::optional(total.item<double>() / static_cast<double>(valid) + zLoss); // sync
}

bool Model::isDiverged(const StepResult& result, const CallbackParams& params) {
    const bool isFinite = std::isfinite(result.loss) && std::isfinite(result.gradNorm);
    if (isFinite || m_options.lossScale.isOn()) return false;
    const char* what = std::isfinite(result.loss) ? "gradient" : "loss";
    m_divergence.error = {"Step " + std::to_string(m_step + 1) + ": the " + what + " is NaN or infinite; training stopped before the update.",
                          "Lower the learning rate, lengthen the warm-up or clip gradients.", {}};
    m_divergence.step = params.curStepNum;
    m_divergence.epoch = params.epochs();
    m_divergence.loss = result.loss;
    m_divergence.gradNorm = result.gradNorm;
    return true;
}

Result<Model::End> Model::fit(std::int64_t epochs, const Dataset& rows, const Dataset& validation, const std::vector<Callback*>& callbacks,
                              std::int64_t validFrequency) {
    EpochEvaluation evaluation(*this, validation, callbacks, validFrequency);
    std::vector<Callback*> all{&evaluation}; // first, so that the others see its results at the epoch's end
    all.insert(all.end(), callbacks.begin(), callbacks.end());
    return train(epochs * planOf(rows).stepsPerEpoch(), rows, all);
}

Result<std::optional<Evaluation>> Model::evaluate(const Dataset& rows, RunContext& context, const std::vector<Callback*>& callbacks,
                                                  std::int64_t maxBatches) {
    CallbackParams& params = context.originalArgs();
    const CallbackParams training = params; // the callbacks see the evaluation's numbers meanwhile
    const std::int64_t batches = (rows.size() + m_options.batchSize - 1) / m_options.batchSize;
    params.mode = "eval";
    params.batchNum = maxBatches > 0 ? std::min(batches, maxBatches) : batches;
    params.curStepNum = 0;
    CELLOOM_TRY_STATUS(tell(callbacks, &Callback::onEvalBegin, context));
    CELLOOM_TRY_STATUS(tell(callbacks, &Callback::onEvalEpochBegin, context));
    double sum = 0;
    Evaluation result;
    while (params.curStepNum < params.batchNum && !context.isStopRequested()) {
        const std::int64_t first = params.curStepNum++ * m_options.batchSize;
        CELLOOM_TRY_STATUS(tell(callbacks, &Callback::onEvalStepBegin, context));
        const Batch batch = onDevice(collate(rows, first, std::min(m_options.batchSize, rows.size() - first)), m_network.options().device);
        CELLOOM_TRY(pass, lossOf(m_network, batch, {}, false));
        sum += pass.loss.count > 0 ? pass.loss.sum.item<double>() : 0; // sync
        result.tokens += pass.loss.count;
        killPoint("evaluation");
        CELLOOM_TRY_STATUS(tell(callbacks, &Callback::onEvalStepEnd, context));
    }
    const bool isStopped = context.isStopRequested();
    if (!isStopped && result.tokens == 0)
        return fail("The validation data has no label that counts: all are -100.", "Check its labels, or leave it out.", "data.validation");
    result.loss = sum / static_cast<double>(result.tokens);
    if (!isStopped) {
        params.evalResults = {{"eval_loss", result.loss}, {"eval_perplexity", result.perplexity()}};
        params.evalStep = training.curStepNum;
        CELLOOM_TRY_STATUS(tell(callbacks, &Callback::onEvalEpochEnd, context));
        CELLOOM_TRY_STATUS(tell(callbacks, &Callback::onEvalEnd, context));
    }
    const auto results = params.evalResults;
    const std::int64_t evalStep = params.evalStep;
    params = training;
    params.evalResults = results;
    params.evalStep = evalStep;
    return isStopped ? std::nullopt : std::optional(result);
}

} // namespace celloom::engine
