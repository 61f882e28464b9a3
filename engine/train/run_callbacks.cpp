#include "engine/train/run_callbacks.h"

#include "models/base/kill_points.h"

#include <fstream>
#include <nlohmann/json.hpp>
#include <unistd.h>

namespace celloom::engine {
namespace {

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
    m_reporter.metric("train/lr", params.learningRate);
    m_reporter.metric("train/grad_norm", params.gradNorm);
    if (params.hasLossScale) m_reporter.metric("train/loss_scale", params.lossScale);
    if (params.stepSeconds > 0) m_reporter.metric("train/tokens_per_s", static_cast<double>(params.tokens) / params.stepSeconds);
    m_reporter.metric("system/memory_bytes", residentBytes());
    if (params.isOverflow)
        m_reporter.warning("overflow", {"Step " + std::to_string(params.curStepNum) + " overflowed under the loss scale " +
                                            std::to_string(params.lossScale) + " and changed nothing.", {}, {}},
                           nlohmann::json{{"step", params.curStepNum}, {"loss_scale", params.lossScale}}.dump());
    return {};
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
