// safetensors: 8 bytes of header length, a JSON header, then the tensors' bytes. Nothing of a file is trusted before it is checked.
#include "engine/checkpoint/safetensors.h"

#include "models/base/files.h"

#include <ATen/ops/from_blob.h>
#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace celloom::engine {
namespace fs = std::filesystem;
using nlohmann::json;
namespace {

static_assert(std::endian::native == std::endian::little, "safetensors is little-endian; this reader maps it as it is");

constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;
constexpr std::size_t kMaxDimensions = 16;

struct DtypeName {
    const char* name;
    at::ScalarType type;
};
constexpr std::array kDtypes = {DtypeName{"F64", at::kDouble},    DtypeName{"F32", at::kFloat}, DtypeName{"F16", at::kHalf},
                                DtypeName{"BF16", at::kBFloat16}, DtypeName{"I64", at::kLong},  DtypeName{"I32", at::kInt},
                                DtypeName{"I16", at::kShort},     DtypeName{"I8", at::kChar},   DtypeName{"U8", at::kByte},
                                DtypeName{"BOOL", at::kBool}};

struct Entry {
    at::ScalarType type = at::kFloat;
    std::vector<std::int64_t> shape;
    std::uint64_t begin = 0, end = 0; // inside the data part
};

/// A read-only mapping of a whole file. Tensors keep it alive.
class Mapping {
public:
    static Result<std::shared_ptr<Mapping>> open(const fs::path& path) {
        const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
        if (fd < 0) return fail(std::string("cannot be opened: ") + std::strerror(errno) + ".", "Check the path.", path.string());
        struct stat info {};
        const bool isFile = ::fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
        const auto size = isFile ? static_cast<std::uint64_t>(info.st_size) : 0;
        void* data = size > 0 ? ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;
        const int code = errno;
        ::close(fd);
        if (!isFile) return fail("is no regular file.", {}, path.string());
        if (size < 8) return fail("is too short for a safetensors file.", "Was it copied completely?", path.string());
        if (data == MAP_FAILED) return fail(std::string("cannot be mapped: ") + std::strerror(code) + ".", {}, path.string());
        return std::make_shared<Mapping>(static_cast<const char*>(data), size);
    }
    Mapping(const char* data, std::uint64_t size) : m_data(data), m_size(size) {}
    Mapping(const Mapping&) = delete;
    Mapping& operator=(const Mapping&) = delete;
    ~Mapping() { ::munmap(const_cast<char*>(m_data), m_size); }
    const char* data() const { return m_data; }
    std::uint64_t size() const { return m_size; }

private:
    const char* m_data;
    std::uint64_t m_size;
};

Result<json> parseHeader(std::string_view text) {
    if (text.empty() || text.front() != '{') return fail("its header is no JSON object.");
    // A name given twice would hide a tensor; nlohmann would keep the last in silence.
    std::vector<std::set<std::string>> keys(1);
    std::string problem;
    const auto watch = [&](int depth, json::parse_event_t event, json& parsed) {
        if (event == json::parse_event_t::object_start || event == json::parse_event_t::array_start) {
            if (depth > 3) problem = "its header nests too deep.";
            keys.resize(static_cast<std::size_t>(std::max(depth, 0)) + 2);
            keys.back().clear();
        } else if (event == json::parse_event_t::key && !keys[static_cast<std::size_t>(depth)].insert(parsed.get<std::string>()).second)
            problem = "its header names \"" + parsed.get<std::string>() + "\" twice.";
        return problem.empty();
    };
    json header = json::parse(text, watch, false);
    if (!problem.empty()) return fail(problem);
    if (!header.is_object()) return fail("its header is no JSON object.");
    return header;
}

Result<Entry> parseEntry(const std::string& name, const json& value) {
    const auto refuse = [&](const std::string& what) { return fail("tensor \"" + name + "\" " + what); };
    if (!value.is_object() || !value.contains("dtype") || !value.contains("shape") || !value.contains("data_offsets"))
        return refuse("lacks dtype, shape or data_offsets.");
    Entry entry;
    const auto dtype = std::find_if(kDtypes.begin(), kDtypes.end(), [&](const DtypeName& d) { return value["dtype"] == d.name; });
    if (dtype == kDtypes.end()) return refuse("has dtype " + value["dtype"].dump() + ", which is not supported.");
    entry.type = dtype->type;
    const json& shape = value["shape"];
    const json& offsets = value["data_offsets"];
    if (!shape.is_array() || shape.size() > kMaxDimensions) return refuse("has no valid shape.");
    if (!offsets.is_array() || offsets.size() != 2 || !offsets[0].is_number_unsigned() || !offsets[1].is_number_unsigned())
        return refuse("has no valid data_offsets.");
    std::uint64_t bytes = c10::elementSize(entry.type);
    for (const json& dim : shape) {
        if (!dim.is_number_unsigned()) return refuse("has no valid shape.");
        const auto length = dim.get<std::uint64_t>();
        if (length > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()) ||
            __builtin_mul_overflow(bytes, length, &bytes) || bytes > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
            return refuse("has a shape too large for this machine.");
        entry.shape.push_back(static_cast<std::int64_t>(length));
    }
    entry.begin = offsets[0].get<std::uint64_t>();
    entry.end = offsets[1].get<std::uint64_t>();
    if (entry.end < entry.begin || entry.end - entry.begin != bytes)
        return refuse("has data_offsets that do not fit its shape (" + std::to_string(bytes) + " bytes).");
    return entry;
}

/// The data part must be used from its first byte to its last, without gaps and overlaps.
Status checkLayout(const std::map<std::string, Entry>& entries, std::uint64_t dataBytes) {
    std::vector<std::pair<Entry, std::string>> order;
    for (const auto& [name, entry] : entries) order.emplace_back(entry, name);
    std::sort(order.begin(), order.end(),
              [](const auto& a, const auto& b) { return std::pair(a.first.begin, a.first.end) < std::pair(b.first.begin, b.first.end); });
    std::uint64_t position = 0;
    for (const auto& [entry, name] : order) {
        if (entry.begin != position) return fail("tensor \"" + name + "\" overlaps another or leaves a gap before it.");
        if (entry.end > dataBytes)
            return fail("tensor \"" + name + "\" ends at byte " + std::to_string(entry.end) + " of " + std::to_string(dataBytes) + ".",
                        "The file is cut short: copy or download it again.");
        position = entry.end;
    }
    if (position != dataBytes) return fail(std::to_string(dataBytes - position) + " bytes follow the last tensor.");
    return {};
}

class MappedFile final : public SafetensorsFile {
public:
    MappedFile(fs::path path, std::shared_ptr<Mapping> mapping) : m_path(std::move(path)), m_mapping(std::move(mapping)) {}

    Status read() {
        std::uint64_t headerBytes = 0;
        std::memcpy(&headerBytes, m_mapping->data(), 8);
        if (headerBytes > kMaxHeaderBytes)
            return fail("its header claims " + std::to_string(headerBytes) + " bytes; at most 100 MB are read.");
        if (headerBytes > m_mapping->size() - 8)
            return fail("its header claims more bytes than the file has.", "Was it copied completely?");
        CELLOOM_TRY(header, parseHeader({m_mapping->data() + 8, headerBytes}));
        m_dataStart = 8 + headerBytes;
        for (const auto& [name, value] : header.items()) {
            if (name == "__metadata__") {
                CELLOOM_TRY_STATUS(readMetadata(value));
                continue;
            }
            CELLOOM_TRY(entry, parseEntry(name, value));
            m_entries.emplace(name, std::move(entry));
        }
        return checkLayout(m_entries, m_mapping->size() - m_dataStart);
    }

    std::vector<std::string> names() const override {
        std::vector<std::string> out;
        for (const auto& item : m_entries) out.push_back(item.first);
        return out;
    }
    bool has(const std::string& name) const override { return m_entries.contains(name); }
    const std::map<std::string, std::string>& metadata() const override { return m_metadata; }

    Result<at::Tensor> tensor(const std::string& name) const override {
        const auto found = m_entries.find(name);
        if (found == m_entries.end()) return fail("holds no tensor \"" + name + "\".", {}, m_path.string());
        const Entry& entry = found->second;
        char* data = const_cast<char*>(m_mapping->data() + m_dataStart + entry.begin);
        const std::size_t bytes = entry.end - entry.begin;
        if (entry.type == at::kBool && std::any_of(data, data + bytes, [](char value) { return value != 0 && value != 1; }))
            return fail("tensor \"" + name + "\" is BOOL but holds other bytes than 0 and 1.", {}, m_path.string());
        if (reinterpret_cast<std::uintptr_t>(data) % c10::elementSize(entry.type) != 0) { // a header of odd length: legal, but not mappable
            auto copy = std::make_shared<std::vector<std::uint64_t>>(bytes / 8 + 1);
            std::memcpy(copy->data(), data, bytes);
            return at::from_blob(
                copy->data(), entry.shape, [copy](void*) {}, entry.type);
        }
        return at::from_blob(
            data, entry.shape, [mapping = m_mapping](void*) {}, entry.type);
    }

private:
    Status readMetadata(const json& value) {
        if (!value.is_object()) return fail("its __metadata__ is no object.");
        for (const auto& [key, text] : value.items()) {
            if (!text.is_string()) return fail("its __metadata__ entry \"" + key + "\" is no string.");
            m_metadata.emplace(key, text.get<std::string>());
        }
        return {};
    }

    fs::path m_path;
    std::shared_ptr<Mapping> m_mapping;
    std::uint64_t m_dataStart = 0;
    std::map<std::string, Entry> m_entries;
    std::map<std::string, std::string> m_metadata;
};

} // namespace

Result<std::shared_ptr<SafetensorsFile>> SafetensorsFile::open(const fs::path& path) {
    CELLOOM_TRY(mapping, Mapping::open(path));
    auto file = std::make_shared<MappedFile>(path, std::move(mapping));
    if (auto status = file->read(); !status) {
        Error error = std::move(status).error();
        if (error.hint.empty()) error.hint = "This is no valid safetensors file.";
        error.place = path.string();
        return tl::unexpected(std::move(error));
    }
    return file;
}

Status writeSafetensors(const fs::path& path, const std::map<std::string, at::Tensor>& tensors,
                        const std::map<std::string, std::string>& metadata) {
    std::vector<std::pair<std::string, at::Tensor>> order;
    for (const auto& [name, tensor] : tensors) {
        CELLOOM_CHECK(tensor.defined() && name != "__metadata__");
        order.emplace_back(name, tensor.detach().to(at::kCPU).contiguous());
    }
    std::stable_sort(order.begin(), order.end(),
                     [](const auto& a, const auto& b) { return a.second.element_size() > b.second.element_size(); });

    json header = json::object();
    if (!metadata.empty()) header["__metadata__"] = metadata;
    std::uint64_t position = 0;
    std::vector<std::string_view> pieces(2);
    for (const auto& [name, tensor] : order) {
        const auto dtype = std::find_if(kDtypes.begin(), kDtypes.end(), [&](const DtypeName& d) { return d.type == tensor.scalar_type(); });
        CELLOOM_CHECK(dtype != kDtypes.end());
        const auto bytes = static_cast<std::uint64_t>(tensor.nbytes());
        header[name] = {{"dtype", dtype->name}, {"shape", tensor.sizes().vec()}, {"data_offsets", {position, position + bytes}}};
        pieces.emplace_back(static_cast<const char*>(tensor.const_data_ptr()), bytes);
        position += bytes;
    }
    std::string text = header.dump(-1, ' ', false, json::error_handler_t::replace);
    text.resize((text.size() + 7) / 8 * 8, ' '); // the data start on 8 bytes, so that they can be mapped
    const std::uint64_t headerBytes = text.size();
    pieces[0] = {reinterpret_cast<const char*>(&headerBytes), sizeof headerBytes};
    pieces[1] = text;
    return writeFileAtomically(path, pieces);
}

} // namespace celloom::engine
