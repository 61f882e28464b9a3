// safetensors (huggingface.co/docs/safetensors): memory-mapped reader, bounded and strict, and an atomic writer.
#pragma once

#include "models/base/result.h"

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace celloom::engine {

/// Dtypes F64, F32, F16, BF16, I64, I32, I16, I8, U8, BOOL. Header at most 100 MB; offsets must be contiguous and in range.
class SafetensorsFile {
public:
    static Result<std::shared_ptr<SafetensorsFile>> open(const std::filesystem::path& path);
    virtual ~SafetensorsFile() = default;
    virtual std::vector<std::string> names() const = 0;
    virtual bool has(const std::string& name) const = 0;
    /// A tensor over the mapped file (no copy; keeps the file alive). Do not write into it: clone first.
    virtual Result<at::Tensor> tensor(const std::string& name) const = 0;
    virtual const std::map<std::string, std::string>& metadata() const = 0;
};

/// Writes to a temporary file, syncs, renames. Data lies in order of element size (largest first, so that all is aligned), then name.
/// Tensors are made contiguous and moved to the CPU as needed.
Status writeSafetensors(const std::filesystem::path& path, const std::map<std::string, at::Tensor>& tensors,
                        const std::map<std::string, std::string>& metadata = {{"format", "pt"}});

} // namespace celloom::engine
