#include "engine/checkpoint/atomic_folder.h"

#include "models/base/files.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace celloom::engine {
namespace fs = std::filesystem;
namespace {

constexpr const char* kMark = ".partial-";

auto failed(const char* what, const fs::path& path, int code) {
    const bool isFull = code == ENOSPC || code == EDQUOT;
    return fail(std::string(what) + ": " + std::strerror(code) + ".", isFull ? "The disk is full: free some space and try again." : "",
                path.string());
}

Status syncFile(const fs::path& path) {
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return failed("cannot be synced", path, errno);
    const int code = ::fsync(fd) == 0 ? 0 : errno;
    ::close(fd);
    if (code != 0) return failed("cannot be synced", path, code);
    return {};
}

fs::path withoutTrailingSlash(const fs::path& path) {
    return path.has_filename() ? path : path.parent_path();
}

} // namespace

Result<AtomicFolder> AtomicFolder::create(const fs::path& requested) {
    std::error_code code;
    const fs::path target = withoutTrailingSlash(fs::absolute(requested, code));
    if (code || !target.has_filename()) return fail("is no folder name.", {}, requested.string());
    fs::create_directories(target.parent_path(), code);
    if (code) return fail("cannot be made: " + code.message() + ".", "Choose a folder you may write to.", target.parent_path().string());
    std::string path = (target.parent_path() / ".").string();
    path.append(target.filename().string()).append(kMark).append("XXXXXX");
    if (::mkdtemp(path.data()) == nullptr) return failed("cannot be made", target, errno);
    const mode_t mask = ::umask(0);
    ::umask(mask);
    ::chmod(path.c_str(), 0777 & ~mask); // mkdtemp makes it private; the final folder follows the user's mask
    return AtomicFolder(path, target);
}

AtomicFolder::AtomicFolder(AtomicFolder&& other) noexcept
    : m_path(std::exchange(other.m_path, {})), m_target(std::exchange(other.m_target, {})) {}

AtomicFolder::~AtomicFolder() {
    std::error_code ignored; // what stays is recognised by isPartial
    if (!m_path.empty()) fs::remove_all(m_path, ignored);
}

Status AtomicFolder::commit(Existing existing) {
    CELLOOM_CHECK(!m_path.empty());
    std::error_code code;
    for (fs::recursive_directory_iterator item(m_path, code), end; !code && item != end; item.increment(code)) {
        if (item->is_regular_file())
            CELLOOM_TRY_STATUS(syncFile(item->path()));
        else if (item->is_directory())
            CELLOOM_TRY_STATUS(syncFolder(item->path()));
    }
    if (code) return fail("cannot be listed: " + code.message() + ".", {}, m_path.string());
    CELLOOM_TRY_STATUS(syncFolder(m_path));
    if (::rename(m_path.c_str(), m_target.c_str()) == 0) {
        m_path.clear();
        return syncFolder(m_target.parent_path());
    }
    if (errno != ENOTEMPTY && errno != EEXIST && errno != ENOTDIR) return failed("cannot be written", m_target, errno);
    if (existing == Existing::Refuse || !fs::is_directory(m_target, code))
        return fail("exists already.", "Choose another name, or delete it first.", m_target.string());
    if (::renameat2(AT_FDCWD, m_path.c_str(), AT_FDCWD, m_target.c_str(), RENAME_EXCHANGE) != 0)
        return failed("cannot be replaced", m_target, errno);
    CELLOOM_TRY_STATUS(syncFolder(m_target.parent_path())); // the old content now has the partial name; the destructor removes it
    return {};
}

bool AtomicFolder::isPartial(const fs::path& path) {
    const std::string name = path.filename().string();
    return name.starts_with(".") && name.find(kMark) != std::string::npos;
}

} // namespace celloom::engine
