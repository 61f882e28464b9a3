// Conv2d, BatchNorm2d, MaxPool2d, AvgPool2d over [B,C,H,W].
#include "engine/cells/cell.h"
#include "engine/kernels/linear.h"
#include "models/catalog/windows.h"

#include <ATen/ops/avg_pool2d.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/max_pool2d.h>
#include <ATen/ops/native_batch_norm.h>

namespace celloom::engine {
namespace {

class Conv2d final : public Cell {
public:
    using Cell::Cell;
    std::vector<at::Tensor> construct(const std::vector<at::Tensor>& inputs, StepContext&) override {
        const auto type = inputs[0].scalar_type();
        const bool isWide = kernels::multipliesInFloat(inputs[0]);
        const auto wide = [&](const at::Tensor& x) { return isWide && x.defined() ? x.to(at::kFloat) : x; };
        at::Tensor x = wide(inputs[0]);
        catalog::Window window = catalog::windowOf(instance(), x.size(2), x.size(3));
        if (!window.isSymmetric()) {
            x = at::constant_pad_nd(x, {window.before[1], window.after[1], window.before[0], window.after[0]});
            window.before = {0, 0};
        }
        return {at::conv2d(x, wide(weight("weight")), wide(weight("bias")), window.stride, window.before, window.dilation,
                           instance().integer("group"))
                    .to(type)};
    }
};

/// Computes in float32 whatever its type, as its statistics are kept. The running variance is that of N - 1 numbers, as in PyTorch.
class BatchNorm2d final : public Cell {
public:
    using Cell::Cell;
    std::vector<at::Tensor> construct(const std::vector<at::Tensor>& inputs, StepContext& context) override {
        const auto type = inputs[0].scalar_type(), exact = type == at::kDouble ? at::kDouble : at::kFloat;
        const at::Tensor x = inputs[0].to(exact), mean = buffer("running_mean"), variance = buffer("running_var");
        const bool usesBatch = context.isTraining && learns();
        const bool updates = usesBatch && !context.isAgain;
        TORCH_CHECK(!usesBatch || x.numel() / x.size(1) > 1,
                    "a batch of one row and one pixel has no variance to normalise by: train with more rows");
        const auto out = at::native_batch_norm(x, weight("weight").to(exact), weight("bias").to(exact),
                                               updates || !usesBatch ? mean : at::Tensor(), updates || !usesBatch ? variance : at::Tensor(),
                                               usesBatch, 1 - instance().real("momentum"), instance().real("eps"));
        return {std::get<0>(out).to(type)};
    }
};

class MaxPool2d final : public Cell {
public:
    using Cell::Cell;
    std::vector<at::Tensor> construct(const std::vector<at::Tensor>& inputs, StepContext&) override {
        const catalog::Window window = catalog::windowOf(instance(), inputs[0].size(2), inputs[0].size(3));
        return {at::max_pool2d(inputs[0], window.kernel, window.stride, window.before, {1, 1}, window.roundsUp)};
    }
};

class AvgPool2d final : public Cell {
public:
    using Cell::Cell;
    std::vector<at::Tensor> construct(const std::vector<at::Tensor>& inputs, StepContext&) override {
        const catalog::Window window = catalog::windowOf(instance(), inputs[0].size(2), inputs[0].size(3));
        return {
            at::avg_pool2d(inputs[0], window.kernel, window.stride, window.before, window.roundsUp, instance().flag("count_include_pad"))};
    }
};

} // namespace

void addImageCells(CellRegistry& registry) {
    registry.add<Conv2d>("Conv2d");
    registry.add<BatchNorm2d>("BatchNorm2d");
    registry.add<MaxPool2d>("MaxPool2d");
    registry.add<AvgPool2d>("AvgPool2d");
}

} // namespace celloom::engine
