#include "app/engine/broker/supervisor.h"

#include "models/base/exit_codes.h"
#include "models/base/files.h"

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <linux/close_range.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace celloom::app {
namespace fs = std::filesystem;
namespace {

constexpr int kLockDescriptor = 3; // in supervisor and child, after the standard ones
constexpr std::array<int, 5> kIgnored{SIGINT, SIGTERM, SIGHUP, SIGQUIT,
                                      SIGPIPE}; // the child decides about these; the supervisor waits for it

double now() {
    return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

/// Runs in the child's process, between fork and exec.
[[noreturn]] void becomeChild(const ChildCommand& command) {
    for (const int signal : kIgnored) ::signal(signal, SIG_DFL);
    sigset_t none;
    sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    ::setpgid(0, 0);
    // A thread that waits at a barrier gives its core away: with LibTorch's default of spinning, a run of two threads on two cores that
    // others use as well took three times as long. libgomp reads this when it is loaded; what the user set stays.
    ::setenv("OMP_WAIT_POLICY", "passive", 0);
    ::setenv("CELLOOM_RUN_LOCK", std::to_string(kLockDescriptor).c_str(), 1);
    for (const std::string& entry : command.environment) {
        const std::size_t equals = entry.find('=');
        ::setenv(entry.substr(0, equals).c_str(), entry.substr(equals + 1).c_str(), 1);
    }
    ::execl(command.program.c_str(), command.program.c_str(), "child", command.folder.path.c_str(), nullptr);
    std::fprintf(stderr, "%s cannot be started: %s\n", command.program.c_str(), std::strerror(errno));
    ::_exit(protocol::Failure);
}

/// The supervisor's whole life. Never returns into the broker's code.
[[noreturn]] void supervise(const ChildCommand& command, int lockDescriptor, int logDescriptor) {
    ::setsid();
    for (const int signal : kIgnored) ::signal(signal, SIG_IGN);
    const int null = ::open("/dev/null", O_RDONLY);
    // Only what is named here stays open: the broker's lock and sockets must end with the broker.
    if (::dup2(null, 0) < 0 || ::dup2(logDescriptor, 1) < 0 || ::dup2(logDescriptor, 2) < 0 ||
        ::dup2(lockDescriptor, kLockDescriptor) < 0 || ::syscall(SYS_close_range, kLockDescriptor + 1, ~0u, 0) != 0)
        ::_exit(protocol::Failure);
    store::RunLock lock = store::RunLock::inherited(kLockDescriptor);
    ::fcntl(kLockDescriptor, F_SETFD, 0); // dup2 onto itself would have kept the flag

    store::RunProcess process;
    process.supervisor = ::getpid();
    process.socket = command.socket;
    process.device = command.device;
    const pid_t child = ::fork();
    if (child == 0) becomeChild(command);
    process.child = child > 0 ? child : 0;
    if (const Status status = lock.write(process); !status) std::fprintf(stderr, "%s\n", status.error().text().c_str());

    int status = 0;
    if (child < 0) {
        std::fprintf(stderr, "the child cannot be started: %s\n", std::strerror(errno));
        process.code = protocol::Failure;
    } else {
        while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
        }
        ::kill(-child, SIGKILL); // workers that the child left behind
        if (WIFSIGNALED(status))
            process.signal = WTERMSIG(status);
        else
            process.code = WEXITSTATUS(status);
    }
    process.ended = now();
    const Status noted = lock.write(process); // in reserved space: works on a full disk, where exit.json may not
    const Status written = store::writeExit(command.folder, {process.code, process.signal, process.ended});
    if (!noted || !written) std::fprintf(stderr, "%s\n", (noted ? written : noted).error().text().c_str());
    ::_exit(noted || written ? protocol::Ok : protocol::DiskFull);
}

} // namespace

Result<std::int64_t> startSupervised(const ChildCommand& command, store::RunLock lock) {
    store::RunProcess nobody; // reserves the record's space, and forgets an earlier end
    nobody.socket = command.socket;
    nobody.device = command.device;
    CELLOOM_TRY_STATUS(lock.write(nobody));
    if (::unlink(command.folder.exit().c_str()) != 0 && errno != ENOENT)
        return fail(std::string("exit.json of the earlier try cannot be removed: ") + std::strerror(errno) + ".", {},
                    command.folder.exit().string());
    const int log = ::open(command.folder.log().c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (log < 0) return fail(std::string("log.txt cannot be opened: ") + std::strerror(errno) + ".", {}, command.folder.log().string());
    const pid_t supervisor = ::fork();
    if (supervisor == 0) supervise(command, lock.descriptor(), log);
    const int code = errno;
    ::close(log);
    if (supervisor < 0) return fail(std::string("no process can be started: ") + std::strerror(code) + ".");
    return supervisor;
}

bool holdsLock(std::int64_t pid, const store::RunFolder& folder) {
    struct stat wanted {};
    if (pid <= 0 || ::stat(store::lockFile(folder).c_str(), &wanted) != 0) return false;
    std::error_code code;
    for (fs::directory_iterator entry("/proc/" + std::to_string(pid) + "/fd", code), end; !code && entry != end; entry.increment(code)) {
        struct stat info {};
        if (::stat(entry->path().c_str(), &info) == 0 && info.st_dev == wanted.st_dev && info.st_ino == wanted.st_ino) return true;
    }
    return false;
}

Status killChild(const store::RunFolder& folder) {
    CELLOOM_TRY(process, store::readProcess(folder));
    if (!process || process->child <= 0) return fail("run " + folder.name() + " has no process.");
    // The descriptor means one process for good; asked again after it is open, the answer cannot go stale.
    const int pidfd = static_cast<int>(::syscall(SYS_pidfd_open, static_cast<pid_t>(process->child), 0));
    const bool isOurs = pidfd >= 0 && holdsLock(process->child, folder);
    const bool isDone = isOurs && ::syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, nullptr, 0) == 0;
    if (pidfd >= 0) ::close(pidfd);
    if (!isDone) return fail("run " + folder.name() + " has no living process.");
    return {};
}

} // namespace celloom::app
