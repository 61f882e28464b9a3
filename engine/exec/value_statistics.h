// What the numbers of a tensor are like: for probes.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace celloom::engine {

/// Mean, deviation, least, greatest and histogram are of the finite values, in double precision; where there are none, they say nothing.
struct ValueStatistics {
    std::int64_t count = 0, nan = 0, positiveInfinity = 0, negativeInfinity = 0, zeros = 0;
    double mean = 0, deviation = 0; // of the population: divided by the number of values
    double minimum = 0, maximum = 0;
    /// Equal steps from minimum to maximum; a value on a border belongs to the upper step, the maximum to the last one. A single step where
    /// all values are equal.
    std::vector<std::int64_t> histogram;

    [[nodiscard]] std::int64_t finite() const { return count - nan - positiveInfinity - negativeInfinity; }
};

/// Of any type of numbers or truth values, on any device. Waits for it; needs some megabytes, whatever the tensor's size. `bins` >= 1.
ValueStatistics statisticsOf(const at::Tensor& tensor, std::int64_t bins = 32);

} // namespace celloom::engine
