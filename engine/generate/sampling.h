// Choosing the next token from the network's scores: penalties, temperature, top-k, top-p, in the order of transformers' processors.
#pragma once

#include "models/base/result.h"

#include <cstdint>
#include <random>
#include <span>
#include <unordered_set>
#include <vector>

namespace celloom::engine {

/// What happens when a text has filled its context.
enum class WhenFull {
    Slide, // the oldest tokens are no longer looked at; each token then costs a computation of the whole window
    Stop
};

struct SamplingOptions {
    int maxNewTokens = 100;
    double temperature = 1.0;       // 0: greedy
    int topK = 0;                   // 0: off
    double topP = 1.0;              // 1: off
    double repetitionPenalty = 1.0; // 1: off; over prompt and generated tokens
    std::uint64_t seed = 0;
    std::vector<std::int64_t> stopTokens; // generation ends before the first of these
    int maxContext = 0;                   // at most so many of the last tokens are looked at; 0: as the model says, see contextOf
    int minNewTokens = 0;                 // stop tokens cannot be chosen before
    WhenFull whenFull = WhenFull::Slide;
    int alternatives = -1; // likeliest tokens to report with each one chosen; 0: its own log-probability alone; -1: nothing
};

/// Whether the options can be used.
Status checkSampling(const SamplingOptions& options);

/// A token and the natural logarithm of its probability as the model gives it: before penalties, temperature and cuts.
struct ScoredToken {
    std::int64_t id = 0;
    double logProbability = 0;
};

/// The likeliest `count` tokens, likeliest first, or (count < 0 or more than there are) all. Of equals the lower id comes first.
std::vector<ScoredToken> likeliest(std::span<const float> scores, std::int64_t count);

/// The same of one token.
double logProbability(std::span<const float> scores, std::int64_t id);

/// Chooses the tokens of one text. The same options, seed and scores give the same choices.
class Sampler {
public:
    Sampler(const SamplingOptions& options, const std::vector<std::int64_t>& prompt);

    /// What tokens can be drawn and with which probability, likeliest first; changes nothing.
    struct Candidate {
        std::int64_t id;
        double probability;
    };
    std::vector<Candidate> distribution(std::span<const float> scores) const;

    /// The next token. `scores` [V] are changed on the way.
    std::int64_t choose(std::span<float> scores);

private:
    void penalise(std::span<float> scores) const;

    SamplingOptions m_options;
    std::unordered_set<std::int64_t> m_seen;
    std::mt19937_64 m_random;
    int m_chosen = 0;
};

} // namespace celloom::engine
