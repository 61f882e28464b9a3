#include "engine/exec/device.h"

#include "engine/kernels/cuda_library.h"

#include <ATen/Context.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <ATen/ops/empty.h>
#include <dlfcn.h>

namespace celloom::engine {
namespace fs = std::filesystem;
namespace {

Status loadTorchCuda() {
    const fs::path library = torchFolder() / "libtorch_cuda.so";
    if (!fs::exists(library))
        return fail("an NVIDIA driver is present, but LibTorch's CUDA part is not installed.", "Run scripts/deps again on this machine.",
                    library.string());
    if (::dlopen(library.c_str(), RTLD_NOW | RTLD_GLOBAL) == nullptr) {
        const char* reason = ::dlerror();
        return fail(std::string("LibTorch's CUDA part cannot be loaded: ") + (reason ? reason : "unknown reason") + ".",
                    "Run scripts/deps again.");
    }
    if (!at::globalContext().hasCUDA() || at::detail::getCUDAHooks().deviceCount() == 0)
        return fail("the NVIDIA driver offers no usable GPU.", "Look at nvidia-smi; the driver may be too old for CUDA 13.");
    return {};
}

/// Celloom's kernels lie beside the program; without them LibTorch's own operations do the work.
std::string loadKernels() {
    const auto status = kernels::loadCudaKernels(kernelLibrary());
    return status ? "" : "Celloom's CUDA kernels are not used: " + status.error().text();
}

/// Of the driver's API (cuda.h), which LibTorch's CUDA part has loaded: major number of the first GPU's compute capability; 0: not told.
int cudaCapability() {
    using DeviceGet = int (*)(int* device, int ordinal);
    using GetAttribute = int (*)(int* value, int attribute, int device);
    constexpr int kCapabilityMajor = 75; // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR
    void* driver = ::dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    if (driver == nullptr) return 0;
    const auto deviceGet = reinterpret_cast<DeviceGet>(::dlsym(driver, "cuDeviceGet"));
    const auto getAttribute = reinterpret_cast<GetAttribute>(::dlsym(driver, "cuDeviceGetAttribute"));
    int device = 0, major = 0;
    const bool isTold = deviceGet && getAttribute && deviceGet(&device, 0) == 0 && getAttribute(&major, kCapabilityMajor, device) == 0;
    ::dlclose(driver);
    return isTold ? major : 0;
}

} // namespace

HalfSupport halfSupportOf(at::Device device) {
    if (device.is_cpu()) return processorHalfSupport();
    const int major = cudaCapability();
    return {major == 0 || major >= 8, major == 0 || major >= 7};
}

fs::path torchFolder() {
    Dl_info info{};
    CELLOOM_CHECK(::dladdr(reinterpret_cast<const void*>(&at::globalContext), &info) != 0 && info.dli_fname != nullptr);
    std::error_code code;
    return fs::canonical(info.dli_fname, code).parent_path();
}

fs::path kernelLibrary() {
    std::error_code code;
    return fs::read_symlink("/proc/self/exe", code).parent_path() / "libcelloom_kernels_cuda.so";
}

bool hasNvidiaDriver() {
    if (fs::exists("/proc/driver/nvidia/version")) return true;
    void* driver = ::dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL); // inside containers /proc may not show it
    if (driver != nullptr) ::dlclose(driver);
    return driver != nullptr;
}

Result<DeviceChoice> openDevice(const std::string& name) {
    if (name == "cpu") return DeviceChoice{};
    if (name != "cuda" && name != "auto") return fail("there is no device \"" + name + "\".", "Choose auto, cpu or cuda.", "device");
    if (!hasNvidiaDriver()) {
        if (name == "auto") return DeviceChoice{};
        return fail("no NVIDIA driver was found on this machine.", "Choose device = cpu, or install the driver.", "device");
    }
    if (auto status = loadTorchCuda(); !status) {
        if (name == "cuda") return tl::unexpected(std::move(status).error());
        return DeviceChoice{at::kCPU, "running on the CPU: " + status.error().text()};
    }
    return DeviceChoice{at::Device(at::kCUDA, 0), loadKernels()};
}

} // namespace celloom::engine
