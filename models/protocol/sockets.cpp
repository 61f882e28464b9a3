#include "models/protocol/sockets.h"

#include "models/base/files.h"
#include "models/protocol/broker_lock.h"
#include "models/protocol/protocol.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

namespace celloom::protocol {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t kLongestName = 16; // "/run-123456.sock"

bool isOurs(const fs::path& folder) {
    struct stat info {};
    return ::lstat(folder.c_str(), &info) == 0 && S_ISDIR(info.st_mode) && info.st_uid == ::geteuid() &&
           ::access(folder.c_str(), W_OK | X_OK) == 0;
}

/// The folder for this workspace, not yet made.
fs::path intendedFolder(const store::Workspace& workspace) {
    std::error_code code;
    const fs::path real = fs::weakly_canonical(workspace.path, code);
    const std::string hash = sha256((code ? workspace.path : real).string()).substr(0, 16);
    if (const char* runtime = std::getenv("XDG_RUNTIME_DIR"); runtime && *runtime == '/' && isOurs(runtime)) {
        const fs::path folder = fs::path(runtime) / "celloom" / hash;
        if (folder.string().size() + kLongestName < sizeof(sockaddr_un::sun_path)) return folder;
    }
    return "/tmp/celloom-" + std::to_string(::geteuid()) + "/" + hash;
}

/// One folder that only we may enter.
Status makePrivate(const fs::path& folder) {
    if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST)
        return fail(std::string("the folder for sockets cannot be made: ") + std::strerror(errno) + ".",
                    "Set XDG_RUNTIME_DIR to a folder of yours.", folder.string());
    struct stat info {};
    if (::lstat(folder.c_str(), &info) != 0 || !S_ISDIR(info.st_mode) || info.st_uid != ::geteuid() || (info.st_mode & 077) != 0)
        return fail("the folder for sockets belongs to somebody else, or others may enter it.",
                    "Remove it, or set XDG_RUNTIME_DIR to a folder that is yours alone.", folder.string());
    return {};
}

Error socketError(const std::string& what, const fs::path& path, int code) {
    return {what + ": " + std::strerror(code) + ".", {}, path.string()};
}

Result<sockaddr_un> addressOf(const fs::path& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string text = path.string();
    if (text.size() >= sizeof(address.sun_path))
        return fail("the socket's path is too long.", "Set XDG_RUNTIME_DIR to a shorter path.", text);
    std::memcpy(address.sun_path, text.c_str(), text.size() + 1);
    return address;
}

} // namespace

Result<fs::path> socketFolder(const store::Workspace& workspace) {
    const fs::path folder = intendedFolder(workspace);
    CELLOOM_TRY_STATUS(makePrivate(folder.parent_path()));
    CELLOOM_TRY_STATUS(makePrivate(folder));
    return folder;
}

fs::path brokerSocket(const store::Workspace& workspace) {
    // A broker that was started in another environment (over ssh, say) may listen elsewhere: its lock file tells.
    const std::string living = livingBrokerSocket(workspace);
    return living.empty() ? intendedFolder(workspace) / "broker.sock" : fs::path(living);
}

fs::path childSocket(const store::Workspace& workspace, int runNumber) {
    return intendedFolder(workspace) / ("run-" + std::to_string(runNumber) + ".sock");
}

Result<int> listenOn(const fs::path& path) {
    CELLOOM_TRY(address, addressOf(path));
    const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return tl::unexpected(socketError("no socket can be made", path, errno));
    ::unlink(path.c_str()); // the caller holds the lock that says nobody listens there
    const auto* generic = reinterpret_cast<const sockaddr*>(&address);
    if (::bind(fd, generic, sizeof(address)) != 0 || ::chmod(path.c_str(), 0600) != 0 || ::listen(fd, 64) != 0) {
        const int code = errno;
        ::close(fd);
        return tl::unexpected(socketError("the socket cannot be opened", path, code));
    }
    return fd;
}

Result<int> connectTo(const fs::path& path) {
    CELLOOM_TRY(address, addressOf(path));
    const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return tl::unexpected(socketError("no socket can be made", path, errno));
    // A Unix socket connects at once or fails: EAGAIN means that the listener's queue is full.
    if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
        const int code = errno;
        ::close(fd);
        return tl::unexpected(socketError("nobody answers", path, code));
    }
    return fd;
}

} // namespace celloom::protocol
