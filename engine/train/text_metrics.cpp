#include "engine/train/text_metrics.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>

namespace celloom::engine {
namespace {

using Words = std::vector<std::string>;

std::size_t lengthOfCharacter(unsigned char first) { return first < 0x80 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4; }

/// Whether a character of three or four bytes stands for itself: kana, Hangul, ideographs and their marks.
bool isCjk(const std::string& character) {
    if (character.size() < 3) return false;
    if (character.size() == 4) return static_cast<unsigned char>(character[0]) == 0xF0 && static_cast<unsigned char>(character[1]) >= 0xA0;
    const auto byte = [&](std::size_t i) { return static_cast<std::uint32_t>(static_cast<unsigned char>(character[i]) & 0x3F); };
    const std::uint32_t code = (static_cast<std::uint32_t>(static_cast<unsigned char>(character[0]) & 0x0F) << 12) | (byte(1) << 6) | byte(2);
    return (code >= 0x3000 && code <= 0x9FFF) || (code >= 0xAC00 && code <= 0xD7A3) || (code >= 0xF900 && code <= 0xFAFF) || (code >= 0xFF00 && code <= 0xFFEF);
}

std::map<Words, std::int64_t> gramsOf(const Words& words, std::size_t order) {
    std::map<Words, std::int64_t> out;
    for (std::size_t i = 0; i + order <= words.size(); ++i)
        ++out[Words(words.begin() + static_cast<std::ptrdiff_t>(i), words.begin() + static_cast<std::ptrdiff_t>(i + order))];
    return out;
}

std::int64_t nearestLength(std::int64_t length, const std::vector<Words>& references) {
    std::int64_t best = std::ssize(references.front());
    for (const Words& reference : references) {
        const std::int64_t other = std::ssize(reference), distance = std::abs(other - length), before = std::abs(best - length);
        if (distance < before || (distance == before && other < best)) best = other;
    }
    return best;
}

std::int64_t longestCommonSubsequence(const Words& a, const Words& b) {
    std::vector<std::int64_t> row(b.size() + 1, 0);
    for (const std::string& word : a) {
        std::int64_t diagonal = 0;
        for (std::size_t j = 0; j < b.size(); ++j) {
            const std::int64_t above = row[j + 1];
            row[j + 1] = word == b[j] ? diagonal + 1 : std::max(above, row[j]);
            diagonal = above;
        }
    }
    return row.back();
}

} // namespace

std::vector<std::string> wordsOf(const std::string& text) {
    Words out;
    std::string word;
    const auto finish = [&] {
        if (!word.empty()) out.push_back(std::move(word));
        word.clear();
    };
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t length = std::min(lengthOfCharacter(static_cast<unsigned char>(text[at])), text.size() - at);
        std::string character = text.substr(at, length);
        at += length;
        if (character == " " || character == "\t" || character == "\n" || character == "\r" || character == "\xE3\x80\x80") finish();
        else if (isCjk(character)) {
            finish();
            out.push_back(std::move(character));
        } else {
            if (length == 1 && character[0] >= 'A' && character[0] <= 'Z') character[0] = static_cast<char>(character[0] - 'A' + 'a');
            word += character;
        }
    }
    finish();
    return out;
}

void BleuScore::clear() {
    m_matches = m_totals = {};
    m_candidateWords = m_referenceWords = m_texts = 0;
}

void BleuScore::update(const Words& candidate, const std::vector<Words>& expected) {
    CELLOOM_CHECK(!expected.empty());
    for (std::size_t n = 0; n < kOrder; ++n) {
        std::map<Words, std::int64_t> most; // of each n-gram in one reference
        for (const Words& reference : expected)
            for (const auto& [gram, count] : gramsOf(reference, n + 1)) most[gram] = std::max(most[gram], count);
        for (const auto& [gram, count] : gramsOf(candidate, n + 1)) {
            const auto found = most.find(gram);
            m_matches[n] += found == most.end() ? 0 : std::min(count, found->second);
            m_totals[n] += count;
        }
    }
    m_candidateWords += std::ssize(candidate);
    m_referenceWords += nearestLength(std::ssize(candidate), expected);
    ++m_texts;
}

Result<double> BleuScore::eval() const {
    if (m_texts == 0) return fail("BLEU has seen no text.");
    if (m_candidateWords == 0) return 0.0;
    double logarithms = 0;
    for (std::size_t n = 0; n < kOrder; ++n) {
        const double added = m_isSmooth && n > 0 ? 1 : 0;
        const double matches = static_cast<double>(m_matches[n]) + added, total = static_cast<double>(m_totals[n]) + added;
        if (matches == 0) return 0.0;
        logarithms += std::log(matches / total) / static_cast<double>(kOrder);
    }
    const double ratio = static_cast<double>(m_referenceWords) / static_cast<double>(m_candidateWords);
    return std::exp(logarithms + std::min(0.0, 1 - ratio));
}

void RougeL::update(const Words& candidate, const Words& expected) {
    ++m_texts;
    const auto common = static_cast<double>(longestCommonSubsequence(candidate, expected));
    if (common > 0) m_sum += 2 * common / static_cast<double>(candidate.size() + expected.size()); // F1 of common / candidate and common / expected
}

Result<double> RougeL::eval() const {
    if (m_texts == 0) return fail("ROUGE-L has seen no text.");
    return m_sum / static_cast<double>(m_texts);
}

} // namespace celloom::engine
