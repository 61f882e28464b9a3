// How much memory this machine has, as Linux says it.
#pragma once

#include <cstdint>

namespace celloom {

/// Bytes in all, and what programs could have now without swapping; 0 where the machine does not say.
struct MachineMemory {
    std::int64_t total = 0, available = 0;
};
MachineMemory machineMemory();

} // namespace celloom
