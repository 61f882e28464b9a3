// Work on a stranger's source in a child process whose memory, time and files are limited.
#pragma once

#include "models/base/result.h"

#include <cstdint>
#include <functional>
#include <string>

namespace celloom::engine {

struct TrialLimits {
    std::int64_t memoryBytes = 256ll << 20; // beyond what the process has when it begins
    int processorSeconds = 2, seconds = 30;
};

struct ChildAnswer {
    std::string text; // what `work` returned; empty where it did not get that far
    int status = 0;   // as waitpid() gives it
};

/// Forks and gives back what `work` returned there. Call it before the process has started threads. Fails where there can be no child.
Result<ChildAnswer> inLimitedChild(const std::function<std::string()>& work, const TrialLimits& limits);

} // namespace celloom::engine
