// Prompts of a file: lines of text, JSON Lines with "prompt", or the questions of an instruction file.
#pragma once

#include "engine/data/instructions.h"
#include "engine/generate/prediction_file.h"

namespace celloom::engine {

struct PromptSource {
    std::filesystem::path path;
    std::string encoding = "auto";
    /// "text": a prompt a line. "alpaca", "sharegpt", "messages": instructions, whose last questions are asked. "auto": .json is instructions, .jsonl too
    /// unless its first row has a "prompt"; any other name is text.
    std::string format = "auto";
    InstructionColumns columns; // of an alpaca file with names of its own
};

/// As readPrompts, and instruction files: each row's messages up to its last question, and the answer as "expected" among its fields.
Result<PromptFile> readPromptFile(const PromptSource& source);

} // namespace celloom::engine
