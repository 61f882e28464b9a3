// One cell outside any graph, for tests: its instance as the catalogue describes it, weights filled from a seed.
#pragma once

#include "engine/cells/cell.h"
#include "models/catalog/catalog.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros_like.h>
#include <cmath>
#include <string>

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

/// A cell and what it needs to compute. Weights are normal(0, 1) from a fixed seed and record gradients; buffers are positive and do not.
struct LoneCell {
    std::unique_ptr<Cell> cell;
    std::vector<at::Tensor> weights;
    TensorCache tables;
    StepContext context;

    LoneCell(const std::string& type, const Params& params, at::ScalarType compute = at::kDouble, at::ScalarType stored = at::kDouble)
        : LoneCell(instanceOf(type, params), compute, stored) {}
    explicit LoneCell(const graph::CellInstance& instance, at::ScalarType compute = at::kDouble, at::ScalarType stored = at::kDouble) {
        cell = CellRegistry::standard().make(instance);
        CELLOOM_CHECK(cell != nullptr);
        for (const graph::WeightSpec& spec : instance.weights) {
            at::Tensor weight = normal(spec.dims, 77 + weights.size(), stored);
            if (spec.isBuffer) weight = weight.abs() + 0.5; // a variance is positive
            weights.push_back(weight.requires_grad_(!spec.isBuffer));
        }
        cell->bind(weights, compute, 0);
    }
    std::vector<at::Tensor> operator()(std::vector<at::Tensor> inputs) {
        inputs.resize(cell->instance().inputs.size()); // optional ports stay unwired
        context.tables = &tables;
        context.masks.clear();
        context.auxiliaryLoss.reset();
        return cell->construct(inputs, context);
    }
};

/// Sum of all outputs, each weighed by fixed random numbers, so that every output's gradient is tested.
inline at::Tensor probe(const std::vector<at::Tensor>& outputs) {
    at::Tensor sum;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
        const at::Tensor part = (outputs[i].to(at::kDouble) * normal(outputs[i].sizes(), 900 + i)).sum();
        sum = sum.defined() ? sum + part : part;
    }
    return sum;
}

/// Compares `leaf`'s gradient with central differences of the probe. float64, so that h = 1e-6 leaves about 9 digits.
inline bool gradientIsRight(LoneCell& cell, const std::vector<at::Tensor>& inputs, const at::Tensor& leaf, std::string& report) {
    const at::Tensor gradient = leaf.grad().defined() ? leaf.grad().contiguous().flatten() : at::zeros_like(leaf.detach()).flatten();
    const at::Tensor values = leaf.detach().view({-1}); // the leaf's memory
    const double h = 1e-6;
    for (std::int64_t i = 0; i < values.numel(); ++i) {
        double* value = values.mutable_data_ptr<double>() + i;
        const double kept = *value;
        *value = kept + h;
        const double above = probe(cell(inputs)).item<double>();
        *value = kept - h;
        const double below = probe(cell(inputs)).item<double>();
        *value = kept;
        const double expected = (above - below) / (2 * h), actual = gradient[i].item<double>();
        if (std::abs(actual - expected) > 1e-6 * std::max(1.0, std::abs(expected))) {
            report = "element " + std::to_string(i) + ": autograd " + std::to_string(actual) + ", differences " + std::to_string(expected);
            return false;
        }
    }
    return true;
}

} // namespace celloom::engine::testing
