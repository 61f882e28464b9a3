#include "engine/plugin/library_file.h"

#include "models/base/files.h"
#include "models/base/text.h"

#include "engine/plugin/include/celloom/cell.h"

#include <elf.h>

#include <cstring>
#include <vector>

namespace celloom::engine {
namespace {

constexpr std::uint64_t kMaxBytes = 256ull << 20;
constexpr std::string_view kBegin = "celloom-plugin{"; // CELLOOM_PLUGIN writes it
constexpr std::size_t kMaxStamp = 200;

bool isSharedLibrary(const std::string& bytes) {
    Elf64_Ehdr header;
    if (bytes.size() < sizeof header) return false;
    std::memcpy(&header, bytes.data(), sizeof header);
    const Elf64_Half machine =
#if defined(__aarch64__)
        EM_AARCH64;
#else
        EM_X86_64;
#endif
    return std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 && header.e_ident[EI_CLASS] == ELFCLASS64 && header.e_type == ET_DYN && header.e_machine == machine;
}

std::vector<std::string> partsOf(const std::string& stamp) {
    std::vector<std::string> out(1);
    for (const char c : stamp)
        if (c == ';') out.emplace_back();
        else out.back() += c;
    for (std::string& part : out) part = trimmed(part);
    return out;
}

} // namespace

std::string engineStamp() { return CELLOOM_PLUGIN_STAMP; }

Result<PluginFile> readPluginFile(const std::filesystem::path& path) {
    CELLOOM_TRY(bytes, readFile(path, kMaxBytes));
    if (!isSharedLibrary(bytes)) return fail("is no shared library of this kind of machine.", "A plugin is a .so file, built as in docs/examples/plugin.", path.string());
    const std::size_t at = bytes.find(kBegin);
    if (at == std::string::npos) return fail("is no plugin of Celloom: it has no stamp.", "Build it with CELLOOM_PLUGIN of celloom/cell.h.", path.string());
    if (bytes.find(kBegin, at + 1) != std::string::npos) return fail("has more than one stamp.", "Write CELLOOM_PLUGIN once in a library.", path.string());
    const std::size_t begin = at + kBegin.size(), end = bytes.find('}', begin);
    if (end == std::string::npos || end - begin > kMaxStamp) return fail("has a damaged stamp.", "Build it again.", path.string());
    PluginFile out{{}, sha256(bytes), bytes.substr(begin, end - begin)};
    for (const char c : out.stamp)
        if (c < ' ' || c > '~') return fail("has a damaged stamp.", "Build it again.", path.string());
    out.bytes = std::move(bytes);
    return out;
}

Status checkStamp(const std::string& stamp) {
    if (stamp == engineStamp()) return {};
    const std::vector<std::string> theirs = partsOf(stamp), ours = partsOf(engineStamp());
    std::vector<std::string> differences;
    for (std::size_t i = 0; i < ours.size(); ++i)
        if (i >= theirs.size() || theirs[i] != ours[i]) differences.push_back((i < theirs.size() ? inQuotes(theirs[i], 40) : std::string("nothing")) + " where this engine is " + inQuotes(ours[i]));
    if (differences.empty()) differences.push_back("more than this engine knows");
    return fail("was built for " + joined(differences) + ".", "Build it again against this Celloom and its LibTorch, with this compiler, and trust the new file.");
}

} // namespace celloom::engine
