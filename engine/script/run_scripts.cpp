#include "engine/script/run_scripts.h"

#include "models/recipe/typed_script.h"

#include <ATen/ops/index.h>
#include <ATen/ops/ne.h>

#include <limits>

namespace celloom::engine {

TypedMetric::TypedMetric(std::unique_ptr<Script> script, ScriptFailures& failures) : m_script(std::move(script)), m_failures(failures) {
    m_script->setPrint(ScriptPrinter(failures.reporter(), m_script->name()));
}

void TypedMetric::note(const ScriptResult<void>& result) const {
    if (result) return;
    m_isOff = true;
    m_failures.report(m_script->name(), result.error());
}

void TypedMetric::clear() {
    if (!m_isOff) note(m_script->clear());
}

Status TypedMetric::update(const MetricInput& input) {
    if (m_isOff || input.values.compared.empty() || !input.values.compared.front().predictions.defined()) return {};
    at::Tensor predictions = input.values.compared.front().predictions.detach(), labels = input.values.compared.front().targets;
    if (labels.scalar_type() == at::kLong) { // sparse: -100 does not count
        const at::Tensor counts = labels.ne(-100);
        predictions = at::index(predictions, {counts});
        labels = at::index(labels, {counts});
    }
    note(m_script->update(predictions, labels));
    return {};
}

Result<double> TypedMetric::eval() const {
    if (m_isOff) return std::numeric_limits<double>::quiet_NaN();
    const auto value = m_script->eval();
    if (value) return *value;
    note(tl::unexpected(value.error()));
    return std::numeric_limits<double>::quiet_NaN();
}

Result<std::unique_ptr<RunScripts>> RunScripts::compile(const recipe::Recipe& recipe, RunReporter& reporter) {
    CELLOOM_TRY(typed, recipe::typedScripts(recipe.list("callbacks.scripts")));
    const OnScriptError policy = recipe.text("callbacks.on_error") == "disable" ? OnScriptError::Disable : OnScriptError::Stop;
    std::unique_ptr<RunScripts> out(new RunScripts(reporter, policy));
    for (const recipe::TypedScript& one : typed) {
        if (!one.path.empty()) return fail("names a file that was not read in.", "Submit the recipe again.", "callbacks.scripts");
        auto script = Script::compile({one.shownName(), one.code, one.values});
        if (!script) return tl::unexpected(script.error().asError("callbacks.scripts: " + one.shownName()));
        if ((*script)->report().kind == ScriptKind::Metric)
            out->m_metrics[one.shownName()] = std::make_shared<TypedMetric>(std::move(*script), out->m_failures);
        else
            out->m_callbacks.push_back(std::make_unique<TypedCallback>(std::move(*script), out->m_failures));
    }
    if (!out->m_metrics.empty()) out->m_callbacks.push_back(std::make_unique<StopForMetrics>(out->m_failures));
    return out;
}

std::vector<Callback*> RunScripts::callbacks() const {
    std::vector<Callback*> out;
    for (const auto& callback : m_callbacks) out.push_back(callback.get());
    return out;
}

} // namespace celloom::engine
