// Locks on a whole file that belong to its open file description: they end with the last process that holds it, however that ends.
#pragma once

#include <filesystem>

namespace celloom {

/// Locks the file of an open descriptor for writing, without waiting. False with errno where it cannot: EAGAIN or EACCES mean that
/// another process holds it.
bool lockWholeFile(int descriptor);

/// True where some process holds the lock. A file that is missing or cannot be read is not locked.
bool isFileLocked(const std::filesystem::path& path);

} // namespace celloom
