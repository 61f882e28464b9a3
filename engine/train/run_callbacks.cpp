#include "engine/train/run_callbacks.h"

#include "engine/train/loss_scale.h"
#include "models/base/kill_points.h"
#include "models/base/text.h"

#include <fstream>
#include <nlohmann/json.hpp>
#include <unistd.h>
#include <utility>

namespace celloom::engine {
namespace {

constexpr std::int64_t kStormAtFloor = 10, kStorm = 30, kStormEvery = 250; // overflows in a row; a dynamic scale may begin 2^24 times too high

double residentBytes() {
    std::ifstream statm("/proc/self/statm");
    double total = 0, resident = 0;
    statm >> total >> resident;
    return resident * static_cast<double>(::sysconf(_SC_PAGESIZE));
}

} // namespace

Status MetricsCallback::stepEnd(RunContext& context) {
    const CallbackParams& params = context.originalArgs();
    m_reporter.stepDone(params);
    if (params.isEmpty) {
        m_reporter.warning("empty_step", {"Step " + std::to_string(params.curStepNum) + " had no token to learn from and changed nothing.", {}, {}},
                           nlohmann::json{{"step", params.curStepNum}}.dump());
        return {};
    }
    m_reporter.metric("train/loss", params.netOutputs);
    if (params.auxiliaryLoss) m_reporter.metric("train/auxiliary_loss", *params.auxiliaryLoss);
    m_reporter.metric("train/lr", params.learningRate);
    m_reporter.metric("train/grad_norm", params.gradNorm);
    if (params.hasLossScale) m_reporter.metric("train/loss_scale", params.lossScale);
    const bool hasTokens = params.trainDatasetElement && params.trainDatasetElement->front().inputIds.defined();
    if (params.stepSeconds > 0) m_reporter.metric(hasTokens ? "train/tokens_per_s" : "train/rows_per_s", static_cast<double>(params.tokens) / params.stepSeconds);
    m_reporter.metric("system/memory_bytes", residentBytes());
    m_overflows = params.isOverflow ? m_overflows + 1 : 0;
    if (!params.isOverflow) m_isStormSaid = false;
    if (params.isOverflow) sayOverflow(params);
    return {};
}

/// Each of the first overflows in a row, then that it is a storm, and then seldom: a thousand lines would hide all others.
void MetricsCallback::sayOverflow(const CallbackParams& params) {
    const std::string step = std::to_string(params.curStepNum), scale = roundedText(params.lossScale);
    const bool isAtFloor = params.lossScale <= 1, isStorm = m_overflows >= (isAtFloor ? kStormAtFloor : kStorm);
    if (!isStorm)
        return m_reporter.warning("overflow", {"Step " + step + " overflowed under the loss scale " + scale + " and changed nothing.", {}, {}},
                                  nlohmann::json{{"step", params.curStepNum}, {"loss_scale", params.lossScale}}.dump());
    if (std::exchange(m_isStormSaid, true) && m_overflows % kStormEvery != 0) return;
    m_reporter.warning("overflow_storm",
                       {std::to_string(m_overflows) + " steps in a row have overflowed and changed nothing" +
                            (isAtFloor ? "; the loss scale is at its floor of 1." : "; the loss scale is " + scale + "."),
                        "Unless it ends, the run stops after " + std::to_string(LossScale::kMostOverflows) + ". Stop it, and resume with a lower learning rate or in bfloat16.",
                        {}},
                       nlohmann::json{{"step", params.curStepNum}, {"overflows", m_overflows}, {"loss_scale", params.lossScale}, {"most", LossScale::kMostOverflows}}.dump());
}

Status TimeLimit::stepEnd(RunContext& context) {
    if (m_minutes <= 0 || m_reporter.elapsedSeconds() < m_minutes * 60) return {};
    m_isReached = true;
    context.requestStop();
    return {};
}

Status BeforeFirstCheckpoint::stepEnd(RunContext&) {
    if (m_checkpoint.lastStep() < 0) killPoint("before-first-checkpoint");
    return {};
}

} // namespace celloom::engine
