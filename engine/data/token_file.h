// Rows from token files: safetensors with input_ids [N,T] or [S,B,T] and, optionally, labels of the same shape.
#pragma once

#include "engine/data/dataset.h"
#include "engine/data/sources.h"

namespace celloom::engine {

class TokenFileDataset : public Dataset {
public:
    /// Rows of all files in their order; [S,B,T] counts as S*B rows. Fails where shapes or types differ, or an id is outside [0, vocabSize).
    static Result<std::unique_ptr<TokenFileDataset>> open(const std::vector<std::filesystem::path>& paths, std::int64_t vocabSize);
    std::int64_t size() const override { return m_ids.size(0); }
    std::int64_t sequenceLength() const { return m_ids.size(1); }
    Row get(std::int64_t index) const override { return {m_ids[index], m_labels[index], {}, {}}; }

private:
    at::Tensor m_ids, m_labels; // int64 [N,T]
};

} // namespace celloom::engine
