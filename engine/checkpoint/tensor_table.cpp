#include "engine/checkpoint/tensor_table.h"

#include <array>
#include <cstring>
#include <limits>

namespace celloom::engine {
namespace {

struct TypeFacts {
    const char* name;
    std::uint64_t size;
};
/// In the order of ElementType.
constexpr std::array<TypeFacts, 13> kTypes = {{{"float64", 8},
                                               {"float32", 4},
                                               {"float16", 2},
                                               {"bfloat16", 2},
                                               {"int64", 8},
                                               {"int32", 4},
                                               {"int16", 2},
                                               {"int8", 1},
                                               {"uint64", 8},
                                               {"uint32", 4},
                                               {"uint16", 2},
                                               {"uint8", 1},
                                               {"bool", 1}}};

const TypeFacts& factsOf(ElementType type) {
    return kTypes[static_cast<std::size_t>(type)];
}

/// Eight tables, so that eight bytes go through at once ("slicing by eight"): tables[k][b] is the CRC of b followed by k zero bytes.
using CrcTables = std::array<std::array<std::uint32_t, 256>, 8>;

constexpr CrcTables makeCrcTables() {
    CrcTables tables{};
    for (std::uint32_t byte = 0; byte < 256; ++byte) {
        std::uint32_t value = byte;
        for (int bit = 0; bit < 8; ++bit) value = (value & 1) != 0 ? 0xEDB88320u ^ (value >> 1) : value >> 1;
        tables[0][byte] = value;
    }
    for (std::size_t k = 1; k < 8; ++k)
        for (std::size_t byte = 0; byte < 256; ++byte) tables[k][byte] = (tables[k - 1][byte] >> 8) ^ tables[0][tables[k - 1][byte] & 0xFF];
    return tables;
}

constexpr CrcTables kCrc = makeCrcTables();

} // namespace

std::uint64_t sizeOf(ElementType type) {
    return factsOf(type).size;
}

const char* nameOf(ElementType type) {
    return factsOf(type).name;
}

bool isFloat(ElementType type) {
    return type <= ElementType::BFloat16;
}

Result<std::uint64_t> byteCount(ElementType type, const std::vector<std::int64_t>& shape) {
    if (shape.size() > kMaxDimensions) return fail("has " + std::to_string(shape.size()) + " dimensions; at most 16 are read.");
    constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    std::uint64_t bytes = sizeOf(type);
    for (const std::int64_t length : shape) {
        if (length < 0) return fail("has a negative dimension in its shape " + shapeText(shape) + ".");
        if (__builtin_mul_overflow(bytes, static_cast<std::uint64_t>(length), &bytes) || bytes > kMost)
            return fail("has a shape too large for this machine: " + shapeText(shape) + ".");
    }
    return bytes;
}

std::uint32_t crc32(std::string_view bytes, std::uint32_t before) {
    std::uint32_t crc = ~before;
    const char* data = bytes.data();
    std::size_t left = bytes.size();
    for (; left >= 8; data += 8, left -= 8) {
        std::uint32_t low = 0, high = 0;
        std::memcpy(&low, data, 4);
        std::memcpy(&high, data + 4, 4);
        low ^= crc;
        crc = kCrc[7][low & 0xFF] ^ kCrc[6][(low >> 8) & 0xFF] ^ kCrc[5][(low >> 16) & 0xFF] ^ kCrc[4][low >> 24] ^ kCrc[3][high & 0xFF] ^
              kCrc[2][(high >> 8) & 0xFF] ^ kCrc[1][(high >> 16) & 0xFF] ^ kCrc[0][high >> 24];
    }
    for (; left > 0; ++data, --left) crc = (crc >> 8) ^ kCrc[0][(crc ^ static_cast<unsigned char>(*data)) & 0xFF];
    return ~crc;
}

} // namespace celloom::engine
