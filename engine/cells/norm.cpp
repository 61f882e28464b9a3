// RMSNorm and LayerNorm: over the last dimension. Both add up in float32 whatever their type.
#include "engine/cells/cell.h"
#include "engine/kernels/rms_norm.h"

#include <ATen/ops/layer_norm.h>

namespace celloom::engine {
namespace {

class RmsNorm final : public Cell {
public:
    using Cell::Cell;
    std::vector<at::Tensor> construct(const std::vector<at::Tensor>& inputs, StepContext&) override {
        const at::Tensor &x = inputs[0], scale = weight("weight");
        const auto type = x.scalar_type();
        if (type == at::kFloat || type == at::kDouble) return {kernels::rmsNorm(x, scale, instance().real("eps"))};
        return {kernels::rmsNorm(x.to(at::kFloat), scale.to(at::kFloat), instance().real("eps")).to(type)}; // squares overflow float16
    }
};

class LayerNorm final : public Cell {
public:
    using Cell::Cell;
    std::vector<at::Tensor> construct(const std::vector<at::Tensor>& inputs, StepContext&) override {
        const at::Tensor scale = weight("weight");
        return {at::layer_norm(inputs[0], scale.sizes(), scale, weight("bias"), instance().real("eps"))};
    }
};

} // namespace

void addNormCells(CellRegistry& registry) {
    registry.add<RmsNorm>("RMSNorm");
    registry.add<LayerNorm>("LayerNorm");
}

} // namespace celloom::engine
