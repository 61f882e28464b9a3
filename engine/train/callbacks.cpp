#include "engine/train/callbacks.h"

#include "engine/train/model.h"

#include <chrono>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

namespace celloom::engine {
namespace {

std::int64_t step(const std::map<std::string, double>& state, const char* name) {
    const auto found = state.find(name);
    return found == state.end() ? -1 : static_cast<std::int64_t>(found->second);
}

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

bool isEvery(std::int64_t every, const CallbackParams& params) {
    return (every > 0 && params.curStepNum % every == 0) || params.curStepNum == params.totalSteps;
}

std::string format(const char* pattern, double a, double b) {
    char text[160];
    std::snprintf(text, sizeof text, pattern, a, b);
    return text;
}

} // namespace

Status LossMonitor::stepEnd(RunContext& context) {
    const CallbackParams& params = context.originalArgs();
    if (m_every == 0 || params.curStepNum - m_last < m_every) return {};
    m_last = params.curStepNum;
    if (params.isEmpty) return {};
    m_print("epoch: " + std::to_string(params.curEpochNum) + " step: " + std::to_string(params.stepInEpoch()) + ", loss is " +
            format("%.7g", params.netOutputs, 0));
    return {};
}

Status LossMonitor::epochEnd(RunContext& context) {
    const CallbackParams& params = context.originalArgs();
    if (!params.metrics || params.evalStep != params.curStepNum) return {};
    std::string results;
    for (const auto& [name, metric] : *params.metrics)
        results += (results.empty() ? "'" : ", '") + name + "': " + format("%.7g", params.evalResults.at(name), 0);
    m_print("Eval result: epoch " + std::to_string(params.curEpochNum) + ", metrics: {" + results + "}");
    return {};
}

std::map<std::string, double> LossMonitor::state() const { return {{"last_step", static_cast<double>(m_last)}}; }
void LossMonitor::restore(const std::map<std::string, double>& state) { m_last = step(state, "last_step"); }

Status TimeMonitor::epochBegin(RunContext& context) {
    m_firstStep = context.originalArgs().curStepNum;
    m_dataSeconds = 0;
    m_start = now();
    return {};
}

Status TimeMonitor::stepEnd(RunContext& context) {
    m_dataSeconds += context.originalArgs().dataSeconds;
    return {};
}

Status TimeMonitor::epochEnd(RunContext& context) {
    const std::int64_t steps = context.originalArgs().curStepNum - m_firstStep;
    if (steps <= 0) return {};
    const double milliseconds = (now() - m_start) * 1000, perStep = 1 / static_cast<double>(steps);
    m_print(format("Train epoch time: %5.3f ms, per step time: %5.3f ms", milliseconds, milliseconds * perStep) +
            (m_hasDataTime ? format(" (data time: %5.3f ms)", 1000 * m_dataSeconds * perStep, 0) : std::string()));
    return {};
}

Status TimeMonitor::onEvalEpochBegin(RunContext&) {
    m_evalStart = now();
    return {};
}

Status TimeMonitor::onEvalEpochEnd(RunContext& context) {
    const double milliseconds = (now() - m_evalStart) * 1000, steps = static_cast<double>(context.originalArgs().curStepNum);
    m_print(format("Eval epoch time: %5.3f ms, per step time: %5.3f ms", milliseconds, milliseconds / steps));
    return {};
}

Status LearningRateScheduler::stepEnd(RunContext& context) {
    const CallbackParams& params = context.originalArgs();
    const double rate = params.learningRate, next = m_function(rate, params.curStepNum);
    if (!(next >= 0) || !std::isfinite(next))
        return fail("The scheduler gives the learning rate " + format("%g", next, 0) + " after step " + std::to_string(params.curStepNum) + ".", "Give 0 or more.",
                    "LearningRateScheduler");
    if (std::abs(next - rate) > 1e-10 * std::max(std::abs(next), std::abs(rate))) params.trainNetwork->fixLearningRate(next);
    return {};
}

Status History::begin(RunContext&) {
    if (!m_isRestored) {
        m_epoch.clear();
        m_history.clear();
    }
    m_isRestored = false;
    return {};
}

Status History::epochEnd(RunContext& context) {
    const CallbackParams& params = context.originalArgs();
    m_epoch.push_back(params.curEpochNum);
    m_history["net_output"].push_back(params.netOutputs);
    if (params.evalStep == params.curStepNum)
        for (const auto& [name, value] : params.evalResults) m_history[name].push_back(value);
    return {};
}

std::string History::stateJson() const { return nlohmann::json{{"epoch", m_epoch}, {"history", m_history}}.dump(); }

Status History::restoreJson(const std::string& text) {
    try {
        const auto in = nlohmann::json::parse(text);
        m_epoch = in.at("epoch").get<std::vector<std::int64_t>>();
        m_history = in.at("history").get<std::map<std::string, std::vector<double>>>();
    } catch (const nlohmann::json::exception& exception) {
        return fail(std::string("The history in the checkpoint cannot be read: ") + exception.what() + ".", "Use an earlier checkpoint.", "History");
    }
    m_isRestored = true;
    return {};
}

EvaluationCallback::EvaluationCallback(const Dataset& validation, std::int64_t everySteps, std::int64_t maxBatches, std::vector<Callback*> listeners,
                                       Report report, std::function<Status()> afterwards)
    : m_validation(validation), m_every(everySteps), m_maxBatches(maxBatches), m_listeners(std::move(listeners)), m_report(std::move(report)),
      m_afterwards(std::move(afterwards)) {}

bool EvaluationCallback::isDue(const CallbackParams& params) const {
    return params.curStepNum > 0 && params.curStepNum != m_lastStep && isEvery(m_every, params);
}

Status EvaluationCallback::begin(RunContext& context) {
    return isDue(context.originalArgs()) ? evaluateNow(context) : Status();
}

Status EvaluationCallback::stepEnd(RunContext& context) { return isDue(context.originalArgs()) ? evaluateNow(context) : Status(); }

Status EvaluationCallback::evaluateNow(RunContext& context) {
    Model& model = *context.originalArgs().trainNetwork;
    CELLOOM_TRY(result, model.evaluate(m_validation, context, m_listeners, m_maxBatches));
    if (!result) return {}; // stopped meanwhile: the resumed run begins with it
    m_lastStep = context.originalArgs().curStepNum;
    m_report(context, *result);
    return m_afterwards ? m_afterwards() : Status();
}

std::map<std::string, double> EvaluationCallback::state() const { return {{"last_step", static_cast<double>(m_lastStep)}}; }
void EvaluationCallback::restore(const std::map<std::string, double>& state) { m_lastStep = step(state, "last_step"); }

Status SampleCallback::stepEnd(RunContext& context) {
    return m_every > 0 && isEvery(m_every, context.originalArgs()) ? m_write(context) : Status();
}

Status ModelCheckpoint::stepEnd(RunContext& context) {
    return isEvery(m_every, context.originalArgs()) ? saveNow(context) : Status();
}

Status ModelCheckpoint::saveNow(RunContext& context) {
    const CallbackParams& params = context.originalArgs();
    if (params.curStepNum == m_lastStep || params.curStepNum == 0) return {};
    const ModelCheckpoint before = *this;
    const auto loss = params.evalResults.find("eval_loss");
    const bool isMeasured = loss != params.evalResults.end() && params.evalStep > m_lastStep; // since the last checkpoint
    if (m_keepsBest && isMeasured && (m_bestStep < 0 || loss->second < m_bestLoss)) {
        m_bestStep = params.curStepNum;
        m_bestLoss = loss->second;
    }
    m_lastStep = params.curStepNum; // set before it is saved: it is part of what is saved
    auto status = m_save(context, m_bestStep);
    if (!status) *this = before;
    return status;
}

std::map<std::string, double> ModelCheckpoint::state() const {
    return {{"last_step", static_cast<double>(m_lastStep)}, {"best_step", static_cast<double>(m_bestStep)}, {"best_loss", m_bestLoss}};
}

void ModelCheckpoint::restore(const std::map<std::string, double>& state) {
    m_lastStep = step(state, "last_step");
    m_bestStep = step(state, "best_step");
    if (const auto found = state.find("best_loss"); found != state.end()) m_bestLoss = found->second;
}

} // namespace celloom::engine
