#include "engine/generate/sampling.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace celloom::engine {
namespace {

/// Tokens by falling score (of equals the lower id first), sorted as far as someone asked: the tail of a large vocabulary rarely is.
class Ranking {
public:
    explicit Ranking(std::span<const float> scores) : m_scores(scores), m_order(scores.size()) {
        std::iota(m_order.begin(), m_order.end(), std::uint32_t(0));
    }
    std::size_t operator[](std::size_t rank) {
        if (rank >= m_sorted) {
            const std::size_t end = std::min(m_order.size(), std::max<std::size_t>({64, 4 * m_sorted, rank + 1}));
            const auto at = [&](std::size_t i) { return m_order.begin() + static_cast<std::ptrdiff_t>(i); };
            std::partial_sort(at(m_sorted), at(end), m_order.end(), [this](std::uint32_t a, std::uint32_t b) {
                return m_scores[a] != m_scores[b] ? m_scores[a] > m_scores[b] : a < b;
            });
            m_sorted = end;
        }
        return m_order[rank];
    }

private:
    std::span<const float> m_scores;
    std::vector<std::uint32_t> m_order;
    std::size_t m_sorted = 0;
};

/// The tokens that can be drawn: the first `count` of the ranking, with weights that add up to `sum`.
struct Cut {
    std::size_t count = 0;
    double sum = 0;
};

double weightOf(float score, float best, double temperature) {
    return std::exp((static_cast<double>(score) - best) / temperature);
}

/// top-k keeps the k best and what equals the k-th; top-p then the fewest of the rest whose probabilities reach p, at least one.
Cut cutOf(std::span<const float> scores, Ranking& ranking, const SamplingOptions& options) {
    const float best = scores[ranking[0]];
    const auto weight = [&](std::size_t rank) { return weightOf(scores[ranking[rank]], best, options.temperature); };
    Cut cut{scores.size(), 0};
    if (options.topK > 0 && static_cast<std::size_t>(options.topK) < scores.size()) {
        cut.count = static_cast<std::size_t>(options.topK);
        const float last = scores[ranking[cut.count - 1]];
        while (cut.count < scores.size() && scores[ranking[cut.count]] == last) ++cut.count;
        for (std::size_t rank = 0; rank < cut.count; ++rank) cut.sum += weight(rank);
    } else {
        for (const float score : scores) cut.sum += weightOf(score, best, options.temperature);
    }
    if (options.topP >= 1) return cut;
    double reached = 0;
    std::size_t count = 0;
    while (count < cut.count && reached < options.topP * cut.sum) reached += weight(count++);
    return {std::max<std::size_t>(1, count), reached};
}

double logOfSum(std::span<const float> scores) {
    const float best = *std::max_element(scores.begin(), scores.end());
    double sum = 0;
    for (const float score : scores) sum += std::exp(static_cast<double>(score) - best);
    return best + std::log(sum);
}

} // namespace

Status checkSampling(const SamplingOptions& options) {
    if (options.maxNewTokens < 0) return fail("the number of new tokens must be 0 or more.");
    if (options.minNewTokens < 0) return fail("the least number of new tokens must be 0 or more.");
    if (!(options.temperature >= 0)) return fail("temperature must be 0 or more.");
    if (options.topK < 0) return fail("top-k must be 0 (off) or more.");
    if (!(options.topP > 0 && options.topP <= 1)) return fail("top-p must be above 0 and at most 1.");
    if (options.maxContext < 0) return fail("the context must be 0 (as the model says) or more.");
    if (!(options.repetitionPenalty > 0)) return fail("the repetition penalty must be above 0.");
    return {};
}

std::vector<ScoredToken> likeliest(std::span<const float> scores, std::int64_t count) {
    const double total = logOfSum(scores);
    const std::size_t wanted = count < 0 ? scores.size() : std::min(scores.size(), static_cast<std::size_t>(count));
    Ranking ranking(scores);
    std::vector<ScoredToken> out;
    for (std::size_t rank = 0; rank < wanted; ++rank)
        out.push_back({static_cast<std::int64_t>(ranking[rank]), static_cast<double>(scores[ranking[rank]]) - total});
    return out;
}

double logProbability(std::span<const float> scores, std::int64_t id) {
    return static_cast<double>(scores[static_cast<std::size_t>(id)]) - logOfSum(scores);
}

Sampler::Sampler(const SamplingOptions& options, const std::vector<std::int64_t>& prompt)
    : m_options(options), m_seen(prompt.begin(), prompt.end()), m_random(options.seed) {}

/// Each id seen once: positive scores are divided, negative ones multiplied (Keskar et al., arXiv:1909.05858).
void Sampler::penalise(std::span<float> scores) const {
    if (m_options.repetitionPenalty != 1)
        for (const std::int64_t id : m_seen) {
            float& score = scores[static_cast<std::size_t>(id)];
            score = static_cast<float>(score < 0 ? score * m_options.repetitionPenalty : score / m_options.repetitionPenalty);
        }
    if (m_chosen < m_options.minNewTokens)
        for (const std::int64_t id : m_options.stopTokens)
            if (id >= 0 && static_cast<std::size_t>(id) < scores.size())
                scores[static_cast<std::size_t>(id)] = -std::numeric_limits<float>::infinity();
}

std::vector<Sampler::Candidate> Sampler::distribution(std::span<const float> scores) const {
    std::vector<float> penalised(scores.begin(), scores.end());
    penalise(penalised);
    Ranking ranking(penalised);
    if (m_options.temperature == 0) return {{static_cast<std::int64_t>(ranking[0]), 1}};
    const Cut cut = cutOf(penalised, ranking, m_options);
    std::vector<Candidate> out;
    for (std::size_t rank = 0; rank < cut.count; ++rank) {
        const double weight = weightOf(penalised[ranking[rank]], penalised[ranking[0]], m_options.temperature);
        if (weight > 0) out.push_back({static_cast<std::int64_t>(ranking[rank]), weight / cut.sum});
    }
    return out;
}

std::int64_t Sampler::choose(std::span<float> scores) {
    penalise(scores);
    ++m_chosen;
    std::int64_t id = 0;
    if (m_options.temperature == 0) {
        id = std::max_element(scores.begin(), scores.end()) - scores.begin();
    } else {
        Ranking ranking(scores);
        const Cut cut = cutOf(scores, ranking, m_options);
        double draw = static_cast<double>(m_random() >> 11) * 0x1.0p-53 * cut.sum; // std distributions differ between libraries
        std::size_t rank = 0;
        while (rank + 1 < cut.count && (draw -= weightOf(scores[ranking[rank]], scores[ranking[0]], m_options.temperature)) >= 0) ++rank;
        id = static_cast<std::int64_t>(ranking[rank]);
    }
    m_seen.insert(id);
    return id;
}

} // namespace celloom::engine
