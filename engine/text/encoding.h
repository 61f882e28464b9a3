// Bytes of a text file to UTF-8. The encoding is detected and reported, never guessed silently.
#pragma once

#include "models/base/result.h"

#include <string>
#include <string_view>

namespace celloom::engine {

struct DecodedText {
    std::string text;     // valid UTF-8, without a byte-order mark
    std::string encoding; // "UTF-8", "UTF-8 with BOM", "UTF-16LE", "UTF-16BE", "GB 18030"
};

/// Tries, in this order: a byte-order mark, UTF-8, GB 18030. Bytes that are valid in none, or hold a zero byte outside UTF-16,
/// are an error that names the offset of the first bad byte; nothing of them is returned. `encoding` other than "auto" ("utf-8", "utf-16",
/// "gb18030") allows that one alone; UTF-16 without a mark is then read as little-endian.
Result<DecodedText> decodeText(std::string_view bytes, const std::string& place = {}, const std::string& encoding = "auto");

/// Offset of the first byte that is no part of a valid UTF-8 character, or npos.
std::size_t firstInvalidUtf8(std::string_view bytes);

} // namespace celloom::engine
