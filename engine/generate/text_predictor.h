// A model that can be asked: its tokenizer, its chat template, the settings that all prompts share. Prompts one by one, or a file of them into a
// file of results. Verbs, runs of kind predict and programs use this one.
#pragma once

#include "engine/checkpoint/loaded_model.h"
#include "engine/generate/prompt_file.h"
#include "engine/generate/text_generator.h"

namespace celloom::engine {

struct PredictOptions {
    SamplingOptions sampling;            // the model's own end tokens join its stop tokens
    std::vector<std::string> stopTexts;
    std::vector<std::string> stopTokens; // by number or piece ("<eoa>")
    bool isChat = false;                 // prompts are questions, put through a chat template
    std::string chatTemplate = "auto";
    std::vector<ChatMessage> before;     // of the conversation that a question goes on with: a system message, earlier rounds
    bool useCache = true;
};

class TextPredictor {
public:
    /// The model is used, not owned. `tokenizer`: empty: the one beside the model.
    static Result<TextPredictor> create(const LoadedModel& model, PredictOptions options, const std::filesystem::path& tokenizer = {});

    /// A text to continue, or a question where the options say chat.
    [[nodiscard]] Result<TextRequest> requestFor(const std::string& prompt) const;
    /// A row of a file: one of an instruction file is a question in any case.
    [[nodiscard]] Result<TextRequest> requestFor(const PromptRow& row) const;
    [[nodiscard]] Result<TextRequest> requestFor(const std::vector<ChatMessage>& messages) const;

    Result<TextResult> predict(const TextRequest& request, const TextOptions& options = {}) const;

    [[nodiscard]] const PredictOptions& options() const { return m_options; }
    [[nodiscard]] const LoadedModel& model() const { return m_model; }
    [[nodiscard]] const Tokenizer& tokenizer() const { return *m_tokenizer; }
    [[nodiscard]] const ChatFormat* chat() const { return m_chat.get(); } // null where the model is asked no questions
    /// How many tokens a text may have with its prompt; 0: no limit.
    [[nodiscard]] std::int64_t context() const;
    /// A result as the JSON object that is written beside its prompt: text, finish, new_tokens; tokens where alternatives are asked for.
    [[nodiscard]] std::string valuesOf(const TextResult& result) const;

private:
    TextPredictor(const LoadedModel& model, PredictOptions options) : m_model(model), m_options(std::move(options)) {}
    Status setUpChat();

    const LoadedModel& m_model;
    PredictOptions m_options;
    std::unique_ptr<Tokenizer> m_tokenizer;
    std::unique_ptr<ChatFormat> m_chat;
    std::filesystem::path m_tokenizerFile;
    TextRequest m_request; // without prompt
};

/// Exact match: equal but for white space around them.
bool isSameAnswer(const std::string& answer, const std::string& expected);

struct BatchOptions {
    int batchSize = 8;
    std::string precision = {}; // said in the settings where it is not float32
    std::function<bool()> isCancelled;
    struct Progress {
        std::int64_t rows = 0, total = 0;
        double tokensPerSecond = 0;
    };
    /// Once the prompts are known to be good, and after each batch, whose rows are on the disk then.
    std::function<void(const Progress&)> onProgress;
    /// Each new result, before it is written.
    std::function<void(const PromptRow&, const TextResult&)> onResult;
};

struct BatchResult {
    std::int64_t before = 0, rows = 0, total = 0; // rows that were there, that are there now, prompts
    std::int64_t newTokens = 0;
    std::int64_t questions = 0, matches = 0; // of the new rows: with an expected answer; answered exactly so
    [[nodiscard]] bool isWhole() const { return rows == total; }
};

/// Lets the model continue every prompt and appends the results to `out` (JSON Lines), going on where an earlier call with the same settings ended.
/// A prompt that cannot be continued is told by its row before anything is written.
Result<BatchResult> predictFile(const TextPredictor& predictor, const PromptFile& prompts, const std::string& place, const std::filesystem::path& out,
                                const BatchOptions& options);

} // namespace celloom::engine
