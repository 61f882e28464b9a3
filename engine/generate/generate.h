// Tokens from a network: one prompt or many at once, cached, greedy or sampled, seeded, streamed. Text is text_generator.h's.
#pragma once

#include "engine/exec/network.h"
#include "engine/generate/sampling.h"

#include <functional>
#include <memory>
#include <span>

namespace celloom::engine {

/// Longest text that the model can look at when SamplingOptions::maxContext is 0: its max_positions (2048 where it has none); 0, no limit,
/// where its positions reach further by themselves (dynamic rotary scaling, ALiBi).
std::int64_t contextOf(const graph::ExpandedModel& model);

struct TokenRequest {
    std::vector<std::int64_t> prompt;
    SamplingOptions sampling;
};

/// Whether the request can be made of this model.
Status checkRequest(const TokenRequest& request, const graph::ExpandedModel& model);

/// How a text ended.
enum class Finish { Length, StopToken, StopText, ContextFull, Cancelled };
/// "length", "stop_token", "stop_text", "context", "cancelled".
const char* nameOf(Finish finish);

struct NewToken {
    std::int64_t id = 0;
    double logProbability = 0;             // of the model, before penalties and temperature; with SamplingOptions::alternatives >= 0
    std::vector<ScoredToken> alternatives; // the likeliest, likeliest first
};

struct TokenResult {
    std::vector<NewToken> tokens; // the prompt and the stop token not included
    Finish finish = Finish::Length;
};

struct GenerateOptions {
    bool useCache = true;
    /// Called with each token of each request; false ends that text (with Finish::Cancelled).
    std::function<bool(std::size_t request, const NewToken&)> onToken;
    /// Looked at before each step; true ends all texts.
    std::function<bool()> isCancelled;
    /// The network's scores [V] from which the request's next token is about to be chosen.
    std::function<void(std::size_t request, std::span<const float>)> onScores;
};

/// Continues all prompts together, shorter ones padded on the left. Up to rounding each gives what it gives alone. Requests that have grown
/// past the window of dynamic rotary scaling, or whose context slides, and models that cannot be cached (KeyValueCache::check) are computed
/// anew for each token.
Result<std::vector<TokenResult>> generateTokens(Network& network, const std::vector<TokenRequest>& requests,
                                                const GenerateOptions& options = {});

/// The same one token at a time, for whoever lets several networks write in turn. The network must outlive it, and compute with the same
/// weights and adapters each time.
class TokenGeneration {
public:
    static Result<TokenGeneration> begin(Network& network, const std::vector<TokenRequest>& requests, GenerateOptions options = {});
    TokenGeneration(TokenGeneration&&) noexcept;
    TokenGeneration& operator=(TokenGeneration&&) noexcept;
    ~TokenGeneration();

    /// One token more for each text that goes on (the first time, all prompts are computed). False where none does.
    Result<bool> advance();
    /// So far, in the order of the requests. A text that goes on has no finish yet.
    [[nodiscard]] const TokenResult& result(std::size_t request) const;

private:
    class Generator;
    explicit TokenGeneration(std::unique_ptr<Generator> generator);
    std::unique_ptr<Generator> m_generator;
};

/// One prompt's new ids. `onToken` returns false to stop.
Result<std::vector<std::int64_t>> generate(Network& network, const std::vector<std::int64_t>& prompt, const SamplingOptions& options,
                                           const std::function<bool(std::int64_t)>& onToken = {});

} // namespace celloom::engine
