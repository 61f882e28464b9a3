// Files: bounded reading, atomic writing, hashing. Paths are UTF-8 std::filesystem paths.
#pragma once

#include "models/base/result.h"

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace celloom {

/// Whole file as bytes. Fails when it is missing, unreadable, a folder, or larger than maxBytes.
Result<std::string> readFile(const std::filesystem::path& path, std::uint64_t maxBytes = 1ull << 30);

/// Writes to a temporary name beside `path`, syncs, renames: readers see the old content or the new, never a part.
/// On failure the temporary file is removed and `path` is untouched.
Status writeFileAtomically(const std::filesystem::path& path, std::string_view content);
/// The same for content that lies in several places (a header and many tensors), written one after another.
Status writeFileAtomically(const std::filesystem::path& path, const std::vector<std::string_view>& pieces);

/// Syncs a folder's entry list to the disk (after a rename inside it).
Status syncFolder(const std::filesystem::path& folder);

/// SHA-256 as 64 lower-case hex digits.
std::string sha256(std::string_view content);
Result<std::string> sha256OfFile(const std::filesystem::path& path);

} // namespace celloom
