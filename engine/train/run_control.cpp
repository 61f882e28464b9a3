#include "engine/train/run_control.h"

#include "engine/train/model.h"

#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>

namespace celloom::engine {
using protocol::Action;

namespace {

std::string rateText(double rate) {
    char text[32];
    std::snprintf(text, sizeof text, "%g", rate); // 2e-05, where std::to_string would say 0.000020
    return text;
}

} // namespace

void RunControl::attach(EvaluationCallback* evaluation, SampleCallback* sample, ModelCheckpoint* checkpoint) {
    m_evaluation = evaluation;
    m_sample = sample;
    m_checkpoint = checkpoint;
}

void RunControl::collect() {
    if (m_stopSignal && m_stopSignal->load()) m_isStopAsked = true;
    if (!m_link) return;
    for (const protocol::Command& command : m_link->take()) {
        if (command.action == Action::Stop) m_isStopAsked = true; // overtakes what waits
        else m_pending.push_back(command);
    }
}

bool RunControl::isStopAsked() {
    collect();
    return m_isStopAsked;
}

void RunControl::stop(RunContext& context) {
    m_reporter.state(store::RunState::Stopping);
    context.requestStop();
}

Status RunControl::begin(RunContext& context) {
    if (isStopAsked()) stop(context);
    return {};
}

Status RunControl::onEvalBegin(RunContext&) {
    m_reporter.stage("evaluating");
    return {};
}

Status RunControl::onEvalEnd(RunContext&) {
    m_reporter.stage(m_isPaused ? "paused" : m_workStage);
    return {};
}

Status RunControl::onEvalStepEnd(RunContext& context) {
    m_reporter.heartbeat();
    if (isStopAsked()) stop(context);
    return {};
}

Status RunControl::stepEnd(RunContext& context) {
    do {
        collect();
        while (!m_isStopAsked && !m_pending.empty()) {
            const protocol::Command command = m_pending.front();
            m_pending.pop_front();
            CELLOOM_TRY_STATUS(obey(command, context));
            if (m_isPaused) m_reporter.stage("paused"); // also after a sample or a checkpoint that was asked for meanwhile
        }
        if (m_isPaused && !m_isStopAsked) waitForSomethingToDo();
    } while (m_isPaused && !m_isStopAsked);
    if (!m_isStopAsked) return {};
    if (m_isPaused) m_reporter.endPause();
    m_isPaused = false;
    stop(context);
    return {};
}

/// "Paused after step 12." Of a run without steps: "Paused."
void RunControl::say(const std::string& kind, const std::string& message, std::int64_t step) {
    if (trains()) m_reporter.info(kind, message + " after step " + std::to_string(step) + ".", nlohmann::json{{"step", step}}.dump());
    else m_reporter.info(kind, message + ".", "{}");
}

/// Every command is answered by an event: whoever gave it waits for one.
Status RunControl::refuse(const protocol::Command& command) {
    const std::string action = protocol::toString(command.action);
    m_reporter.warning("not_possible", {"A run that does not train makes no steps, saves nothing and has no learning rate: it cannot obey \"" + action + "\".", {}, {}},
                       nlohmann::json{{"action", action}}.dump());
    return {};
}

Status RunControl::obey(const protocol::Command& command, RunContext& context) {
    CallbackParams& params = context.originalArgs();
    const bool isAlways = command.action == Action::Pause || command.action == Action::Continue || command.action == Action::Stop;
    if (!trains() && !isAlways) return refuse(command);
    switch (command.action) {
    case Action::Pause:
        if (!m_isPaused) m_reporter.beginPause();
        m_isPaused = true;
        m_reporter.state(store::RunState::Paused);
        m_reporter.stage("paused");
        say("paused", "Paused", params.curStepNum);
        return {};
    case Action::Continue:
        if (m_isPaused) m_reporter.endPause();
        m_isPaused = false;
        m_reporter.state(store::RunState::Running);
        m_reporter.stage(m_workStage);
        say("continued", "Continued", params.curStepNum);
        return {};
    case Action::Save:
        return save(context);
    case Action::Evaluate:
        if (m_evaluation) return m_evaluation->evaluateNow(context);
        m_reporter.warning("evaluation", {"There is no validation data to evaluate on.", "Name validation files, or hold out a part of the documents.", {}},
                           R"({"no_data": true})");
        return {};
    case Action::Sample:
        return sample(context);
    case Action::SetLearningRate:
        params.trainNetwork->fixLearningRate(command.value);
        m_reporter.info("learning_rate", "From step " + std::to_string(params.curStepNum + 1) + " on the learning rate is " + rateText(command.value) + ".",
                        nlohmann::json{{"step", params.curStepNum + 1}, {"lr", command.value}}.dump());
        return {};
    case Action::Stop:
        m_isStopAsked = true;
        return {};
    }
    return {};
}

Status RunControl::save(RunContext& context) {
    const std::int64_t step = context.originalArgs().curStepNum;
    const bool isSaved = m_checkpoint->lastStep() == step;
    CELLOOM_TRY_STATUS(m_checkpoint->saveNow(context));
    if (isSaved) m_reporter.info("saved_already", "Step " + std::to_string(step) + " is saved already.", nlohmann::json{{"step", step}}.dump());
    return {};
}

Status RunControl::sample(RunContext& context) {
    if (!m_sample) {
        m_reporter.warning("sampled", {"There is no tokenizer to write with.", "Give the run tokenizer.path: token files come without one.", {}},
                           R"({"no_tokenizer": true})");
        return {};
    }
    CELLOOM_TRY_STATUS(m_sample->writeNow(context));
    const std::int64_t step = context.originalArgs().curStepNum;
    if (!isStopAsked()) m_reporter.info("sampled", "Wrote samples after step " + std::to_string(step) + ".", nlohmann::json{{"step", step}}.dump());
    return {};
}

void RunControl::waitForSomethingToDo() {
    while (m_pending.empty() && !m_isStopAsked) {
        m_link->waitForCommand(std::chrono::milliseconds(200));
        m_reporter.heartbeat();
        collect();
    }
}

} // namespace celloom::engine
