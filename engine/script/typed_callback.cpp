#include "engine/script/typed_callback.h"

#include "engine/train/model.h"
#include "models/base/text.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

namespace celloom::engine {
namespace {

/// What optimizer.learning_rate reads: the rate in use, or the one that is set for the next step.
double rateOf(const CallbackParams& params) {
    const Model* model = params.trainNetwork;
    if (!model) return params.learningRate;
    if (const auto fixed = model->state().fixedRate) return *fixed;
    return params.learningRate > 0 ? params.learningRate : model->nextRate(); // 0: before the first step
}

} // namespace

void ScriptFailures::report(const std::string& script, const ScriptProblem& problem) {
    Error error = problem.asError(script);
    if (!problem.method.empty()) error.message = problem.method + ": " + error.message;
    const std::string data = nlohmann::json{{"callback", script},
                                            {"method", problem.method},
                                            {"line", problem.line},
                                            {"column", problem.column},
                                            {"message", problem.hint.empty() ? problem.message : problem.message + " " + problem.hint},
                                            {"action", m_policy == OnScriptError::Stop ? "stop" : "disable"}}
                                 .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    if (!m_first) m_first = error;
    if (m_policy == OnScriptError::Stop) m_reporter.error("callback_error", error, data);
    else m_reporter.warning("callback_error", error, data);
}

void ScriptPrinter::operator()(const std::string& line) {
    if (m_events >= kMaxEvents) return m_reporter.print(m_script + ": " + line);
    ++m_events;
    m_reporter.info("script_print", line, nlohmann::json{{"callback", m_script}, {"line", line}}.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
    if (m_events == kMaxEvents)
        m_reporter.info("script_quiet", m_script + " has printed " + std::to_string(kMaxEvents) + " lines; what follows is in the log alone.",
                        nlohmann::json{{"callback", m_script}, {"lines", kMaxEvents}}.dump());
}

TypedCallback::TypedCallback(std::unique_ptr<Script> script, ScriptFailures& failures) : m_script(std::move(script)), m_failures(failures) {
    CELLOOM_CHECK(m_script->report().kind != ScriptKind::Metric);
    m_script->setPrint(ScriptPrinter(failures.reporter(), m_script->name()));
}

Status TypedCallback::onTrainBegin(RunContext& context) {
    return m_isResumed ? Status() : fire(context, "on_train_begin", "begin");
}

Status TypedCallback::onTrainEpochBegin(RunContext& context) {
    CallbackParams& params = context.originalArgs();
    if (!m_isResumed || params.batchNum <= 0) return fire(context, "on_train_epoch_begin", "epoch_begin");
    m_isResumed = false;
    if (params.curStepNum % params.batchNum != 0) return {}; // the epoch had begun
    if (const std::int64_t done = params.curStepNum / params.batchNum; m_epochsEnded < done) { // the checkpoint was written before its end was told
        const std::int64_t epoch = std::exchange(params.curEpochNum, done);
        CELLOOM_TRY_STATUS(onTrainEpochEnd(context));
        params.curEpochNum = epoch;
    }
    return fire(context, "on_train_epoch_begin", "epoch_begin");
}

Status TypedCallback::onTrainEpochEnd(RunContext& context) {
    const CallbackParams& params = context.originalArgs();
    const bool isWhole = params.batchNum <= 0 || params.curStepNum % params.batchNum == 0;
    if (isWhole) ++m_epochsEnded;
    else m_kept = currentState();
    return fire(context, "on_train_epoch_end", "epoch_end");
}

Status TypedCallback::onTrainEnd(RunContext& context) {
    if (!m_kept) m_kept = currentState();
    return fire(context, "on_train_end", "end");
}

std::string TypedCallback::currentState() const {
    return "{\"attributes\": " + m_script->state() + ", \"epochs_ended\": " + std::to_string(m_epochsEnded) + "}";
}

Status TypedCallback::onTrainStepEnd(RunContext& context) {
    if (m_script->report().kind == ScriptKind::Callback) return fire(context, "on_train_step_end", "step_end");
    if (!m_isOff) followSchedule(context);
    return {};
}

Status TypedCallback::fire(RunContext& context, const char* event, const char* oldEvent) {
    if (m_isOff || m_script->report().kind != ScriptKind::Callback) return {};
    const char* method = m_script->has(event) ? event : oldEvent && m_script->has(oldEvent) ? oldEvent : nullptr;
    if (!method) return {};
    const CallbackParams& params = context.originalArgs();
    ScriptRun run{params, rateOf(params)};
    const auto status = m_script->call(method, run);
    if (!status) {
        fail(context, status.error());
        return {};
    }
    if (run.isRateSet) setRate(context, run.rate, method);
    if (run.isStopAsked) context.requestStop();
    return {};
}

/// MindSpore's LearningRateScheduler: after each step the function gives the rate of the next, from the present one and the step's number.
void TypedCallback::followSchedule(RunContext& context) {
    const CallbackParams& params = context.originalArgs();
    const double before = rateOf(params);
    const auto rate = m_script->rate(before, params.curStepNum);
    if (!rate) return fail(context, rate.error());
    if (*rate != before) setRate(context, *rate, m_script->report().definition);
}

void TypedCallback::setRate(RunContext& context, double rate, const std::string& method) {
    if (!std::isfinite(rate) || rate < 0) {
        ScriptProblem problem;
        problem.message = "The learning rate " + numberText(rate) + " is refused.";
        problem.hint = "A rate is a finite number, at least 0.";
        problem.method = method;
        return fail(context, problem);
    }
    if (Model* model = context.originalArgs().trainNetwork) model->fixLearningRate(rate);
}

void TypedCallback::fail(RunContext& context, const ScriptProblem& problem) {
    m_isOff = true;
    m_failures.report(m_script->name(), problem);
    if (m_failures.isStopWanted()) context.requestStop();
}

Status TypedCallback::restoreJson(const std::string& state) {
    const nlohmann::json saved = nlohmann::json::parse(state, nullptr, false);
    if (!saved.is_object() || !saved.contains("attributes") || !saved.contains("epochs_ended") || !saved["epochs_ended"].is_number_integer())
        return celloom::fail("holds no state of a typed callback.", "Use another checkpoint.", stateName());
    m_epochsEnded = saved["epochs_ended"];
    m_isResumed = true;
    const auto lost = m_script->restore(saved["attributes"].dump());
    if (!lost) return celloom::fail(lost.error().message, lost.error().hint, stateName());
    if (!lost->empty())
        m_failures.reporter().warning("script_state",
                                      {"The callback " + m_script->name() + " has changed: the saved values of " + joined(*lost) + " fit no longer and begin anew.", {}, {}},
                                      nlohmann::json{{"callback", m_script->name()}, {"attributes", *lost}}.dump());
    return {};
}

} // namespace celloom::engine
