// Element-wise activations, and Softmax.
#include "engine/cells/cell.h"

#include <ATen/ops/gelu.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/tanh.h>

namespace celloom::engine {
namespace {

template <at::Tensor (*function)(const at::Tensor&)> class Activation final : public Cell {
public:
    using Cell::Cell;
    std::vector<at::Tensor> construct(const std::vector<at::Tensor>& inputs, StepContext&) override { return {function(inputs[0])}; }
};

class Gelu final : public Cell {
public:
    using Cell::Cell;
    std::vector<at::Tensor> construct(const std::vector<at::Tensor>& inputs, StepContext&) override {
        return {at::gelu(inputs[0], instance().text("approximate"))};
    }
};

/// Sums in float32, as attention does.
class Softmax final : public Cell {
public:
    using Cell::Cell;
    std::vector<at::Tensor> construct(const std::vector<at::Tensor>& inputs, StepContext&) override {
        const auto type = inputs[0].scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
        return {at::softmax(inputs[0], instance().integer("axis"), type).to(computeType())};
    }
};

} // namespace

void addActivationCells(CellRegistry& registry) {
    registry.add<Activation<at::relu>>("ReLU");
    registry.add<Activation<at::silu>>("SiLU");
    registry.add<Activation<at::tanh>>("Tanh");
    registry.add<Activation<at::sigmoid>>("Sigmoid");
    registry.add<Gelu>("GELU");
    registry.add<Softmax>("Softmax");
}

} // namespace celloom::engine
