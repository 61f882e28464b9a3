#include "models/base/text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdio>

namespace celloom {
namespace {

constexpr std::size_t kMaxCompared = 64;     // longer words are not compared: the table below is quadratic
constexpr std::size_t kMaxCandidates = 2000; // looked at; a document may hold many more

std::size_t editDistance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> row(b.size() + 1);
    for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
    for (std::size_t i = 1; i <= a.size(); ++i) {
        std::size_t diagonal = row[0];
        row[0] = i;
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const std::size_t above = row[j];
            row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0 : 1)});
            diagonal = above;
        }
    }
    return row[b.size()];
}

std::string lower(std::string_view text) {
    std::string out(text);
    for (char& c : out)
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    return out;
}

} // namespace

std::vector<std::string> nearest(std::string_view word, const std::vector<std::string>& candidates, std::size_t count) {
    if (word.empty() || word.size() > kMaxCompared) return {};
    const std::string sought = lower(word);
    std::vector<std::pair<std::size_t, std::string>> scored;
    for (std::size_t i = 0; i < candidates.size() && i < kMaxCandidates; ++i) {
        const std::string& candidate = candidates[i];
        if (candidate.empty() || candidate.size() > kMaxCompared) continue;
        const std::string name = lower(candidate);
        std::size_t distance = editDistance(sought, name);
        // "warmup" for "schedule.warmup_steps": the word is a part of the name
        if (sought.size() >= 3 && name.find(sought) != std::string::npos) distance = std::min<std::size_t>(distance, 2);
        if (distance <= std::max<std::size_t>(2, sought.size() / 3)) scored.emplace_back(distance, candidate);
    }
    std::stable_sort(scored.begin(), scored.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<std::string> out;
    for (std::size_t i = 0; i < scored.size() && i < count; ++i) out.push_back(scored[i].second);
    return out;
}

std::string joined(const std::vector<std::string>& items, std::size_t limit) {
    std::string out;
    for (std::size_t i = 0; i < items.size(); ++i) {
        if (i == limit) return out + " … and " + std::to_string(items.size() - limit) + " more";
        if (i > 0) out += ", ";
        out += items[i];
    }
    return out;
}

bool isUtf8(std::string_view bytes) {
    std::size_t i = 0;
    while (i < bytes.size()) {
        const auto lead = static_cast<unsigned char>(bytes[i]);
        const std::size_t length = lead < 0x80                    ? 1
                                   : lead >= 0xC2 && lead <= 0xDF ? 2
                                   : (lead & 0xF0) == 0xE0        ? 3
                                   : lead >= 0xF0 && lead <= 0xF4 ? 4
                                                                  : 0;
        if (length == 0 || i + length > bytes.size()) return false;
        std::uint32_t point = length == 1 ? lead : lead & (0xFFu >> (length + 1));
        for (std::size_t k = 1; k < length; ++k) {
            const auto next = static_cast<unsigned char>(bytes[i + k]);
            if ((next & 0xC0) != 0x80) return false;
            point = (point << 6) | (next & 0x3Fu);
        }
        const bool isOverlong = (length == 3 && point < 0x800) || (length == 4 && point < 0x10000);
        if (isOverlong || (point >= 0xD800 && point <= 0xDFFF) || point > 0x10FFFF) return false;
        i += length;
    }
    return true;
}

std::string inQuotes(std::string_view text, std::size_t maxBytes) {
    if (text.size() <= maxBytes) return "\"" + std::string(text) + "\"";
    std::size_t end = maxBytes;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
    return "\"" + std::string(text.substr(0, end)) + "…\"";
}

std::string trimmed(std::string_view text) {
    const auto from = text.find_first_not_of(" \t\r\n");
    return from == std::string_view::npos ? std::string() : std::string(text.substr(from, text.find_last_not_of(" \t\r\n") - from + 1));
}

std::string numberText(double value) {
    if (std::isnan(value)) return "NaN";
    if (std::isinf(value)) return value > 0 ? "infinity" : "-infinity";
    char buffer[64];
    const bool isPlainWhole = value == std::trunc(value) && std::abs(value) < 1e15;
    const auto end =
        std::to_chars(buffer, buffer + sizeof buffer, value, isPlainWhole ? std::chars_format::fixed : std::chars_format::general);
    std::string out(buffer, end.ptr);
    const auto exponent = out.find('e'); // "3e-05": the zero says nothing
    if (exponent != std::string::npos && out[exponent + 2] == '0') out.erase(exponent + 2, 1);
    return out;
}

std::string roundedText(double value) {
    std::array<char, 40> text{};
    std::snprintf(text.data(), text.size(), "%.4g", value);
    return text.data();
}

} // namespace celloom
