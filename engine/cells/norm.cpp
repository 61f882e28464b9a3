// RMSNorm and LayerNorm: over the last dimension, in float32 whatever the precision level.
#include "engine/cells/cell.h"
#include "engine/kernels/rms_norm.h"

#include <ATen/ops/layer_norm.h>

namespace celloom::engine {
namespace {

class RmsNorm final : public Cell {
public:
    using Cell::Cell;
    bool needsFloat32() const override { return true; }
    std::vector<at::Tensor> construct(const std::vector<at::Tensor>& inputs, StepContext&) override {
        return {kernels::rmsNorm(inputs[0], weight("weight"), instance().real("eps"))};
    }
};

class LayerNorm final : public Cell {
public:
    using Cell::Cell;
    bool needsFloat32() const override { return true; }
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
