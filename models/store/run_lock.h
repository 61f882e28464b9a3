// child.lock in a run's folder: held (an open-file-description lock, which the kernel gives back however a process ends) by the
// run's supervisor and by its child, so that "does it still run?" has a certain answer without any broker, and so that two
// processes never work on one run. It also says who they are and, in space reserved beforehand (it must work on a full disk), how
// the child ended.
#pragma once

#include "models/base/result.h"
#include "models/store/run_folder.h"

#include <cstdint>
#include <optional>
#include <string>

namespace celloom::store {

struct RunProcess {
    std::int64_t supervisor = 0; // process id; 0: a child started by hand
    std::int64_t child = 0;      // process id; 0: not yet started
    std::string socket;          // where the child listens
    std::string device;          // what the broker leased to it: "cpu", "cuda:0"
    std::optional<int> code;     // the child's end: an exit code …
    std::optional<int> signal;   // … or the signal that killed it
    double ended = 0;            // seconds since 1970
};

class RunLock {
public:
    /// Fails when another process works on this run, or the folder cannot be written.
    static Result<RunLock> take(const RunFolder& folder);
    /// The lock that a parent process took and left open as this descriptor.
    static RunLock inherited(int descriptor) { return RunLock(descriptor); }

    RunLock(RunLock&& other) noexcept : m_descriptor(other.m_descriptor) { other.m_descriptor = -1; }
    RunLock& operator=(RunLock&& other) noexcept;
    ~RunLock();

    Status write(const RunProcess& process);
    [[nodiscard]] int descriptor() const { return m_descriptor; }

private:
    explicit RunLock(int descriptor) : m_descriptor(descriptor) {}
    int m_descriptor = -1;
};

std::filesystem::path lockFile(const RunFolder& folder);

/// True while a supervisor or child of this run lives.
bool isHeld(const RunFolder& folder);
/// What the lock file says; nothing when the run was never started. Fails when the file cannot be read or is damaged.
Result<std::optional<RunProcess>> readProcess(const RunFolder& folder);

/// exit.json; where it is missing and no process lives any more, what child.lock says. Nothing: the end is not known.
struct RunExit {
    std::optional<int> code, signal;
    double time = 0;
};
Result<std::optional<RunExit>> readExit(const RunFolder& folder);
Status writeExit(const RunFolder& folder, const RunExit& exit);

} // namespace celloom::store
