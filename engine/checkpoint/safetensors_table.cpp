// safetensors: 8 bytes of header length, a JSON header, then the tensors' bytes. Nothing of a file is trusted before it is checked.
#include "engine/checkpoint/tensor_table.h"
#include "models/base/text.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

namespace celloom::engine {
using nlohmann::json;
namespace {

constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;
constexpr std::size_t kMaxKeys = 2'000'000; // of half a million tensors; in memory each key takes many times its bytes
constexpr std::size_t kMaxValues = 64;      // after one key: a shape has at most kMaxDimensions

struct TypeCode {
    const char* code;
    ElementType type;
};
constexpr std::array kTypeCodes = {
    TypeCode{"F64", ElementType::Float64},   TypeCode{"F32", ElementType::Float32}, TypeCode{"F16", ElementType::Float16},
    TypeCode{"BF16", ElementType::BFloat16}, TypeCode{"I64", ElementType::Int64},   TypeCode{"I32", ElementType::Int32},
    TypeCode{"I16", ElementType::Int16},     TypeCode{"I8", ElementType::Int8},     TypeCode{"U64", ElementType::UInt64},
    TypeCode{"U32", ElementType::UInt32},    TypeCode{"U16", ElementType::UInt16},  TypeCode{"U8", ElementType::UInt8},
    TypeCode{"BOOL", ElementType::Bool}};

/// Leaves the JSON parser early, before a hostile header has become gigabytes; caught in parseHeader.
struct Refusal {
    std::string message;
};

/// Looks on while a header is parsed. Throws Refusal.
class HeaderWatch {
public:
    bool operator()(int depth, json::parse_event_t event, json& parsed) {
        if (event == json::parse_event_t::key) {
            // A name given twice would hide a tensor; nlohmann would keep the last in silence.
            if (!m_keys[static_cast<std::size_t>(depth)].insert(parsed.get<std::string>()).second)
                throw Refusal{"its header names " + inQuotes(parsed.get<std::string>()) + " twice."};
            if (++m_keyCount > kMaxKeys) throw Refusal{"its header holds more than " + std::to_string(kMaxKeys) + " names."};
            m_values = 0;
            return true;
        }
        if (++m_values > kMaxValues) throw Refusal{"its header holds a list too long for a shape."};
        if (event == json::parse_event_t::object_start || event == json::parse_event_t::array_start) {
            if (depth > 3) throw Refusal{"its header nests too deep."};
            m_keys.resize(static_cast<std::size_t>(std::max(depth, 0)) + 2);
            m_keys.back().clear();
        }
        return true;
    }

private:
    std::vector<std::set<std::string>> m_keys = std::vector<std::set<std::string>>(1); // of the objects that are open
    std::size_t m_keyCount = 0, m_values = 0;
};

Result<json> parseHeader(std::string_view text) {
    if (text.empty() || text.front() != '{') return fail("its header is no JSON object.");
    try {
        HeaderWatch watch;
        json header = json::parse(text, std::ref(watch), false);
        if (!header.is_object()) return fail("its header is no JSON object.");
        return header;
    } catch (const Refusal& refusal) {
        return fail(refusal.message);
    }
}

/// `dataStart`: where in the file the data part begins. Errors say what is wrong with the tensor; the caller names it.
Result<TensorEntry> parseEntry(const json& value, std::uint64_t dataStart) {
    if (!value.is_object() || !value.contains("dtype") || !value.contains("shape") || !value.contains("data_offsets"))
        return fail("lacks dtype, shape or data_offsets.");
    TensorEntry entry;
    const auto code = std::find_if(kTypeCodes.begin(), kTypeCodes.end(), [&](const TypeCode& t) { return value["dtype"] == t.code; });
    if (code == kTypeCodes.end())
        return fail("has dtype " +
                    (value["dtype"].is_string() ? inQuotes(value["dtype"].get<std::string>()) : value["dtype"].dump().substr(0, 80)) +
                    ", which is not supported.");
    entry.type = code->type;
    const json& shape = value["shape"];
    const json& offsets = value["data_offsets"];
    if (!shape.is_array() || shape.size() > kMaxDimensions) return fail("has no valid shape.");
    if (!offsets.is_array() || offsets.size() != 2 || !offsets[0].is_number_unsigned() || !offsets[1].is_number_unsigned())
        return fail("has no valid data_offsets.");
    for (const json& dim : shape) {
        if (!dim.is_number_unsigned()) return fail("has no valid shape.");
        if (dim.get<std::uint64_t>() >> 63 != 0) return fail("has a shape too large for this machine.");
        entry.shape.push_back(dim.get<std::int64_t>());
    }
    CELLOOM_TRY(bytes, byteCount(entry.type, entry.shape));
    const auto begin = offsets[0].get<std::uint64_t>(), end = offsets[1].get<std::uint64_t>();
    if (end < begin || end - begin != bytes)
        return fail("has data_offsets that do not fit its shape (" + std::to_string(bytes) + " bytes).");
    if (begin > std::numeric_limits<std::uint64_t>::max() - dataStart) return fail("has data_offsets too large for this machine.");
    entry.pieces = {{dataStart + begin, bytes}};
    return entry;
}

/// The data part must be used from its first byte to its last, without gaps and overlaps.
Status checkLayout(const TensorTable& table, std::uint64_t dataStart, std::uint64_t fileBytes) {
    std::vector<std::pair<Extent, std::string>> order;
    for (const auto& [name, entry] : table.tensors) order.emplace_back(entry.pieces[0], name);
    std::sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
        return std::pair(a.first.offset, a.first.bytes) < std::pair(b.first.offset, b.first.bytes);
    });
    std::uint64_t position = dataStart;
    for (const auto& [extent, name] : order) {
        if (extent.offset != position) return fail("tensor " + inQuotes(name) + " overlaps another or leaves a gap before it.");
        if (extent.bytes > fileBytes - position)
            return fail("tensor " + inQuotes(name) + " ends at byte " + std::to_string(position - dataStart + extent.bytes) + " of " +
                            std::to_string(fileBytes - dataStart) + ".",
                        "The file is cut short: copy or download it again.");
        position += extent.bytes;
    }
    if (position != fileBytes) return fail(std::to_string(fileBytes - position) + " bytes follow the last tensor.");
    return {};
}

Status readMetadata(const json& value, std::map<std::string, std::string>& metadata) {
    if (!value.is_object()) return fail("its __metadata__ is no object.");
    for (const auto& [key, text] : value.items()) {
        if (!text.is_string()) return fail("its __metadata__ entry " + inQuotes(key) + " is no string.");
        metadata.emplace(key, text.get<std::string>());
    }
    return {};
}

Result<TensorTable> read(std::string_view file) {
    if (file.size() < 8) return fail("is too short for a safetensors file.", "Was it copied completely?");
    std::uint64_t headerBytes = 0;
    std::memcpy(&headerBytes, file.data(), 8);
    if (headerBytes > kMaxHeaderBytes) return fail("its header claims " + std::to_string(headerBytes) + " bytes; at most 100 MB are read.");
    if (headerBytes > file.size() - 8) return fail("its header claims more bytes than the file has.", "Was it copied completely?");
    CELLOOM_TRY(header, parseHeader(file.substr(8, headerBytes)));
    TensorTable table;
    for (const auto& [name, value] : header.items()) {
        if (name == "__metadata__") {
            CELLOOM_TRY_STATUS(readMetadata(value, table.metadata));
            continue;
        }
        auto entry = parseEntry(value, 8 + headerBytes);
        if (!entry) return fail("tensor " + inQuotes(name) + " " + entry.error().message, entry.error().hint);
        table.tensors.emplace(name, std::move(*entry));
    }
    CELLOOM_TRY_STATUS(checkLayout(table, 8 + headerBytes, file.size()));
    return table;
}

} // namespace

const char* safetensorsCode(ElementType type) {
    return std::find_if(kTypeCodes.begin(), kTypeCodes.end(), [&](const TypeCode& t) { return t.type == type; })->code; // all are there
}

Result<TensorTable> readSafetensorsTable(std::string_view file) {
    auto table = read(file);
    if (!table && table.error().hint.empty()) return fail(table.error().message, "This is no valid safetensors file.");
    return table;
}

} // namespace celloom::engine
