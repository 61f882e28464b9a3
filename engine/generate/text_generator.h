// Text from a network and its tokenizer: prompts in a batch, streamed in whole characters, ended by tokens or by strings.
#pragma once

#include "engine/generate/generate.h"
#include "engine/text/tokenizer.h"

#include <functional>
#include <string>
#include <vector>

namespace celloom::engine {

struct TextRequest {
    std::vector<std::int64_t> prompt; // TextGenerator::encode, or a chat template's ids
    SamplingOptions sampling;         // with the model's end ids among its stop tokens
    std::vector<std::string> stopTexts; // the text ends before the first of these; none is ever shown, not even in part
};

struct TextResult {
    std::string text; // all that was shown
    std::vector<NewToken> tokens;
    Finish finish = Finish::Length;
};

struct TextOptions {
    bool useCache = true;
    /// Called with each token and the characters that may be shown because of it (none while a character or a stop string may be
    /// unfinished); a last call without a token brings what was held back. False ends that text.
    std::function<bool(std::size_t request, const std::string& delta, const NewToken* token)> onDelta;
    /// Looked at before each step; true ends all texts.
    std::function<bool()> isCancelled;
};

struct GenerationSpeed {
    std::int64_t promptTokens = 0, newTokens = 0;
    double promptSeconds = 0, newSeconds = 0; // until the first token of all; after it
    /// New tokens of all texts a second, the first of each not counted: those belong to the prompts. 0 where there are too few to tell.
    [[nodiscard]] double tokensPerSecond() const;
    std::int64_t texts = 0;
};

class TextGenerator {
public:
    /// Network and tokenizer are used, not owned.
    TextGenerator(Network& network, const Tokenizer& tokenizer) : m_network(network), m_tokenizer(tokenizer) {}

    /// The ids of a plain text to continue. Empty: the start of a document, which follows an end token.
    std::vector<std::int64_t> encode(const std::string& text) const;

    /// Continues all prompts together.
    Result<std::vector<TextResult>> generate(const std::vector<TextRequest>& requests, const TextOptions& options = {});
    /// Of the last generate().
    const GenerationSpeed& speed() const { return m_speed; }

private:
    Network& m_network;
    const Tokenizer& m_tokenizer;
    GenerationSpeed m_speed;
};

} // namespace celloom::engine
