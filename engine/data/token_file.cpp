#include "engine/data/token_file.h"

#include "engine/checkpoint/safetensors.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/logical_or.h>

namespace celloom::engine {
namespace {

Result<at::Tensor> readRows(const SafetensorsFile& file, const std::string& name, const std::string& place) {
    CELLOOM_TRY(tensor, file.tensor(name));
    if (tensor.scalar_type() != at::kLong && tensor.scalar_type() != at::kInt)
        return fail("has \"" + name + "\" that is not int64 or int32.", {}, place);
    if ((tensor.dim() != 2 && tensor.dim() != 3) || tensor.numel() == 0 || tensor.size(-1) < 2)
        return fail("has \"" + name + "\" that is neither [rows, length] nor [steps, rows, length] with at least two tokens a row.", {}, place);
    return tensor.reshape({-1, tensor.size(-1)}).to(at::kLong);
}

Status checkRange(const at::Tensor& rows, std::int64_t vocabSize, bool isLabels, const std::string& name, const std::string& place) {
    at::Tensor bad = at::logical_or(rows.lt(0), rows.ge(vocabSize));
    if (isLabels) bad = bad.logical_and(rows.ne(-100));
    if (!bad.any().item<bool>()) return {};
    const at::Tensor at = bad.nonzero()[0];
    const std::int64_t row = at[0].item<std::int64_t>(), column = at[1].item<std::int64_t>();
    return fail("has the id " + std::to_string(rows[row][column].item<std::int64_t>()) + " in " + name + ", row " + std::to_string(row) + ", position " +
                    std::to_string(column) + "; the model's vocabulary has " + std::to_string(vocabSize) + ".",
                "Were these tokens made for another model?", place);
}

} // namespace

Result<std::unique_ptr<TokenFileDataset>> TokenFileDataset::open(const std::vector<std::filesystem::path>& paths, std::int64_t vocabSize) {
    std::vector<at::Tensor> ids, labels;
    for (const auto& path : paths) {
        CELLOOM_TRY(file, SafetensorsFile::open(path));
        if (!file->has("input_ids")) return fail("has no \"input_ids\".", "A token file holds input_ids and, optionally, labels.", path.string());
        CELLOOM_TRY(rows, readRows(*file, "input_ids", path.string()));
        CELLOOM_TRY_STATUS(checkRange(rows, vocabSize, false, "input_ids", path.string()));
        at::Tensor targets = rows;
        if (file->has("labels")) {
            CELLOOM_TRY(given, readRows(*file, "labels", path.string()));
            if (given.sizes() != rows.sizes()) return fail("has labels of another shape than input_ids.", {}, path.string());
            CELLOOM_TRY_STATUS(checkRange(given, vocabSize, true, "labels", path.string()));
            targets = given;
        }
        if (!ids.empty() && ids[0].size(1) != rows.size(1))
            return fail("has rows of " + std::to_string(rows.size(1)) + " tokens; the files before have " + std::to_string(ids[0].size(1)) + ".", {},
                        path.string());
        ids.push_back(rows);
        labels.push_back(targets);
    }
    CELLOOM_CHECK(!ids.empty());
    auto dataset = std::make_unique<TokenFileDataset>();
    dataset->m_ids = ids.size() == 1 ? ids[0] : at::cat(ids);
    dataset->m_labels = labels.size() == 1 ? labels[0] : at::cat(labels);
    return dataset;
}

} // namespace celloom::engine
