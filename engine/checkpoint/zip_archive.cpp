// Read from the end, as the format asks (APPNOTE.TXT 6.3): end record, zip64 end record, central directory, local headers.
#include "engine/checkpoint/zip_archive.h"

#include "models/base/text.h"

#include <algorithm>
#include <cstring>
#include <set>

namespace celloom::engine {
namespace {

constexpr std::uint64_t kEndBytes = 22, kLocatorBytes = 20, kEnd64Bytes = 56, kCentralBytes = 46, kLocalBytes = 30;

template <class Number> Number numberAt(std::string_view bytes, std::uint64_t offset) {
    CELLOOM_CHECK(offset + sizeof(Number) <= bytes.size());
    Number value;
    std::memcpy(&value, bytes.data() + offset, sizeof value);
    return value;
}

bool hasMark(std::string_view bytes, std::uint64_t offset, const char* mark) {
    return offset <= bytes.size() && bytes.size() - offset >= 4 && std::memcmp(bytes.data() + offset, mark, 4) == 0;
}

auto cutShort() {
    return fail("is no complete zip archive: it has no table of contents at its end.", "The file is cut short: copy or download it again.");
}

struct Directory {
    std::uint64_t offset = 0, bytes = 0, entries = 0;
};

/// The end record is the last thing but a comment of at most 64 KiB.
Result<std::uint64_t> findEnd(std::string_view archive) {
    if (archive.size() < kEndBytes) return cutShort();
    const std::uint64_t last = archive.size() - kEndBytes, first = last > 0xFFFF ? last - 0xFFFF : 0;
    for (std::uint64_t at = last + 1; at-- > first;)
        if (hasMark(archive, at, "PK\5\6") && at + kEndBytes + numberAt<std::uint16_t>(archive, at + 20) == archive.size()) return at;
    return cutShort();
}

/// What the 32-bit record says, unless it says "look into the other one".
template <class Small> bool agrees(Small small, std::uint64_t large) {
    return small == static_cast<Small>(~Small(0)) || small == large;
}

Result<Directory> readDirectory(std::string_view archive) {
    CELLOOM_TRY(end, findEnd(archive));
    const auto disk = numberAt<std::uint16_t>(archive, end + 4), entries = numberAt<std::uint16_t>(archive, end + 10);
    const auto bytes = numberAt<std::uint32_t>(archive, end + 12), offset = numberAt<std::uint32_t>(archive, end + 16);
    Directory out{offset, bytes, entries};
    std::uint64_t follows = end; // where the central directory must end
    if (end >= kLocatorBytes && hasMark(archive, end - kLocatorBytes, "PK\6\7")) {
        const std::uint64_t locator = end - kLocatorBytes;
        follows = numberAt<std::uint64_t>(archive, locator + 8);
        if (locator < kEnd64Bytes || follows != locator - kEnd64Bytes || !hasMark(archive, follows, "PK\6\6"))
            return fail("is a zip64 archive whose end record is not where it says.", "The file is damaged.");
        out = {numberAt<std::uint64_t>(archive, follows + 48), numberAt<std::uint64_t>(archive, follows + 40),
               numberAt<std::uint64_t>(archive, follows + 32)};
        if (!agrees(entries, out.entries) || !agrees(bytes, out.bytes) || !agrees(offset, out.offset))
            return fail("is a zip archive whose zip64 sizes contradict its other sizes.", "The file is damaged or forged.");
    }
    if (disk != 0 && disk != 0xFFFF) return fail("is one part of a zip archive over several disks.");
    if (out.offset > follows || out.bytes != follows - out.offset)
        return fail("is a zip archive whose table of contents is not where it says.", "The file is damaged, or something was added to it.");
    if (out.entries > kMaxTensors || out.entries * kCentralBytes > out.bytes)
        return fail("is a zip archive that claims " + std::to_string(out.entries) + " entries, more than its table of contents can hold.");
    return out;
}

/// The 64-bit values of the extra field, in their fixed order, for those that the record itself leaves at the highest 32-bit number.
Status readZip64(std::string_view extra, std::vector<std::uint64_t*> wanted) {
    wanted.erase(std::remove_if(wanted.begin(), wanted.end(), [](const std::uint64_t* value) { return *value != 0xFFFFFFFF; }),
                 wanted.end());
    if (wanted.empty()) return {};
    for (std::uint64_t at = 0; extra.size() - at >= 4;) {
        const auto kind = numberAt<std::uint16_t>(extra, at), bytes = numberAt<std::uint16_t>(extra, at + 2);
        at += 4;
        if (bytes > extra.size() - at) break;
        if (kind == 1 && bytes >= 8 * wanted.size()) {
            for (std::size_t i = 0; i < wanted.size(); ++i) *wanted[i] = numberAt<std::uint64_t>(extra, at + 8 * i);
            return {};
        }
        at += bytes;
    }
    return fail("lacks its zip64 sizes.");
}

struct CentralRecord {
    ZipEntry entry;
    std::uint64_t local = 0; // offset of its local header
};

/// The record at `at`, which moves past it. Errors say what is wrong with the entry, whose name the caller puts before.
Result<CentralRecord> readCentral(std::string_view directory, std::uint64_t& at) {
    if (directory.size() - at < kCentralBytes || !hasMark(directory, at, "PK\1\2")) return fail("has a damaged record.");
    const auto flags = numberAt<std::uint16_t>(directory, at + 8), method = numberAt<std::uint16_t>(directory, at + 10);
    const auto nameBytes = numberAt<std::uint16_t>(directory, at + 28), extraBytes = numberAt<std::uint16_t>(directory, at + 30),
               commentBytes = numberAt<std::uint16_t>(directory, at + 32);
    const std::uint64_t after = kCentralBytes + std::uint64_t(nameBytes) + extraBytes + commentBytes;
    if (after > directory.size() - at) return fail("has a damaged record.");
    CentralRecord out;
    out.entry.name = directory.substr(at + kCentralBytes, nameBytes);
    out.entry.crc = numberAt<std::uint32_t>(directory, at + 16);
    std::uint64_t stored = numberAt<std::uint32_t>(directory, at + 20), bytes = numberAt<std::uint32_t>(directory, at + 24);
    out.local = numberAt<std::uint32_t>(directory, at + 42);
    CELLOOM_TRY_STATUS(readZip64(directory.substr(at + kCentralBytes + nameBytes, extraBytes), {&bytes, &stored, &out.local}));
    if ((flags & 1) != 0) return fail("is encrypted.");
    if (method != 0) return fail("is compressed (method " + std::to_string(method) + "); torch.save stores its entries.");
    if (stored != bytes) return fail("has two sizes: " + std::to_string(stored) + " and " + std::to_string(bytes) + " bytes.");
    out.entry.data.bytes = bytes;
    at += after;
    return out;
}

/// Finds the data behind the local header, which must be about the same entry and end before `limit`.
Status locate(std::string_view archive, CentralRecord& record, std::uint64_t limit) {
    if (record.local > limit || limit - record.local < kLocalBytes || !hasMark(archive, record.local, "PK\3\4"))
        return fail("has no header where the table of contents says.");
    const std::uint64_t nameBytes = numberAt<std::uint16_t>(archive, record.local + 26),
                        extraBytes = numberAt<std::uint16_t>(archive, record.local + 28);
    record.entry.data.offset = record.local + kLocalBytes + nameBytes + extraBytes;
    if (record.entry.data.offset > limit || record.entry.data.bytes > limit - record.entry.data.offset)
        return fail("leaves the archive: it claims " + std::to_string(record.entry.data.bytes) + " bytes.");
    if (archive.substr(record.local + kLocalBytes, nameBytes) != record.entry.name ||
        numberAt<std::uint16_t>(archive, record.local + 8) != 0)
        return fail("has a header that contradicts the table of contents.");
    return {};
}

tl::unexpected<Error> about(std::string_view name, const Error& error) {
    return fail("is a zip archive whose entry " + inQuotes(name) + " " + error.message,
                error.hint.empty() ? "The file is damaged or was not written by torch.save." : error.hint);
}

} // namespace

Result<std::vector<ZipEntry>> readZip(std::string_view archive) {
    CELLOOM_TRY(where, readDirectory(archive));
    const std::string_view directory = archive.substr(where.offset, where.bytes);
    std::vector<CentralRecord> records;
    std::set<std::string_view> names;
    std::uint64_t at = 0;
    for (std::uint64_t i = 0; i < where.entries; ++i) {
        auto record = readCentral(directory, at);
        if (!record) return about("number " + std::to_string(i + 1), record.error());
        if (auto status = locate(archive, *record, where.offset); !status) return about(record->entry.name, status.error());
        if (!names.insert(record->entry.name).second) return about(record->entry.name, Error{"is there twice."});
        records.push_back(*record);
    }
    if (at != directory.size()) return fail("is a zip archive with more in its table of contents than it counts.", "The file is damaged.");
    std::sort(records.begin(), records.end(), [](const auto& a, const auto& b) { return a.local < b.local; });
    std::vector<ZipEntry> out;
    std::uint64_t end = 0;
    for (const CentralRecord& record : records) {
        if (record.local < end) return about(record.entry.name, Error{"overlaps another one."});
        end = record.entry.data.offset + record.entry.data.bytes;
        out.push_back(record.entry);
    }
    return out;
}

} // namespace celloom::engine
