#include "models/library/workspace_library.h"

#include "models/base/file_lock.h"
#include "models/base/files.h"
#include "models/base/text.h"
#include "models/catalog/catalog.h"
#include "models/graph/json.h"
#include "models/graph/json_text.h"
#include "models/graph/plan.h"
#include "models/graph/problems.h"
#include "models/library/standard.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fcntl.h>
#include <set>
#include <thread>
#include <unistd.h>
#include <utility>

namespace celloom::library {
namespace fs = std::filesystem;
namespace {

using graph::Document;
using graph::Graph;

constexpr std::size_t kMaxEntries = 1000;
constexpr const char* kEnding = ".cells.json";

/// Held while a version is written.
class Lock {
public:
    static Result<Lock> take(const fs::path& folder) {
        const fs::path path = folder / ".lock";
        Lock out(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
        if (out.m_descriptor < 0) return fail("the library cannot be written: " + std::string(std::strerror(errno)) + ".", {}, path.string());
        for (int attempt = 0; attempt < 50; ++attempt) {
            if (lockWholeFile(out.m_descriptor)) return out;
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
        }
        return fail("another program is saving to the library.", "Try again in a moment.", folder.string());
    }
    Lock(Lock&& other) noexcept : m_descriptor(std::exchange(other.m_descriptor, -1)) {}
    Lock& operator=(Lock&&) = delete;
    ~Lock() {
        if (m_descriptor >= 0) ::close(m_descriptor);
    }

private:
    explicit Lock(int descriptor) : m_descriptor(descriptor) {}
    int m_descriptor;
};

/// "Block" and 0 of "Block.cells.json", "Block" and 2 of "Block@2.cells.json"; an empty name for other files.
std::pair<std::string, std::int64_t> parted(const std::string& file) {
    if (!file.ends_with(kEnding)) return {};
    std::string name = file.substr(0, file.size() - std::strlen(kEnding));
    std::int64_t version = 0;
    if (const auto at = name.find('@'); at != std::string::npos) {
        if (!readNumber(std::string_view(name).substr(at + 1), version) || version < 1) return {};
        name.resize(at);
    }
    return {name, version};
}

/// Every file of the folder with its parts; a folder that is not there has none.
std::vector<std::pair<std::string, std::int64_t>> filesIn(const fs::path& folder) {
    std::vector<std::pair<std::string, std::int64_t>> out;
    std::error_code error;
    for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
        if (auto parts = parted(at->path().filename().string()); !parts.first.empty()) out.push_back(std::move(parts));
    return out;
}

/// The composite as a document of its own.
Document cutOut(const Document& document, const std::string& composite) {
    Document out;
    out.main = document.composites.at(composite);
    for (const std::string& name : neededBy(document, out.main)) out.composites[name] = document.composites.at(name);
    return out;
}

/// Types that are nowhere would make an entry that works in one document alone.
Status checkTypes(const Document& entry) {
    const auto check = [&](const Graph& graph, const std::string& where) -> Status {
        for (const graph::Cell& cell : graph.cells)
            if (!entry.composites.contains(cell.type) && !catalog::find(cell.type))
                return fail("There is no cell type " + inQuotes(cell.type) + ".", "Remove the cell, or give it another type.", where + cell.name);
        return {};
    };
    CELLOOM_TRY_STATUS(check(entry.main, ""));
    for (const auto& [name, graph] : entry.composites) CELLOOM_TRY_STATUS(check(graph, name + "/"));
    return {};
}

Status checkName(const std::string& name) {
    if (!graph::isCellName(name)) return fail("The library cannot hold an entry named " + inQuotes(name) + ".", "Names are letters, digits, _ and -.", name);
    if (catalog::find(name)) return fail(name + " is a type of the catalogue.", "Choose another name.", name);
    if (findStandard(name)) return fail(name + " is an entry of the standard library.", "Choose another name for your own.", name);
    return {};
}

} // namespace

fs::path WorkspaceLibrary::newestFile(const std::string& name) const {
    return m_folder / (name + kEnding);
}
fs::path WorkspaceLibrary::olderFile(const std::string& name, std::int64_t version) const {
    return m_folder / (name + "@" + std::to_string(version) + kEnding);
}

std::vector<std::int64_t> WorkspaceLibrary::olderVersions(const std::string& name) const {
    std::vector<std::int64_t> out;
    for (const auto& [other, version] : filesIn(m_folder))
        if (other == name && version > 0) out.push_back(version);
    std::sort(out.begin(), out.end());
    return out;
}

/// A file that was put there by hand, or brought back from an older version, follows those that are numbered.
Result<std::int64_t> WorkspaceLibrary::newestVersion(const std::string& name, const Document& newest) const {
    const auto older = olderVersions(name);
    const std::int64_t last = older.empty() ? 0 : older.back();
    const auto& origin = newest.main.origin;
    if (origin && origin->library == kWorkspace && origin->name == name && origin->version > last) return origin->version;
    if (last == 0) return 1;
    CELLOOM_TRY(numbered, readFile(olderFile(name, last), graph::JsonLimits{}.maxBytes));
    return graph::toJson(newest) == numbered ? last : last + 1; // the same: saving was cut off between its two steps
}

std::vector<std::int64_t> WorkspaceLibrary::versions(const std::string& name) const {
    std::vector<std::int64_t> out = olderVersions(name);
    if (const auto newest = load(name); newest && (out.empty() || out.back() < newest->version)) out.push_back(newest->version);
    return out;
}

Result<WorkspaceLibrary::Opened> WorkspaceLibrary::openNewest(const std::string& name) const {
    std::error_code code;
    if (fs::exists(newestFile(name), code)) {
        CELLOOM_TRY(document, graph::loadDocument(newestFile(name)));
        CELLOOM_TRY(version, newestVersion(name, document));
        return Opened{std::move(document), version, newestFile(name)};
    }
    const auto older = olderVersions(name);
    if (older.empty()) return fail("The library of the workspace has no " + inQuotes(name) + ".", "library list shows what there is.", m_folder.string());
    CELLOOM_TRY(document, graph::loadDocument(olderFile(name, older.back())));
    return Opened{std::move(document), older.back(), olderFile(name, older.back())};
}

Result<WorkspaceLibrary::Opened> WorkspaceLibrary::openVersion(const std::string& name, std::int64_t version) const {
    std::error_code code;
    if (fs::exists(olderFile(name, version), code)) {
        CELLOOM_TRY(document, graph::loadDocument(olderFile(name, version)));
        return Opened{std::move(document), version, olderFile(name, version)};
    }
    CELLOOM_TRY(newest, openNewest(name));
    if (newest.version == version) return newest;
    return fail(name + " has no version " + std::to_string(version) + " in the library.", "library show tells the versions.", m_folder.string());
}

Result<Entry> WorkspaceLibrary::load(const std::string& name, std::int64_t version) const {
    if (!graph::isCellName(name)) return fail("No entry of the library can be named " + inQuotes(name) + ".", {}, m_folder.string());
    CELLOOM_TRY(opened, version == 0 ? openNewest(name) : openVersion(name, version));
    const auto at = [&](const Error& error) { return fail(error.message, error.hint, opened.file.string() + (error.place.empty() ? "" : ": " + error.place)); };
    if (auto digest = digestOf(opened.document); !digest) return at(digest.error());
    if (auto status = checkTypes(opened.document); !status) return at(status.error());
    Entry out;
    out.library = kWorkspace;
    out.name = name;
    out.version = opened.version;
    out.category = "My cells";
    out.document = std::move(opened.document);
    out.document.main.origin = out.origin();
    return out;
}

Listing WorkspaceLibrary::list() const {
    Listing out;
    std::set<std::string> names;
    for (const auto& [name, version] : filesIn(m_folder)) {
        if (names.size() == kMaxEntries && !names.contains(name)) {
            out.damaged.push_back({m_folder, {"The folder holds more than " + std::to_string(kMaxEntries) + " entries; the others are left out.", {}, {}}});
            break;
        }
        names.insert(name);
    }
    for (const std::string& name : names) {
        auto entry = load(name);
        if (entry) out.entries.push_back(std::move(*entry));
        else out.damaged.push_back({newestFile(name), entry.error()});
    }
    return out;
}

/// Walks over the library's own entries that the document has copies of, and those that their newest versions have.
Status WorkspaceLibrary::checkContents(const Document& entry, const std::string& name) const {
    std::set<std::string> seen;
    std::vector<std::pair<std::string, std::string>> open; // name, by which way
    const auto add = [&](const Document& document, const std::string& way) {
        for (const auto& [type, graph] : document.composites)
            if (graph.origin && graph.origin->library == kWorkspace && seen.insert(graph.origin->name).second)
                open.emplace_back(graph.origin->name, way + " -> " + graph.origin->name);
    };
    add(entry, name);
    while (!open.empty()) {
        const auto [inner, way] = open.back();
        open.pop_back();
        if (inner == name)
            return fail("The entry would contain itself: " + way + ".", "Save it under another name, or remove that composite from it.", name);
        if (const auto loaded = load(inner)) add(loaded->document, way); // one that is gone contains nothing more
    }
    return {};
}

Result<Saved> WorkspaceLibrary::save(const Document& document, const std::string& composite, const std::string& name) const {
    if (!document.composites.contains(composite)) {
        std::vector<std::string> known;
        for (const auto& [other, graph] : document.composites) known.push_back(other);
        return fail("The document has no composite " + inQuotes(composite) + ".", graph::didYouMean(composite, known, "composites"), composite);
    }
    const std::string entryName = name.empty() ? composite : name;
    CELLOOM_TRY_STATUS(checkName(entryName));
    CELLOOM_TRY_STATUS(digestOf(document, composite));
    Document entry = cutOut(document, composite);
    CELLOOM_TRY_STATUS(checkTypes(entry));
    CELLOOM_TRY_STATUS(checkContents(entry, entryName));
    entry.main.name = entryName;
    return write(std::move(entry), entryName);
}

Result<Saved> WorkspaceLibrary::write(Document entry, const std::string& name) const {
    std::error_code code;
    fs::create_directories(m_folder, code);
    if (code) return fail("the library's folder cannot be made: " + code.message() + ".", {}, m_folder.string());
    CELLOOM_TRY(lock, Lock::take(m_folder));
    Saved out{{kWorkspace, name, 1}, true, graph::expand(entry).problems};
    const bool isThere = fs::exists(newestFile(name), code);
    if (isThere || !olderVersions(name).empty()) {
        CELLOOM_TRY(newest, load(name)); // a damaged one is not written over
        out.isNewVersion = *digestOf(newest.document) != *digestOf(entry);
        out.origin.version = newest.version + (out.isNewVersion ? 1 : 0);
        if (out.isNewVersion && isThere) {
            CELLOOM_TRY_STATUS(writeFileAtomically(olderFile(name, newest.version), graph::toJson(newest.document)));
        }
    }
    entry.main.origin = out.origin;
    CELLOOM_TRY_STATUS(writeFileAtomically(newestFile(name), graph::toJson(entry)));
    return out;
}

Status WorkspaceLibrary::remove(const std::string& name) const {
    std::vector<fs::path> files;
    for (const auto& [other, version] : filesIn(m_folder))
        if (other == name) files.push_back(version == 0 ? newestFile(name) : olderFile(name, version));
    if (files.empty()) return fail("The library of the workspace has no " + inQuotes(name) + ".", {}, m_folder.string());
    CELLOOM_TRY(lock, Lock::take(m_folder));
    std::sort(files.rbegin(), files.rend(), [](const fs::path& a, const fs::path& b) { return a.native().size() < b.native().size(); });
    for (const fs::path& file : files) { // the newest, with the shortest name, last: an entry that is half deleted is still there
        std::error_code code;
        if (!fs::remove(file, code) && code) return fail("cannot be deleted: " + code.message() + ".", {}, file.string());
    }
    return syncFolder(m_folder);
}

} // namespace celloom::library
