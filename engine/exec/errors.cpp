// LibTorch's exceptions as errors that a user can read.
#include "engine/exec/network.h"

#include <c10/util/Exception.h>
#include <new>

namespace celloom::engine {
namespace {

constexpr const char* kNoMemory = "out of memory";

bool speaksOfMemory(const std::string& text) {
    return text.find("allocate memory") != std::string::npos || text.find(kNoMemory) != std::string::npos ||
           text.find("bad_alloc") != std::string::npos;
}

} // namespace

Error errorOf(const std::exception& exception, const std::string& place) {
    const auto* fromTorch = dynamic_cast<const c10::Error*>(&exception);
    std::string text = fromTorch ? fromTorch->what_without_backtrace() : exception.what();
    for (char& c : text)
        if (c == '\n') c = ' ';
    while (!text.empty() && (text.back() == ' ' || text.back() == '.')) text.pop_back();
    if (speaksOfMemory(text))
        return {std::string(kNoMemory) + ": " + text + ".",
                "Use a smaller batch or a shorter sequence, or accumulate over more micro-batches.", place};
    return {text + ".", {}, place};
}

bool isOutOfMemory(const Error& error) {
    return error.message.starts_with(kNoMemory);
}

} // namespace celloom::engine
