// Text generation from a network: greedy or sampled, seeded, streamed.
#pragma once

#include "engine/exec/network.h"
#include "engine/text/tokenizer.h"

#include <functional>

namespace celloom::engine {

struct SamplingOptions {
    int maxNewTokens = 100;
    double temperature = 1.0; // 0: greedy
    int topK = 0;             // 0: off
    double topP = 1.0;        // 1: off
    double repetitionPenalty = 1.0;
    std::uint64_t seed = 0;
    std::vector<std::int64_t> stopTokens; // generation ends before the first of these
    int maxContext = 0;                   // at most so many of the last tokens are looked at; 0: the model's max_positions (or 2048)
};

/// Whether the options can be used.
Status checkSampling(const SamplingOptions& options);

/// New ids after the prompt (the prompt not included). `onToken` returns false to stop.
Result<std::vector<std::int64_t>> generate(Network& network, const std::vector<std::int64_t>& prompt, const SamplingOptions& options,
                                           const std::function<bool(std::int64_t)>& onToken = {});

} // namespace celloom::engine
