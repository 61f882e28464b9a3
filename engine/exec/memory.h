// How much memory tensors take: bytes asked of LibTorch's allocators, now and at most. What recipe::estimate foretells is compared with it.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>

namespace celloom::engine {

/// Bytes of tensor storage, as asked for; what the allocator adds for alignment and keeps in reserve is not counted.
struct TensorMemory {
    std::int64_t current = 0;
    std::int64_t peak = 0; // since the program began, or since resetTensorMemoryPeak
};

/// From here on the CPU's tensors are counted. An allocation costs two atomic additions more; calling it again changes nothing.
void countTensorMemory();
/// Of the CPU: zero before countTensorMemory. Of a GPU: what LibTorch's caching allocator counts.
TensorMemory tensorMemory(c10::Device device);
/// Bytes that the device has, and that are free now; of the CPU the machine's memory. 0 where unknown.
struct DeviceMemory {
    std::int64_t total = 0, free = 0;
};
DeviceMemory deviceMemory(c10::Device device);
/// The peak begins anew at what is held now.
void resetTensorMemoryPeak(c10::Device device);

} // namespace celloom::engine
