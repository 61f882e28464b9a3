// Sums and products of counts that stay at the largest number where they would overflow: a graph may ask for absurd sizes.
#pragma once

#include <cstdint>
#include <vector>

namespace celloom {

inline std::int64_t addCapped(std::int64_t a, std::int64_t b) {
    return __builtin_add_overflow(a, b, &a) ? INT64_MAX : a;
}

inline std::int64_t multiplyCapped(std::int64_t a, std::int64_t b) {
    return __builtin_mul_overflow(a, b, &a) ? INT64_MAX : a;
}

/// Elements of a tensor of these dimensions.
inline std::int64_t sizeCapped(const std::vector<std::int64_t>& dims) {
    std::int64_t size = 1;
    for (const std::int64_t dim : dims) size = multiplyCapped(size, dim);
    return size;
}

} // namespace celloom
