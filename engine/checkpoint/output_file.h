// A file that is written from front to back, for content that is made while it is written. Not atomic: it lies in an AtomicFolder.
#pragma once

#include "models/base/result.h"

#include <filesystem>
#include <string_view>

namespace celloom::engine {

class OutputFile {
public:
    /// A new file; one that exists is refused.
    static Result<OutputFile> create(const std::filesystem::path& path);
    OutputFile(OutputFile&& other) noexcept;
    OutputFile& operator=(OutputFile&&) = delete;
    ~OutputFile();

    Status write(std::string_view bytes);
    /// Must be called last: some file systems tell only now that the disk is full.
    Status close();

private:
    OutputFile(int fd, std::filesystem::path path) : m_fd(fd), m_path(std::move(path)) {}
    int m_fd = -1;
    std::filesystem::path m_path;
};

} // namespace celloom::engine
