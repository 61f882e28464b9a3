#include "engine/text/encoding.h"

#include <cerrno>
#include <iconv.h>
#include <memory>

namespace celloom::engine {
namespace {

struct Converted {
    std::string text;
    std::size_t badOffset = std::string_view::npos; // of the input; npos: all of it was valid
};

Converted convert(std::string_view bytes, const char* from) {
    const iconv_t handle = ::iconv_open("UTF-8", from);
    CELLOOM_CHECK(handle != reinterpret_cast<iconv_t>(-1)); // glibc carries the three encodings used here
    const std::unique_ptr<void, int (*)(iconv_t)> closer(handle, ::iconv_close);
    Converted out;
    char* in = const_cast<char*>(bytes.data()); // iconv reads only; its signature is older than const
    std::size_t left = bytes.size();
    std::string block(1 << 16, '\0');
    while (left > 0) {
        char* target = block.data();
        std::size_t room = block.size();
        const std::size_t result = ::iconv(handle, &in, &left, &target, &room);
        const int code = errno;
        out.text.append(block.data(), block.size() - room);
        if (result == static_cast<std::size_t>(-1) && code != E2BIG) {
            out.badOffset = bytes.size() - left;
            return out;
        }
    }
    return out;
}

/// Length of the well-formed UTF-8 sequence at `at` (Unicode 15, table 3-7), or 0.
std::size_t sequenceLength(std::string_view bytes, std::size_t at) {
    const auto byte = [&](std::size_t i) { return at + i < bytes.size() ? static_cast<unsigned char>(bytes[at + i]) : 0u; };
    const auto isTail = [&](std::size_t i, unsigned low = 0x80, unsigned high = 0xBF) { return byte(i) >= low && byte(i) <= high; };
    const unsigned lead = byte(0);
    if (lead < 0x80) return 1;
    if (lead >= 0xC2 && lead <= 0xDF) return isTail(1) ? 2 : 0;
    if (lead >= 0xE0 && lead <= 0xEF) {
        const unsigned low = lead == 0xE0 ? 0xA0 : 0x80, high = lead == 0xED ? 0x9F : 0xBF;
        return isTail(1, low, high) && isTail(2) ? 3 : 0;
    }
    if (lead >= 0xF0 && lead <= 0xF4) {
        const unsigned low = lead == 0xF0 ? 0x90 : 0x80, high = lead == 0xF4 ? 0x8F : 0xBF;
        return isTail(1, low, high) && isTail(2) && isTail(3) ? 4 : 0;
    }
    return 0;
}

constexpr std::size_t kNone = std::string_view::npos;

bool startsWith(std::string_view bytes, std::string_view mark) { return bytes.substr(0, mark.size()) == mark; }
std::string atByte(std::size_t offset) { return " at byte " + std::to_string(offset); }

Result<DecodedText> decodeUtf16(std::string_view bytes, std::size_t mark, const char* name, const std::string& place) {
    Converted converted = convert(bytes.substr(mark), name);
    if (converted.badOffset != kNone)
        return fail(std::string("is not valid ") + name + atByte(converted.badOffset + mark) + ".", "Save the file as UTF-8.", place);
    return DecodedText{std::move(converted.text), name};
}

} // namespace

std::size_t firstInvalidUtf8(std::string_view bytes) {
    for (std::size_t at = 0; at < bytes.size();) {
        const std::size_t length = sequenceLength(bytes, at);
        if (length == 0) return at;
        at += length;
    }
    return std::string_view::npos;
}

Result<DecodedText> decodeText(std::string_view bytes, const std::string& place, const std::string& encoding) {
    const bool isAuto = encoding == "auto";
    if (isAuto || encoding == "utf-16") {
        if (startsWith(bytes, "\xFF\xFE")) return decodeUtf16(bytes, 2, "UTF-16LE", place);
        if (startsWith(bytes, "\xFE\xFF")) return decodeUtf16(bytes, 2, "UTF-16BE", place);
        if (!isAuto) return decodeUtf16(bytes, 0, "UTF-16LE", place);
    }
    if (const std::size_t zero = bytes.find('\0'); zero != kNone)
        return fail("is no text: it holds a zero byte" + atByte(zero) + ".", "If it is UTF-16 without a byte-order mark, choose that encoding.", place);

    std::size_t wrongUtf8 = kNone;
    if (isAuto || encoding == "utf-8") {
        const std::size_t mark = startsWith(bytes, "\xEF\xBB\xBF") ? 3 : 0;
        wrongUtf8 = firstInvalidUtf8(bytes.substr(mark));
        if (wrongUtf8 == kNone) return DecodedText{std::string(bytes.substr(mark)), mark ? "UTF-8 with BOM" : "UTF-8"};
        if (mark || !isAuto) return fail("is not valid UTF-8" + atByte(wrongUtf8 + mark) + ".", "Save the file as UTF-8.", place);
    }

    CELLOOM_CHECK(isAuto || encoding == "gb18030");
    Converted converted = convert(bytes, "GB18030");
    if (converted.badOffset == kNone) return DecodedText{std::move(converted.text), "GB 18030"};
    if (!isAuto) return fail("is not valid GB 18030" + atByte(converted.badOffset) + ".", "Choose another encoding, or save the file as UTF-8.", place);
    return fail("is valid neither as UTF-8 (wrong" + atByte(wrongUtf8) + ") nor as GB 18030 (wrong" + atByte(converted.badOffset) + ").",
                "Save the file as UTF-8.", place);
}

} // namespace celloom::engine
