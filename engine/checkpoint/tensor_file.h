// A file of named tensors, whatever its format, over mapped memory: safetensors, pytorch_model.bin, MindSpore's .ckpt.
#pragma once

#include "engine/checkpoint/mapped_file.h"

#include <ATen/core/Tensor.h>

#include <memory>
#include <mutex>
#include <set>

namespace celloom::engine {

at::ScalarType scalarTypeOf(ElementType type);
/// Fails for what no file format here has (complex, quantised).
Result<ElementType> elementTypeOf(at::ScalarType type);

class TensorFile {
public:
    enum class Format { Safetensors, Torch, MindSpore };

    /// Finds the format by the content, and reads the table of tensors; no tensor is read. Nothing in the file is executed.
    static Result<std::shared_ptr<TensorFile>> open(const std::filesystem::path& path);

    Format format() const { return m_format; }
    const std::filesystem::path& path() const { return m_path; }
    std::vector<std::string> names() const; // in order
    bool has(const std::string& name) const { return m_table.tensors.contains(name); }
    const std::map<std::string, TensorEntry>& entries() const { return m_table.tensors; }
    const std::map<std::string, std::string>& metadata() const { return m_table.metadata; }
    /// What else the file holds, in words.
    const std::vector<std::string>& notRead() const { return m_table.notRead; }

    /// A tensor over the mapped file (no copy, except where it lies unaligned or in pieces); it keeps the file mapped. Never write into it:
    /// clone first. Where the file has a checksum for it, that is compared the first time. May be called from several threads.
    Result<at::Tensor> tensor(const std::string& name) const;
    /// Gives back the memory that looking at the tensor has taken. A tensor that is still around reads it again.
    void release(const std::string& name) const;

protected:
    TensorFile(std::filesystem::path path, std::shared_ptr<MappedFile> file, TensorTable table, Format format)
        : m_path(std::move(path)), m_file(std::move(file)), m_table(std::move(table)), m_format(format) {}

private:
    Status compareChecksum(const TensorEntry& entry) const;
    at::Tensor tensorOver(const TensorEntry& entry) const;

    std::filesystem::path m_path;
    std::shared_ptr<MappedFile> m_file;
    TensorTable m_table;
    Format m_format;
    mutable std::mutex m_mutex; // of m_compared
    mutable std::set<int> m_compared;
};

} // namespace celloom::engine
