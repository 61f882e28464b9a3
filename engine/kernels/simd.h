// What the CPU kernels share: loops that the compiler vectorises for each generation of processors, and an exp() that it can vectorise.
#pragma once

#include <bit>
#include <cstdint>

// One function, compiled for AVX-512, AVX2 and plain x86-64; the loader chooses once. Elsewhere one version.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define CELLOOM_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define CELLOOM_CLONES
#endif

namespace celloom::engine::kernels {

/// e^x for x <= 0, within 2 units in the last place; 0 below -87. (Cody-Waite reduction, Taylor polynomial of degree 6 on |r| <= ln2 / 2.)
inline float expOfNonPositive(float x) {
    const float bounded = x < -87.0f ? -87.0f : x;
    const float shifted = bounded * 1.44269504f + 12582912.0f; // 1.5 * 2^23: the sum's low bits hold the rounded integer
    const float n = shifted - 12582912.0f;
    const float r = (bounded - n * 0.693359375f) + n * 2.12194440e-4f;
    float p = 1.0f / 720;
    p = p * r + 1.0f / 120;
    p = p * r + 1.0f / 24;
    p = p * r + 1.0f / 6;
    p = p * r + 0.5f;
    p = p * r + 1.0f;
    p = p * r + 1.0f;
    const float scale = std::bit_cast<float>((static_cast<std::int32_t>(n) + 127) << 23);
    return x < -87.0f ? 0.0f : p * scale;
}

} // namespace celloom::engine::kernels
