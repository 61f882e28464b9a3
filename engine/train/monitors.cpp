#include "engine/train/monitors.h"

#include "engine/train/model.h"

#include <ATen/core/grad_mode.h>

#include <array>
#include <cmath>

namespace celloom::engine {
namespace {

bool falls(const MonitorOptions& options) {
    if (options.mode != Better::Auto) return options.mode == Better::Min;
    const std::string name = options.monitor.starts_with("eval_") ? options.monitor.substr(5) : options.monitor;
    constexpr std::array falling{"loss", "perplexity", "mae", "mse"};
    return std::find(falling.begin(), falling.end(), name) != falling.end();
}

void put(std::map<std::string, double>& state, const char* name, std::optional<double> value) {
    if (value) state[name] = *value;
}

std::optional<double> taken(const std::map<std::string, double>& state, const char* name) {
    const auto found = state.find(name);
    return found == state.end() ? std::nullopt : std::optional(found->second);
}

std::int64_t whole(const std::map<std::string, double>& state, const char* name, std::int64_t otherwise) {
    const auto value = taken(state, name);
    return value ? static_cast<std::int64_t>(*value) : otherwise;
}

} // namespace

std::optional<double> measurement(const std::map<std::string, double>& results, const std::string& name) {
    for (const std::string& key : {name, "eval_" + name, name.starts_with("eval_") ? name.substr(5) : name})
        if (const auto found = results.find(key); found != results.end()) return found->second;
    return std::nullopt;
}

Monitor::Monitor(MonitorOptions options) : m_options(std::move(options)), m_isFalling(falls(m_options)) {
    CELLOOM_CHECK(m_options.patience >= 0);
    m_options.minDelta = std::abs(m_options.minDelta);
}

bool Monitor::isBetter(double value, double than) const {
    return m_isFalling ? value < than - m_options.minDelta : value > than + m_options.minDelta;
}

bool Monitor::improves(double value) {
    if (m_best && !isBetter(value, *m_best)) return false;
    if (!std::isfinite(value)) return false; // NaN is never an improvement
    m_best = value;
    return true;
}

Status Monitor::begin(RunContext&) {
    if (!m_isRestored) {
        m_best.reset();
        m_wait = 0;
        m_lastStep = -1;
        reset();
    }
    m_isRestored = false;
    return {};
}

Status Monitor::stepEnd(RunContext& context) { return m_options.watch == Watch::Evaluations && m_options.monitor != "loss" ? look(context) : Status(); }

Status Monitor::epochEnd(RunContext& context) {
    const CallbackParams& params = context.originalArgs();
    if (m_options.monitor == "loss") return params.isEmpty || params.isOverflow ? Status() : measured(params.netOutputs, context);
    if (m_options.watch == Watch::Evaluations) return {};
    if (!params.validDataset)
        return fail("\"" + m_options.monitor + "\" is watched, but nothing is evaluated.", "Use fit with validation data, or watch \"loss\".", stateName());
    return look(context);
}

/// Acts on an evaluation that it has not seen yet.
Status Monitor::look(RunContext& context) {
    const CallbackParams& params = context.originalArgs();
    if (params.evalResults.empty() || params.evalStep == m_lastStep) return {};
    m_lastStep = params.evalStep;
    const auto value = measurement(params.evalResults, m_options.monitor);
    if (value) return measured(*value, context);
    std::string known;
    for (const auto& [name, result] : params.evalResults) known += (known.empty() ? "" : ", ") + name;
    return fail("\"" + m_options.monitor + "\" is watched, which the evaluation does not measure.", "It measures " + known + ".", stateName());
}

std::map<std::string, double> Monitor::state() const {
    std::map<std::string, double> out{{"wait", static_cast<double>(m_wait)}, {"last_step", static_cast<double>(m_lastStep)}};
    put(out, "best", m_best);
    return out;
}

void Monitor::restore(const std::map<std::string, double>& state) {
    m_wait = whole(state, "wait", 0);
    m_lastStep = whole(state, "last_step", -1);
    m_best = taken(state, "best");
    m_isRestored = true;
}

EarlyStopping::EarlyStopping(Options options, Report report) : Monitor(options.monitor), m_settings(std::move(options)), m_report(std::move(report)) {}

/// A run that had stopped by itself stops at once when it is resumed, unless its patience was raised.
Status EarlyStopping::begin(RunContext& context) {
    CELLOOM_TRY_STATUS(Monitor::begin(context));
    if (m_stoppedEpoch == 0) return {};
    if (m_wait >= std::max<std::int64_t>(m_options.patience, 1)) context.requestStop();
    else m_stoppedEpoch = 0;
    return {};
}

void EarlyStopping::reset() {
    m_stoppedEpoch = m_bestStep = m_restoredStep = 0;
    m_bestWeights.clear();
}

Status EarlyStopping::measured(double value, RunContext& context) {
    at::NoGradGuard guard;
    std::vector<Parameter>& parameters = context.originalArgs().network->parameters();
    ++m_wait;
    if (improves(value)) {
        if (!m_settings.baseline || isBetter(value, *m_settings.baseline)) m_wait = 0;
        m_bestStep = context.originalArgs().curStepNum;
        if (m_settings.restoresBestWeights)
            for (const Parameter& parameter : parameters)
                if (!parameter.isFrozen || parameter.isBuffer) m_bestWeights[parameter.path] = parameter.tensor.detach().clone();
    }
    if (m_wait < std::max<std::int64_t>(m_options.patience, 1)) return {};
    m_stoppedEpoch = context.originalArgs().curEpochNum;
    context.requestStop();
    if (!m_bestWeights.empty()) m_restoredStep = m_bestStep;
    for (Parameter& parameter : parameters)
        if (const auto best = m_bestWeights.find(parameter.path); best != m_bestWeights.end()) parameter.tensor.copy_(best->second);
    if (m_report) m_report(context);
    return {};
}

std::map<std::string, double> EarlyStopping::state() const {
    auto out = Monitor::state();
    out["stopped_epoch"] = static_cast<double>(m_stoppedEpoch);
    out["best_step"] = static_cast<double>(m_bestStep);
    return out;
}

void EarlyStopping::restore(const std::map<std::string, double>& state) {
    Monitor::restore(state);
    m_stoppedEpoch = whole(state, "stopped_epoch", 0);
    m_bestStep = whole(state, "best_step", 0);
}

Status EarlyStopping::restoreTensors(const std::map<std::string, at::Tensor>& tensors) {
    if (m_settings.restoresBestWeights) m_bestWeights = tensors; // else the resume asks for it no longer
    return {};
}

ReduceLROnPlateau::ReduceLROnPlateau(Options options, Report report)
    : Monitor(options.monitor), m_settings(std::move(options)), m_report(std::move(report)) {
    CELLOOM_CHECK(m_settings.factor > 0 && m_settings.factor < 1 && m_settings.cooldown >= 0);
}

Status ReduceLROnPlateau::measured(double value, RunContext& context) {
    if (m_cooldown > 0) {
        --m_cooldown;
        m_wait = 0;
    }
    if (improves(value)) {
        m_wait = 0;
        return {};
    }
    if (m_cooldown > 0 || ++m_wait < m_options.patience) return {};
    const CallbackParams& params = context.originalArgs();
    const double before = params.learningRate, after = std::max(before * m_settings.factor, m_settings.minLr);
    if (before > m_settings.minLr) {
        params.trainNetwork->fixLearningRate(after);
        if (m_report) m_report(context, before, after);
    }
    m_cooldown = m_settings.cooldown;
    m_wait = 0;
    return {};
}

std::map<std::string, double> ReduceLROnPlateau::state() const {
    auto out = Monitor::state();
    out["cooldown"] = static_cast<double>(m_cooldown);
    return out;
}

void ReduceLROnPlateau::restore(const std::map<std::string, double>& state) {
    Monitor::restore(state);
    m_cooldown = whole(state, "cooldown", 0);
}

} // namespace celloom::engine
