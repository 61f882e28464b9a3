// A folder of one's own that goes away.
#pragma once

#include "models/base/result.h"

#include <filesystem>
#include <string>
#include <unistd.h>
#include <utility>

namespace celloom::app {

class TemporaryFolder {
public:
    static Result<TemporaryFolder> create() {
        std::error_code error;
        std::string name = (std::filesystem::temp_directory_path(error) / "celloom-preview-XXXXXX").string();
        if (error || !::mkdtemp(name.data())) return fail("no temporary folder can be made.", "Check $TMPDIR and the disk's free space.");
        return TemporaryFolder(name);
    }
    TemporaryFolder(TemporaryFolder&& other) noexcept : m_path(std::exchange(other.m_path, {})) {}
    TemporaryFolder& operator=(TemporaryFolder&&) = delete;
    ~TemporaryFolder() {
        std::error_code error;
        if (!m_path.empty()) std::filesystem::remove_all(m_path, error);
    }
    const std::filesystem::path& path() const { return m_path; }

private:
    explicit TemporaryFolder(std::filesystem::path path) : m_path(std::move(path)) {}
    std::filesystem::path m_path;
};

} // namespace celloom::app
