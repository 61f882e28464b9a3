// What becomes of a run that fails: what it learned is kept, and its error says what, where, what to do, and where a resume goes on.
#include "engine/train/llm_trainer.h"
#include "models/base/disk.h"

namespace celloom::engine {
using store::RunState;

/// LibTorch's exceptions end here as errors, while callbacks and weights are still there.
Result<Model::End> LLMTrainer::trainToTheEnd() {
    try {
        return m_model->trainTo(totalSteps(), *m_data.train, m_callbacks);
    } catch (const std::exception& exception) {
        return tl::unexpected(errorOf(exception));
    }
}

/// A run that fails between two checkpoints saves the steps it has made, where their weights are good: not after an update that broke off,
/// not where gradients have overflowed for long, and not where it was the saving that failed.
void LLMTrainer::keepWhatWasLearned(ModelCheckpoint& checkpoint, const Error& error) {
    if (m_reporter.stage() == "saving" || isDiskFull(error) || !m_model->isIntact() || m_model->isOverflowing()) return;
    m_optimizer->zeroGrad(); // memory may be what was missing
    RunContext context;
    context.originalArgs().curStepNum = m_model->step();
    const std::string stage = m_reporter.stage();
    try {
        if (const Status status = checkpoint.saveNow(context); !status) m_reporter.warning("checkpoint", status.error());
    } catch (const std::exception& exception) {
        m_reporter.warning("checkpoint", errorOf(exception));
    }
    m_reporter.stage(stage); // where it failed
}

Error LLMTrainer::divergence() const {
    Error error = m_model->divergence().error;
    const auto checkpoints = listCheckpoints(m_setup.folder.checkpoints());
    error.hint += checkpoints.empty() ? " No checkpoint was saved before."
                                      : " The last good checkpoint is " + checkpoints.back().filename().string() + ": resume from it with other settings.";
    return error;
}

/// Where a run that failed in training would go on.
std::string LLMTrainer::whereToGoOn() const {
    const auto checkpoints = listCheckpoints(m_setup.folder.checkpoints());
    return checkpoints.empty() ? "No checkpoint was saved." : "A resume goes on from " + checkpoints.back().filename().string() + ".";
}

RunResult LLMTrainer::failed(Error error) {
    if (isOutOfMemory(error)) {
        error.place = m_reporter.stage() + (error.place.empty() ? "" : ", " + error.place);
        if (m_isTraining) error.hint = "Lower train.batch_size (raise train.accumulation to keep the step as large) or train.sequence_length, or turn on train.recompute.";
    }
    RunResult result{protocol::Failure, RunState::Failed, error};
    if (isDiskFull(error)) result.code = protocol::DiskFull;
    else if (isOutOfMemory(error)) result.code = protocol::OutOfMemory;
    else if (m_isDeviceMissing) result.code = protocol::NoDevice;
    else if (!m_isTraining && !m_isWorking) result.code = protocol::BadInput; // refused before the work began
    else if (m_model->isOverflowing()) result.code = protocol::Diverged;
    if (m_isTraining) error.hint += (error.hint.empty() ? "" : " ") + whereToGoOn();
    result.error = error;
    m_reporter.error("failed", error);
    m_reporter.state(RunState::Failed);
    if (auto status = m_setup.writer.flush(); !status) m_reporter.print("error: " + status.error().text());
    return result;
}

} // namespace celloom::engine
