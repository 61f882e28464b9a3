// A folder that appears complete or not at all: it is filled under a hidden name beside its target, synced and renamed.
#pragma once

#include "models/base/result.h"

#include <filesystem>

namespace celloom::engine {

/// Until commit() succeeds the target is untouched; the destructor removes what was not committed.
class AtomicFolder {
public:
    /// Makes ".NAME.partial-XXXXXX" beside the target (and the target's parent, where it is missing).
    static Result<AtomicFolder> create(const std::filesystem::path& target);
    AtomicFolder(AtomicFolder&& other) noexcept;
    AtomicFolder& operator=(AtomicFolder&&) = delete;
    ~AtomicFolder();

    /// Where to write the files.
    const std::filesystem::path& path() const { return m_path; }

    enum class Existing { Refuse, Replace };
    /// Syncs files and folder and renames. A target that exists (an empty folder excepted) is refused or, in one step, replaced.
    Status commit(Existing existing = Existing::Refuse);

    /// True for the names that create() gives: left behind only where a process was killed, safe to delete then.
    static bool isPartial(const std::filesystem::path& path);

private:
    AtomicFolder(std::filesystem::path path, std::filesystem::path target) : m_path(std::move(path)), m_target(std::move(target)) {}
    std::filesystem::path m_path, m_target;
};

} // namespace celloom::engine
