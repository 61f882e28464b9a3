// Files to documents: patterns expanded, encodings detected and reported, files hashed so that a resume notices a change.
#pragma once

#include "models/base/result.h"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace celloom::engine {

/// What a run remembers of a file it read; stored in its checkpoints.
struct CorpusFile {
    std::filesystem::path path;
    std::string sha256;
    std::int64_t sizeBytes = 0;
    std::string encoding; // "UTF-8", "GB 18030", …; "tokens" of a token file
    bool operator==(const CorpusFile&) const = default;
};

enum class DocumentUnit { File, Paragraph, BlankLine };

struct TextCorpus {
    std::vector<CorpusFile> files;
    std::vector<std::string> documents; // UTF-8, in the order of the files; none is empty
};

/// Files, folders (their files with one of the endings, at any depth) and patterns (glob(7)) as a sorted list without repetitions.
/// An entry that names nothing is an error.
Result<std::vector<std::filesystem::path>> expandFiles(const std::vector<std::string>& entries, const std::string& field,
                                                       const std::vector<std::string>& endings = {".txt", ".safetensors"});

/// Reads text files and splits them into documents. `encoding` is "auto", "utf-8", "utf-16" or "gb18030". All or nothing.
/// A paragraph is a line; a file or block keeps its line feeds. Line ends of Windows become line feeds.
Result<TextCorpus> readText(const std::vector<std::filesystem::path>& files, DocumentUnit unit, const std::string& encoding);

/// [{"path", "sha256", "bytes", "encoding"}, …]: corpus.json of a run's folder.
std::string toJson(const std::vector<CorpusFile>& files);
Result<std::vector<CorpusFile>> corpusFromJson(const std::string& text, const std::string& place);

/// Fails with the first file that is missing or no longer what `before` says; `now` may list further ones, which fails too.
Status checkUnchanged(const std::vector<CorpusFile>& before, const std::vector<CorpusFile>& now);

} // namespace celloom::engine
