// Script: a cell whose construct the user typed.
#include "engine/cells/cell.h"
#include "engine/cells/cell_error.h"
#include "engine/script/cell_script.h"

#include <mutex>

namespace celloom::engine {
namespace {

/// Code that is compiled, as long as a cell uses it.
class CompiledScripts {
public:
    std::shared_ptr<const CellScript> get(const graph::CellInstance& instance, const ScriptSpec& spec) {
        const std::lock_guard lock(m_mutex);
        std::string key = spec.code;
        for (const char* parameter : {"inputs", "outputs", "weights"}) key += '\0' + instance.text(parameter);
        std::weak_ptr<const CellScript>& kept = m_scripts[key];
        if (auto script = kept.lock()) return script;
        auto compiled = CellScript::compile(spec);
        if (!compiled) throw CellError(compiled.error().asError(instance.path + ", code"));
        kept = *compiled;
        std::erase_if(m_scripts, [](const auto& item) { return item.second.expired(); });
        return *compiled;
    }

private:
    std::mutex m_mutex;
    std::map<std::string, std::weak_ptr<const CellScript>> m_scripts;
};

class ScriptCell final : public Cell {
public:
    ScriptCell(const graph::CellInstance& instance, ScriptPorts ports, std::shared_ptr<const CellScript> script)
        : Cell(instance), m_ports(std::move(ports)), m_script(std::move(script)) {}

    std::vector<at::Tensor> construct(const std::vector<at::Tensor>& inputs, StepContext& context) override {
        std::vector<at::Tensor> weights;
        for (const graph::DeclaredPort& port : m_ports.weights) weights.push_back(weight(port.name));
        auto results = m_script->construct(inputs, weights, computeType(), context.isTraining);
        if (!results) throw CellError(results.error().asError(instance().path + ", code"));
        if (auto status = checkDeclared(m_ports.inputs, inputs, m_ports.outputs, *results); !status)
            throw CellError({status.error().message, status.error().hint, instance().path});
        return std::move(*results);
    }

private:
    ScriptPorts m_ports;
    std::shared_ptr<const CellScript> m_script;
};

} // namespace

void addScriptCells(CellRegistry& registry) {
    registry.add("Script", [scripts = std::make_shared<CompiledScripts>()](const graph::CellInstance& instance) -> std::unique_ptr<Cell> {
        ScriptPorts ports{instance.ports("inputs"), instance.ports("outputs"), instance.ports("weights")};
        auto script = scripts->get(instance, {instance.path, instance.text("code"), {}, ports});
        return std::make_unique<ScriptCell>(instance, std::move(ports), std::move(script));
    });
}

} // namespace celloom::engine
