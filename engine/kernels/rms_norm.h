// RMSNorm: y = x / sqrt(mean(x^2) + eps) * weight over the last dimension (Zhang and Sennrich, arXiv:1910.07467).
// Shapes: x [..., D], weight [D], y [..., D]. The reference is plain LibTorch; the kernels are held to it by tests and by selftest.
#pragma once

#include <ATen/core/Tensor.h>

namespace celloom::engine::kernels {

/// Differentiable. float32 on the CPU: fused kernel; float32 on CUDA: fused kernel where its library is loaded; otherwise the reference.
at::Tensor rmsNorm(const at::Tensor& x, const at::Tensor& weight, double eps);

/// The definition, in LibTorch operations, any dtype and device.
at::Tensor rmsNormReference(const at::Tensor& x, const at::Tensor& weight, double eps);

/// y = (x * rstd) * weight for every row; keeps rstd [rows] for the backward. Contiguous float32.
void rmsNormForwardCpu(const float* x, const float* weight, float* y, float* rstd, std::int64_t rows, std::int64_t dim, double eps);

/// dx [rows,dim] = and dWeight [dim] = (both overwritten). The order of additions does not depend on the number of threads.
void rmsNormBackwardCpu(const float* dy, const float* x, const float* weight, const float* rstd, float* dx, float* dWeight,
                        std::int64_t rows, std::int64_t dim);

} // namespace celloom::engine::kernels
