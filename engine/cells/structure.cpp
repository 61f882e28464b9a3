// Cells that join, divide and thin out: Add, Multiply, Residual, Split, Concat, Dropout.
#include "engine/cells/cell.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/add.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/split_with_sizes.h>

namespace celloom::engine {
namespace {

class Add final : public Cell {
public:
    using Cell::Cell;
    std::vector<at::Tensor> construct(const std::vector<at::Tensor>& inputs, StepContext&) override { return {inputs[0] + inputs[1]}; }
};

class Multiply final : public Cell {
public:
    using Cell::Cell;
    std::vector<at::Tensor> construct(const std::vector<at::Tensor>& inputs, StepContext&) override { return {inputs[0] * inputs[1]}; }
};

/// x + scale * branch.
class Residual final : public Cell {
public:
    using Cell::Cell;
    std::vector<at::Tensor> construct(const std::vector<at::Tensor>& inputs, StepContext&) override {
        return {at::add(inputs[0], inputs[1], instance().real("scale"))};
    }
};

/// Consecutive pieces of the last dimension, or of each of its groups. One split: its backward is one concatenation.
class Split final : public Cell {
public:
    using Cell::Cell;
    std::vector<at::Tensor> construct(const std::vector<at::Tensor>& inputs, StepContext&) override {
        const std::int64_t groups = instance().integer("groups");
        if (groups == 1) return at::split_with_sizes(inputs[0], instance().integers("sizes"), -1);
        std::vector<at::Tensor> pieces =
            at::split_with_sizes(inputs[0].unflatten(-1, {groups, inputs[0].size(-1) / groups}), instance().integers("sizes"), -1);
        for (at::Tensor& piece : pieces) piece = piece.flatten(-2);
        return pieces;
    }
};

class Concat final : public Cell {
public:
    using Cell::Cell;
    std::vector<at::Tensor> construct(const std::vector<at::Tensor>& inputs, StepContext&) override { return {at::cat(inputs, -1)}; }
};

/// In training only; see dropoutMask.
class Dropout final : public Cell {
public:
    using Cell::Cell;
    std::vector<at::Tensor> construct(const std::vector<at::Tensor>& inputs, StepContext& context) override {
        const double p = instance().real("p");
        if (!context.isTraining || p == 0) return {inputs[0]};
        return {inputs[0] * dropoutMask(inputs[0], p, context)};
    }
};

} // namespace

void addStructureCells(CellRegistry& registry) {
    registry.add<Add>("Add");
    registry.add<Residual>("Residual");
    registry.add<Multiply>("Multiply");
    registry.add<Split>("Split");
    registry.add<Concat>("Concat");
    registry.add<Dropout>("Dropout");
}

} // namespace celloom::engine
