// Starts a run's child under a supervisor: a small process of its own session that waits for the child and writes down how it ended.
// Both outlive the broker, so that an end is known, code or signal, whether or not a broker lives at that moment.
#pragma once

#include "models/base/result.h"
#include "models/store/run_folder.h"
#include "models/store/run_lock.h"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace celloom::app {

struct ChildCommand {
    std::filesystem::path program; // started as: program child RUNFOLDER
    store::RunFolder folder;
    std::string socket;                   // where the child will listen
    std::string device;                   // what the run has leased: "cpu", "cuda:0"
    std::vector<std::string> environment; // "NAME=value", on top of our own
};

/// Forks; the lock goes to the supervisor and the child. The calling process must have one thread only. Gives the supervisor's
/// process id.
Result<std::int64_t> startSupervised(const ChildCommand& command, store::RunLock lock);

/// True when this process holds the run's lock: a process id found in child.lock may belong to somebody else by now.
bool holdsLock(std::int64_t pid, const store::RunFolder& folder);

/// SIGKILL to the child, if it is still the one that child.lock names.
Status killChild(const store::RunFolder& folder);

} // namespace celloom::app
