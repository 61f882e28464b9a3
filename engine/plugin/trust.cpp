#include "engine/plugin/trust.h"

#include "models/base/files.h"
#include "models/base/text.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>

namespace celloom::engine {
namespace fs = std::filesystem;
using nlohmann::json;
namespace {

constexpr const char* kFormat = "celloom-plugins";
constexpr std::uint64_t kMaxBytes = 1 << 20;

fs::path listOf(const fs::path& workspace) { return workspace / "plugins.json"; }

bool isName(const std::string& name) {
    return !name.empty() && name.size() <= 200 && name[0] != '.' && name.find('/') == std::string::npos && isUtf8(name) &&
           std::all_of(name.begin(), name.end(), [](char c) { return static_cast<unsigned char>(c) >= ' '; });
}

bool isHash(const std::string& text) {
    return text.size() == 64 && std::all_of(text.begin(), text.end(), [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

TrustedPlugin pluginFrom(const json& in) {
    TrustedPlugin out{in.at("name"), in.at("sha256"), in.at("stamp"), in.at("source"), in.at("time")};
    if (!isName(out.name) || !isHash(out.sha256)) throw std::invalid_argument("an entry has no file name or no hash");
    return out;
}

} // namespace

Result<PluginTrust> PluginTrust::open(const fs::path& workspace) {
    PluginTrust out(workspace);
    const fs::path file = listOf(workspace);
    std::error_code code;
    if (!fs::exists(file, code)) return out;
    CELLOOM_TRY(text, readFile(file, kMaxBytes));
    try {
        const json all = json::parse(text);
        if (all.at("format") != kFormat || all.at("schema") != 1) throw std::invalid_argument("another format or schema");
        for (const json& one : all.at("trusted")) out.m_all.push_back(pluginFrom(one));
    } catch (const std::exception& exception) {
        return fail("is damaged (" + std::string(exception.what()).substr(0, 120) + "), so no plugin is trusted.", "Delete it, and trust the plugins again: celloom-engine plugin trust FILE.", file.string());
    }
    return out;
}

Status PluginTrust::save() const {
    json list = json::array();
    for (const TrustedPlugin& one : m_all) list.push_back({{"name", one.name}, {"sha256", one.sha256}, {"stamp", one.stamp}, {"source", one.source}, {"time", one.time}});
    return writeFileAtomically(listOf(m_workspace), json{{"format", kFormat}, {"schema", 1}, {"trusted", list}}.dump(1) + "\n");
}

fs::path PluginTrust::pathOf(const std::string& name) const { return m_workspace / "plugins" / name; }

const TrustedPlugin* PluginTrust::withHash(const std::string& sha256) const {
    const auto found = std::find_if(m_all.begin(), m_all.end(), [&](const TrustedPlugin& one) { return one.sha256 == sha256; });
    return found == m_all.end() ? nullptr : &*found;
}

Result<TrustedPlugin> PluginTrust::trust(const fs::path& file) {
    CELLOOM_TRY(read, readPluginFile(file));
    if (auto status = checkStamp(read.stamp); !status) return fail(status.error().message, status.error().hint, file.string());
    const std::string name = file.filename().string();
    if (!isName(name)) return fail("has a name that cannot be used.", "Rename the file.", file.string());
    std::error_code code;
    fs::create_directories(m_workspace / "plugins", code);
    if (code) return fail("cannot be made: " + code.message() + ".", {}, (m_workspace / "plugins").string());
    CELLOOM_TRY_STATUS(writeFileAtomically(pathOf(name), read.bytes));
    const double now = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
    std::erase_if(m_all, [&](const TrustedPlugin& one) { return one.name == name; });
    m_all.push_back({name, read.sha256, read.stamp, fs::absolute(file, code).string(), now});
    CELLOOM_TRY_STATUS(save());
    return m_all.back();
}

Result<TrustedPlugin> PluginTrust::untrust(const std::string& nameOrHash) {
    const auto found = std::find_if(m_all.begin(), m_all.end(), [&](const TrustedPlugin& one) { return one.name == nameOrHash || one.sha256 == nameOrHash; });
    if (found == m_all.end()) {
        std::vector<std::string> names;
        for (const TrustedPlugin& one : m_all) names.push_back(one.name);
        return fail("No trusted plugin is called " + inQuotes(nameOrHash) + ".", names.empty() ? "This workspace trusts none." : "There are " + joined(names) + ".");
    }
    const TrustedPlugin out = *found;
    m_all.erase(found);
    CELLOOM_TRY_STATUS(save());
    std::error_code code;
    fs::remove(pathOf(out.name), code);
    if (code) return fail("is trusted no longer, but its copy could not be deleted: " + code.message() + ".", {}, pathOf(out.name).string());
    return out;
}

Result<PluginFile> PluginTrust::readTrusted(const std::string& library) const {
    constexpr const char* kHint = "Look at where the file comes from, then: celloom-engine plugin trust FILE.";
    const bool isPath = library.starts_with('/');
    if (!isPath && !isName(library)) return fail("The library " + inQuotes(library) + " is neither a file name nor a whole path.", "Name a trusted library, such as gated.so.");
    const auto known = std::find_if(m_all.begin(), m_all.end(), [&](const TrustedPlugin& one) { return one.name == library; });
    if (!isPath && known == m_all.end()) return fail("The library " + inQuotes(library) + " is not trusted in this workspace.", kHint);
    CELLOOM_TRY(file, readPluginFile(isPath ? fs::path(library) : pathOf(library)));
    if (isPath && !withHash(file.sha256)) return fail("The library " + inQuotes(library) + " is not trusted in this workspace, or has changed since.", kHint);
    if (!isPath && known->sha256 != file.sha256)
        return fail("The library " + inQuotes(library) + " has changed since it was trusted: its SHA-256 is " + file.sha256.substr(0, 16) + "…, that of the trusted file " +
                        known->sha256.substr(0, 16) + "….", kHint);
    if (auto status = checkStamp(file.stamp); !status) return fail("The library " + inQuotes(library) + " " + status.error().message, status.error().hint);
    return file;
}

} // namespace celloom::engine
