// Reshape, Flatten, Transpose, Slice and Parameter.
#include "engine/cells/cell.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/slice.h>

namespace celloom::engine {
namespace {

class Reshape final : public Cell {
public:
    using Cell::Cell;
    std::vector<at::Tensor> construct(const std::vector<at::Tensor>& inputs, StepContext&) override {
        std::vector<std::int64_t> shape = instance().integers("shape");
        for (std::size_t i = 0; i < shape.size(); ++i)
            if (shape[i] == 0) shape[i] = inputs[0].size(static_cast<std::int64_t>(i));
        return {inputs[0].reshape(shape)};
    }
};

class Flatten final : public Cell {
public:
    using Cell::Cell;
    std::vector<at::Tensor> construct(const std::vector<at::Tensor>& inputs, StepContext&) override {
        return {inputs[0].flatten(instance().integer("start_dim"), instance().integer("end_dim"))};
    }
};

/// In order in memory, so that a Reshape behind it is for free.
class Transpose final : public Cell {
public:
    using Cell::Cell;
    std::vector<at::Tensor> construct(const std::vector<at::Tensor>& inputs, StepContext&) override {
        return {inputs[0].permute(instance().integers("perm")).contiguous()};
    }
};

class Slice final : public Cell {
public:
    using Cell::Cell;
    std::vector<at::Tensor> construct(const std::vector<at::Tensor>& inputs, StepContext&) override {
        const at::Tensor& x = inputs[0];
        const std::int64_t axis = instance().integer("axis"), size = x.size(axis), given = instance().integer("begin");
        const std::int64_t begin = given < 0 ? given + size : given;
        TORCH_CHECK_INDEX(begin >= 0 && begin < size, "dimension ", axis, " has ", size, " places, begin is ", given); // of a symbol
        if (instance().text("kind") == "index") return {x.select(axis, begin)};
        const std::int64_t until = instance().integer("end"), end = until <= 0 ? until + size : until;
        TORCH_CHECK_INDEX(end <= size && end > begin, "dimension ", axis, " has ", size, " places, begin is ", given, " and end ", until);
        return {at::slice(x, axis, begin, end, instance().integer("step"))};
    }
};

class Parameter final : public Cell {
public:
    using Cell::Cell;
    std::vector<at::Tensor> construct(const std::vector<at::Tensor>& inputs, StepContext&) override {
        const at::Tensor own = weight("weight");
        if (!inputs[0].defined()) return {own};
        std::vector<std::int64_t> shape = own.sizes().vec();
        shape.insert(shape.begin(), inputs[0].size(0));
        return {own.unsqueeze(0).expand(shape)};
    }
};

} // namespace

void addShapeCells(CellRegistry& registry) {
    registry.add<Reshape>("Reshape");
    registry.add<Flatten>("Flatten");
    registry.add<Transpose>("Transpose");
    registry.add<Slice>("Slice");
    registry.add<Parameter>("Parameter");
}

} // namespace celloom::engine
