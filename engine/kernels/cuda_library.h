// Celloom's own CUDA kernels, a library of their own so that one build serves machines with and without a GPU.
#pragma once

#include "engine/kernels/cuda_abi.h"
#include "models/base/result.h"

#include <filesystem>

namespace celloom::engine::kernels {

/// Loads the library for the rest of the process (as LibTorch's CUDA part is). Loading twice is fine.
Status loadCudaKernels(const std::filesystem::path& library);

/// The kernels, or nothing where loadCudaKernels has not succeeded.
const CelloomCudaKernels* cudaKernels();

} // namespace celloom::engine::kernels
