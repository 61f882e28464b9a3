// Instruction files as conversations. The format is detected by the keys of a file's first row and reported, or given; a row that does not
// fit is named, with its key, and nothing is imported then.
#pragma once

#include "engine/data/sources.h"
#include "engine/text/chat_template.h"

#include <map>
#include <string>
#include <vector>

namespace celloom::engine {

/// Alpaca: one question and answer a row (instruction, input, output; or prompt/response, question/answer, …, or columns of any name).
/// ShareGpt: "conversations" with from and value. Messages: "messages" with role and content, as OpenAI's.
enum class InstructionFormat { Auto, Alpaca, ShareGpt, Messages };
/// By its name in data.format; Auto where the name is none of theirs.
InstructionFormat instructionFormatNamed(const std::string& name);

/// Which keys of a row hold what, for Alpaca files with names of their own; empty: the usual names.
struct InstructionColumns {
    std::string question, input, answer, system;
    [[nodiscard]] bool isGiven() const { return !(question + input + answer + system).empty(); }
    /// "question=Frage", "answer=Antwort", …: data.columns.
    static Result<InstructionColumns> parse(const std::vector<std::string>& items);
};

struct Conversation {
    std::vector<ChatMessage> messages; // as checkConversation(…, Assistant) asks
    std::size_t file = 0;              // index into InstructionSet::files
    std::int64_t row = 0;              // from 1: a line of JSON Lines that is not blank, an entry of a JSON list
};

struct InstructionSet {
    std::vector<CorpusFile> files;
    std::vector<std::string> formats; // of each file, for people: "alpaca (instruction, input, output), JSON Lines"
    std::vector<Conversation> conversations;
};

/// Reads files of JSON (a list) or JSON Lines. All or nothing; an error names the file, and the first rows that are wrong.
Result<InstructionSet> readInstructions(const std::vector<std::filesystem::path>& files, InstructionFormat format, const InstructionColumns& columns,
                                        const std::string& encoding);

/// Messages of one conversation from a JSON text: a list of role/content or from/value, or an object with one ("messages",
/// "conversations"): what `predict --messages` reads.
Result<std::vector<ChatMessage>> messagesFromJson(const std::string& text, const std::string& place);

} // namespace celloom::engine
