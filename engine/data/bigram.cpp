#include "engine/data/bigram.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <unordered_map>

namespace celloom::engine {
namespace {

constexpr int kBuckets = 24;
constexpr int kIterations = 30; // EM converges to four digits well before

struct Pair {
    std::int64_t previous, next;
};

/// The predictions that the loss counts: label t from the token before it.
std::vector<Pair> pairsOf(const Row& row) {
    std::vector<Pair> out;
    const std::int64_t* ids = row.inputIds.data_ptr<std::int64_t>();
    const std::int64_t* labels = row.labels.data_ptr<std::int64_t>();
    for (std::int64_t t = 1; t < row.labels.size(0); ++t)
        if (labels[t] != -100) out.push_back({ids[t - 1], labels[t]});
    return out;
}

using Parts = std::array<double, 3>; // bigram, unigram, uniform

} // namespace

struct BigramModel::Counts {
    std::int64_t vocabSize = 0;
    double total = 0;
    std::vector<double> previous, next; // [V] how often a token stood before and after
    std::unordered_map<std::uint64_t, std::int64_t> pairs;
    std::array<Parts, kBuckets> weights{};

    int bucket(std::int64_t v) const {
        return std::min(static_cast<int>(std::bit_width(static_cast<std::uint64_t>(previous[static_cast<std::size_t>(v)]))), kBuckets - 1);
    }
    Parts parts(const Pair& pair) const {
        const double seen = previous[static_cast<std::size_t>(pair.previous)];
        const auto found = pairs.find(key(pair));
        return {seen > 0 && found != pairs.end() ? static_cast<double>(found->second) / seen : 0.0,
                total > 0 ? next[static_cast<std::size_t>(pair.next)] / total : 0.0, 1.0 / static_cast<double>(vocabSize)};
    }
    std::uint64_t key(const Pair& pair) const { return static_cast<std::uint64_t>(pair.previous * vocabSize + pair.next); }
    double probability(const Pair& pair) const {
        const Parts p = parts(pair);
        const Parts& w = weights[static_cast<std::size_t>(bucket(pair.previous))];
        if (previous[static_cast<std::size_t>(pair.previous)] == 0) return (w[1] * p[1] + w[2] * p[2]) / (w[1] + w[2]); // no bigram to weigh
        return w[0] * p[0] + w[1] * p[1] + w[2] * p[2];
    }
};

BigramModel::BigramModel(std::int64_t vocabSize) : m_counts(std::make_shared<Counts>()) {
    m_counts->vocabSize = vocabSize;
    m_counts->previous.assign(static_cast<std::size_t>(vocabSize), 0);
    m_counts->next.assign(static_cast<std::size_t>(vocabSize), 0);
    m_counts->weights.fill({0.5, 0.4, 0.1}); // where EM starts
}

BigramModel BigramModel::fit(const Dataset& training, std::int64_t vocabSize, std::int64_t maxRows) {
    const std::int64_t rows = maxRows > 0 ? std::min(maxRows, training.size()) : training.size();
    BigramModel model(vocabSize);
    std::vector<Row> heldOut;
    for (std::int64_t r = 0; r < rows; ++r) {
        if (r % 10 == 9) heldOut.push_back(training.get(r));
        else model.count(training.get(r));
    }
    model.fitWeights(heldOut);
    for (const Row& row : heldOut) model.count(row);
    return model;
}

void BigramModel::count(const Row& row) {
    for (const Pair& pair : pairsOf(row)) {
        m_counts->total += 1;
        m_counts->previous[static_cast<std::size_t>(pair.previous)] += 1;
        m_counts->next[static_cast<std::size_t>(pair.next)] += 1;
        ++m_counts->pairs[m_counts->key(pair)];
    }
}

void BigramModel::fitWeights(const std::vector<Row>& heldOut) {
    for (int iteration = 0; iteration < kIterations; ++iteration) {
        std::array<Parts, kBuckets> credit{};
        for (const Row& row : heldOut) {
            for (const Pair& pair : pairsOf(row)) {
                const auto bucket = static_cast<std::size_t>(m_counts->bucket(pair.previous));
                const Parts p = m_counts->parts(pair);
                const double whole = m_counts->probability(pair);
                for (std::size_t i = 0; i < 3; ++i) credit[bucket][i] += m_counts->weights[bucket][i] * p[i] / whole;
            }
        }
        for (std::size_t bucket = 0; bucket < kBuckets; ++bucket) {
            const double sum = credit[bucket][0] + credit[bucket][1] + credit[bucket][2];
            if (sum <= 0) continue; // nothing held out falls here: the start stays
            for (std::size_t i = 0; i < 3; ++i) m_counts->weights[bucket][i] = (credit[bucket][i] + 1e-3) / (sum + 3e-3); // never quite zero
        }
    }
}

double BigramModel::probability(std::int64_t previous, std::int64_t next) const { return m_counts->probability({previous, next}); }

double BigramModel::perplexity(const Dataset& validation, std::int64_t maxRows) const {
    const std::int64_t rows = maxRows > 0 ? std::min(maxRows, validation.size()) : validation.size();
    double sum = 0;
    std::int64_t labels = 0;
    for (std::int64_t r = 0; r < rows; ++r) {
        for (const Pair& pair : pairsOf(validation.get(r))) {
            sum -= std::log(m_counts->probability(pair));
            ++labels;
        }
    }
    return std::exp(sum / static_cast<double>(labels));
}

} // namespace celloom::engine
