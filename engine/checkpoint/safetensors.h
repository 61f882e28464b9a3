// safetensors (huggingface.co/docs/safetensors): memory-mapped reader, bounded and strict, and an atomic writer.
#pragma once

#include "engine/checkpoint/tensor_file.h"

namespace celloom::engine {

/// A TensorFile that is safetensors and nothing else: F64, F32, F16, BF16, I64 to I8, U64 to U8, BOOL. Header at most 100 MB; offsets must
/// be contiguous and in range.
class SafetensorsFile : public TensorFile {
public:
    static Result<std::shared_ptr<SafetensorsFile>> open(const std::filesystem::path& path);

private:
    using TensorFile::TensorFile;
};

/// Writes to a temporary file, syncs, renames. Data lies in order of element size (largest first, so that all is aligned), then name.
/// Tensors are made contiguous and moved to the CPU as needed.
Status writeSafetensors(const std::filesystem::path& path, const std::map<std::string, at::Tensor>& tensors,
                        const std::map<std::string, std::string>& metadata = {{"format", "pt"}});

} // namespace celloom::engine
