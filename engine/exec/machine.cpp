#include "engine/exec/machine.h"

#include "engine/exec/device.h"
#include "engine/exec/runtime.h"
#include "models/base/machine_memory.h"

#include <ATen/Version.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <torch/version.h>

namespace celloom::engine {
namespace fs = std::filesystem;
namespace {

/// The text behind "key : " in a /proc file; empty where there is none.
std::string fieldOf(const char* file, const std::string& key) {
    std::ifstream in(file);
    for (std::string row; std::getline(in, row);) {
        const std::size_t colon = row.find(':');
        if (!row.starts_with(key) || colon == std::string::npos) continue;
        const std::size_t start = row.find_first_not_of(" \t", colon + 1);
        return start == std::string::npos ? "" : row.substr(start);
    }
    return {};
}

std::string driverVersion() {
    if (!hasNvidiaDriver()) return {};
    std::ifstream in("/proc/driver/nvidia/version");
    std::string row;
    if (!std::getline(in, row)) return "present";
    std::istringstream words(row);
    for (std::string word; words >> word;)
        if (word.find_first_of("0123456789") == 0 && word.find('.') != std::string::npos) return word;
    return "present";
}

/// The fastest of a few products of 768 x 768 matrices.
double flopsOf(at::ScalarType type) {
    const at::Tensor a = at::ones({768, 768}, type);
    double best = 1e9;
    for (int i = 0; i < 8; ++i) {
        const auto start = std::chrono::steady_clock::now();
        const at::Tensor product = at::matmul(a, a);
        best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    }
    return 2.0 * 768 * 768 * 768 / best;
}

} // namespace

MachineReport examineMachine() {
    MachineReport out;
    out.torchVersion = TORCH_VERSION;
    out.processor = fieldOf("/proc/cpuinfo", "model name");
    out.capability = at::get_cpu_capability();
    out.processors = setThreads(0);
    const MachineMemory memory = machineMemory();
    out.memoryBytes = memory.total;
    out.availableMemoryBytes = memory.available;
    out.floatFlops = flopsOf(at::kFloat);
    out.halfFlops = flopsOf(at::kBFloat16);
    out.driver = driverVersion();
    out.hasTorchCuda = fs::exists(torchFolder() / "libtorch_cuda.so");
    out.hasCudaKernels = fs::exists(kernelLibrary());
    return out;
}

} // namespace celloom::engine
