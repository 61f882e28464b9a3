// The fused kernels as differentiable operations: each chooses its kernel by device and dtype and falls back to its reference.
#include "engine/kernels/cross_entropy.h"
#include "engine/kernels/cuda_library.h"
#include "engine/kernels/rms_norm.h"
#include "engine/kernels/rotary.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/rsqrt.h>
#include <ATen/ops/sum.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/csrc/autograd/custom_function.h>

namespace celloom::engine::kernels {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;

void* currentStream(at::Device device) {
    return c10::impl::VirtualGuardImpl(device.type()).getStream(device).native_handle();
}

void checkLaunch(int code) {
    TORCH_CHECK(code == 0, "the RMSNorm kernel could not start: ", cudaKernels()->errorText(code));
}

struct RmsNorm : Function<RmsNorm> {
    static at::Tensor forward(AutogradContext* context, const at::Tensor& given, const at::Tensor& weight, double eps) {
        const at::Tensor x = given.contiguous();
        const std::int64_t dim = x.size(-1), rows = dim == 0 ? 0 : x.numel() / dim;
        at::Tensor y = at::empty_like(x), rstd = at::empty({rows}, x.options());
        if (x.is_cuda())
            checkLaunch(cudaKernels()->rmsNormForward(x.const_data_ptr<float>(), weight.const_data_ptr<float>(),
                                                      y.mutable_data_ptr<float>(), rstd.mutable_data_ptr<float>(), rows, dim, eps,
                                                      currentStream(x.device())));
        else
            rmsNormForwardCpu(x.const_data_ptr<float>(), weight.const_data_ptr<float>(), y.mutable_data_ptr<float>(),
                              rstd.mutable_data_ptr<float>(), rows, dim, eps);
        context->save_for_backward({x, weight, rstd});
        return y;
    }

    static variable_list backward(AutogradContext* context, variable_list gradients) {
        const auto saved = context->get_saved_variables();
        const at::Tensor dy = gradients[0].contiguous();
        const at::Tensor &x = saved[0], &weight = saved[1], &rstd = saved[2];
        const std::int64_t dim = x.size(-1), rows = rstd.size(0);
        at::Tensor dx = at::empty_like(x), dWeight = at::empty_like(weight);
        if (x.is_cuda()) {
            at::Tensor partial = at::empty({cudaKernels()->rmsNormPartialRows(rows), dim}, x.options());
            checkLaunch(cudaKernels()->rmsNormBackward(dy.const_data_ptr<float>(), x.const_data_ptr<float>(),
                                                       weight.const_data_ptr<float>(), rstd.const_data_ptr<float>(),
                                                       dx.mutable_data_ptr<float>(), dWeight.mutable_data_ptr<float>(),
                                                       partial.mutable_data_ptr<float>(), rows, dim, currentStream(x.device())));
        } else
            rmsNormBackwardCpu(dy.const_data_ptr<float>(), x.const_data_ptr<float>(), weight.const_data_ptr<float>(),
                               rstd.const_data_ptr<float>(), dx.mutable_data_ptr<float>(), dWeight.mutable_data_ptr<float>(), rows, dim);
        return {dx, dWeight, at::Tensor()};
    }
};

template <class T>
void runRotary(const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin, std::int64_t headDim, float direction, at::Tensor& out) {
    rotateCpu(RotaryArguments<T>{x.const_data_ptr<T>(), out.mutable_data_ptr<T>(), cos.const_data_ptr<float>(), sin.const_data_ptr<float>(),
                                 x.size(0), x.size(1), x.size(2) / headDim, headDim, x.stride(0), x.stride(1), cos.numel() / (headDim / 2),
                                 direction});
}

at::Tensor rotateBy(const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin, std::int64_t headDim, float direction) {
    at::Tensor out = at::empty(x.sizes(), x.options());
    if (x.scalar_type() == at::kFloat)
        runRotary<float>(x, cos, sin, headDim, direction, out);
    else
        runRotary<c10::BFloat16>(x, cos, sin, headDim, direction, out);
    return out;
}

struct Rotary : Function<Rotary> {
    static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin,
                              std::int64_t headDim) {
        context->save_for_backward({cos, sin});
        context->saved_data["headDim"] = headDim;
        return rotateBy(x, cos, sin, headDim, 1.0f);
    }
    static variable_list backward(AutogradContext* context, variable_list gradients) {
        const auto saved = context->get_saved_variables();
        const at::Tensor dy = gradients[0].stride(-1) == 1 ? gradients[0] : gradients[0].contiguous();
        return {rotateBy(dy, saved[0], saved[1], context->saved_data["headDim"].toInt(), -1.0f), at::Tensor(), at::Tensor(), at::Tensor()};
    }
};

struct CrossEntropy : Function<CrossEntropy> {
    static at::Tensor forward(AutogradContext* context, const at::Tensor& given, const at::Tensor& targets, double smoothing) {
        const at::Tensor logits = given.contiguous();
        at::Tensor losses = at::empty({logits.size(0)}, logits.options()), logSums = at::empty_like(losses);
        const std::int64_t bad =
            crossEntropyForwardCpu(logits.const_data_ptr<float>(), targets.const_data_ptr<std::int64_t>(), losses.mutable_data_ptr<float>(),
                                   logSums.mutable_data_ptr<float>(), logits.size(0), logits.size(1), static_cast<float>(smoothing));
        TORCH_CHECK(bad < 0, "label ", bad < 0 ? 0 : targets.const_data_ptr<std::int64_t>()[bad], " is outside 0..", logits.size(1) - 1);
        context->save_for_backward({logits, targets, logSums});
        context->saved_data["smoothing"] = smoothing;
        return at::sum(losses, at::kDouble).to(at::kFloat);
    }
    static variable_list backward(AutogradContext* context, variable_list gradients) {
        const auto saved = context->get_saved_variables();
        at::Tensor dLogits = at::empty_like(saved[0]);
        crossEntropyBackwardCpu(saved[0].const_data_ptr<float>(), saved[1].const_data_ptr<std::int64_t>(), saved[2].const_data_ptr<float>(),
                                gradients[0].item<float>(), dLogits.mutable_data_ptr<float>(), saved[0].size(0), saved[0].size(1),
                                static_cast<float>(context->saved_data["smoothing"].toDouble())); // on the CPU
        return {dLogits, at::Tensor(), at::Tensor()};
    }
};

} // namespace

at::Tensor rmsNormReference(const at::Tensor& x, const at::Tensor& weight, double eps) {
    return weight * (x * at::rsqrt(x.square().mean(-1, true) + eps));
}

at::Tensor rmsNorm(const at::Tensor& x, const at::Tensor& weight, double eps) {
    TORCH_CHECK(x.dim() > 0 && weight.dim() == 1 && x.size(-1) == weight.size(0), "last dimension of x ", x.sizes(),
                " is not that of the weight ", weight.sizes());
    const bool isFloat = x.scalar_type() == at::kFloat && weight.scalar_type() == at::kFloat;
    if (isFloat && ((x.is_cpu() && weight.is_cpu()) || (x.is_cuda() && cudaKernels() != nullptr)))
        return RmsNorm::apply(x, weight.contiguous(), eps);
    return rmsNormReference(x, weight, eps);
}

at::Tensor rotateReference(const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin, std::int64_t headDim) {
    const auto type = x.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
    const at::Tensor heads = x.unflatten(-1, {-1, headDim}).to(type);
    const at::Tensor c = cos.unsqueeze(-2), s = sin.unsqueeze(-2); // broadcast over heads
    const at::Tensor first = heads.narrow(-1, 0, headDim / 2), second = heads.narrow(-1, headDim / 2, headDim / 2);
    return at::cat({first * c - second * s, second * c + first * s}, -1).flatten(-2).to(x.scalar_type());
}

at::Tensor rotate(const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin, std::int64_t headDim) {
    TORCH_CHECK(x.dim() == 3 && headDim % 2 == 0 && x.size(2) % headDim == 0, "x ", x.sizes(), " is not [B, T, heads * ", headDim, "]");
    const bool isSupported = x.scalar_type() == at::kFloat || x.scalar_type() == at::kBFloat16;
    const bool isPlain = cos.is_contiguous() && sin.is_contiguous() && cos.scalar_type() == at::kFloat && x.stride(-1) == 1;
    if (x.is_cpu() && isSupported && isPlain) return Rotary::apply(x, cos, sin, headDim);
    return rotateReference(x, cos, sin, headDim);
}

at::Tensor crossEntropySumReference(const at::Tensor& logits, const at::Tensor& targets, double labelSmoothing) {
    return at::cross_entropy_loss(logits, targets, {}, at::Reduction::Sum, kIgnoredTarget, labelSmoothing);
}

at::Tensor crossEntropySum(const at::Tensor& logits, const at::Tensor& targets, double labelSmoothing) {
    TORCH_CHECK(logits.dim() == 2 && targets.dim() == 1 && logits.size(0) == targets.size(0), "logits ", logits.sizes(), " need as many labels as rows, not ",
                targets.sizes());
    if (logits.is_cpu() && logits.scalar_type() == at::kFloat) return CrossEntropy::apply(logits, targets.contiguous(), labelSmoothing);
    return crossEntropySumReference(logits, targets, labelSmoothing);
}

} // namespace celloom::engine::kernels
