// What tests of checkpoint files share: zip archives and pickles made by hand, right or wrong in one place.
#pragma once

#include "engine/checkpoint/tensor_table.h"

#include <cstring>
#include <string>
#include <vector>

namespace celloom::test {

template <class Number> std::string littleEndian(Number value) {
    std::string out(sizeof value, '\0');
    std::memcpy(out.data(), &value, sizeof value);
    return out;
}

struct ZipPart {
    std::string name, content;
    std::uint16_t method = 0, flags = 0;
    std::uint32_t crcError = 0;    // added to the right one
    std::int64_t sizeError = 0;    // added to the size in the table of contents
    std::int64_t offsetError = 0;  // added to the offset in the table of contents
    std::string nameInHeader = {}; // of the local header, where it differs
};

/// A stored zip archive (APPNOTE.TXT), without zip64.
inline std::string zipOf(const std::vector<ZipPart>& parts, std::uint16_t countError = 0) {
    std::string out, directory;
    for (const ZipPart& part : parts) {
        const std::string inHeader = part.nameInHeader.empty() ? part.name : part.nameInHeader;
        const auto offset = static_cast<std::uint32_t>(static_cast<std::int64_t>(out.size()) + part.offsetError);
        const auto size = static_cast<std::uint32_t>(static_cast<std::int64_t>(part.content.size()) + part.sizeError);
        const std::string facts = littleEndian(part.flags) + littleEndian(part.method) + std::string(4, '\0') +
                                  littleEndian(engine::crc32(part.content) + part.crcError) + littleEndian(size) + littleEndian(size);
        out += std::string("PK\3\4") + littleEndian(std::uint16_t(20)) + facts + littleEndian(static_cast<std::uint16_t>(inHeader.size())) +
               littleEndian(std::uint16_t(0)) + inHeader + part.content;
        directory += std::string("PK\1\2") + littleEndian(std::uint16_t(20)) + littleEndian(std::uint16_t(20)) + facts +
                     littleEndian(static_cast<std::uint16_t>(part.name.size())) + std::string(12, '\0') + littleEndian(offset) + part.name;
    }
    const auto count = static_cast<std::uint16_t>(parts.size() + countError);
    return out + directory + "PK\5\6" + std::string(4, '\0') + littleEndian(count) + littleEndian(count) +
           littleEndian(static_cast<std::uint32_t>(directory.size())) + littleEndian(static_cast<std::uint32_t>(out.size())) +
           std::string(2, '\0');
}

// Pickles, protocol 2.

inline std::string text(const std::string& value) {
    return "X" + littleEndian(static_cast<std::uint32_t>(value.size())) + value;
}
inline std::string number(std::int64_t value) {
    return "\x8a\x08" + littleEndian(value);
}
inline std::string tuple(const std::vector<std::int64_t>& values) {
    std::string out = "(";
    for (const std::int64_t value : values) out += number(value);
    return out + "t";
}
/// A float32 tensor in the storage "0" of `elements` elements.
inline std::string tensor(std::int64_t elements, std::int64_t offset, const std::vector<std::int64_t>& shape,
                          const std::vector<std::int64_t>& strides, const std::string& storageClass = "torch\nFloatStorage") {
    return "ctorch._utils\n_rebuild_tensor_v2\n((" + text("storage") + "c" + storageClass + "\n" + text("0") + text("cpu") +
           number(elements) + "tQ" + number(offset) + tuple(shape) + tuple(strides) + "\x89" + "ccollections\nOrderedDict\n)RtR";
}
/// {"w": value}
inline std::string stateDict(const std::string& value) {
    return "\x80\x02}(" + text("w") + value + "u.";
}
/// torch.save's archive of this pickle with the storage "0".
inline std::string archiveOf(const std::string& pickle, const std::string& storage = std::string(16, '\0')) {
    return zipOf({{"archive/data.pkl", pickle}, {"archive/data/0", storage}, {"archive/version", "3\n"}});
}

// Protobuf.

inline std::string varint(std::uint64_t value) {
    std::string out;
    for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
    return out + static_cast<char>(value);
}
inline std::string field(int number, const std::string& bytes) {
    return varint(static_cast<std::uint64_t>(number) << 3 | 2) + varint(bytes.size()) + bytes;
}
/// One record of a MindSpore checkpoint.
inline std::string record(const std::string& tag, const std::vector<std::uint64_t>& dims, const std::string& type,
                          const std::string& content) {
    std::string inner;
    for (const std::uint64_t dim : dims) inner += varint(1 << 3) + varint(dim);
    return field(1, field(1, tag) + field(2, inner + field(2, type) + field(3, content)));
}

} // namespace celloom::test
