#include "engine/kernels/cuda_library.h"

#include <atomic>
#include <dlfcn.h>

namespace celloom::engine::kernels {
namespace {

// A loaded library belongs to the process, so does this pointer; it is set once and never changes back.
std::atomic<const CelloomCudaKernels*> loaded{nullptr};

} // namespace

Status loadCudaKernels(const std::filesystem::path& library) {
    if (loaded) return {};
    void* handle = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
        const char* reason = ::dlerror();
        return fail(std::string("cannot be loaded: ") + (reason ? reason : "unknown reason") + ".", {}, library.string());
    }
    const auto entry = reinterpret_cast<const CelloomCudaKernels* (*)()>(::dlsym(handle, "celloomCudaKernels"));
    const CelloomCudaKernels* kernels = entry ? entry() : nullptr;
    if (kernels == nullptr || kernels->abi != CELLOOM_CUDA_ABI)
        return fail("is a kernel library of another Celloom.", "Build both from the same sources.", library.string());
    loaded = kernels;
    return {};
}

const CelloomCudaKernels* cudaKernels() {
    return loaded;
}

} // namespace celloom::engine::kernels
