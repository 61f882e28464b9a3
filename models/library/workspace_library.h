// The user's own composites, in files of the workspace: library/NAME.cells.json is the newest version of an entry, library/NAME@2.cells.json
// an older one. Each is an ordinary document whose main graph is the composite. Window and command line may use one library at a time.
#pragma once

#include "models/graph/expand.h"
#include "models/library/entry.h"

#include <filesystem>

namespace celloom::library {

struct DamagedEntry {
    std::filesystem::path file;
    Error error;
};

struct Listing {
    std::vector<Entry> entries; // the newest version of each, by name
    std::vector<DamagedEntry> damaged;
};

struct Saved {
    graph::Origin origin;
    bool isNewVersion = true;             // false: the newest version says the same
    std::vector<graph::Problem> problems; // of the entry by itself, with the values that its hyper-parameters have
};

class WorkspaceLibrary {
public:
    /// Nothing is read or made before it is asked for.
    explicit WorkspaceLibrary(const std::filesystem::path& workspace) : m_folder(workspace / "library") {}

    [[nodiscard]] const std::filesystem::path& folder() const { return m_folder; }

    /// Files that cannot be used are reported beside the others. Bounded: 1000 entries.
    [[nodiscard]] Listing list() const;
    /// The versions that are there, ascending.
    [[nodiscard]] std::vector<std::int64_t> versions(const std::string& name) const;
    /// Version 0: the newest. Refused: what is no document, composites that contain each other, types that are nowhere.
    [[nodiscard]] Result<Entry> load(const std::string& name, std::int64_t version = 0) const;

    /// Saves a composite of the document with all that it needs, as `name` (empty: its own). Where the entry is there and says something else,
    /// this is its next version, and the one before is kept. Refused: names that the catalogue or the standard library has, and an entry that
    /// would contain itself, also through others of the library. Another process that is saving: tried for half a second.
    [[nodiscard]] Result<Saved> save(const graph::Document& document, const std::string& composite, const std::string& name = {}) const;

    /// Deletes all versions. Documents that have a copy keep it.
    [[nodiscard]] Status remove(const std::string& name) const;

private:
    [[nodiscard]] std::filesystem::path newestFile(const std::string& name) const;
    [[nodiscard]] std::filesystem::path olderFile(const std::string& name, std::int64_t version) const;
    [[nodiscard]] std::vector<std::int64_t> olderVersions(const std::string& name) const;
    struct Opened {
        graph::Document document;
        std::int64_t version;
        std::filesystem::path file;
    };
    [[nodiscard]] Result<Opened> openNewest(const std::string& name) const;
    [[nodiscard]] Result<Opened> openVersion(const std::string& name, std::int64_t version) const;
    [[nodiscard]] Result<std::int64_t> newestVersion(const std::string& name, const graph::Document& newest) const;
    [[nodiscard]] Status checkContents(const graph::Document& entry, const std::string& name) const;
    [[nodiscard]] Result<Saved> write(graph::Document entry, const std::string& name) const;

    std::filesystem::path m_folder;
};

} // namespace celloom::library
