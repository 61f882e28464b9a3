// A plugin's file before anything of it runs: its bytes, their hash, and the stamp that lies in it. Knows no LibTorch.
#pragma once

#include "models/base/result.h"

#include <filesystem>
#include <string>

namespace celloom::engine {

struct PluginFile {
    std::string bytes, sha256;
    std::string stamp; // what it was built for: "interface 1; celloom 0.1.0; libtorch 2.11.0; …"
};

/// Reads it. A file that is no shared library of this kind of machine, or has no stamp or several, is refused.
Result<PluginFile> readPluginFile(const std::filesystem::path& path);

/// Fails unless the stamp is this engine's; says which parts differ.
Status checkStamp(const std::string& stamp);

/// What this engine was built for.
std::string engineStamp();

} // namespace celloom::engine
