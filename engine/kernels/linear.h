// Products with a weight matrix. LibTorch multiplies float16 on a CPU without instructions for it number by number, a fiftieth of float32's
// speed; here such products are taken in float32 and rounded once, which also adds up more exactly. Types outside are the same.
#pragma once

#include <ATen/core/Tensor.h>

namespace celloom::engine::kernels {

/// Whether products of this tensor are taken in float32: float16 on a CPU that has no instructions for it.
bool multipliesInFloat(const at::Tensor& x);

/// x [..., in], weight [out, in], bias [out] or undefined -> [..., out], in the type of x. Differentiable; keeps x and weight as they are.
at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias = {});

/// The same by the way for float16 on any processor, for tests.
at::Tensor linearInFloat(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias = {});

} // namespace celloom::engine::kernels
