// GatedActivation, a cell for graphs: x [.., 2 C] -> out [.., C] = act(first half) * second half * scale, as in SwiGLU and GEGLU.
// Settings: "silu" (or nothing), "gelu" or "relu". Weight: scale [C]. Its gradient comes from autograd.
#include <celloom/cell.h>

#include <ATen/TensorOperators.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/silu.h>

#include <stdexcept>

namespace {

using celloom::plugin::CellInfo;
using celloom::plugin::Context;

class GatedActivation : public celloom::plugin::Cell {
public:
    explicit GatedActivation(const CellInfo& info) : Cell(info), m_kind(info.settings.empty() ? "silu" : info.settings) {
        if (m_kind != "silu" && m_kind != "gelu" && m_kind != "relu") throw std::invalid_argument("settings are silu, gelu or relu, not " + m_kind);
    }

    std::vector<at::Tensor> construct(const std::vector<at::Tensor>& inputs, const Context& context) override {
        const std::vector<at::Tensor> halves = inputs[0].chunk(2, -1);
        return {activated(halves[0]) * halves[1] * context.weight("scale")};
    }

private:
    at::Tensor activated(const at::Tensor& x) const { return m_kind == "silu" ? at::silu(x) : m_kind == "gelu" ? at::gelu(x) : x.relu(); }

    std::string m_kind;
};

} // namespace

CELLOOM_PLUGIN(CELLOOM_CELL("GatedActivation", GatedActivation))
