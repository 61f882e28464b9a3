#include "models/store/run_folder.h"

#include "models/base/files.h"
#include "models/base/text.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <sys/stat.h>
#include <unistd.h>

namespace celloom::store {
namespace fs = std::filesystem;
namespace {

constexpr std::array<const char*, 9> kStateNames{"queued",   "preparing", "running", "paused",     "stopping",
                                                 "finished", "stopped",   "failed",  "interrupted"};
constexpr const char* kLastNumberFile = ".last-number"; // in runs/
constexpr std::size_t kMaxNameBytes = 80; // of a folder's name, which may be 255 bytes long on most disks

Error folderError(const std::string& what, const fs::path& path, int code) {
    std::string hint;
    if (code == ENOSPC || code == EDQUOT)
        hint = "The disk is full: free some space and try again.";
    else if (code == EROFS || code == EACCES || code == EPERM)
        hint = "The workspace must be writable: check its permissions or choose another with --workspace.";
    else if (code == ENOTDIR)
        hint = "A part of the path is a file, not a folder.";
    return {what + ": " + std::strerror(code) + ".", hint, path.string()};
}

/// "0042-name" -> 42; 0 where the text is no such name.
int numberOf(std::string_view name) {
    const std::size_t dash = name.find('-');
    if (dash == std::string_view::npos || dash < 4 || dash + 1 == name.size()) return 0;
    int number = 0;
    const auto [end, code] = std::from_chars(name.data(), name.data() + dash, number);
    return code == std::errc() && end == name.data() + dash && number > 0 ? number : 0;
}

std::string digitsOf(int number) {
    const std::string digits = std::to_string(number);
    return digits.size() < 4 ? std::string(4 - digits.size(), '0') + digits : digits;
}

/// Letters (of any script), digits, '.', '_' and '-' stay; the rest becomes '-'. Cut at a character's border.
std::string folderName(const std::string& name) {
    std::string out;
    for (const char c : name) {
        const auto byte = static_cast<unsigned char>(c);
        const bool isKept =
            byte >= 0x80 || (byte >= '0' && byte <= '9') || ((byte | 0x20) >= 'a' && (byte | 0x20) <= 'z') || c == '.' || c == '_';
        if (isKept)
            out += c;
        else if (!out.empty() && out.back() != '-')
            out += '-';
    }
    if (out.size() > kMaxNameBytes) {
        std::size_t end = kMaxNameBytes;
        while (end > 0 && (static_cast<unsigned char>(out[end]) & 0xC0) == 0x80) --end;
        out.resize(end);
    }
    while (!out.empty() && out.back() == '-') out.pop_back();
    return out.empty() ? "run" : out;
}

/// The highest number that was ever given: that of a deleted run means no other one later. 0 where there is none.
int lastNumber(const Workspace& workspace) {
    const std::vector<RunFolder> known = workspace.allRuns();
    const int newest = known.empty() ? 0 : known.back().number();
    int given = 0;
    const auto text = readFile(workspace.runs() / kLastNumberFile, 64); // not there in workspaces of earlier versions
    return text && readNumber(std::string_view(*text).substr(0, text->find('\n')), given) ? std::max(newest, given) : newest;
}

Status makeFolder(const fs::path& path) {
    std::error_code code;
    fs::create_directories(path, code);
    if (code) return tl::unexpected(folderError("the folder cannot be made", path, code.value()));
    if (::access(path.c_str(), W_OK | X_OK) != 0) return tl::unexpected(folderError("the folder cannot be written", path, errno));
    return {};
}

} // namespace

std::string toString(RunState state) {
    return kStateNames.at(static_cast<std::size_t>(state));
}

Result<RunState> runStateFromString(const std::string& text) {
    const auto found = std::find(kStateNames.begin(), kStateNames.end(), text);
    if (found == kStateNames.end()) return fail("\"" + text + "\" is no state of a run.");
    return static_cast<RunState>(found - kStateNames.begin());
}

bool isOver(RunState state) {
    return state == RunState::Finished || state == RunState::Stopped || state == RunState::Failed || state == RunState::Interrupted;
}

int RunFolder::number() const {
    return numberOf(path.filename().string());
}
std::string RunFolder::name() const {
    return path.filename().string();
}
fs::path RunFolder::about() const {
    return path / "run.json";
}
fs::path RunFolder::recipe() const {
    return path / "recipe.json";
}
fs::path RunFolder::graph() const {
    return path / "model.cells.json";
}
fs::path RunFolder::tokenizer() const {
    return path / "tokenizer.model";
}
fs::path RunFolder::database() const {
    return path / "run.db";
}
fs::path RunFolder::log() const {
    return path / "log.txt";
}
fs::path RunFolder::exit() const {
    return path / "exit.json";
}
fs::path RunFolder::checkpoints() const {
    return path / "checkpoints";
}
fs::path RunFolder::newestCheckpoint() const {
    fs::path newest; // steps have a fixed width, so that names sort as numbers do
    std::error_code code;
    for (fs::directory_iterator entry(checkpoints(), code), end; !code && entry != end; entry.increment(code)) {
        const fs::path& folder = entry->path();
        std::error_code ignored; // what cannot be looked at is not there
        const bool isComplete = folder.filename().string().starts_with("step-") && fs::exists(folder / "manifest.json", ignored);
        if (isComplete && folder.filename() > newest.filename()) newest = folder;
    }
    return newest;
}
fs::path RunFolder::adapter() const {
    std::error_code ignored;
    for (const fs::path& folder : {path / "adapter", newestCheckpoint()})
        if (!folder.empty() && fs::exists(folder / "adapter_config.json", ignored)) return folder;
    return {};
}

fs::path Workspace::index() const {
    return path / "celloom.db";
}
fs::path Workspace::cache() const {
    return path / "cache";
}
fs::path Workspace::runs() const {
    return path / "runs";
}

Result<Workspace> Workspace::open(const fs::path& path) {
    std::error_code code;
    const fs::path absolute = fs::absolute(path, code).lexically_normal();
    if (code || path.empty()) return fail("\"" + path.string() + "\" is no usable path for a workspace.");
    CELLOOM_TRY_STATUS(makeFolder(absolute));
    Workspace workspace{fs::canonical(absolute, code)};
    if (code) return tl::unexpected(folderError("the workspace cannot be opened", absolute, code.value()));
    CELLOOM_TRY_STATUS(makeFolder(workspace.runs()));
    CELLOOM_TRY_STATUS(makeFolder(workspace.cache()));
    return workspace;
}

Result<Workspace> Workspace::openForReading(const fs::path& path) {
    std::error_code code;
    Workspace workspace{fs::canonical(path, code)};
    if (code) return fail("the workspace cannot be opened: " + code.message() + ".", "Name another with --workspace.", path.string());
    if (!fs::is_directory(workspace.runs(), code))
        return fail("is no workspace: it has no folder \"runs\".", "Name another with --workspace.", path.string());
    return workspace;
}

Result<RunFolder> Workspace::createRun(const std::string& name) const {
    const int first = lastNumber(*this) + 1;
    for (int number = first; number < first + 10000; ++number) {
        // The bare number is made first, so that two processes never hold the same one; then it gets its full name.
        const fs::path claim = runs() / digitsOf(number);
        if (::mkdir(claim.c_str(), 0777) != 0) {
            if (errno == EEXIST) continue;
            return tl::unexpected(folderError("the run's folder cannot be made", claim, errno));
        }
        const std::vector<RunFolder> now = allRuns();
        const bool isTaken = std::any_of(now.begin(), now.end(), [&](const RunFolder& run) { return run.number() == number; });
        const RunFolder folder{runs() / (digitsOf(number) + "-" + folderName(name))};
        if (const Status noted = isTaken ? Status() : writeFileAtomically(runs() / kLastNumberFile, std::to_string(number) + "\n"); !noted) {
            ::rmdir(claim.c_str());
            return tl::unexpected(noted.error());
        }
        if (!isTaken && ::rename(claim.c_str(), folder.path.c_str()) == 0) return folder;
        const int code = errno;
        ::rmdir(claim.c_str());
        if (!isTaken) return tl::unexpected(folderError("the run's folder cannot be made", folder.path, code));
    }
    return fail("no free run number was found.", "Remove stray folders that are named with digits only.", runs().string());
}

Result<RunFolder> Workspace::findRun(const std::string& text) const {
    const std::vector<RunFolder> known = allRuns();
    if (known.empty()) return fail("the workspace has no runs yet.", "Start one with: celloom-engine run RECIPE", runs().string());
    if (text == "last") return known.back();
    int number = 0;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
    const bool isNumber = code == std::errc() && end == text.data() + text.size();
    std::error_code ignored; // a path that cannot be resolved is simply no match
    const fs::path asPath = fs::weakly_canonical(text, ignored);
    for (const RunFolder& run : known)
        if (isNumber ? run.number() == number : run.name() == text || run.path == asPath) return run;
    return fail("there is no run \"" + text + "\".", "The newest is " + known.back().name() + "; celloom-engine list shows all.",
                runs().string());
}

std::vector<RunFolder> Workspace::allRuns() const {
    std::vector<RunFolder> found;
    std::error_code code;
    for (fs::directory_iterator entry(runs(), code), end; !code && entry != end; entry.increment(code))
        if (numberOf(entry->path().filename().string()) > 0 && entry->is_directory(code)) found.push_back({entry->path()});
    std::sort(found.begin(), found.end(), [](const RunFolder& a, const RunFolder& b) { return a.number() < b.number(); });
    return found;
}

} // namespace celloom::store
