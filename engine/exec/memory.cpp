#include "engine/exec/memory.h"

#include "models/base/machine_memory.h"

#include <c10/core/CPUAllocator.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/impl/alloc_cpu.h>

#include <atomic>
#include <cstring>

namespace celloom::engine {
namespace {

/// Before each block stands its size. As large as LibTorch's alignment, so that the block itself stays aligned.
constexpr std::size_t kHeader = c10::gAlignment;
static_assert(kHeader >= sizeof(std::size_t));

// Global, as LibTorch's allocator is: blocks are freed from everywhere, to the very end of the program.
std::atomic<std::int64_t> current{0}, peak{0};

void free(void* block) {
    if (block == nullptr) return;
    void* start = static_cast<char*>(block) - kHeader;
    std::size_t bytes = 0;
    std::memcpy(&bytes, start, sizeof bytes);
    current.fetch_sub(static_cast<std::int64_t>(bytes), std::memory_order_relaxed);
    c10::free_cpu(start);
}

/// LibTorch's own allocator, with a count of bytes. A block's context is its address, as LibTorch asks of raw allocations.
class CountingAllocator final : public c10::Allocator {
public:
    c10::DataPtr allocate(std::size_t bytes) override {
        if (bytes == 0) return {nullptr, nullptr, &free, c10::Device(c10::kCPU)};
        TORCH_CHECK(bytes <= SIZE_MAX - kHeader, "a tensor of ", bytes, " bytes is asked for");
        void* start = c10::alloc_cpu(bytes + kHeader);
        std::memcpy(start, &bytes, sizeof bytes);
        const std::int64_t now = current.fetch_add(static_cast<std::int64_t>(bytes), std::memory_order_relaxed) + static_cast<std::int64_t>(bytes);
        for (std::int64_t highest = peak.load(std::memory_order_relaxed); now > highest;)
            if (peak.compare_exchange_weak(highest, now, std::memory_order_relaxed)) break;
        void* block = static_cast<char*>(start) + kHeader;
        return {block, block, &free, c10::Device(c10::kCPU)};
    }
    c10::DeleterFnPtr raw_deleter() const override { return &free; }
    void copy_data(void* to, const void* from, std::size_t bytes) const override { default_copy_data(to, from, bytes); }
};

} // namespace

void countTensorMemory() {
    static CountingAllocator allocator;
    c10::SetCPUAllocator(&allocator);
}

TensorMemory tensorMemory(c10::Device device) {
    if (device.is_cpu()) return {current.load(), peak.load()};
    const auto all = static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE);
    const auto bytes = c10::getDeviceAllocator(device.type())->getDeviceStats(device.index()).requested_bytes[all];
    return {bytes.current, bytes.peak};
}

DeviceMemory deviceMemory(c10::Device device) {
    if (device.is_cpu()) {
        const MachineMemory memory = machineMemory();
        return {memory.total, memory.available};
    }
    const auto [free, total] = c10::getDeviceAllocator(device.type())->getMemoryInfo(device.index());
    return {static_cast<std::int64_t>(total), static_cast<std::int64_t>(free)};
}

void resetTensorMemoryPeak(c10::Device device) {
    if (device.is_cpu())
        peak.store(current.load());
    else
        c10::getDeviceAllocator(device.type())->resetPeakStats(device.index());
}

} // namespace celloom::engine
