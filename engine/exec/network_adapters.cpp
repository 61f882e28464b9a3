// The adapters of a network: the one it trains, those that are swapped, and merging them into the base.
#include "engine/exec/network_state.h"

#include "models/base/text.h"
#include "models/recipe/parameter_table.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <algorithm>
#include <cmath>
#include <utility>

namespace celloom::engine {

void Network::State::addTrainedAdapter(std::size_t cell, const recipe::LoraSettings& settings) {
    const graph::CellInstance& instance = model.cells[cell];
    const auto& matrix = instance.weights.front().dims; // [out, in]
    const double bound = 1 / std::sqrt(static_cast<double>(matrix[1]));
    CellAdapter adapter;
    adapter.scale = settings.scale();
    adapter.dropout = settings.dropout;
    const auto add = [&](const std::string& name, at::Tensor tensor) {
        tensor = tensor.to(options.device).requires_grad_(true);
        parameters.push_back({.path = instance.path + "." + name, .tensor = tensor, .cell = static_cast<int>(cell), .isAdapter = true});
        slots.push_back({cell, 0});
        return tensor;
    };
    const std::string a = "lora_A.weight";
    adapter.a = add(a, at::empty({settings.rank, matrix[1]}, at::kFloat).uniform_(-bound, bound, generatorFor(options.seed, instance.path + "." + a)));
    adapter.b = add("lora_B.weight", at::zeros({matrix[0], settings.rank}, at::kFloat));
    if (settings.useDora) adapter.magnitude = add("lora_magnitude_vector", at::ones({matrix[0]}, at::kFloat));
    adapters[kTrainedAdapter].cells[cell] = adapter;
    cells[cell]->setAdapters({std::move(adapter)});
}

const Parameter* Network::State::matrixOf(std::size_t cell) const {
    for (std::size_t i = 0; i < parameters.size(); ++i)
        if (slots[i].cell == cell && slots[i].number == 0 && !parameters[i].isAdapter) return &parameters[i];
    return nullptr;
}

void Network::baseChanged() {
    const at::NoGradGuard guard;
    const auto trained = m_state->adapters.find(kTrainedAdapter);
    if (trained == m_state->adapters.end()) return;
    for (auto& [cell, adapter] : trained->second.cells)
        if (adapter.magnitude.defined())
            adapter.magnitude.copy_(at::linalg_vector_norm(m_state->matrixOf(cell)->tensor.to(at::kFloat), 2, at::IntArrayRef{1}));
}

std::vector<std::string> Network::adapters() const {
    std::vector<std::string> out;
    for (const auto& item : m_state->adapters) out.push_back(item.first);
    return out;
}

const std::vector<AdapterWeight>& Network::activeAdapters() const { return m_state->active; }

Status Network::addAdapter(const std::string& name, const recipe::TreatmentTable& treatment, const std::map<std::string, at::Tensor>& tensors) {
    CELLOOM_CHECK(treatment.cells.size() == m_state->model.cells.size());
    if (m_state->adapters.contains(name)) return fail("there is an adapter " + inQuotes(name) + " already.", "Give it another name.");
    const at::NoGradGuard guard;
    State::Held held;
    try {
        const auto take = [&](const recipe::ParameterRow& row) {
            const auto found = tensors.find(row.path);
            CELLOOM_CHECK(found != tensors.end() && found->second.sizes() == at::IntArrayRef(row.dims));
            return found->second.to(m_state->options.device, at::kFloat, false, /*copy=*/true);
        };
        for (const recipe::ParameterRow& row : recipe::parameterTable(m_state->model, treatment)) {
            if (row.adapterName.empty()) continue;
            const auto cell = static_cast<std::size_t>(row.cell);
            if (!row.isAdapter) {
                const auto own = std::find_if(m_state->parameters.begin(), m_state->parameters.end(),
                                              [&](const Parameter& parameter) { return parameter.path == row.path; });
                held.replaced[static_cast<std::size_t>(own - m_state->parameters.begin())] = take(row);
                held.worksAlone = true;
                continue;
            }
            CellAdapter& adapter = held.cells[cell];
            const recipe::LoraSettings& settings = *treatment.cells[cell].lora;
            adapter.scale = settings.scale();
            adapter.dropout = settings.dropout;
            if (row.path.ends_with("lora_A.weight")) adapter.a = take(row);
            else if (row.path.ends_with("lora_B.weight")) adapter.b = take(row);
            else adapter.magnitude = take(row);
            held.worksAlone = held.worksAlone || settings.useDora;
        }
    } catch (const std::exception& exception) {
        return tl::unexpected(errorOf(exception, name));
    }
    m_state->adapters.emplace(name, std::move(held));
    return {};
}

Status Network::removeAdapter(const std::string& name) {
    if (!m_state->adapters.contains(name)) return fail("there is no adapter " + inQuotes(name) + ".");
    const auto& active = m_state->active;
    if (std::any_of(active.begin(), active.end(), [&](const AdapterWeight& one) { return one.name == name; }))
        return fail("the adapter " + inQuotes(name) + " is in use.", "Switch it off first.");
    m_state->adapters.erase(name);
    return {};
}

Status Network::activate(const std::vector<AdapterWeight>& wanted) {
    State& state = *m_state;
    if (isMerged()) return fail("an adapter is merged into the base.", "Unmerge it first.");
    for (const AdapterWeight& one : wanted) {
        const auto found = state.adapters.find(one.name);
        if (found == state.adapters.end()) return fail("there is no adapter " + inQuotes(one.name) + ".", "Loaded are " + joined(adapters()) + ".");
        if (!std::isfinite(one.weight)) return fail("the weight of " + inQuotes(one.name) + " is " + numberText(one.weight) + ".", "Give a number.");
        if (found->second.worksAlone && (wanted.size() > 1 || one.weight != 1))
            return fail("the adapter " + inQuotes(one.name) + " brings weights of its own or uses DoRA, so it cannot be mixed or weighed.",
                        "Use it alone, with the weight 1.");
        if (std::count_if(wanted.begin(), wanted.end(), [&](const AdapterWeight& other) { return other.name == one.name; }) > 1)
            return fail("the adapter " + inQuotes(one.name) + " is given twice.", "Give it once, with another weight.");
    }
    const auto& table = state.treatment.cells;
    if (std::any_of(table.begin(), table.end(), [](const recipe::Treatment& cell) { return cell.saveWhole || cell.trainBias; }) && wanted != state.active)
        return fail("an adapter that trains weights of the base cannot be switched while it does.");

    for (const AdapterWeight& one : state.active)
        for (const auto& item : state.adapters[one.name].replaced) state.place(item.first, state.parameters[item.first].tensor);
    std::map<std::size_t, std::vector<CellAdapter>> byCell;
    for (const AdapterWeight& one : wanted) {
        const State::Held& held = state.adapters[one.name];
        for (const auto& [parameter, tensor] : held.replaced) state.place(parameter, tensor);
        for (const auto& [cell, adapter] : held.cells) {
            byCell[cell].push_back(adapter);
            byCell[cell].back().weight = one.weight;
        }
    }
    for (std::size_t i = 0; i < state.cells.size(); ++i) {
        const auto found = byCell.find(i);
        state.cells[i]->setAdapters(found == byCell.end() ? std::vector<CellAdapter>() : std::move(found->second));
    }
    state.active = wanted;
    return {};
}

bool Network::isMerged() const { return !m_state->beforeMerge.empty(); }

Status Network::merge() {
    State& state = *m_state;
    if (isMerged()) return fail("an adapter is merged into the base already.", "Unmerge it first.");
    if (state.active.empty()) return fail("no adapter is active.", "Load one and switch it on.");
    const at::NoGradGuard guard;
    std::map<std::size_t, at::Tensor> merged; // float32, by the parameter's number
    try {
        for (const AdapterWeight& one : state.active) {
            const State::Held& held = state.adapters[one.name];
            for (const auto& [parameter, tensor] : held.replaced) merged[parameter] = tensor;
            for (const auto& [cell, kept] : held.cells) {
                CellAdapter adapter = kept;
                adapter.weight = one.weight;
                const auto number = static_cast<std::size_t>(state.matrixOf(cell) - state.parameters.data());
                at::Tensor& matrix = merged[number];
                matrix = mergedMatrix(adapter, matrix.defined() ? matrix : state.parameters[number].tensor);
            }
        }
        for (const auto& [number, tensor] : merged) {
            Parameter& parameter = state.parameters[number];
            state.beforeMerge[number] = parameter.tensor;
            parameter.tensor = tensor.to(parameter.tensor.scalar_type(), false, /*copy=*/true).requires_grad_(!parameter.isFrozen);
            state.place(number, parameter.tensor);
        }
    } catch (const std::exception& exception) {
        const Error error = errorOf(exception, "merging");
        if (isMerged()) (void)unmerge();
        return tl::unexpected(error);
    }
    for (const auto& cell : state.cells) cell->setAdapters({});
    return {};
}

Status Network::unmerge() {
    State& state = *m_state;
    if (!isMerged()) return fail("no adapter is merged.");
    for (auto& [number, tensor] : state.beforeMerge) {
        state.parameters[number].tensor = tensor;
        state.place(number, tensor);
    }
    state.beforeMerge.clear();
    const std::vector<AdapterWeight> active = std::exchange(state.active, {});
    return activate(active);
}

} // namespace celloom::engine
