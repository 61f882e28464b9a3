#include "engine/data/sources.h"

#include "engine/text/encoding.h"
#include "models/base/files.h"
#include "models/base/text.h"

#include <algorithm>
#include <glob.h>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

namespace celloom::engine {
namespace fs = std::filesystem;
using nlohmann::json;
namespace {

void normaliseLineEnds(std::string& text) {
    std::size_t to = 0;
    for (std::size_t from = 0; from < text.size(); ++from)
        if (text[from] != '\r' || from + 1 == text.size() || text[from + 1] != '\n') text[to++] = text[from];
    text.resize(to);
}

bool isBlank(std::string_view line) { return line.find_first_not_of(" \t") == std::string_view::npos; }

void addDocuments(const std::string& text, DocumentUnit unit, std::vector<std::string>& out) {
    const auto add = [&](std::string document) {
        if (!isBlank(document) && document.find_first_not_of(" \t\n") != std::string::npos) out.push_back(std::move(document));
    };
    if (unit == DocumentUnit::File) return add(text);
    std::string block;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = std::min(text.find('\n', at), text.size());
        const std::string line = text.substr(at, end - at);
        at = end + 1;
        if (unit == DocumentUnit::Paragraph) {
            add(line);
        } else if (isBlank(line)) {
            add(std::exchange(block, {}));
        } else {
            block += line + "\n";
        }
    }
    add(std::move(block));
}

Result<std::vector<fs::path>> filesIn(const fs::path& folder, const std::string& field, const std::vector<std::string>& endings) {
    std::vector<fs::path> out;
    std::error_code error;
    for (auto it = fs::recursive_directory_iterator(folder, error); !error && it != fs::recursive_directory_iterator(); it.increment(error))
        if (it->is_regular_file() && std::find(endings.begin(), endings.end(), it->path().extension()) != endings.end()) out.push_back(it->path());
    if (error) return fail("cannot be listed: " + error.message() + ".", {}, field + ": " + folder.string());
    if (out.empty()) return fail("holds no file that ends in " + joined(endings) + ".", "Name the files, or give a pattern.", field + ": " + folder.string());
    return out;
}

} // namespace

Result<std::vector<fs::path>> expandFiles(const std::vector<std::string>& entries, const std::string& field, const std::vector<std::string>& endings) {
    std::set<fs::path> out; // sorted, so that the order does not hang on the file system
    for (const std::string& entry : entries) {
        if (fs::is_directory(entry)) {
            CELLOOM_TRY(files, filesIn(entry, field, endings));
            out.insert(files.begin(), files.end());
            continue;
        }
        if (fs::exists(entry)) {
            out.insert(entry);
            continue;
        }
        glob_t found{};
        const int code = ::glob(entry.c_str(), GLOB_NOSORT, nullptr, &found);
        const std::unique_ptr<glob_t, void (*)(glob_t*)> closer(&found, ::globfree);
        if (code != 0) return fail("no such file: \"" + entry + "\".", "Check the spelling of the path.", field);
        for (std::size_t i = 0; i < found.gl_pathc; ++i)
            if (fs::is_regular_file(found.gl_pathv[i])) out.insert(found.gl_pathv[i]);
    }
    return std::vector<fs::path>(out.begin(), out.end());
}

Result<TextCorpus> readText(const std::vector<fs::path>& files, DocumentUnit unit, const std::string& encoding) {
    TextCorpus corpus;
    for (const fs::path& path : files) {
        CELLOOM_TRY(bytes, readFile(path, 4ull << 30));
        CELLOOM_TRY(decoded, decodeText(bytes, path.string(), encoding));
        corpus.files.push_back({path, sha256(bytes), static_cast<std::int64_t>(bytes.size()), decoded.encoding});
        normaliseLineEnds(decoded.text);
        const std::size_t before = corpus.documents.size();
        addDocuments(decoded.text, unit, corpus.documents);
        if (corpus.documents.size() == before) return fail("holds no text.", "Take it out of the list.", path.string());
    }
    return corpus;
}

std::string toJson(const std::vector<CorpusFile>& files) {
    json out = json::array();
    for (const CorpusFile& file : files)
        out.push_back({{"path", file.path.string()}, {"sha256", file.sha256}, {"bytes", file.sizeBytes}, {"encoding", file.encoding}});
    return out.dump(2) + "\n";
}

Result<std::vector<CorpusFile>> corpusFromJson(const std::string& text, const std::string& place) {
    try {
        std::vector<CorpusFile> files;
        const json in = json::parse(text);
        for (const json& file : in) files.push_back({file.at("path").get<std::string>(), file.at("sha256"), file.at("bytes"), file.at("encoding")});
        return files;
    } catch (const json::exception& error) {
        return fail(std::string("is damaged: ") + error.what() + ".", {}, place);
    }
}

Status checkUnchanged(const std::vector<CorpusFile>& before, const std::vector<CorpusFile>& now) {
    const std::string hint = "A resumed run continues in the middle of its data: put the files back as they were, or start a new run.";
    for (const CorpusFile& old : before) {
        const auto found = std::find_if(now.begin(), now.end(), [&](const CorpusFile& file) { return file.path == old.path; });
        if (found == now.end()) return fail("is no longer among the run's files.", hint, old.path.string());
        if (found->sha256 != old.sha256)
            return fail("has changed since the run began (" + std::to_string(old.sizeBytes) + " bytes then, " + std::to_string(found->sizeBytes) + " now).",
                        hint, old.path.string());
    }
    for (const CorpusFile& file : now)
        if (std::none_of(before.begin(), before.end(), [&](const CorpusFile& old) { return old.path == file.path; }))
            return fail("was not among the run's files when it began.", hint, file.path.string());
    return {};
}

} // namespace celloom::engine
