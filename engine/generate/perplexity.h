// How well a model predicts a text: the loss of each token with what stands before it, in overlapping windows.
#pragma once

#include "engine/exec/network.h"

#include <functional>

namespace celloom::engine {

struct PerplexityOptions {
    std::int64_t window = 0; // tokens that the model sees at once; 0: max_positions, 2048 where the model has none
    std::int64_t stride = 0; // tokens by which the window moves; 0: half the window. Smaller: more context for each token, and slower
    bool useCache = true;    // computes a window in pieces, so that the logits of a long one need not exist at once
    /// Tokens scored so far; false stops.
    std::function<bool(std::int64_t)> onProgress;
};

struct PerplexityResult {
    double nll = 0;          // natural logarithm, summed over the tokens scored
    std::int64_t tokens = 0; // all but the text's first, which nothing stands before
    std::int64_t window = 0, stride = 0, windows = 0;
    bool isWhole = true; // false: stopped before the end
    [[nodiscard]] double perplexity() const;
};

/// As the sliding-window recipe of the transformers documentation ("Perplexity of fixed-length models"): each token is scored once, in the
/// first window that holds it, with at least window - stride tokens before it.
Result<PerplexityResult> perplexity(Network& network, const std::vector<std::int64_t>& ids, const PerplexityOptions& options = {});

} // namespace celloom::engine
