// The table of contents of a zip archive whose entries are stored, not compressed, so that they can be mapped. Bounded and strict.
#pragma once

#include "engine/checkpoint/tensor_table.h"

#include <string_view>
#include <vector>

namespace celloom::engine {

struct ZipEntry {
    std::string_view name; // over the archive's bytes
    Extent data;
    std::uint32_t crc = 0;
};

/// Entries in the order in which their data lie. Refused: compressed or encrypted entries, archives over several disks, entries that
/// overlap, leave the archive or bear one name, and sizes (32-bit and zip64) that contradict each other. Checksums are not compared here.
Result<std::vector<ZipEntry>> readZip(std::string_view archive);

} // namespace celloom::engine
