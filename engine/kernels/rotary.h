// Rotary position embedding (Su et al., arXiv:2104.09864), halves layout: element i of a head is paired with element i + dim/2.
// Letters: B batch, T sequence, H heads, D head dimension.
#pragma once

#include <ATen/core/Tensor.h>

namespace celloom::engine::kernels {

/// x [B,T,H*D] with unit last stride, cos and sin [T,D/2] or [B,T,D/2] float32 -> [B,T,H*D], contiguous, x's dtype. Differentiable in x.
/// First half: x1 cos - x2 sin; second half: x2 cos + x1 sin; computed in float32. Fused on the CPU for float32 and bfloat16.
at::Tensor rotate(const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin, std::int64_t headDim);

/// The definition, in LibTorch operations, any dtype and device.
at::Tensor rotateReference(const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin, std::int64_t headDim);

/// The fused loop. `direction` is 1 forward and -1 backward (the inverse rotation). Rows of x are rowStride apart; out is contiguous.
template <class T> struct RotaryArguments {
    const T* x;
    T* out;
    const float* cos;
    const float* sin;
    std::int64_t batch, length, heads, headDim;
    std::int64_t batchStride, rowStride; // of x, in elements
    std::int64_t tableRows;              // length, or batch * length
    float direction;
};
void rotateCpu(const RotaryArguments<float>& arguments);
void rotateCpu(const RotaryArguments<c10::BFloat16>& arguments);

} // namespace celloom::engine::kernels
