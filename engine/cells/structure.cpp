// Cells that join, divide and thin out: Residual, Split, Concat, Dropout.
#include "engine/cells/cell.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/add.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/split_with_sizes.h>

namespace celloom::engine {
namespace {

/// x + scale * branch.
class Residual final : public Cell {
public:
    using Cell::Cell;
    std::vector<at::Tensor> construct(const std::vector<at::Tensor>& inputs, StepContext&) override {
        return {at::add(inputs[0], inputs[1], instance().real("scale"))};
    }
};

/// Consecutive pieces of a dimension, or of each of its groups. One split: its backward is one concatenation.
class Split final : public Cell {
public:
    using Cell::Cell;
    std::vector<at::Tensor> construct(const std::vector<at::Tensor>& inputs, StepContext&) override {
        const std::int64_t groups = instance().integer("groups"), given = instance().integer("axis");
        const at::Tensor& x = inputs[0];
        if (groups == 1) return at::split_with_sizes(x, instance().integers("sizes"), given);
        const std::int64_t axis = given < 0 ? given + x.dim() : given;
        std::vector<at::Tensor> pieces = at::split_with_sizes(x.unflatten(axis, {groups, x.size(axis) / groups}), instance().integers("sizes"), axis + 1);
        for (at::Tensor& piece : pieces) piece = piece.flatten(axis, axis + 1);
        return pieces;
    }
};

class Concat final : public Cell {
public:
    using Cell::Cell;
    std::vector<at::Tensor> construct(const std::vector<at::Tensor>& inputs, StepContext&) override { return {at::cat(inputs, instance().integer("axis"))}; }
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
    registry.add<Residual>("Residual");
    registry.add<Split>("Split");
    registry.add<Concat>("Concat");
    registry.add<Dropout>("Dropout");
}

} // namespace celloom::engine
