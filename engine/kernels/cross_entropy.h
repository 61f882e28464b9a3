// Cross-entropy of integer targets, summed: sum over rows of log(sum(exp(logits))) - logits[target]. With label smoothing s the target is
// (1 - s) of the label and s / V of every class: log(sum(exp(logits))) - (1 - s) logits[target] - s mean(logits).
#pragma once

#include <ATen/core/Tensor.h>

namespace celloom::engine::kernels {

inline constexpr std::int64_t kIgnoredTarget = -100;

/// logits [N,V] float32, targets [N] int64 in 0..V-1 or -100 (row ignored) -> scalar float32, differentiable in logits. Fused on the CPU.
at::Tensor crossEntropySum(const at::Tensor& logits, const at::Tensor& targets, double labelSmoothing = 0);

/// The definition, in LibTorch operations, any dtype and device.
at::Tensor crossEntropySumReference(const at::Tensor& logits, const at::Tensor& targets, double labelSmoothing = 0);

/// losses [rows] (0 where ignored) and logSums [rows] (kept for the backward). Returns the number of the first row whose target is out of
/// range, or -1. Rows are contiguous.
std::int64_t crossEntropyForwardCpu(const float* logits, const std::int64_t* targets, float* losses, float* logSums, std::int64_t rows,
                                    std::int64_t vocabulary, float smoothing = 0);

/// dLogits [rows,vocabulary] = scale * (softmax(logits) - (1 - s) onehot(target) - s / vocabulary); 0 where ignored.
void crossEntropyBackwardCpu(const float* logits, const std::int64_t* targets, const float* logSums, float scale, float* dLogits,
                             std::int64_t rows, std::int64_t vocabulary, float smoothing = 0);

} // namespace celloom::engine::kernels
