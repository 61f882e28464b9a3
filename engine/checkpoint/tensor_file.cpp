#include "engine/checkpoint/tensor_file.h"

#include "models/base/text.h"

#include <ATen/ops/from_blob.h>
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

namespace celloom::engine {
namespace fs = std::filesystem;
namespace {

static_assert(std::endian::native == std::endian::little, "the files are little-endian and mapped as they are");

/// In the order of ElementType.
constexpr std::array kScalarTypes = {at::kDouble, at::kFloat,  at::kHalf,   at::kBFloat16, at::kLong, at::kInt, at::kShort,
                                     at::kChar,   at::kUInt64, at::kUInt32, at::kUInt16,   at::kByte, at::kBool};

/// A safetensors header begins right after its length; a MindSpore checkpoint with its first record's tag. The rest is for the reader of
/// torch.save's files, which has something to say about anything.
TensorFile::Format formatOf(const fs::path& path, std::string_view bytes) {
    if (path.extension() == ".safetensors" || (bytes.size() > 8 && bytes[8] == '{' && bytes[5] == 0 && bytes[6] == 0 && bytes[7] == 0))
        return TensorFile::Format::Safetensors;
    const bool isOther = bytes.starts_with("PK") || bytes.starts_with("\x80");
    if (!isOther && (bytes[0] == '\n' || path.extension() == ".ckpt")) return TensorFile::Format::MindSpore;
    return TensorFile::Format::Torch;
}

Result<TensorTable> readTable(TensorFile::Format format, std::string_view bytes) {
    switch (format) {
    case TensorFile::Format::Safetensors:
        return readSafetensorsTable(bytes);
    case TensorFile::Format::MindSpore:
        return readMindSporeTable(bytes);
    case TensorFile::Format::Torch:
        break;
    }
    return readTorchTable(bytes);
}

} // namespace

at::ScalarType scalarTypeOf(ElementType type) {
    return kScalarTypes[static_cast<std::size_t>(type)];
}

Result<ElementType> elementTypeOf(at::ScalarType type) {
    const auto found = std::find(kScalarTypes.begin(), kScalarTypes.end(), type);
    if (found == kScalarTypes.end()) return fail(std::string("has the type ") + c10::toString(type) + ", which no file format here has.");
    return static_cast<ElementType>(found - kScalarTypes.begin());
}

Result<std::shared_ptr<TensorFile>> TensorFile::open(const fs::path& path) {
    CELLOOM_TRY(file, MappedFile::open(path));
    const Format format = formatOf(path, file->bytes());
    auto table = readTable(format, file->bytes());
    if (!table) return fail(table.error().message, table.error().hint, path.string());
    return std::shared_ptr<TensorFile>(new TensorFile(path, std::move(file), std::move(*table), format));
}

std::vector<std::string> TensorFile::names() const {
    std::vector<std::string> out;
    for (const auto& item : m_table.tensors) out.push_back(item.first);
    return out;
}

Status TensorFile::compareChecksum(const TensorEntry& entry) const {
    if (entry.checksum < 0) return {};
    const std::lock_guard guard(m_mutex);
    if (m_compared.contains(entry.checksum)) return {};
    const Checksum& checksum = m_table.checksums[static_cast<std::size_t>(entry.checksum)];
    if (crc32(m_file->bytes().substr(checksum.extent.offset, checksum.extent.bytes)) != checksum.crc)
        return fail("has an entry " + inQuotes(checksum.name) + " that does not fit its checksum.",
                    "The file is damaged: copy or download it again. (Or it was saved with set_crc32_options(False): save it without.)",
                    m_path.string());
    m_compared.insert(entry.checksum);
    return {};
}

at::Tensor TensorFile::tensorOver(const TensorEntry& entry) const {
    const at::ScalarType type = scalarTypeOf(entry.type);
    char* data = const_cast<char*>(m_file->bytes().data() + entry.pieces[0].offset);
    std::shared_ptr<void> owner = m_file;
    const bool isAligned = reinterpret_cast<std::uintptr_t>(data) % sizeOf(entry.type) == 0;
    if (entry.pieces.size() > 1 || !isAligned) {
        std::uint64_t bytes = 0;
        for (const Extent& piece : entry.pieces) bytes += piece.bytes;
        auto copy = std::make_shared<std::vector<std::uint64_t>>(bytes / 8 + 1);
        data = reinterpret_cast<char*>(copy->data());
        std::uint64_t at = 0;
        for (const Extent& piece : entry.pieces) {
            std::memcpy(data + at, m_file->bytes().data() + piece.offset, piece.bytes);
            at += piece.bytes;
        }
        owner = copy;
    }
    const auto keep = [owner](void*) {};
    return entry.strides.empty() ? at::from_blob(data, entry.shape, keep, type)
                                 : at::from_blob(data, entry.shape, entry.strides, keep, type);
}

Result<at::Tensor> TensorFile::tensor(const std::string& name) const {
    const auto found = m_table.tensors.find(name);
    if (found == m_table.tensors.end()) return fail("holds no tensor " + inQuotes(name) + ".", {}, m_path.string());
    const TensorEntry& entry = found->second;
    CELLOOM_TRY_STATUS(compareChecksum(entry));
    if (entry.type == ElementType::Bool)
        for (const Extent& piece : entry.pieces) {
            const std::string_view bytes = m_file->bytes().substr(piece.offset, piece.bytes);
            if (std::any_of(bytes.begin(), bytes.end(), [](char value) { return value != 0 && value != 1; }))
                return fail("tensor " + inQuotes(name) + " is BOOL but holds other bytes than 0 and 1.", {}, m_path.string());
        }
    return tensorOver(entry);
}

void TensorFile::release(const std::string& name) const {
    const auto found = m_table.tensors.find(name);
    if (found == m_table.tensors.end()) return;
    for (const Extent& piece : found->second.pieces) m_file->release(piece);
}

} // namespace celloom::engine
