// RMSNorm on the CPU: one pass forward, one pass backward. LibTorch's backward makes six passes and their temporaries.
#include "engine/kernels/rms_norm.h"
#include "engine/kernels/simd.h"

#include <ATen/Parallel.h>
#include <algorithm>
#include <cmath>
#include <vector>

namespace celloom::engine::kernels {
namespace {

constexpr std::int64_t kRowsPerTask = 32; // also the granularity of the weight's partial sums

CELLOOM_CLONES float forwardRow(const float* x, const float* weight, float* y, std::int64_t dim, double eps) {
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (std::int64_t i = 0; i < dim; ++i) sum += x[i] * x[i];
    const auto rstd = static_cast<float>(1.0 / std::sqrt(static_cast<double>(sum) / static_cast<double>(dim) + eps));
#pragma omp simd
    for (std::int64_t i = 0; i < dim; ++i) y[i] = x[i] * rstd * weight[i];
    return rstd;
}

// With n = x * rstd:  dx = rstd * (w dy - n * mean(w dy n)),  dWeight += dy n.
CELLOOM_CLONES void backwardRow(const float* dy, const float* x, const float* weight, float rstd, float* dx, float* dWeight,
                                std::int64_t dim) {
    float dot = 0;
#pragma omp simd reduction(+ : dot)
    for (std::int64_t i = 0; i < dim; ++i) dot += weight[i] * dy[i] * x[i];
    const float back = dot * rstd * rstd / static_cast<float>(dim);
#pragma omp simd
    for (std::int64_t i = 0; i < dim; ++i) {
        dx[i] = rstd * (weight[i] * dy[i] - x[i] * back);
        dWeight[i] += dy[i] * x[i] * rstd;
    }
}

} // namespace

void rmsNormForwardCpu(const float* x, const float* weight, float* y, float* rstd, std::int64_t rows, std::int64_t dim, double eps) {
    at::parallel_for(0, rows, kRowsPerTask, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t row = begin; row < end; ++row) rstd[row] = forwardRow(x + row * dim, weight, y + row * dim, dim, eps);
    });
}

void rmsNormBackwardCpu(const float* dy, const float* x, const float* weight, const float* rstd, float* dx, float* dWeight,
                        std::int64_t rows, std::int64_t dim) {
    const std::int64_t tasks = (rows + kRowsPerTask - 1) / kRowsPerTask;
    std::vector<float> partial(static_cast<std::size_t>(tasks * dim), 0.0f);
    at::parallel_for(0, tasks, 1, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t task = begin; task < end; ++task)
            for (std::int64_t row = task * kRowsPerTask; row < std::min(rows, (task + 1) * kRowsPerTask); ++row)
                backwardRow(dy + row * dim, x + row * dim, weight, rstd[row], dx + row * dim, partial.data() + task * dim, dim);
    });
    std::fill(dWeight, dWeight + dim, 0.0f);
    for (std::int64_t task = 0; task < tasks; ++task)
        for (std::int64_t i = 0; i < dim; ++i) dWeight[i] += partial[static_cast<std::size_t>(task * dim + i)];
}

} // namespace celloom::engine::kernels
