#include "models/base/machine_memory.h"

#include <fstream>
#include <string>

namespace celloom {

MachineMemory machineMemory() {
    MachineMemory out;
    std::ifstream in("/proc/meminfo");
    std::string name, unit;
    for (std::int64_t number = 0; in >> name >> number; std::getline(in, unit)) { // "MemTotal:  16384000 kB"
        if (name == "MemTotal:") out.total = number * 1024;
        if (name == "MemAvailable:") out.available = number * 1024;
    }
    return out;
}

} // namespace celloom
