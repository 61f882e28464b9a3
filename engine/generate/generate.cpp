// One token at a time: the whole window is computed again for each (a key/value cache comes with its own plan).
#include "engine/generate/generate.h"

#include <ATen/ops/tensor.h>
#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <set>

namespace celloom::engine {
namespace {

/// Each id of the window once: positive scores are divided, negative ones multiplied (Keskar et al., arXiv:1909.05858).
void penaliseRepetition(std::vector<float>& scores, const std::vector<std::int64_t>& seen, double penalty) {
    if (penalty == 1) return;
    for (const std::int64_t id : std::set<std::int64_t>(seen.begin(), seen.end())) {
        float& score = scores[static_cast<std::size_t>(id)];
        score = static_cast<float>(score < 0 ? score * penalty : score / penalty);
    }
}

/// Draws an id: temperature, then top-k, then the smallest set of most likely ids whose probabilities reach top-p.
std::int64_t sample(const std::vector<float>& scores, const SamplingOptions& options, std::mt19937_64& random) {
    std::vector<std::size_t> order(scores.size());
    std::iota(order.begin(), order.end(), 0);
    const auto better = [&](std::size_t a, std::size_t b) { return scores[a] != scores[b] ? scores[a] > scores[b] : a < b; };
    std::size_t kept = options.topK > 0 ? std::min(order.size(), static_cast<std::size_t>(options.topK)) : order.size();
    std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(kept), order.end(), better);

    std::vector<double> weights(kept);
    double sum = 0;
    for (std::size_t i = 0; i < kept; ++i)
        sum += weights[i] = std::exp((static_cast<double>(scores[order[i]]) - scores[order[0]]) / options.temperature);
    if (options.topP < 1) {
        double reached = 0;
        std::size_t count = 0;
        while (count < kept && reached < options.topP * sum) reached += weights[count++];
        kept = std::max<std::size_t>(1, count);
        sum = std::accumulate(weights.begin(), weights.begin() + static_cast<std::ptrdiff_t>(kept), 0.0);
    }
    double draw = static_cast<double>(random() >> 11) * 0x1.0p-53 * sum; // std distributions differ between libraries
    for (std::size_t i = 0; i + 1 < kept; ++i)
        if ((draw -= weights[i]) < 0) return static_cast<std::int64_t>(order[i]);
    return static_cast<std::int64_t>(order[kept - 1]);
}

Result<std::vector<float>> nextScores(Network& network, const std::vector<std::int64_t>& window) {
    Batch batch;
    batch.inputIds = at::tensor(window).unsqueeze(0);
    CELLOOM_TRY(outputs, network.forward(batch, {.lastPositionOnly = true}));
    const auto logits = outputs.find("logits");
    if (logits == outputs.end()) return fail("this model has no output \"logits\".", "Only language models generate text.");
    const at::Tensor last = logits->second.select(1, logits->second.size(1) - 1).flatten().to(at::kCPU).contiguous(); // sync
    if (!isFinite(last)) return fail("the model's scores are not finite.", "Its weights may be damaged, or training diverged.");
    return std::vector<float>(last.const_data_ptr<float>(), last.const_data_ptr<float>() + last.numel());
}

} // namespace

Status checkSampling(const SamplingOptions& options) {
    if (!(options.temperature >= 0)) return fail("temperature must be 0 or more.");
    if (options.topK < 0) return fail("top-k must be 0 (off) or more.");
    if (!(options.topP > 0 && options.topP <= 1)) return fail("top-p must be above 0 and at most 1.");
    if (options.maxContext < 0) return fail("the context must be 0 (as the model says) or more.");
    if (!(options.repetitionPenalty > 0)) return fail("the repetition penalty must be above 0.");
    return {};
}

Result<std::vector<std::int64_t>> generate(Network& network, const std::vector<std::int64_t>& prompt, const SamplingOptions& options,
                                           const std::function<bool(std::int64_t)>& onToken) {
    CELLOOM_TRY_STATUS(checkSampling(options));
    if (prompt.empty()) return fail("the prompt is empty.", "Give at least one token, for example the one that begins a text.");
    const std::int64_t longest = options.maxContext > 0 ? options.maxContext : network.model().hyperInteger("max_positions", 2048);
    std::mt19937_64 random(options.seed);
    std::vector<std::int64_t> text = prompt, out;
    while (static_cast<int>(out.size()) < options.maxNewTokens) {
        const std::vector<std::int64_t> window(text.end() - std::min(longest, static_cast<std::int64_t>(text.size())), text.end());
        CELLOOM_TRY(scores, nextScores(network, window));
        penaliseRepetition(scores, window, options.repetitionPenalty);
        const std::int64_t id =
            options.temperature == 0 ? std::max_element(scores.begin(), scores.end()) - scores.begin() : sample(scores, options, random);
        if (std::find(options.stopTokens.begin(), options.stopTokens.end(), id) != options.stopTokens.end()) break;
        text.push_back(id);
        out.push_back(id);
        if (onToken && !onToken(id)) break;
    }
    return out;
}

} // namespace celloom::engine
