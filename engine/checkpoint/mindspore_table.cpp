// MindSpore's .ckpt: message Checkpoint { repeated Value value = 1; }, Value { string tag = 1; TensorProto tensor = 2; MapTensorProto = 3;
// }, TensorProto { repeated int64 dims = 1; string tensor_type = 2; bytes tensor_content = 3; } (mindspore/ccsrc/utils/checkpoint.proto).
// A tensor over 512 MB is split into consecutive values of one tag, each with the dims of the whole. crc_check=True appends "crc_num" and
// ten bytes, big-endian. The wire format is read where it lies: libprotobuf would copy every tensor.
#include "engine/checkpoint/tensor_table.h"
#include "models/base/text.h"

#include <algorithm>
#include <array>
#include <optional>

namespace celloom::engine {
namespace {

struct TypeName {
    const char* name;
    ElementType type;
};
constexpr std::array kTypeNames = {
    TypeName{"Float64", ElementType::Float64},   TypeName{"Float32", ElementType::Float32}, TypeName{"Float16", ElementType::Float16},
    TypeName{"BFloat16", ElementType::BFloat16}, TypeName{"Int64", ElementType::Int64},     TypeName{"Int32", ElementType::Int32},
    TypeName{"Int16", ElementType::Int16},       TypeName{"Int8", ElementType::Int8},       TypeName{"UInt64", ElementType::UInt64},
    TypeName{"UInt32", ElementType::UInt32},     TypeName{"UInt16", ElementType::UInt16},   TypeName{"UInt8", ElementType::UInt8},
    TypeName{"Bool", ElementType::Bool}};

constexpr std::uint64_t kPieceBytes = 512 << 20;

/// One field of a message: a number, or a part of the file.
struct Field {
    std::uint64_t number = 0;
    bool isBytes = false;
    std::uint64_t value = 0;
    Extent bytes;
};

/// Reads the fields of one message, lying in `range` of the file, one after another.
class MessageReader {
public:
    MessageReader(std::string_view file, Extent range) : m_file(file), m_at(range.offset), m_end(range.offset + range.bytes) {}
    bool isAtEnd() const { return m_at == m_end; }

    Result<Field> next() {
        CELLOOM_TRY(key, varint());
        Field field{.number = key >> 3};
        switch (key & 7) {
        case 0: {
            CELLOOM_TRY(value, varint());
            field.value = value;
            return field;
        }
        case 1:
            return fixed(field, 8);
        case 5:
            return fixed(field, 4);
        case 2: {
            CELLOOM_TRY(bytes, varint());
            if (bytes > m_end - m_at)
                return damaged("a part of " + std::to_string(bytes) + " bytes where " + std::to_string(m_end - m_at) + " are left");
            field.isBytes = true;
            field.bytes = {m_at, bytes};
            m_at += bytes;
            return field;
        }
        default:
            return damaged("a field of the kind " + std::to_string(key & 7));
        }
    }

    Result<std::uint64_t> varint() {
        std::uint64_t value = 0;
        for (int shift = 0; shift < 64 && m_at < m_end; shift += 7) {
            const auto byte = static_cast<unsigned char>(m_file[m_at++]);
            if (shift == 63 && byte > 1) break;
            value |= std::uint64_t(byte & 0x7F) << shift;
            if ((byte & 0x80) == 0) return value;
        }
        return damaged("a number without an end");
    }

private:
    Result<Field> fixed(Field field, std::uint64_t bytes) {
        if (bytes > m_end - m_at) return damaged("a number that is cut off");
        m_at += bytes;
        return field;
    }
    tl::unexpected<Error> damaged(const std::string& what) const {
        return fail("is no MindSpore checkpoint, or a damaged one: at byte " + std::to_string(m_at) + " it has " + what + ".",
                    "Is it complete? Encrypted checkpoints are not read.");
    }

    std::string_view m_file;
    std::uint64_t m_at, m_end;
};

struct Record {
    std::string_view tag;
    std::vector<std::int64_t> dims;
    std::string_view type;
    Extent content;
    bool isTensor = false;
};

class Reader {
public:
    explicit Reader(std::string_view file) : m_file(file) {}

    Result<TensorTable> read() {
        CELLOOM_TRY(end, endOfMessage());
        for (MessageReader reader(m_file, {0, end}); !reader.isAtEnd();) {
            CELLOOM_TRY(field, reader.next());
            if (field.number != 1 || !field.isBytes) continue;
            CELLOOM_TRY(record, readValue(field.bytes));
            CELLOOM_TRY_STATUS(take(std::move(record)));
        }
        CELLOOM_TRY_STATUS(close());
        if (m_table.tensors.empty()) return fail("holds no tensors.", "Is it a MindSpore checkpoint?");
        return std::move(m_table);
    }

private:
    std::string_view textOf(Extent extent) const { return m_file.substr(extent.offset, extent.bytes); }

    /// Compares the checksum, where one follows.
    Result<std::uint64_t> endOfMessage() const {
        constexpr std::string_view kMark = "crc_num";
        constexpr std::size_t kTail = 17;
        if (m_file.size() < kTail || m_file.substr(m_file.size() - kTail, kMark.size()) != kMark) return m_file.size();
        std::uint64_t claimed = 0;
        for (const char byte : m_file.substr(m_file.size() - 8)) claimed = claimed << 8 | static_cast<unsigned char>(byte);
        const std::uint64_t end = m_file.size() - kTail;
        if (claimed != crc32(m_file.substr(0, end)))
            return fail("does not fit the checksum at its end.", "The file is damaged: copy or download it again.");
        return end;
    }

    Result<Record> readValue(Extent range) const {
        Record record;
        for (MessageReader reader(m_file, range); !reader.isAtEnd();) {
            CELLOOM_TRY(field, reader.next());
            if (field.number == 1 && field.isBytes) record.tag = textOf(field.bytes);
            if (field.number == 2 && field.isBytes) CELLOOM_TRY_STATUS(readTensor(field.bytes, record));
        }
        if (!isUtf8(record.tag)) return fail("names a tensor with bytes that are no UTF-8 text.");
        return record;
    }

    Status readTensor(Extent range, Record& record) const {
        if (record.isTensor) return fail("describes " + inQuotes(record.tag) + " twice in one record.");
        record.isTensor = true;
        for (MessageReader reader(m_file, range); !reader.isAtEnd();) {
            CELLOOM_TRY(field, reader.next());
            if (field.number == 1) CELLOOM_TRY_STATUS(readDims(field, record));
            if (field.number == 2 && field.isBytes) record.type = textOf(field.bytes);
            if (field.number == 3 && field.isBytes) record.content = field.bytes;
        }
        return {};
    }

    Status readDims(const Field& field, Record& record) const {
        const auto add = [&](std::uint64_t value) { record.dims.push_back(static_cast<std::int64_t>(value)); };
        if (!field.isBytes)
            add(field.value);
        else
            for (MessageReader packed(m_file, field.bytes); !packed.isAtEnd() && record.dims.size() <= kMaxDimensions;) {
                CELLOOM_TRY(value, packed.varint());
                add(value);
            }
        if (record.dims.size() > kMaxDimensions) return fail("gives " + inQuotes(record.tag) + " more than 16 dimensions.");
        return {};
    }

    /// Joins the record to the one before, or begins another tensor.
    Status take(Record record) {
        if (!record.isTensor || record.type == "str") {
            tellNotRead(record.tag, record.isTensor ? "text" : "a map parameter");
            return {};
        }
        const auto type = std::find_if(kTypeNames.begin(), kTypeNames.end(), [&](const TypeName& t) { return record.type == t.name; });
        if (type == kTypeNames.end()) {
            tellNotRead(record.tag, "a tensor of the type " + inQuotes(record.type, 20));
            return {};
        }
        if (m_open && m_open->tag == record.tag && m_open->dims == record.dims && m_open->type == record.type) {
            m_entry.pieces.push_back(record.content);
            return {};
        }
        CELLOOM_TRY_STATUS(close());
        m_entry = {.type = type->type, .shape = record.dims, .pieces = {record.content}};
        m_open = std::move(record);
        return {};
    }

    /// The pieces of the tensor that is open must be as long as its shape says.
    Status close() {
        if (!m_open) return {};
        const auto about = [&](const std::string& what) { return fail("holds the tensor " + inQuotes(m_open->tag) + ", which " + what); };
        std::uint64_t held = 0;
        for (const Extent& piece : m_entry.pieces) held += piece.bytes; // each lies inside the file, none twice: no overflow
        if (m_entry.shape == std::vector<std::int64_t>{0} && held > 0) m_entry.shape.clear(); // MindSpore writes a scalar's shape as [0]
        const auto bytes = byteCount(m_entry.type, m_entry.shape);
        if (!bytes) return about(bytes.error().message);
        if (*bytes != held)
            return about("is " + shapeText(m_entry.shape) + " " + nameOf(m_entry.type) + ", " + std::to_string(*bytes) +
                         " bytes, but has " + std::to_string(held) + ".");
        if (m_table.tensors.size() >= kMaxTensors) return fail("holds more than a million tensors.");
        if (!m_table.tensors.emplace(std::string(m_open->tag), std::move(m_entry)).second) return about("is there twice.");
        m_open.reset();
        return {};
    }

    void tellNotRead(std::string_view tag, const std::string& what) {
        if (m_table.notRead.size() < 1000) m_table.notRead.push_back(inQuotes(tag) + " (" + what + ")");
    }

    std::string_view m_file;
    TensorTable m_table;
    std::optional<Record> m_open; // the tensor whose pieces are being gathered
    TensorEntry m_entry;
};

} // namespace

std::vector<std::pair<std::string, Extent>> mindSporeRecords(const std::string& name, ElementType type,
                                                             const std::vector<std::int64_t>& shape, std::uint64_t bytes) {
    const auto varint = [](std::uint64_t value) {
        std::string out;
        for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
        return out + static_cast<char>(value);
    };
    const auto head = [&](int field, std::uint64_t length) { return varint(static_cast<std::uint64_t>(field) << 3 | 2) + varint(length); };
    const std::string typeName =
        std::find_if(kTypeNames.begin(), kTypeNames.end(), [&](const TypeName& t) { return t.type == type; })->name;
    std::string facts;
    for (const std::int64_t dim : shape) facts += varint(1 << 3) + varint(static_cast<std::uint64_t>(dim));
    facts += head(2, typeName.size()) + typeName;
    std::vector<std::pair<std::string, Extent>> out;
    for (std::uint64_t at = 0; at < bytes || at == 0; at += kPieceBytes) {
        const std::uint64_t length = std::min(kPieceBytes, bytes - at);
        const std::string content = head(3, length), tag = head(1, name.size()) + name;
        const std::string tensor = head(2, facts.size() + content.size() + length) + facts + content;
        out.emplace_back(head(1, tag.size() + tensor.size() + length) + tag + tensor, Extent{at, length});
    }
    return out;
}

Result<TensorTable> readMindSporeTable(std::string_view file) {
    return Reader(file).read();
}

} // namespace celloom::engine
