// The yardstick beside a language model's perplexity: an interpolated bigram model over the same tokens and the same predicted positions.
#pragma once

#include "engine/data/dataset.h"

namespace celloom::engine {

/// P(w | v) = a_b count(v w) / count(v) + b_b count(w) / N + c_b / V (Jelinek and Mercer 1980), the three weights of a bucket b chosen by
/// how often v was seen (0, 1, 2-3, 4-7, …) and fitted by EM on every tenth row of the training data; the counts then come from all of it.
class BigramModel {
public:
    /// `maxRows` bounds time and memory on large corpora; 0: no bound.
    static BigramModel fit(const Dataset& training, std::int64_t vocabSize, std::int64_t maxRows = 0);
    /// exp of the mean negative log-likelihood of the labels that languageModelLoss counts, in the first `maxRows` rows; 0: in all.
    double perplexity(const Dataset& validation, std::int64_t maxRows = 0) const;
    double probability(std::int64_t previous, std::int64_t next) const;

private:
    struct Counts;
    explicit BigramModel(std::int64_t vocabSize);
    void count(const Row& row);
    void fitWeights(const std::vector<Row>& heldOut);

    std::shared_ptr<Counts> m_counts;
};

} // namespace celloom::engine
