// manifest.json: size and SHA-256 of every file in a folder. Knows nothing about what the files mean.
#pragma once

#include "models/base/result.h"

#include <filesystem>

namespace celloom::engine {

/// Hashes every regular file of the folder (not of its sub-folders) and writes manifest.json beside them, atomically.
Status writeManifest(const std::filesystem::path& folder);

/// Every file that manifest.json lists is there, with its size and hash. The error names the first file that is not.
Status verifyManifest(const std::filesystem::path& folder);

} // namespace celloom::engine
