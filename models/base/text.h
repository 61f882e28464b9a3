// Small text helpers for messages and checks: nearest names, lists, UTF-8.
#pragma once

#include <charconv>
#include <string>
#include <string_view>
#include <vector>

namespace celloom {

/// The candidates that a mistyped word most likely means, best first, at most `count`; empty when none is close.
std::vector<std::string> nearest(std::string_view word, const std::vector<std::string>& candidates, std::size_t count = 3);

/// "a, b, c"; after `limit` items "… and 12 more".
std::string joined(const std::vector<std::string>& items, std::size_t limit = 20);

/// Well-formed UTF-8 (RFC 3629: no overlong forms, no surrogates).
bool isUtf8(std::string_view bytes);

/// The word in quotes, cut to a readable length at a character border: for text that a file brought in.
std::string inQuotes(std::string_view text, std::size_t maxBytes = 80);

/// Without spaces, tabs and line ends at both ends.
std::string trimmed(std::string_view text);

/// The shortest decimal text that reads back as the same number ("0.0003", "1e-8", "NaN").
std::string numberText(double value);

/// For people to read, four digits: "0.0003", "1.235e+05", "nan".
std::string roundedText(double value);

/// The whole text as one number; false when it is anything else or out of range.
template <class Number> bool readNumber(std::string_view text, Number& number) {
    const auto end = std::from_chars(text.data(), text.data() + text.size(), number);
    return end.ec == std::errc() && end.ptr == text.data() + text.size();
}

} // namespace celloom
