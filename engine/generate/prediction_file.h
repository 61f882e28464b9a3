// Prediction from a file to a file: prompts in, JSON Lines out, resumed where an earlier call ended. It does not generate.
#pragma once

#include "engine/text/chat_template.h"
#include "models/base/result.h"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace celloom::engine {

struct PromptRow {
    std::string prompt;
    std::string fields; // the row as a JSON object, whose fields the result repeats; empty for a text file
    std::vector<ChatMessage> messages = {}; // of an instruction file: what is asked, with what stands before it
    std::string expected = {};              // of an instruction file: the answer
};

struct PromptFile {
    std::vector<PromptRow> rows;
    std::string encoding; // as decodeText tells it
    std::string sha256;
    std::string format = {}; // of an instruction file, for people
    [[nodiscard]] bool areQuestions() const { return !format.empty(); }
};

/// A .jsonl file: an object a line with the prompt under "prompt", other fields free. Any other name (with `isText` every one): text, a prompt a
/// line; an empty line is the start of a document. Errors name the row.
Result<PromptFile> readPrompts(const std::filesystem::path& path, const std::string& encoding = "auto", bool isText = false);

/// The results so far. Beside it, NAME.settings.json keeps what they were made with, so that a file never mixes two models or settings.
class PredictionFile {
public:
    /// Creates the file, or opens it to go on: what it was made with must equal `settings` (a JSON object), its lines must be whole and in
    /// order, and a line that was cut off is removed. Refuses a file of other origin, and one that another process is writing.
    static Result<PredictionFile> open(const std::filesystem::path& path, const std::string& settings);
    PredictionFile(PredictionFile&& other) noexcept;
    PredictionFile& operator=(PredictionFile&&) = delete;
    ~PredictionFile();

    std::int64_t rows() const { return m_rows; } // complete ones

    /// One result after the other, on the disk when it returns. `values` are JSON objects: the line is row, the prompt row's fields, then these.
    Status append(const std::vector<PromptRow>& prompts, const std::vector<std::string>& values);

private:
    PredictionFile(std::filesystem::path path, int descriptor) : m_path(std::move(path)), m_descriptor(descriptor) {}
    Status readRows();
    Status checkSettings(const std::string& settings);

    std::filesystem::path m_path;
    int m_descriptor = -1;
    std::int64_t m_rows = 0;
};

} // namespace celloom::engine
