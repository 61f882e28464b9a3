// LibTorch's exceptions as errors that a user can read.
#include "engine/exec/network.h"

#include <c10/util/Exception.h>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <new>
#include <string_view>

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

double availableBytes() {
    std::ifstream file("/proc/meminfo");
    for (std::string line; std::getline(file, line);)
        if (line.starts_with("MemAvailable:")) return 1024 * std::strtod(line.c_str() + line.find(':') + 1, nullptr);
    return -1;
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
