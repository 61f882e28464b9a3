#include "tests/fuzz/fuzz_targets.h"

#include "tests/engine/checkpoint_helper.h"

namespace celloom::fuzz {
namespace {

using namespace celloom::engine;

void checkInside(Extent extent, std::uint64_t fileBytes) {
    CELLOOM_CHECK(extent.offset <= fileBytes && extent.bytes <= fileBytes - extent.offset);
}

/// Highest element index + 1 that the strides reach.
std::uint64_t reachOf(const TensorEntry& entry) {
    std::uint64_t last = 0;
    for (std::size_t i = 0; i < entry.shape.size(); ++i)
        last += static_cast<std::uint64_t>(entry.shape[i] - 1) * static_cast<std::uint64_t>(entry.strides[i]);
    return last + 1;
}

/// What tensor_file and everything above it rely on.
void checkTable(const Result<TensorTable>& table, std::string_view file) {
    if (!table) {
        CELLOOM_CHECK(!table.error().message.empty());
        return;
    }
    for (const auto& [name, entry] : table->tensors) {
        const auto bytes = byteCount(entry.type, entry.shape);
        CELLOOM_CHECK(bytes && *bytes <= file.size() && !entry.pieces.empty());
        std::uint64_t held = 0;
        for (const Extent& piece : entry.pieces) {
            checkInside(piece, file.size());
            held += piece.bytes;
        }
        if (entry.strides.empty() || *bytes == 0)
            CELLOOM_CHECK(held == *bytes);
        else
            CELLOOM_CHECK(entry.strides.size() == entry.shape.size() && held == reachOf(entry) * sizeOf(entry.type));
        CELLOOM_CHECK(entry.checksum >= -1 && entry.checksum < static_cast<int>(table->checksums.size()));
    }
    for (const Checksum& checksum : table->checksums) checkInside(checksum.extent, file.size());
}

} // namespace

void safetensors(std::string_view file) {
    checkTable(readSafetensorsTable(file), file);
}

void torch(std::string_view file) {
    checkTable(readTorchTable(file), file);
}

void pickle(std::string_view bytes) {
    const std::string archive = test::archiveOf(std::string(bytes));
    checkTable(readTorchTable(archive), archive);
}

void ckpt(std::string_view file) {
    checkTable(readMindSporeTable(file), file);
}

} // namespace celloom::fuzz
