// Which libraries of cells a workspace trusts: plugins.json, by the SHA-256 of each file, and its own copies in plugins/. Whoever trusts a file lets it do
// whatever he may do himself. Nothing here runs anything of a library.
#pragma once

#include "engine/plugin/library_file.h"

#include <filesystem>
#include <string>
#include <vector>

namespace celloom::engine {

struct TrustedPlugin {
    std::string name;   // "gated.so": what graphs call it, and the copy's name
    std::string sha256;
    std::string stamp;  // when it was trusted
    std::string source; // the file that was copied
    double time = 0;    // seconds since 1970
};

class PluginTrust {
public:
    /// A workspace without plugins.json trusts nothing. A damaged file is an error, and trusts nothing either.
    static Result<PluginTrust> open(const std::filesystem::path& workspace);

    /// Copies the file into the workspace and trusts that copy, in place of one of the same name. Refused: what is no plugin, or built for another engine.
    Result<TrustedPlugin> trust(const std::filesystem::path& file);
    /// By name or SHA-256; its copy is deleted.
    Result<TrustedPlugin> untrust(const std::string& nameOrHash);

    const std::vector<TrustedPlugin>& all() const { return m_all; }
    [[nodiscard]] const TrustedPlugin* withHash(const std::string& sha256) const;
    /// Where the copy of that name lies.
    [[nodiscard]] std::filesystem::path pathOf(const std::string& name) const;

    /// The library of that name (or absolute path), read, trusted, unchanged and built for this engine; else why not.
    [[nodiscard]] Result<PluginFile> readTrusted(const std::string& library) const;

private:
    explicit PluginTrust(std::filesystem::path workspace) : m_workspace(std::move(workspace)) {}
    Status save() const;

    std::filesystem::path m_workspace;
    std::vector<TrustedPlugin> m_all;
};

} // namespace celloom::engine
