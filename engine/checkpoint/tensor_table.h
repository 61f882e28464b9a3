// What a file of named tensors says about itself: names, types, shapes and where the bytes lie. The readers of all formats fill this table
// from bytes that they do not trust; tensor_file makes tensors of it. Knows no LibTorch, so that the readers can be fuzzed alone.
#pragma once

#include "models/base/result.h"
#include "models/base/shape_text.h"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace celloom::engine {

enum class ElementType : unsigned char {
    Float64,
    Float32,
    Float16,
    BFloat16,
    Int64,
    Int32,
    Int16,
    Int8,
    UInt64,
    UInt32,
    UInt16,
    UInt8,
    Bool
};

std::uint64_t sizeOf(ElementType type);
const char* nameOf(ElementType type); // "float32"
bool isFloat(ElementType type);

/// Bytes of the file.
struct Extent {
    std::uint64_t offset = 0, bytes = 0;
};

struct TensorEntry {
    ElementType type = ElementType::Float32;
    std::vector<std::int64_t> shape;
    std::vector<std::int64_t> strides; // in elements, none negative; empty: contiguous
    std::vector<Extent> pieces;        // one after another; a strided tensor has one, from its first element on
    int checksum = -1;                 // index into TensorTable::checksums; -1: the file has none for it
};

/// CRC-32 of a part of the file, looked at when a tensor of it is asked for.
struct Checksum {
    Extent extent;
    std::uint32_t crc = 0;
    std::string name;
};

struct TensorTable {
    std::map<std::string, TensorEntry> tensors;
    std::map<std::string, std::string> metadata;
    std::vector<std::string> notRead; // what else the file holds, in words: "epoch (a number)"
    std::vector<Checksum> checksums;
};

inline constexpr std::size_t kMaxDimensions = 16;
inline constexpr std::size_t kMaxTensors = 1'000'000;

/// Bytes of a contiguous tensor; fails for negative dimensions, for more than kMaxDimensions, and where the product leaves 63 bits.
Result<std::uint64_t> byteCount(ElementType type, const std::vector<std::int64_t>& shape);

/// CRC-32 as in zip (IEEE 802.3, reflected). `before`: of the bytes before these.
std::uint32_t crc32(std::string_view bytes, std::uint32_t before = 0);

// The formats. Each takes a whole file, normally mapped. Errors have no place: the caller knows the file's name.

/// safetensors: 8 bytes of header length, a JSON header of at most 100 MB, data without gaps and overlaps.
Result<TensorTable> readSafetensorsTable(std::string_view file);
/// The code of a type in its header: "F32".
const char* safetensorsCode(ElementType type);
/// pytorch_model.bin as torch.save writes it since PyTorch 1.6: a zip archive of stored entries with a pickle. Nothing is executed.
Result<TensorTable> readTorchTable(std::string_view file);
/// MindSpore's .ckpt: protobuf, a tensor's pieces as consecutive records of one name.
Result<TensorTable> readMindSporeTable(std::string_view file);

/// What a writer puts before each piece of a contiguous tensor of `bytes` bytes, and which part of it follows: one piece, or several of at
/// most 512 MB.
std::vector<std::pair<std::string, Extent>> mindSporeRecords(const std::string& name, ElementType type,
                                                             const std::vector<std::int64_t>& shape, std::uint64_t bytes);

} // namespace celloom::engine
