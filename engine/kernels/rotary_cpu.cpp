// Rotary embedding on the CPU in one pass; written with LibTorch operations it takes five, and as many temporaries.
#include "engine/kernels/rotary.h"
#include "engine/kernels/simd.h"

#include <ATen/Parallel.h>
#include <bit>

namespace celloom::engine::kernels {
namespace {

inline float toFloat(float value) {
    return value;
}
inline float toFloat(c10::BFloat16 value) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(value.x) << 16);
}
inline void put(float& out, float value) {
    out = value;
}
/// To the nearest, ties to even, as c10 rounds; without its branch, which keeps the compiler from vectorising.
inline void put(c10::BFloat16& out, float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
    out.x = static_cast<std::uint16_t>(value != value ? 0x7fc0 : rounded);
}

template <class T>
[[gnu::always_inline]] inline void row(const T* x, T* out, const float* cos, const float* sin, std::int64_t heads, std::int64_t dim,
                                       float direction) {
    const std::int64_t half = dim / 2;
    for (std::int64_t head = 0; head < heads; ++head, x += dim, out += dim) {
#pragma omp simd
        for (std::int64_t i = 0; i < half; ++i) {
            const float first = toFloat(x[i]), second = toFloat(x[i + half]);
            const float s = sin[i] * direction;
            put(out[i], first * cos[i] - second * s);
            put(out[i + half], second * cos[i] + first * s);
        }
    }
}

CELLOOM_CLONES void rotateRow(const float* x, float* out, const float* cos, const float* sin, std::int64_t heads, std::int64_t dim,
                              float direction) {
    row(x, out, cos, sin, heads, dim, direction);
}
CELLOOM_CLONES void rotateRow(const c10::BFloat16* x, c10::BFloat16* out, const float* cos, const float* sin, std::int64_t heads,
                              std::int64_t dim, float direction) {
    row(x, out, cos, sin, heads, dim, direction);
}

template <class T> void rotateAll(const RotaryArguments<T>& a) {
    const std::int64_t width = a.heads * a.headDim, half = a.headDim / 2;
    at::parallel_for(0, a.batch * a.length, 16, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t index = begin; index < end; ++index) {
            const T* x = a.x + (index / a.length) * a.batchStride + (index % a.length) * a.rowStride;
            const std::int64_t table = (index % a.tableRows) * half;
            rotateRow(x, a.out + index * width, a.cos + table, a.sin + table, a.heads, a.headDim, a.direction);
        }
    });
}

} // namespace

void rotateCpu(const RotaryArguments<float>& arguments) {
    rotateAll(arguments);
}
void rotateCpu(const RotaryArguments<c10::BFloat16>& arguments) {
    rotateAll(arguments);
}

} // namespace celloom::engine::kernels
