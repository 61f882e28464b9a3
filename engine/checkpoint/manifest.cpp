#include "engine/checkpoint/manifest.h"

#include "models/base/files.h"
#include "models/graph/json_text.h"

#include <nlohmann/json.hpp>

namespace celloom::engine {
namespace fs = std::filesystem;
using nlohmann::json;
namespace {

constexpr const char* kName = "manifest.json";

Status verifyFile(const fs::path& path, const json& expected) {
    if (!expected.is_object() || !expected.contains("bytes") || !expected["bytes"].is_number_unsigned() || !expected.contains("sha256") ||
        !expected["sha256"].is_string())
        return fail("its manifest entry is damaged.", {}, path.string());
    std::error_code code;
    const auto bytes = fs::file_size(path, code);
    if (code) return fail("is listed in manifest.json but is not there.", "The folder is incomplete.", path.string());
    if (bytes != expected["bytes"].get<std::uintmax_t>())
        return fail("is " + std::to_string(bytes) + " bytes long, its manifest says " + expected["bytes"].dump() + ".",
                    "The file is damaged: use another checkpoint.", path.string());
    CELLOOM_TRY(hash, sha256OfFile(path));
    if (hash != expected["sha256"].get<std::string>())
        return fail("does not have the checksum that manifest.json gives.", "The file is damaged: use another checkpoint.", path.string());
    return {};
}

} // namespace

Status writeManifest(const fs::path& folder) {
    json files = json::object();
    std::error_code code;
    for (fs::directory_iterator item(folder, code), end; !code && item != end; item.increment(code)) {
        if (!item->is_regular_file() || item->path().filename() == kName) continue;
        CELLOOM_TRY(hash, sha256OfFile(item->path()));
        files[item->path().filename().string()] = {{"bytes", item->file_size(code)}, {"sha256", hash}};
    }
    if (code) return fail("cannot be listed: " + code.message() + ".", {}, folder.string());
    return writeFileAtomically(folder / kName, json{{"files", files}}.dump(2) + "\n");
}

Status verifyManifest(const fs::path& folder) {
    CELLOOM_TRY(text, readFile(folder / kName, 16 << 20));
    const json manifest = graph::parseJson(text, (folder / kName).string()).value_or(json());
    if (!manifest.is_object() || !manifest.contains("files") || !manifest["files"].is_object())
        return fail("is no manifest.", "The folder is damaged: use another checkpoint.", (folder / kName).string());
    for (const auto& [name, expected] : manifest["files"].items()) {
        if (name.empty() || fs::path(name).filename() != name || name == "..")
            return fail("lists \"" + name + "\", which is no plain file name.", {}, (folder / kName).string());
        CELLOOM_TRY_STATUS(verifyFile(folder / name, expected));
    }
    return {};
}

} // namespace celloom::engine
