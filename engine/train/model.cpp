#include "engine/train/model.h"

#include "engine/data/dataset.h"
#include "models/base/kill_points.h"

#include <ATen/ops/_foreach_mul.h>

#include <algorithm>
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
    for (auto& [name, tensor] : batch.columns) tensor = tensor.to(device);
    return batch;
}

std::vector<Batch> gather(const Dataset& rows, const StepPlan& plan, std::int64_t step) {
    std::vector<Batch> out;
    for (const auto& [first, count] : plan.microBatches(step)) out.push_back(collate(rows, first, count));
    return out;
}

/// What a step's speed is told in: tokens, or rows where there are none.
std::int64_t sizeOf(const Batch& batch) { return batch.inputIds.defined() ? batch.inputIds.numel() : batch.rows(); }
std::int64_t sizeOf(const std::vector<Batch>& batches) {
    std::int64_t out = 0;
    for (const Batch& batch : batches) out += sizeOf(batch);
    return out;
}

/// What fit's evaluations left is gone after the epoch's end, as in MindSpore.
void forgetEvaluation(CallbackParams& params) {
    params.metrics = nullptr;
    params.evalResults.clear();
    params.evalStep = -1;
}

/// After an evaluation: the training's parameters again, with what the evaluation found.
void goBackToTraining(const CallbackParams& training, CallbackParams& params) {
    const CallbackParams found = params;
    params = training;
    params.evalResults = found.evalResults;
    params.evalStep = found.evalStep;
    params.metrics = found.metrics;
    params.validDataset = found.validDataset;
    params.evalNetwork = found.evalNetwork;
    params.evalDatasetElement = found.evalDatasetElement;
}

/// Each forward pass draws its dropout from a number of its own, so that a resume needs no more than the step.
std::uint64_t dropoutSeed(std::uint64_t seed, std::int64_t step, std::size_t batch) {
    return (seed * 0x9E3779B97F4A7C15ull + static_cast<std::uint64_t>(step)) * 0xBF58476D1CE4E5B9ull + batch;
}

/// LibTorch's exceptions (a label out of range, memory that ran out) end here, as errors.
template <class Work> auto guarded(const Work& work) -> decltype(work()) {
    try {
        return work();
    } catch (const std::exception& exception) {
        return tl::unexpected(errorOf(exception));
    }
}

double secondsSince(std::chrono::steady_clock::time_point start) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

bool isEvaluationDue(const TrainArguments& arguments, std::int64_t epoch) {
    const std::vector<std::int64_t>& epochs = arguments.validEpochs;
    return epochs.empty() ? epoch % arguments.validFrequency == 0 : std::find(epochs.begin(), epochs.end(), epoch) != epochs.end();
}

bool countsInAStep(const std::vector<LossTerm>& terms, const std::vector<std::int64_t>& items) {
    for (std::size_t t = 0; t < terms.size(); ++t)
        if (items[t] > 0 && !terms[t].isRegularizer) return true;
    return false;
}

/// What each term's sum over a step is divided by. Gradients of Reduction::None are those of the sum, the reported value is the mean.
std::vector<double> divisorsOf(const std::vector<LossTerm>& terms, const std::vector<std::int64_t>& items, bool isReported) {
    std::vector<double> out;
    for (std::size_t t = 0; t < terms.size(); ++t) {
        const bool isMean = terms[t].reduction == Reduction::Mean || (isReported && terms[t].reduction == Reduction::None);
        out.push_back(isMean ? static_cast<double>(std::max<std::int64_t>(items[t], 1)) : 1.0);
    }
    return out;
}

/// Sums by term, each added up where it lies.
void add(std::vector<at::Tensor>& totals, const std::vector<at::Tensor>& sums) {
    totals.resize(sums.size());
    for (std::size_t t = 0; t < sums.size(); ++t) {
        if (!sums[t].defined()) continue;
        totals[t] = totals[t].defined() ? totals[t].add(sums[t].detach()) : sums[t].detach();
    }
}

/// The buffers as they were before a step, put back unless it is kept: a step that fails or overflows changes nothing.
class BuffersBefore {
public:
    explicit BuffersBefore(Network& network) {
        for (const Parameter& parameter : network.parameters())
            if (parameter.isBuffer) m_buffers.emplace_back(parameter.tensor, parameter.tensor.clone());
    }
    BuffersBefore(const BuffersBefore&) = delete;
    BuffersBefore& operator=(const BuffersBefore&) = delete;
    ~BuffersBefore() {
        for (const auto& [buffer, before] : m_buffers) buffer.copy_(before);
    }
    void keepChanges() { m_buffers.clear(); }

private:
    std::vector<std::pair<at::Tensor, at::Tensor>> m_buffers;
};

std::vector<double> readAll(const std::vector<at::Tensor>& sums) {
    std::vector<double> out;
    for (const at::Tensor& sum : sums) out.push_back(sum.defined() ? sum.item<double>() : 0); // sync
    return out;
}

} // namespace

double Evaluation::perplexity() const { return std::exp(loss); }

Model::Model(Network& network, std::shared_ptr<const Loss> loss, Optimizer* optimizer, Metrics metrics, ModelOptions options)
    : m_network(network), m_loss(std::move(loss)), m_optimizer(optimizer), m_metrics(std::move(metrics)), m_options(std::move(options)) {}

Result<Outputs> Model::predict(const Batch& inputs) { return m_network.forward(inputs); }

StepPlan Model::planOf(const Dataset& rows) const { return {rows.size(), m_options.batchSize, m_options.accumulation, m_options.tail}; }

void Model::restore(const State& state) {
    m_step = state.step;
    m_fixedRate = state.fixedRate;
    m_options.lossScale.restore(state.lossScale);
    m_earlierSteps = state.earlierSteps;
    m_isRestored = true;
}

Result<Model::End> Model::trainTo(std::int64_t totalSteps, const Dataset& trainDataset, const std::vector<Callback*>& callbacks) {
    CELLOOM_TRY_STATUS(checkTraining(trainDataset, callbacks));
    return guarded([&] { return run({trainDataset, nullptr, callbacks, {}, 0, totalSteps}); });
}

Result<Model::End> Model::train(std::int64_t epoch, const Dataset& trainDataset, const std::vector<Callback*>& callbacks, const TrainArguments& arguments) {
    return trainEpochs(epoch, trainDataset, nullptr, callbacks, arguments);
}

Result<Model::End> Model::fit(std::int64_t epoch, const Dataset& trainDataset, const Dataset& validDataset, const std::vector<Callback*>& callbacks,
                              const TrainArguments& arguments) {
    CELLOOM_TRY_STATUS(checkEvaluation(validDataset, callbacks));
    return trainEpochs(epoch, trainDataset, &validDataset, callbacks, arguments);
}

Result<Model::End> Model::trainEpochs(std::int64_t epoch, const Dataset& rows, const Dataset* validation, const std::vector<Callback*>& callbacks,
                                      const TrainArguments& arguments) {
    CELLOOM_TRY_STATUS(checkTraining(rows, callbacks));
    const std::int64_t perEpoch = planOf(rows).stepsPerEpoch();
    CELLOOM_TRY_STATUS(checkArguments(epoch, perEpoch, arguments));
    const std::int64_t first = arguments.initialEpoch * perEpoch;
    if (!m_isRestored && m_step != first) {
        if (m_step > 0) m_earlierSteps += m_step - first; // the schedule goes on
        m_step = first;
    }
    m_isRestored = false;
    return guarded([&] { return run({rows, validation, callbacks, arguments, first, epoch * perEpoch}); });
}

/// Training as an outline; a call of trainTo may begin and end in the middle of an epoch.
Result<Model::End> Model::run(const Course& course) {
    RunContext context;
    CallbackParams& params = context.originalArgs();
    describe(course, params);
    m_divergence = {};

    CELLOOM_TRY_STATUS(tell(course.callbacks, &Callback::onTrainBegin, context));
    while (m_step < course.totalSteps && !context.isStopRequested()) {
        params.curEpochNum = m_step / params.batchNum + 1;
        CELLOOM_TRY_STATUS(tell(course.callbacks, &Callback::onTrainEpochBegin, context));
        CELLOOM_TRY_STATUS(runEpoch(course, context));
        if (m_divergence.step > 0) return End::Diverged;
        if (course.validation && isEvaluationDue(course.arguments, params.curEpochNum))
            CELLOOM_TRY_STATUS(evaluate(*course.validation, context, course.callbacks).map([](const auto&) {}));
        CELLOOM_TRY_STATUS(tell(course.callbacks, &Callback::onTrainEpochEnd, context));
        if (course.validation) forgetEvaluation(params);
    }
    CELLOOM_TRY_STATUS(tell(course.callbacks, &Callback::onTrainEnd, context));
    return m_step < course.totalSteps ? End::Stopped : End::Finished;
}

void Model::describe(const Course& course, CallbackParams& params) {
    params.batchNum = planOf(course.rows).stepsPerEpoch();
    params.totalSteps = course.totalSteps - course.firstStep;
    params.epochNum = (params.totalSteps + params.batchNum - 1) / params.batchNum;
    params.curStepNum = m_step - course.firstStep;
    params.datasetSinkMode = course.arguments.datasetSinkMode;
    params.hasLossScale = m_options.lossScale.isOn();
    params.listCallback = &course.callbacks;
    params.lossFn = m_loss.get();
    params.trainDataset = &course.rows;
    params.trainNetwork = this;
    params.network = &m_network;
    params.optimizer = m_optimizer;
}

void Model::record(const StepResult& result, CallbackParams& params) const {
    params.netOutputs = result.loss;
    params.hasNetOutputs = true;
    params.auxiliaryLoss = result.auxiliaryLoss;
    params.gradNorm = result.gradNorm;
    params.tokens = sizeOf(m_batches);
    params.isOverflow = result.isOverflow;
    params.isEmpty = result.isEmpty;
}

/// The steps from m_step to the end of its epoch, or to the end of the run.
Status Model::runEpoch(const Course& course, RunContext& context) {
    CallbackParams& params = context.originalArgs();
    const StepPlan plan = planOf(course.rows);
    const std::int64_t epoch = m_step / params.batchNum, end = std::min((epoch + 1) * params.batchNum, course.totalSteps);
    const std::int64_t grouped = m_options.groupsByLength ? m_options.batchSize : 0;
    std::unique_ptr<const Dataset> ordered;
    if (m_options.shuffle) ordered = std::make_unique<ShuffledDataset>(course.rows, m_options.seed, epoch, grouped);
    else ordered = std::make_unique<EpochDataset>(course.rows, m_options.seed, epoch);

    while (m_step < end && !context.isStopRequested()) {
        const auto begin = std::chrono::steady_clock::now();
        m_batches = gather(*ordered, plan, m_step % params.batchNum);
        params.curStepNum = m_step - course.firstStep + 1;
        params.trainDatasetElement = &m_batches;
        params.dataSeconds = secondsSince(begin);
        params.learningRate = m_fixedRate.value_or(m_options.schedule.rateAt(m_earlierSteps + m_step));
        params.lossScale = m_options.lossScale.value();
        CELLOOM_TRY_STATUS(tell(course.callbacks, &Callback::onTrainStepBegin, context));

        const auto start = std::chrono::steady_clock::now();
        CELLOOM_TRY(result, trainStep(m_batches, params.learningRate));
        record(result, params);
        params.stepSeconds = params.dataSeconds + secondsSince(start);
        if (isDiverged(result, params)) return {};
        ++m_step;
        CELLOOM_TRY_STATUS(tell(course.callbacks, &Callback::onTrainStepEnd, context));
    }
    return {};
}

Result<LossValues> Model::forward(const Batch& batch, const ForwardOptions& options) { return m_loss->of(m_network, batch, options); }

Result<Model::StepResult> Model::trainStep(const std::vector<Batch>& batches, double learningRate) {
    StepResult result;
    m_optimizer->zeroGrad();
    BuffersBefore buffers(m_network);
    CELLOOM_TRY(loss, accumulateGradients(batches));
    killPoint("step");
    result.isEmpty = !loss;
    if (result.isEmpty) return result;
    result.loss = loss->value;
    result.auxiliaryLoss = loss->auxiliary;
    if (m_network.hasBranches()) m_optimizer->fillGradients();

    const std::vector<at::Tensor> gradients = m_optimizer->gradients();
    if (m_options.lossScale.isOn()) at::_foreach_mul_(gradients, 1 / m_options.lossScale.value());
    result.gradNorm = globalNorm(gradients); // not finite as soon as one gradient is not
    const bool isFinite = std::isfinite(result.loss) && std::isfinite(result.gradNorm);
    if (m_options.lossScale.isOn()) {
        result.isOverflow = !isFinite && m_options.lossScale.dropsOverflow();
        CELLOOM_TRY_STATUS(m_options.lossScale.update(result.isOverflow));
    }
    if (!isFinite) return result;

    if (m_options.clipNorm > 0) clipByNorm(gradients, result.gradNorm, m_options.clipNorm);
    m_isIntact = false;
    m_optimizer->step(learningRate);
    buffers.keepChanges();
    m_isIntact = true;
    return result;
}

/// Forward and backward of each batch. Each term of the loss is its sum over all items of the step divided by their number, so that it does not
/// matter how the rows are spread over batches. What cells add is a mean over a batch: each counts by its part of the step. Nothing: no label counts.
Result<std::optional<Model::StepLoss>> Model::accumulateGradients(const std::vector<Batch>& batches) {
    const std::vector<LossTerm>& terms = m_loss->terms();
    std::vector<std::vector<std::int64_t>> items;
    std::vector<std::int64_t> stepItems(terms.size(), 0);
    for (const Batch& batch : batches) {
        items.push_back(m_loss->items(batch));
        for (std::size_t t = 0; t < terms.size(); ++t) stepItems[t] += items.back()[t];
    }
    if (!countsInAStep(terms, stepItems)) {
        if (m_options.runsEmptySteps) return std::optional<StepLoss>();
        return fail("Step " + std::to_string(m_step + 1) + " has no token to learn from: all its labels are -100.", "Check the labels of the data.", "data.train");
    }
    const std::vector<double> divisors = divisorsOf(terms, stepItems, false), reported = divisorsOf(terms, stepItems, true);
    std::vector<at::Tensor> totals, auxiliaries(1);
    const auto counts = [&](std::size_t b) { return std::any_of(items[b].begin(), items[b].end(), [](std::int64_t count) { return count > 0; }); };
    std::int64_t stepSize = 0;
    for (std::size_t b = 0; b < batches.size(); ++b) stepSize += counts(b) ? sizeOf(batches[b]) : 0;
    for (std::size_t b = 0; b < batches.size(); ++b) {
        if (!counts(b)) continue;
        ForwardOptions options;
        options.training = true;
        options.dropoutSeed = dropoutSeed(m_options.seed, m_step, b);
        CELLOOM_TRY(values, forward(onDevice(batches[b], m_network.options().device), options));
        at::Tensor objective;
        for (std::size_t t = 0; t < terms.size(); ++t) {
            if (!values.sums[t].defined()) continue;
            const at::Tensor part = values.sums[t].mul(m_options.lossScale.value() * terms[t].weight / divisors[t]);
            objective = objective.defined() ? objective.add(part) : part;
        }
        add(totals, values.sums);
        if (values.auxiliary.defined()) {
            const at::Tensor part = values.auxiliary.mul(static_cast<double>(sizeOf(batches[b])) / static_cast<double>(stepSize));
            add(auxiliaries, {part});
            const at::Tensor scaled = part.mul(m_options.lossScale.value());
            objective = objective.defined() ? objective.add(scaled) : scaled;
        }
        values.compared.clear(); // nobody measures a training step: its outputs need not outlive their gradients
        if (objective.defined()) objective.backward();
    }
    StepLoss loss;
    const std::vector<double> sums = readAll(totals); // sync
    for (std::size_t t = 0; t < sums.size(); ++t) loss.value += terms[t].weight * (sums[t] / reported[t]);
    if (auxiliaries[0].defined()) {
        loss.auxiliary = auxiliaries[0].item<double>(); // sync
        loss.value += *loss.auxiliary;
    }
    return std::optional(loss);
}

bool Model::isDiverged(const StepResult& result, const CallbackParams& params) {
    const bool isLossFinite = std::isfinite(result.loss);
    if (isLossFinite && (std::isfinite(result.gradNorm) || m_options.lossScale.dropsOverflow())) return false; // a scale may heal gradients, not the loss
    const char* what = isLossFinite ? "gradient" : "loss";
    m_divergence.error = {"Step " + std::to_string(m_step + 1) + ": the " + what + " is NaN or infinite; training stopped before the update.",
                          "Lower the learning rate, lengthen the warm-up or clip gradients.", {}};
    m_divergence.step = params.curStepNum;
    m_divergence.epoch = params.epochs();
    m_divergence.loss = result.loss;
    m_divergence.gradNorm = result.gradNorm;
    return true;
}

Result<std::optional<Evaluation>> Model::evaluate(const Dataset& validDataset, const std::vector<Callback*>& callbacks) {
    RunContext context;
    return evaluate(validDataset, context, callbacks);
}

Result<std::optional<Evaluation>> Model::evaluate(const Dataset& validDataset, RunContext& context, const std::vector<Callback*>& callbacks,
                                                  std::int64_t maxBatches) {
    CELLOOM_TRY_STATUS(checkEvaluation(validDataset, callbacks));
    CallbackParams& params = context.originalArgs();
    const CallbackParams training = params; // the callbacks see the evaluation's numbers meanwhile
    const std::int64_t batches = (validDataset.size() + m_options.batchSize - 1) / m_options.batchSize;
    params.mode = "eval";
    params.batchNum = maxBatches > 0 ? std::min(batches, maxBatches) : batches;
    params.curStepNum = 0;
    params.validDataset = &validDataset;
    params.evalNetwork = this;
    CELLOOM_TRY_STATUS(tell(callbacks, &Callback::onEvalBegin, context));
    CELLOOM_TRY_STATUS(tell(callbacks, &Callback::onEvalEpochBegin, context));
    CELLOOM_TRY(result, guarded([&] { return evaluateBatches(validDataset, context, callbacks); }));
    const bool isStopped = context.isStopRequested();
    if (!isStopped) {
        CELLOOM_TRY_STATUS(tell(callbacks, &Callback::onEvalEpochEnd, context));
        params.metrics = &m_metrics;
        params.evalResults = result.metrics;
        params.evalResults["eval_loss"] = result.loss;
        params.evalStep = training.curStepNum;
        CELLOOM_TRY_STATUS(tell(callbacks, &Callback::onEvalEnd, context));
    }
    goBackToTraining(training, params);
    return isStopped ? std::nullopt : std::optional(std::move(result));
}

Result<Evaluation> Model::evaluateBatches(const Dataset& rows, RunContext& context, const std::vector<Callback*>& callbacks) {
    CallbackParams& params = context.originalArgs();
    for (const auto& [name, metric] : m_metrics) metric->clear();
    LossMetric loss;
    Evaluation result;
    while (params.curStepNum < params.batchNum && !context.isStopRequested()) {
        const std::int64_t first = params.curStepNum++ * m_options.batchSize;
        const Batch gathered = collate(rows, first, std::min(m_options.batchSize, rows.size() - first));
        const std::vector<std::int64_t> items = m_loss->items(gathered);
        m_evalBatch = onDevice(gathered, m_network.options().device);
        params.evalDatasetElement = &m_evalBatch;
        CELLOOM_TRY_STATUS(tell(callbacks, &Callback::onEvalStepBegin, context));
        if (countsInAStep(m_loss->terms(), items)) {
            CELLOOM_TRY(values, forward(m_evalBatch, {}));
            const std::vector<double> sums = readAll(values.sums); // sync
            const MetricInput input{m_evalBatch, *m_loss, values, sums, items};
            LossMetric ofBatch;
            CELLOOM_TRY_STATUS(ofBatch.update(input));
            CELLOOM_TRY(value, ofBatch.eval());
            params.netOutputs = value;
            CELLOOM_TRY_STATUS(loss.update(input));
            for (const auto& [name, metric] : m_metrics) CELLOOM_TRY_STATUS(metric->update(input));
            for (std::size_t t = 0; t < items.size(); ++t) result.items += m_loss->terms()[t].isRegularizer ? 0 : items[t];
        }
        killPoint("evaluation");
        CELLOOM_TRY_STATUS(tell(callbacks, &Callback::onEvalStepEnd, context));
    }
    if (context.isStopRequested()) return result;
    if (result.items == 0)
        return fail("The validation data has no label that counts: all are -100.", "Check its labels, or leave it out.", "data.validation");
    CELLOOM_TRY(mean, loss.eval());
    result.loss = mean;
    for (const auto& [name, metric] : m_metrics) {
        CELLOOM_TRY(value, metric->eval());
        result.metrics[name] = value;
    }
    return result;
}

} // namespace celloom::engine
