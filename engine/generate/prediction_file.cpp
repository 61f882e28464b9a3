#include "engine/generate/prediction_file.h"

#include "engine/text/encoding.h"
#include "models/base/file_lock.h"
#include "models/base/files.h"
#include "models/base/text.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <unistd.h>
#include <utility>

namespace celloom::engine {
namespace fs = std::filesystem;
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kResultKeys[] = {"row", "text", "finish", "new_tokens", "tokens", "matches"};

Json parsed(const std::string& text) {
    return Json::parse(text, nullptr, false);
}

std::string dumped(const Json& json, int indent = -1) {
    return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

/// Writing a value again is recursive, so its depth is bounded.
bool isTooDeep(const std::string& line) {
    constexpr int kMaxDepth = 64;
    bool out = false;
    const Json ignored = Json::parse(
        line, [&](int depth, Json::parse_event_t, const Json&) { return !(out = out || depth > kMaxDepth); }, false);
    return out;
}

Result<PromptRow> rowOf(const std::string& line, const std::string& place) {
    if (isTooDeep(line)) return fail("nests deeper than 64 levels.", {}, place);
    const Json json = parsed(line);
    if (json.is_discarded()) return fail("is no JSON.", "A .jsonl file holds one JSON object a line.", place);
    if (!json.is_object()) return fail("is no JSON object.", "Give {\"prompt\": \"…\"} on each line.", place);
    const auto prompt = json.find("prompt");
    if (prompt == json.end())
        return fail("has no \"prompt\".",
                    "Name the text to continue \"prompt\" in every row.",
                    place);
    if (!prompt->is_string()) return fail("\"prompt\" is no text.", {}, place);
    for (const char* key : kResultKeys)
        if (json.contains(key)) return fail("has a field \"" + std::string(key) + "\", which the result would overwrite.", "Rename it.", place);
    return PromptRow{prompt->get<std::string>(), dumped(json)};
}

/// "temperature: 0.8 then, 0.7 now", for each setting that differs.
std::vector<std::string> differences(const Json& then, const Json& now) {
    std::vector<std::string> out;
    const auto shown = [](const Json& json, const std::string& key) { return json.contains(key) ? dumped(json[key]) : std::string("nothing"); };
    for (const auto& [key, value] : now.items())
        if (!then.contains(key) || then[key] != value) out.push_back(key + ": " + shown(then, key) + " then, " + shown(now, key) + " now");
    for (const auto& [key, value] : then.items())
        if (!now.contains(key)) out.push_back(key + ": " + shown(then, key) + " then, nothing now");
    return out;
}

Error systemError(const std::string& what, const fs::path& path) {
    const int code = errno;
    return {what + ": " + std::strerror(code) + ".", code == ENOSPC || code == EDQUOT ? "The disk is full: free some space and try again." : "",
            path.string()};
}

fs::path settingsOf(const fs::path& path) {
    return path.string() + ".settings.json";
}

} // namespace

Result<PromptFile> readPrompts(const fs::path& path, const std::string& encoding, bool isText) {
    CELLOOM_TRY(bytes, readFile(path));
    CELLOOM_TRY(decoded, decodeText(bytes, path.string(), encoding));
    PromptFile out{{}, decoded.encoding, sha256(bytes)};
    const bool isJson = !isText && path.extension() == ".jsonl";
    const std::string& text = decoded.text;
    for (std::size_t begin = 0, number = 1; begin < text.size(); ++number) {
        const std::size_t end = std::min(text.find('\n', begin), text.size());
        std::string line = text.substr(begin, end - begin);
        if (line.ends_with('\r')) line.pop_back();
        begin = end + 1;
        if (!isJson) {
            out.rows.push_back({std::move(line), {}});
            continue;
        }
        CELLOOM_TRY(row, rowOf(line, path.string() + ", row " + std::to_string(number)));
        out.rows.push_back(std::move(row));
    }
    if (out.rows.empty()) return fail("holds no prompt.", "Give one a line.", path.string());
    return out;
}

Result<PredictionFile> PredictionFile::open(const fs::path& path, const std::string& settings) {
    const int descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (descriptor < 0) return tl::unexpected(systemError("cannot be opened", path));
    PredictionFile out(path, descriptor);
    if (!lockWholeFile(descriptor))
        return fail("is being written by another process.", "Wait for it, or choose another name.", path.string());
    CELLOOM_TRY_STATUS(out.checkSettings(settings));
    CELLOOM_TRY_STATUS(out.readRows());
    return out;
}

PredictionFile::PredictionFile(PredictionFile&& other) noexcept
    : m_path(std::move(other.m_path)), m_descriptor(std::exchange(other.m_descriptor, -1)), m_rows(other.m_rows) {}

PredictionFile::~PredictionFile() {
    if (m_descriptor >= 0) ::close(m_descriptor);
}

Status PredictionFile::checkSettings(const std::string& settings) {
    const fs::path path = settingsOf(m_path);
    std::error_code code;
    const bool isEmpty = fs::file_size(m_path, code) == 0;
    const Json now = parsed(settings);
    CELLOOM_CHECK(now.is_object());
    if (isEmpty) return writeFileAtomically(path, dumped(now, 2) + "\n");
    if (!fs::exists(path, code))
        return fail("exists, and nothing tells what it was made with (" + path.filename().string() + " is missing).", "Choose another name.",
                    m_path.string());
    CELLOOM_TRY(text, readFile(path, 1 << 20));
    const Json then = parsed(text);
    if (!then.is_object()) return fail("is damaged.", "Choose another name for the results.", path.string());
    if (const auto found = differences(then, now); !found.empty())
        return fail("was made with other settings: " + joined(found) + ".", "Repeat the first call's settings, or choose another name.", m_path.string());
    return {};
}

Status PredictionFile::readRows() {
    CELLOOM_TRY(text, readFile(m_path, 1ull << 34));
    std::size_t begin = 0;
    for (std::size_t end = text.find('\n'); end != std::string::npos; begin = end + 1, end = text.find('\n', begin)) {
        const Json json = parsed(text.substr(begin, end - begin));
        const auto row = json.is_object() ? json.find("row") : json.end();
        if (!json.is_object() || row == json.end() || *row != m_rows + 1)
            return fail("line " + std::to_string(m_rows + 1) + " is no result of that row.", "The file was changed: choose another name.",
                        m_path.string());
        ++m_rows;
    }
    if (begin < text.size() && ::ftruncate(m_descriptor, static_cast<off_t>(begin)) != 0) // a line that a kill cut off
        return tl::unexpected(systemError("cannot be written", m_path));
    return {};
}

Status PredictionFile::append(const std::vector<PromptRow>& prompts, const std::vector<std::string>& values) {
    CELLOOM_CHECK(prompts.size() == values.size());
    std::string lines;
    for (std::size_t i = 0; i < prompts.size(); ++i) {
        Json json{{"row", m_rows + static_cast<std::int64_t>(i) + 1}};
        if (prompts[i].fields.empty()) json["prompt"] = prompts[i].prompt;
        else json.update(parsed(prompts[i].fields));
        json.update(parsed(values[i]));
        lines += dumped(json) + "\n";
    }
    for (std::string_view rest = lines; !rest.empty();) {
        const ssize_t done = ::write(m_descriptor, rest.data(), rest.size());
        if (done < 0 && errno == EINTR) continue;
        if (done < 0) return tl::unexpected(systemError("cannot be written", m_path));
        rest.remove_prefix(static_cast<std::size_t>(done));
    }
    if (::fsync(m_descriptor) != 0 && errno != EINVAL) return tl::unexpected(systemError("cannot be written", m_path));
    m_rows += static_cast<std::int64_t>(prompts.size());
    return {};
}

} // namespace celloom::engine
