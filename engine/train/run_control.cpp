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
    m_reporter.stage(m_isPaused ? "paused" : "training");
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
        }
        if (m_isPaused && !m_isStopAsked) waitForSomethingToDo();
    } while (m_isPaused && !m_isStopAsked);
    if (!m_isStopAsked) return {};
    if (m_isPaused) m_reporter.endPause();
    m_isPaused = false;
    stop(context);
    return {};
}

Status RunControl::obey(const protocol::Command& command, RunContext& context) {
    CallbackParams& params = context.originalArgs();
    switch (command.action) {
    case Action::Pause:
        if (m_isPaused) return {};
        m_isPaused = true;
        m_reporter.beginPause();
        m_reporter.state(store::RunState::Paused);
        m_reporter.stage("paused");
        m_reporter.info("paused", "Paused after step " + std::to_string(params.curStepNum) + ".", nlohmann::json{{"step", params.curStepNum}}.dump());
        return {};
    case Action::Continue:
        if (!m_isPaused) return {};
        m_isPaused = false;
        m_reporter.endPause();
        m_reporter.state(store::RunState::Running);
        m_reporter.stage("training");
        m_reporter.info("continued", "Continued after step " + std::to_string(params.curStepNum) + ".", nlohmann::json{{"step", params.curStepNum}}.dump());
        return {};
    case Action::Save:
        return m_checkpoint ? m_checkpoint->saveNow(context) : Status();
    case Action::Evaluate:
        if (m_evaluation) return m_evaluation->evaluateNow(context);
        m_reporter.warning("evaluation", {"There is no validation data to evaluate on.", "Name validation files, or hold out a part of the documents.", {}},
                           R"({"no_data": true})");
        return {};
    case Action::Sample:
        return m_sample ? m_sample->writeNow(context) : Status();
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

void RunControl::waitForSomethingToDo() {
    while (m_pending.empty() && !m_isStopAsked) {
        m_link->waitForCommand(std::chrono::milliseconds(200));
        m_reporter.heartbeat();
        collect();
    }
}

} // namespace celloom::engine
