// A read-only mapping of a whole file.
#pragma once

#include "engine/checkpoint/tensor_table.h"

#include <filesystem>
#include <memory>

namespace celloom::engine {

class MappedFile {
public:
    static Result<std::shared_ptr<MappedFile>> open(const std::filesystem::path& path);
    MappedFile(const MappedFile&) = delete;
    MappedFile& operator=(const MappedFile&) = delete;
    ~MappedFile();

    std::string_view bytes() const { return {m_data, m_size}; }
    /// Gives the memory of this part back to the system; it is read from the file again where someone looks at it.
    void release(Extent part) const;

private:
    MappedFile(const char* data, std::uint64_t size) : m_data(data), m_size(size) {}
    const char* m_data;
    std::uint64_t m_size;
};

} // namespace celloom::engine
