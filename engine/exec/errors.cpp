// LibTorch's exceptions as errors that a user can read.
#include "engine/exec/network.h"

#include "engine/cells/cell_error.h"

#include <algorithm>
#include <c10/util/Exception.h>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <new>
#include <string_view>
#include <sys/resource.h>

namespace celloom::engine {
namespace {

constexpr const char* kNoMemory = "out of memory";

bool speaksOfMemory(const std::string& text) {
    return text.find("allocate memory") != std::string::npos || text.find(kNoMemory) != std::string::npos ||
           text.find("bad_alloc") != std::string::npos;
}

std::string gigabytes(double bytes) {
    char text[32];
    std::snprintf(text, sizeof text, "%.4g GB", bytes / 1e9);
    return text;
}

/// The number after `name` in a file of "name: number kB" lines, in bytes; -1 where it is not there.
double kilobytesIn(const char* path, std::string_view name) {
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);)
        if (line.starts_with(name)) return 1024 * std::strtod(line.c_str() + name.size(), nullptr);
    return -1;
}

/// What the control group of this process may still take; -1 where it has no limit, or is not known (cgroups of version 1).
double leftInGroup() {
    std::ifstream own("/proc/self/cgroup");
    std::string line;
    while (std::getline(own, line) && !line.starts_with("0::")) {
    }
    if (!line.starts_with("0::")) return -1;
    const std::string folder = "/sys/fs/cgroup" + line.substr(3);
    double most = -1, used = -1;
    if (!(std::ifstream(folder + "/memory.max") >> most) || !(std::ifstream(folder + "/memory.current") >> used)) return -1; // "max" is no number
    return std::max(0.0, most - used);
}

/// Of the machine, and of this process where it is limited (ulimit -v, a control group): the least of them. -1: not known.
double availableBytes() {
    double least = kilobytesIn("/proc/meminfo", "MemAvailable:");
    const auto take = [&](double bytes) { least = bytes < 0 ? least : least < 0 ? bytes : std::min(least, bytes); };
    take(leftInGroup());
    rlimit limit{};
    const double mapped = kilobytesIn("/proc/self/status", "VmSize:");
    if (mapped >= 0 && ::getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) take(std::max(0.0, static_cast<double>(limit.rlim_cur) - mapped));
    return least;
}

/// "[enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to allocate 3363831808 bytes. …"
/// and "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 139 GiB of which 1 GiB is free. …": asked and free.
std::string plainMemoryText(const std::string& text) {
    const std::string_view onCpu = "you tried to allocate ", onGpu = "Tried to allocate ", end = "is free";
    if (const auto at = text.find(onCpu); at != std::string::npos) {
        const double asked = std::strtod(text.c_str() + at + onCpu.size(), nullptr), free = availableBytes();
        return gigabytes(asked) + " more were asked for" + (free < 0 ? "" : ", " + gigabytes(free) + " of memory are available");
    }
    if (const auto at = text.find(onGpu); at != std::string::npos) {
        const auto last = text.find(end, at);
        return text.substr(at, last == std::string::npos ? text.find('.', text.find(' ', at + onGpu.size())) - at : last + end.size() - at);
    }
    return "a part of the work did not fit";
}

} // namespace

Error errorOf(const std::exception& exception, const std::string& place) {
    if (const auto* told = dynamic_cast<const CellError*>(&exception)) return {told->error.message, told->error.hint, told->error.place.empty() ? place : told->error.place};
    const auto* fromTorch = dynamic_cast<const c10::Error*>(&exception);
    std::string text = fromTorch ? fromTorch->what_without_backtrace() : exception.what();
    for (char& c : text)
        if (c == '\n') c = ' ';
    while (!text.empty() && (text.back() == ' ' || text.back() == '.')) text.pop_back();
    if (speaksOfMemory(text))
        return {std::string(kNoMemory) + ": " + plainMemoryText(text) + ".",
                "Use a smaller batch or a shorter sequence, or accumulate over more micro-batches.", place};
    return {text + ".", {}, place};
}

bool isOutOfMemory(const Error& error) {
    return error.message.starts_with(kNoMemory);
}

} // namespace celloom::engine
