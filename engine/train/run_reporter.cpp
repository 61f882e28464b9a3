#include "engine/train/run_reporter.h"

#include <chrono>
#include <unistd.h>

namespace celloom::engine {
namespace {

constexpr double kNewest = 0.05; // weight of the newest step in the moving average of step times

double steadyNow() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }
double wallNow() { return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(); }

} // namespace

void RunReporter::event(const std::string& level, const std::string& kind, const std::string& message, const std::string& hint,
                        const std::string& data) {
    m_writer.event(m_progress.step, level, kind, message, hint, data);
    if (m_link) m_link->message(m_progress.step, level, kind, message, hint);
    m_print((level == "info" ? "" : level + ": ") + message + (hint.empty() ? "" : " " + hint));
}

void RunReporter::metric(const std::string& name, double value) { m_writer.metric(m_progress.step, m_progress.epoch, name, value); }

void RunReporter::sample(const std::string& prompt, const std::string& text) {
    m_writer.sample(m_progress.step, prompt, text);
    m_print("sample: " + prompt + " | " + text);
}

void RunReporter::stage(const std::string& stage) {
    m_progress.stage = stage;
    send();
}

void RunReporter::state(store::RunState state) {
    m_progress.state = state;
    if (store::isOver(state)) m_progress.remainingSeconds = 0;
    send();
}

void RunReporter::beginTraining(std::int64_t step, std::int64_t totalSteps, std::int64_t stepsPerEpoch, double elapsedSeconds, double secondsPerStep) {
    m_stepsPerEpoch = stepsPerEpoch;
    m_progress.step = step;
    m_progress.totalSteps = totalSteps;
    m_progress.epoch = static_cast<double>(step) / static_cast<double>(stepsPerEpoch);
    m_progress.totalEpochs = static_cast<double>(totalSteps) / static_cast<double>(stepsPerEpoch);
    m_elapsedBefore = elapsedSeconds;
    m_secondsPerStep = secondsPerStep;
    m_startTime = m_lastStepTime = steadyNow();
    send();
}

void RunReporter::beginWork(std::int64_t done, std::int64_t total) {
    m_progress.step = done;
    m_progress.totalSteps = total;
    m_startTime = m_lastStepTime = steadyNow();
    send();
}

void RunReporter::workDone(std::int64_t done) {
    if (done > m_progress.step) addTime(static_cast<double>(done - m_progress.step));
    m_progress.step = done;
    send();
}

/// So many steps since the last call; evaluations, samples and checkpoints between them included.
void RunReporter::addTime(double steps) {
    const double now = steadyNow(), seconds = (now - m_lastStepTime) / steps;
    m_lastStepTime = now;
    m_secondsPerStep = m_secondsPerStep > 0 ? (1 - kNewest) * m_secondsPerStep + kNewest * seconds : seconds;
}

void RunReporter::stepDone(const CallbackParams& params) {
    addTime(1);
    m_progress.step = params.curStepNum;
    m_progress.epoch = params.epochs();
    send();
}

void RunReporter::beginPause() { m_pauseStart = steadyNow(); }

void RunReporter::endPause() {
    const double paused = steadyNow() - m_pauseStart;
    m_startTime += paused;
    m_lastStepTime += paused;
    m_pauseStart = -1;
}

double RunReporter::elapsedSeconds() const {
    return m_startTime < 0 ? m_elapsedBefore : m_elapsedBefore + (m_pauseStart < 0 ? steadyNow() : m_pauseStart) - m_startTime;
}

void RunReporter::send() {
    m_progress.elapsedSeconds = elapsedSeconds();
    if (m_secondsPerStep > 0 && !store::isOver(m_progress.state))
        m_progress.remainingSeconds = m_secondsPerStep * static_cast<double>(m_progress.totalSteps - m_progress.step);
    m_progress.updated = wallNow();
    m_progress.pid = ::getpid();
    m_writer.progress(m_progress);
    if (m_link) m_link->progress(m_progress);
}

} // namespace celloom::engine
