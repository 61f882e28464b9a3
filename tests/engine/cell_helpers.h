// One cell outside any graph, for tests: its instance as the catalogue describes it, weights filled from a seed.
#pragma once

#include "engine/cells/cell.h"
#include "models/catalog/catalog.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/randn.h>

namespace celloom::engine::testing {

using Params = std::map<std::string, graph::ResolvedValue>;

inline at::Tensor normal(at::IntArrayRef shape, std::uint64_t seed, at::ScalarType type = at::kDouble) {
    return at::randn(shape, at::detail::createCPUGenerator(seed), type);
}

inline graph::CellInstance instanceOf(const std::string& type, const Params& given) {
    const catalog::CellType* entry = catalog::find(type);
    CELLOOM_CHECK(entry != nullptr);
    graph::CellInstance instance;
    instance.path = "cell";
    instance.type = type;
    for (const catalog::ParamDef& param : entry->params)
        if (param.standard) instance.params[param.name] = *param.standard;
    for (const auto& [name, value] : given) instance.params[name] = value;
    if (entry->weights) instance.weights = entry->weights(instance);
    const auto inputs = catalog::inputPorts(*entry, instance), outputs = catalog::outputPorts(*entry, instance);
    for (std::size_t i = 0; i < inputs.size(); ++i) instance.inputs.push_back(static_cast<int>(i));
    for (std::size_t i = 0; i < outputs.size(); ++i) instance.outputs.push_back(static_cast<int>(inputs.size() + i));
    return instance;
}

/// A cell and what it needs to compute. Weights are normal(0, 1) from a fixed seed and record gradients.
struct LoneCell {
    std::unique_ptr<Cell> cell;
    std::vector<at::Tensor> weights;
    TensorCache tables;
    StepContext context;

    LoneCell(const std::string& type, const Params& params, at::ScalarType compute = at::kDouble, at::ScalarType stored = at::kDouble) {
        const graph::CellInstance instance = instanceOf(type, params);
        cell = CellRegistry::standard().make(instance);
        for (const graph::WeightSpec& spec : instance.weights)
            weights.push_back(normal(spec.dims, 77 + weights.size(), stored).requires_grad_(true));
        cell->bind(weights, compute, 0);
    }
    std::vector<at::Tensor> operator()(std::vector<at::Tensor> inputs) {
        inputs.resize(cell->instance().inputs.size()); // optional ports stay unwired
        context.tables = &tables;
        context.masks.clear();
        return cell->construct(inputs, context);
    }
};

} // namespace celloom::engine::testing
