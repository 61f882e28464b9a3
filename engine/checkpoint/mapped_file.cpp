#include "engine/checkpoint/mapped_file.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace celloom::engine {

Result<std::shared_ptr<MappedFile>> MappedFile::open(const std::filesystem::path& path) {
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK); // a pipe is refused below, not waited for
    if (fd < 0) return fail(std::string("cannot be opened: ") + std::strerror(errno) + ".", "Check the path.", path.string());
    struct stat info {};
    const bool isFile = ::fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
    const auto size = isFile ? static_cast<std::uint64_t>(info.st_size) : 0;
    void* data = size > 0 ? ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;
    const int code = errno;
    ::close(fd);
    if (!isFile) return fail("is no regular file.", {}, path.string());
    if (size == 0) return fail("is too short to hold tensors: it is empty.", "Was it copied completely?", path.string());
    if (data == MAP_FAILED) return fail(std::string("cannot be mapped: ") + std::strerror(code) + ".", {}, path.string());
    return std::shared_ptr<MappedFile>(new MappedFile(static_cast<const char*>(data), size));
}

MappedFile::~MappedFile() {
    ::munmap(const_cast<char*>(m_data), m_size);
}

void MappedFile::release(Extent part) const {
    const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
    const std::uint64_t first = (part.offset + page - 1) / page * page, end = (part.offset + part.bytes) / page * page;
    // A page that two tensors share stays. Failing costs memory, nothing else.
    if (end > first) ::madvise(const_cast<char*>(m_data) + first, end - first, MADV_DONTNEED);
}

} // namespace celloom::engine
