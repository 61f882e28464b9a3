// How near a text comes to the expected one: BLEU and ROUGE-L, over words. Chinese, Japanese and Korean characters are words of their own.
#pragma once

#include "models/base/result.h"

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace celloom::engine {

/// Words of a text in lower-case ASCII: split at white space; each CJK character stands alone; punctuation stays with its word.
std::vector<std::string> wordsOf(const std::string& text);

/// BLEU over a whole corpus (Papineni et al. 2002; MindSpore's BleuScore, n_gram 4): geometric mean of the 1- to 4-gram precisions, times the
/// brevity penalty. Without smoothing it is 0 where one precision is; with it (Lin and Och 2004) 1 is added to matches and totals from the 2-grams on.
class BleuScore {
public:
    explicit BleuScore(bool isSmooth = false) : m_isSmooth(isSmooth) {}
    void clear();
    /// `expected`: one or more references.
    void update(const std::vector<std::string>& candidate, const std::vector<std::vector<std::string>>& expected);
    [[nodiscard]] Result<double> eval() const;

private:
    static constexpr std::size_t kOrder = 4;
    bool m_isSmooth;
    std::array<std::int64_t, kOrder> m_matches{}, m_totals{};
    std::int64_t m_candidateWords = 0, m_referenceWords = 0, m_texts = 0;
};

/// ROUGE-L (Lin 2004): F1 of the longest common subsequence, averaged over texts.
class RougeL {
public:
    void clear() { m_sum = 0, m_texts = 0; }
    void update(const std::vector<std::string>& candidate, const std::vector<std::string>& expected);
    [[nodiscard]] Result<double> eval() const;

private:
    double m_sum = 0;
    std::int64_t m_texts = 0;
};

} // namespace celloom::engine
