#include "engine/kernels/linear.h"

#include "models/base/half_support.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/matmul.h>
#include <torch/csrc/autograd/custom_function.h>

namespace celloom::engine::kernels {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

at::Tensor floatOf(const at::Tensor& tensor) { return tensor.to(at::kFloat); }

at::Tensor product(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
    return at::linear(x, weight, bias.defined() ? std::optional(bias) : std::nullopt);
}

struct LinearInFloat : torch::autograd::Function<LinearInFloat> {
    static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& weight, const std::optional<at::Tensor>& bias) {
        context->save_for_backward({x, weight});
        context->saved_data["hasBias"] = bias.has_value();
        return product(floatOf(x), floatOf(weight), bias ? floatOf(*bias) : at::Tensor()).to(x.scalar_type());
    }
    static variable_list backward(AutogradContext* context, variable_list gradients) {
        const auto saved = context->get_saved_variables();
        const at::Tensor &x = saved[0], &weight = saved[1];
        const at::Tensor dy = floatOf(gradients[0]).reshape({-1, weight.size(0)}); // [N, out]
        variable_list out(3);
        if (context->needs_input_grad(0)) out[0] = at::matmul(dy, floatOf(weight)).reshape(x.sizes()).to(x.scalar_type());
        if (context->needs_input_grad(1))
            out[1] = at::matmul(dy.t(), floatOf(x).reshape({-1, weight.size(1)})).to(weight.scalar_type());
        if (context->saved_data["hasBias"].toBool() && context->needs_input_grad(2)) out[2] = dy.sum(0).to(weight.scalar_type());
        return out;
    }
};

} // namespace

bool multipliesInFloat(const at::Tensor& x) { return x.is_cpu() && x.scalar_type() == at::kHalf && !processorHalfSupport().float16; }

at::Tensor linearInFloat(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
    return LinearInFloat::apply(x, weight, bias.defined() ? std::optional(bias) : std::nullopt);
}

at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
    return multipliesInFloat(x) ? linearInFloat(x, weight, bias) : product(x, weight, bias);
}

} // namespace celloom::engine::kernels
