#include "engine/script/limited_child.h"

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace celloom::engine {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
// A sanitizer ends a process that is refused memory, keeps for a while what was given back, writes reports to files and takes long: here the
// parent measures the child's memory and ends it, and the other limits are wider.
constexpr bool kIsMemoryMeasured = true;
constexpr rlim_t kFileBytes = 1 << 20;
constexpr int kTimes = 15, kTimesMemory = 4;
#else
constexpr bool kIsMemoryMeasured = false; // the kernel refuses what is above the limit
constexpr rlim_t kFileBytes = 0;          // no file grows
constexpr int kTimes = 1, kTimesMemory = 1;
#endif

/// Of a process: {mapped, resident}; zeros where it is gone.
std::array<std::int64_t, 2> memoryBytes(const std::string& process) {
    std::ifstream statm("/proc/" + process + "/statm");
    std::array<std::int64_t, 2> pages{};
    statm >> pages[0] >> pages[1];
    return {pages[0] * ::sysconf(_SC_PAGESIZE), pages[1] * ::sysconf(_SC_PAGESIZE)};
}

void limit(int what, rlim_t value) {
    const rlimit both{value, value};
    ::setrlimit(static_cast<__rlimit_resource>(what), &both);
}

void limitThisProcess(const TrialLimits& limits) {
    if (const int nothing = ::open("/dev/null", O_WRONLY); nothing >= 0) // a warning of LibTorch's into a log would break the limit of files
        for (const int output : {STDOUT_FILENO, STDERR_FILENO}) ::dup2(nothing, output);
    const std::int64_t mapped = memoryBytes("self")[0];
    if (mapped > 0 && !kIsMemoryMeasured) limit(RLIMIT_AS, static_cast<rlim_t>(mapped + limits.memoryBytes));
    limit(RLIMIT_CPU, static_cast<rlim_t>(limits.processorSeconds * kTimes));
    limit(RLIMIT_FSIZE, kFileBytes);
    limit(RLIMIT_CORE, 0);
}

void writeAll(int descriptor, const std::string& text) {
    for (std::size_t done = 0; done < text.size();) {
        const ssize_t count = ::write(descriptor, text.data() + done, text.size() - done);
        if (count <= 0 && errno != EINTR) return;
        if (count > 0) done += static_cast<std::size_t>(count);
    }
}

/// All that the child writes; false where it did not end in time, or took more memory than it may have.
bool readAll(int descriptor, pid_t child, const TrialLimits& limits, std::string& text) {
    constexpr std::size_t kMaxBytes = 8 << 20;
    const std::int64_t mostResident = memoryBytes("self")[1] + limits.memoryBytes * kTimesMemory;
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(limits.seconds * kTimes);
    char buffer[65536];
    while (text.size() < kMaxBytes) {
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now()).count();
        if (left <= 0) return false;
        pollfd wait{descriptor, POLLIN, 0};
        const int ready = ::poll(&wait, 1, static_cast<int>(kIsMemoryMeasured ? 20 : left));
        if (kIsMemoryMeasured && ready == 0 && memoryBytes(std::to_string(child))[1] <= mostResident) continue;
        if (ready < 0 && errno == EINTR) continue;
        if (ready <= 0) return false;
        const ssize_t count = ::read(descriptor, buffer, sizeof buffer);
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) return true;
        text.append(buffer, static_cast<std::size_t>(count));
    }
    return false;
}

} // namespace

Result<ChildAnswer> inLimitedChild(const std::function<std::string()>& work, const TrialLimits& limits) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return fail(std::string(std::strerror(errno)) + ".");
    const pid_t child = ::fork();
    if (child < 0) {
        const std::string why = std::strerror(errno);
        ::close(ends[0]);
        ::close(ends[1]);
        return fail(why + ".");
    }
    if (child == 0) {
        ::close(ends[0]);
        limitThisProcess(limits);
        try {
            writeAll(ends[1], work());
        } catch (...) { // memory, mostly: no answer is an answer
            ::_exit(1);
        }
        ::_exit(0); // nothing of the parent's is flushed twice
    }
    ::close(ends[1]);
    ChildAnswer out;
    if (!readAll(ends[0], child, limits, out.text)) ::kill(child, SIGKILL);
    ::close(ends[0]);
    while (::waitpid(child, &out.status, 0) < 0 && errno == EINTR) {
    }
    return out;
}

} // namespace celloom::engine
