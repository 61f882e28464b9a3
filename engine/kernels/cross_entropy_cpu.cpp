// Cross-entropy on the CPU: a row of logits is read while it is in the cache, its softmax is never stored, ignored rows cost nothing.
#include "engine/kernels/cross_entropy.h"
#include "engine/kernels/simd.h"

#include <ATen/Parallel.h>
#include <algorithm>
#include <cmath>

namespace celloom::engine::kernels {
namespace {

constexpr std::int64_t kBlock = 4096; // float32 sums inside a block, double between blocks: a vocabulary of 125 696 loses no digits

CELLOOM_CLONES double sumOfExp(const float* row, std::int64_t count, float maximum) {
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (std::int64_t i = 0; i < count; ++i) sum += expOfNonPositive(row[i] - maximum);
    return sum;
}

CELLOOM_CLONES float maximumOf(const float* row, std::int64_t count) {
    float maximum = row[0];
#pragma omp simd reduction(max : maximum)
    for (std::int64_t i = 1; i < count; ++i) maximum = row[i] > maximum ? row[i] : maximum;
    return maximum;
}

CELLOOM_CLONES void softmaxRow(const float* row, float* out, std::int64_t count, float logSum, float scale) {
#pragma omp simd
    for (std::int64_t i = 0; i < count; ++i) {
        const float exponent = row[i] - logSum;
        out[i] = scale * expOfNonPositive(exponent > 0.0f ? 0.0f : exponent);
    }
}

/// out -= amount: what label smoothing gives to every class.
CELLOOM_CLONES void lower(float* out, std::int64_t count, float amount) {
#pragma omp simd
    for (std::int64_t i = 0; i < count; ++i) out[i] -= amount;
}

CELLOOM_CLONES double sumOf(const float* row, std::int64_t count) {
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (std::int64_t i = 0; i < count; ++i) sum += row[i];
    return sum;
}

float meanOf(const float* row, std::int64_t vocabulary) {
    double sum = 0;
    for (std::int64_t i = 0; i < vocabulary; i += kBlock) sum += sumOf(row + i, std::min(kBlock, vocabulary - i));
    return static_cast<float>(sum / static_cast<double>(vocabulary));
}

float logSumExp(const float* row, std::int64_t vocabulary) {
    const float maximum = maximumOf(row, vocabulary);
    double sum = 0;
    for (std::int64_t i = 0; i < vocabulary; i += kBlock) sum += sumOfExp(row + i, std::min(kBlock, vocabulary - i), maximum);
    return maximum + static_cast<float>(std::log(sum));
}

} // namespace

std::int64_t crossEntropyForwardCpu(const float* logits, const std::int64_t* targets, float* losses, float* logSums, std::int64_t rows,
                                    std::int64_t vocabulary, float smoothing) {
    for (std::int64_t row = 0; row < rows; ++row)
        if (targets[row] != kIgnoredTarget && (targets[row] < 0 || targets[row] >= vocabulary)) return row;
    at::parallel_for(0, rows, 8, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t row = begin; row < end; ++row) {
            losses[row] = logSums[row] = 0;
            if (targets[row] == kIgnoredTarget) continue;
            logSums[row] = logSumExp(logits + row * vocabulary, vocabulary);
            losses[row] = logSums[row] - (1 - smoothing) * logits[row * vocabulary + targets[row]];
            if (smoothing > 0) losses[row] -= smoothing * meanOf(logits + row * vocabulary, vocabulary);
        }
    });
    return -1;
}

void crossEntropyBackwardCpu(const float* logits, const std::int64_t* targets, const float* logSums, float scale, float* dLogits,
                             std::int64_t rows, std::int64_t vocabulary, float smoothing) {
    at::parallel_for(0, rows, 8, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t row = begin; row < end; ++row) {
            float* out = dLogits + row * vocabulary;
            if (targets[row] == kIgnoredTarget) {
                std::fill(out, out + vocabulary, 0.0f);
                continue;
            }
            softmaxRow(logits + row * vocabulary, out, vocabulary, logSums[row], scale);
            if (smoothing > 0) lower(out, vocabulary, scale * smoothing / static_cast<float>(vocabulary));
            out[targets[row]] -= scale * (1 - smoothing);
        }
    });
}

} // namespace celloom::engine::kernels
