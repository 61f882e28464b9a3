// RMSNorm on CUDA, forward and backward. Contract (cuda_abi.h): contiguous float32, x [rows,dim], weight [dim];
//   forward:  y = x * rstd * weight, rstd = 1 / sqrt(mean(x^2) + eps)
//   backward: dx = rstd * (weight dy - n mean(weight dy n)), dWeight = sum over rows of dy n, with n = x * rstd; outputs are overwritten
//   (=).
// Reference: rmsNormReference in fused.cpp. One block a row (forward, dx); the weight's gradient is summed in two fixed-order steps,
// so that the same input gives the same bits. No torch headers here.
#include "engine/kernels/cuda_abi.h"

#include <cuda_runtime.h>

namespace {

constexpr int kThreads = 256;
constexpr std::int64_t kRowsPerPartial = 64;

/// Sum over the block, the same value in every thread. `shared` holds one float a warp.
__device__ float blockSum(float value, float* shared) {
    for (int offset = 16; offset > 0; offset /= 2) value += __shfl_xor_sync(0xffffffffu, value, offset);
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    if (lane == 0) shared[warp] = value;
    __syncthreads();
    float total = 0;
    for (int i = 0; i < kThreads / 32; ++i) total += shared[i];
    __syncthreads();
    return total;
}

__global__ void forwardKernel(const float* __restrict__ x, const float* __restrict__ weight, float* __restrict__ y,
                              float* __restrict__ rstd, std::int64_t dim, float eps) {
    __shared__ float shared[kThreads / 32];
    const float* row = x + static_cast<std::int64_t>(blockIdx.x) * dim;
    float sum = 0;
    for (std::int64_t i = threadIdx.x; i < dim; i += kThreads) sum += row[i] * row[i];
    const float scale = rsqrtf(blockSum(sum, shared) / static_cast<float>(dim) + eps);
    for (std::int64_t i = threadIdx.x; i < dim; i += kThreads)
        y[static_cast<std::int64_t>(blockIdx.x) * dim + i] = row[i] * scale * weight[i];
    if (threadIdx.x == 0) rstd[blockIdx.x] = scale;
}

__global__ void backwardInputKernel(const float* __restrict__ dy, const float* __restrict__ x, const float* __restrict__ weight,
                                    const float* __restrict__ rstd, float* __restrict__ dx, std::int64_t dim) {
    __shared__ float shared[kThreads / 32];
    const std::int64_t start = static_cast<std::int64_t>(blockIdx.x) * dim;
    const float scale = rstd[blockIdx.x];
    float dot = 0;
    for (std::int64_t i = threadIdx.x; i < dim; i += kThreads) dot += weight[i] * dy[start + i] * x[start + i];
    const float back = blockSum(dot, shared) * scale * scale / static_cast<float>(dim);
    for (std::int64_t i = threadIdx.x; i < dim; i += kThreads) dx[start + i] = scale * (weight[i] * dy[start + i] - x[start + i] * back);
}

/// partial [ceil(rows / 64), dim]: one block sums 64 rows of kThreads columns.
__global__ void weightPartialKernel(const float* __restrict__ dy, const float* __restrict__ x, const float* __restrict__ rstd,
                                    float* __restrict__ partial, std::int64_t rows, std::int64_t dim) {
    const std::int64_t column = static_cast<std::int64_t>(blockIdx.y) * kThreads + threadIdx.x;
    if (column >= dim) return;
    const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * kRowsPerPartial;
    const std::int64_t last = first + kRowsPerPartial < rows ? first + kRowsPerPartial : rows;
    float sum = 0;
    for (std::int64_t row = first; row < last; ++row) sum += dy[row * dim + column] * x[row * dim + column] * rstd[row];
    partial[static_cast<std::int64_t>(blockIdx.x) * dim + column] = sum;
}

__global__ void weightSumKernel(const float* __restrict__ partial, float* __restrict__ dWeight, std::int64_t parts, std::int64_t dim) {
    const std::int64_t column = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
    if (column >= dim) return;
    float sum = 0;
    for (std::int64_t part = 0; part < parts; ++part) sum += partial[part * dim + column];
    dWeight[column] = sum;
}

std::int64_t partialRows(std::int64_t rows) {
    return (rows + kRowsPerPartial - 1) / kRowsPerPartial;
}
unsigned columnBlocks(std::int64_t dim) {
    return static_cast<unsigned>((dim + kThreads - 1) / kThreads);
}

int rmsNormForward(const float* x, const float* weight, float* y, float* rstd, std::int64_t rows, std::int64_t dim, double eps,
                   void* stream) {
    if (rows == 0 || dim == 0) return cudaSuccess;
    if (rows > 0x7fffffff) return cudaErrorInvalidConfiguration;
    forwardKernel<<<static_cast<unsigned>(rows), kThreads, 0, static_cast<cudaStream_t>(stream)>>>(x, weight, y, rstd, dim,
                                                                                                   static_cast<float>(eps));
    return cudaGetLastError();
}

int rmsNormBackward(const float* dy, const float* x, const float* weight, const float* rstd, float* dx, float* dWeight, float* partial,
                    std::int64_t rows, std::int64_t dim, void* stream) {
    const auto queue = static_cast<cudaStream_t>(stream);
    if (dim == 0) return cudaSuccess;
    if (rows == 0) return cudaMemsetAsync(dWeight, 0, static_cast<std::size_t>(dim) * sizeof(float), queue);
    if (rows > 0x7fffffff || columnBlocks(dim) > 65535) return cudaErrorInvalidConfiguration;
    backwardInputKernel<<<static_cast<unsigned>(rows), kThreads, 0, queue>>>(dy, x, weight, rstd, dx, dim);
    if (const cudaError_t code = cudaGetLastError(); code != cudaSuccess) return code;
    const dim3 grid(static_cast<unsigned>(partialRows(rows)), columnBlocks(dim));
    weightPartialKernel<<<grid, kThreads, 0, queue>>>(dy, x, rstd, partial, rows, dim);
    if (const cudaError_t code = cudaGetLastError(); code != cudaSuccess) return code;
    weightSumKernel<<<columnBlocks(dim), kThreads, 0, queue>>>(partial, dWeight, partialRows(rows), dim);
    return cudaGetLastError();
}

const char* errorText(int code) {
    return cudaGetErrorString(static_cast<cudaError_t>(code));
}

const CelloomCudaKernels kKernels = {CELLOOM_CUDA_ABI, rmsNormForward, rmsNormBackward, partialRows, errorText};

} // namespace

extern "C" const CelloomCudaKernels* celloomCudaKernels() {
    return &kKernels;
}
