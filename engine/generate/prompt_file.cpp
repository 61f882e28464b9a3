#include "engine/generate/prompt_file.h"

#include "engine/text/encoding.h"
#include "models/base/files.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace celloom::engine {
namespace {

bool isInstructionFormat(const std::string& format) { return format == "alpaca" || format == "sharegpt" || format == "messages"; }

/// Whether the first row of a .jsonl file is a prompt to continue. Nothing is refused here: who reads the file says what is wrong with it.
Result<bool> hasPrompts(const PromptSource& source) {
    if (source.columns.isGiven()) return false;
    CELLOOM_TRY(bytes, readFile(source.path));
    CELLOOM_TRY(decoded, decodeText(bytes, source.path.string(), source.encoding));
    const std::size_t first = std::min(decoded.text.find_first_not_of(" \t\r\n"), decoded.text.size());
    const auto row = nlohmann::json::parse(decoded.text.substr(first, decoded.text.find('\n', first) - first), nullptr, false);
    if (!row.is_object() || row.contains("prompt")) return true;
    constexpr const char* kKeys[] = {"messages", "conversations", "instruction", "question", "query"};
    return std::none_of(std::begin(kKeys), std::end(kKeys), [&](const char* key) { return row.contains(key); });
}

Result<PromptFile> readQuestions(const PromptSource& source) {
    CELLOOM_TRY(read, readInstructions({source.path}, instructionFormatNamed(source.format), source.columns, source.encoding));
    if (read.conversations.empty()) return fail("holds no question.", "Give rows of instructions.", source.path.string());
    PromptFile out{{}, read.files[0].encoding, read.files[0].sha256, read.formats[0]};
    for (Conversation& one : read.conversations) {
        const std::string answer = one.messages.back().text;
        one.messages.pop_back();
        const std::string question = one.messages.back().text;
        out.rows.push_back({question, nlohmann::ordered_json{{"prompt", question}, {"expected", answer}}.dump(), std::move(one.messages), answer});
    }
    return out;
}

} // namespace

Result<PromptFile> readPromptFile(const PromptSource& source) {
    const std::string ending = source.path.extension().string();
    bool areQuestions = isInstructionFormat(source.format) || (source.format == "auto" && ending == ".json");
    if (source.format == "auto" && ending == ".jsonl") {
        CELLOOM_TRY(arePrompts, hasPrompts(source));
        areQuestions = !arePrompts;
    }
    return areQuestions ? readQuestions(source) : readPrompts(source.path, source.encoding, source.format == "text");
}

} // namespace celloom::engine
