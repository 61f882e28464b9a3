#include "engine/generate/text_generator.h"

#include "engine/generate/stop_text.h"
#include "models/base/text.h"

#include <chrono>

namespace celloom::engine {
namespace {

/// One text while it comes.
struct Stream {
    StreamDecoder decoder;
    StopText stop;
    std::string text;

    std::string push(std::int64_t id, int vocabulary) {
        return id < vocabulary ? stop.push(decoder.push(id)) : std::string(); // rows of the embedding that stand for no word
    }
};

Status checkStops(const TextRequest& request) {
    for (const std::string& stop : request.stopTexts) {
        if (stop.empty()) return fail("a stop text is empty.", "Give at least one character.");
        if (!isUtf8(stop)) return fail("a stop text is no UTF-8 text.");
    }
    return {};
}

} // namespace

double GenerationSpeed::tokensPerSecond() const {
    return newTokens > texts && newSeconds > 0 ? static_cast<double>(newTokens - texts) / newSeconds : 0;
}

std::vector<std::int64_t> TextGenerator::encode(const std::string& text) const {
    std::vector<std::int64_t> ids = m_tokenizer.encode(text);
    if (ids.empty() && m_tokenizer.eos() >= 0) ids.push_back(m_tokenizer.eos());
    return ids;
}

Result<std::vector<TextResult>> TextGenerator::generate(const std::vector<TextRequest>& requests, const TextOptions& options) {
    using Clock = std::chrono::steady_clock;
    const auto start = Clock::now();
    auto first = start;
    m_speed = {};
    std::vector<TokenRequest> tokenRequests;
    std::vector<Stream> streams;
    for (const TextRequest& request : requests) {
        CELLOOM_TRY_STATUS(checkStops(request));
        tokenRequests.push_back({request.prompt, request.sampling});
        streams.push_back({StreamDecoder(m_tokenizer, request.prompt), StopText(request.stopTexts), {}});
        m_speed.promptTokens += static_cast<std::int64_t>(request.prompt.size());
    }
    GenerateOptions tokenOptions{.useCache = options.useCache};
    tokenOptions.isCancelled = options.isCancelled;
    tokenOptions.onToken = [&](std::size_t index, const NewToken& token) {
        if (m_speed.newTokens++ == 0) first = Clock::now();
        Stream& stream = streams[index];
        const std::string delta = stream.push(token.id, m_tokenizer.vocabSize());
        stream.text += delta;
        const bool goesOn = !options.onDelta || options.onDelta(index, delta, &token);
        return goesOn && !stream.stop.isFound();
    };
    CELLOOM_TRY(results, generateTokens(m_network, tokenRequests, tokenOptions));
    m_speed.promptSeconds = std::chrono::duration<double>(first - start).count();
    m_speed.newSeconds = std::chrono::duration<double>(Clock::now() - first).count();

    std::vector<TextResult> out;
    for (std::size_t i = 0; i < results.size(); ++i) {
        Stream& stream = streams[i];
        const std::string rest = stream.stop.push(stream.decoder.finish()) + stream.stop.finish();
        stream.text += rest;
        if (options.onDelta && !rest.empty()) options.onDelta(i, rest, nullptr);
        m_speed.texts += results[i].tokens.empty() ? 0 : 1;
        const Finish finish = stream.stop.isFound() ? Finish::StopText : results[i].finish;
        out.push_back({std::move(stream.text), std::move(results[i].tokens), finish});
    }
    return out;
}

} // namespace celloom::engine
