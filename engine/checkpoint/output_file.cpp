#include "engine/checkpoint/output_file.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>
#include <utility>

namespace celloom::engine {
namespace {

tl::unexpected<Error> failed(const std::filesystem::path& path, int code) {
    const bool isFull = code == ENOSPC || code == EDQUOT;
    return fail(std::string("cannot be written: ") + std::strerror(code) + ".",
                isFull ? "The disk is full: free some space and try again." : "", path.string());
}

} // namespace

Result<OutputFile> OutputFile::create(const std::filesystem::path& path) {
    const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0) return failed(path, errno);
    return OutputFile(fd, path);
}

OutputFile::OutputFile(OutputFile&& other) noexcept : m_fd(std::exchange(other.m_fd, -1)), m_path(std::move(other.m_path)) {}

OutputFile::~OutputFile() {
    if (m_fd >= 0) ::close(m_fd);
}

Status OutputFile::write(std::string_view bytes) {
    while (!bytes.empty()) {
        const ssize_t done = ::write(m_fd, bytes.data(), bytes.size());
        if (done < 0 && errno == EINTR) continue;
        if (done < 0) return failed(m_path, errno);
        bytes.remove_prefix(static_cast<std::size_t>(done));
    }
    return {};
}

Status OutputFile::close() {
    if (::close(std::exchange(m_fd, -1)) != 0) return failed(m_path, errno);
    return {};
}

} // namespace celloom::engine
