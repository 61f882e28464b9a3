// Where a network runs. One build serves machines with and without a GPU: LibTorch's CUDA part and Celloom's kernels are loaded here.
#pragma once

#include "models/base/half_support.h"
#include "models/base/result.h"

#include <c10/core/Device.h>

#include <filesystem>
#include <string>

namespace celloom::engine {

struct DeviceChoice {
    at::Device device = at::kCPU;
    std::string note; // why "auto" stayed on the CPU although a driver is present, or that the kernel library is missing; may be empty
};

/// `name`: "auto" (CUDA where a driver and LibTorch's CUDA part are there, else the CPU), "cpu" or "cuda". Must run before anything else
/// asks LibTorch about CUDA: its hooks are made once. An error means exit code NoDevice.
Result<DeviceChoice> openDevice(const std::string& name);

/// Which half types the device multiplies by instructions of its own: of a GPU by its compute capability (float16 from 7.0, bfloat16 from
/// 8.0); both where that cannot be asked.
HalfSupport halfSupportOf(at::Device device);

/// True where an NVIDIA driver is installed, whether or not it works.
bool hasNvidiaDriver();

/// Where LibTorch's libraries lie, and Celloom's CUDA kernels (beside the program; the file may be absent).
std::filesystem::path torchFolder();
std::filesystem::path kernelLibrary();

} // namespace celloom::engine
