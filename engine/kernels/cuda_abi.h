// What celloom_kernels_cuda, the shared library built by nvcc, exports: plain C, no LibTorch. Loaded at run time (cuda_library.h).
// Every launcher returns 0 or a cudaError_t and has checked the launch itself; work is queued on `stream` (a cudaStream_t).
#pragma once

#include <cstdint>

#define CELLOOM_CUDA_ABI 1

extern "C" {

struct CelloomCudaKernels {
    int abi; // CELLOOM_CUDA_ABI of the library

    /// RMSNorm: y [rows,dim] = x * rstd * weight [dim], rstd [rows] = 1 / sqrt(mean(x^2) + eps). Contiguous float32, y and rstd
    /// overwritten.
    int (*rmsNormForward)(const float* x, const float* weight, float* y, float* rstd, std::int64_t rows, std::int64_t dim, double eps,
                          void* stream);

    /// dx [rows,dim] and dWeight [dim], both overwritten. `partial` is scratch of rmsNormPartialRows(rows) * dim floats.
    int (*rmsNormBackward)(const float* dy, const float* x, const float* weight, const float* rstd, float* dx, float* dWeight,
                           float* partial, std::int64_t rows, std::int64_t dim, void* stream);
    std::int64_t (*rmsNormPartialRows)(std::int64_t rows);

    const char* (*errorText)(int code);
};

/// The one symbol that is looked up.
const CelloomCudaKernels* celloomCudaKernels();
}
