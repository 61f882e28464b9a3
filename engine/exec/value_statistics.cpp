#include "engine/exec/value_statistics.h"

#include "models/base/result.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

namespace celloom::engine {
namespace {

constexpr std::int64_t kChunk = 1 << 18; // numbers converted at a time: 2 MB

using Visit = std::function<void(const double* values, std::int64_t count)>;

void forEachFlatChunk(const at::Tensor& flat, const Visit& visit) {
    for (std::int64_t from = 0; from < flat.numel(); from += kChunk) {
        const at::Tensor chunk = flat.narrow(0, from, std::min(kChunk, flat.numel() - from)).to(at::kCPU, at::kDouble).contiguous(); // sync
        visit(chunk.const_data_ptr<double>(), chunk.numel());
    }
}

/// A tensor that is not contiguous (a transposed view, a broadcast one) is cut along its first dimensions rather than copied whole.
void forEachChunk(const at::Tensor& tensor, const Visit& visit) {
    if (tensor.is_contiguous() || tensor.numel() <= kChunk) return forEachFlatChunk(tensor.reshape({-1}), visit);
    const std::int64_t rest = tensor.numel() / tensor.size(0);
    if (rest > kChunk) {
        for (std::int64_t i = 0; i < tensor.size(0); ++i) forEachChunk(tensor.select(0, i), visit);
        return;
    }
    const std::int64_t rows = kChunk / rest;
    for (std::int64_t from = 0; from < tensor.size(0); from += rows)
        forEachFlatChunk(tensor.narrow(0, from, std::min(rows, tensor.size(0) - from)).reshape({-1}), visit);
}

struct FirstPass {
    ValueStatistics out;
    double sum = 0, correction = 0; // Neumaier's

    void operator()(const double* values, std::int64_t count) {
        for (std::int64_t i = 0; i < count; ++i) {
            const double v = values[i];
            if (!std::isfinite(v)) {
                ++(std::isnan(v) ? out.nan : v > 0 ? out.positiveInfinity : out.negativeInfinity);
                continue;
            }
            out.zeros += v == 0;
            out.minimum = std::min(out.minimum, v);
            out.maximum = std::max(out.maximum, v);
            const double next = sum + v;
            correction += std::abs(sum) >= std::abs(v) ? (sum - next) + v : (v - next) + sum;
            sum = next;
        }
    }
};

} // namespace

ValueStatistics statisticsOf(const at::Tensor& tensor, std::int64_t bins) {
    CELLOOM_CHECK(tensor.defined() && bins >= 1);
    at::NoGradGuard guard;
    const at::Tensor values = tensor.detach();
    FirstPass first;
    first.out.count = values.numel();
    first.out.minimum = std::numeric_limits<double>::infinity();
    first.out.maximum = -std::numeric_limits<double>::infinity();
    forEachChunk(values, std::ref(first));
    ValueStatistics out = std::move(first.out);
    if (out.finite() == 0) {
        out.minimum = out.maximum = 0;
        return out;
    }
    const auto finite = static_cast<double>(out.finite());
    out.mean = (first.sum + first.correction) / finite;
    const bool isConstant = out.minimum == out.maximum;
    out.histogram.assign(isConstant ? 1 : static_cast<std::size_t>(bins), 0);
    const double steps = static_cast<double>(out.histogram.size()), half = out.maximum / 2 - out.minimum / 2; // halves: the range may overflow
    double squares = 0;
    forEachChunk(values, [&](const double* numbers, std::int64_t count) {
        for (std::int64_t i = 0; i < count; ++i) {
            const double v = numbers[i];
            if (!std::isfinite(v)) continue;
            squares += (v - out.mean) * (v - out.mean);
            const double place = isConstant ? 0 : (v / 2 - out.minimum / 2) / half * steps;
            ++out.histogram[static_cast<std::size_t>(std::clamp(place, 0.0, steps - 1))];
        }
    });
    out.deviation = std::sqrt(squares / finite);
    return out;
}

} // namespace celloom::engine
