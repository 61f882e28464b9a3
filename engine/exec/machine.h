// What this machine has, for `doctor`. Loads nothing that a run would not load, and opens no GPU.
#pragma once

#include <cstdint>
#include <string>

namespace celloom::engine {

struct MachineReport {
    std::string torchVersion;
    std::string processor, capability; // "AVX512": the instructions that LibTorch's kernels use here
    int processors = 0;                // that this process may use
    std::int64_t memoryBytes = 0, availableMemoryBytes = 0;
    double floatFlops = 0, halfFlops = 0;              // matrix products per second, measured in a moment
    std::string driver;                                // version of the NVIDIA driver; empty: none
    bool hasTorchCuda = false, hasCudaKernels = false; // files present
};

MachineReport examineMachine();

} // namespace celloom::engine
