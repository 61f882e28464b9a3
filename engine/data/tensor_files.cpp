#include "engine/data/tensor_files.h"

#include "engine/checkpoint/safetensors.h"
#include "models/base/text.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/nonzero.h>

namespace celloom::engine {
namespace {

using Columns = std::map<std::string, at::Tensor>;

Result<at::Tensor> column(const SafetensorsFile& file, const std::string& name) {
    CELLOOM_TRY(tensor, file.tensor(name));
    const std::string place = file.path().string();
    if (tensor.dim() == 0 || tensor.numel() == 0) return fail("has the column \"" + name + "\" without a row.", "The first dimension counts the rows.", place);
    const bool isWhole = at::isIntegralType(tensor.scalar_type(), false);
    const at::Tensor out = tensor.to(isWhole ? at::kLong : at::kFloat);
    if (isWhole) return out;
    const at::Tensor bad = at::isfinite(out).logical_not();
    if (!bad.any().item<bool>()) return out;
    return fail("has NaN or an infinite number in the column \"" + name + "\", row " + std::to_string(at::nonzero(bad)[0][0].item<std::int64_t>()) + ".",
                "Rows count from 0. Leave such rows out.", place);
}

Result<Columns> read(const std::filesystem::path& path) {
    CELLOOM_TRY(file, SafetensorsFile::open(path));
    Columns out;
    for (const std::string& name : file->names()) {
        CELLOOM_TRY(tensor, column(*file, name));
        out[name] = tensor;
    }
    if (out.empty()) return fail("holds no column.", "Give tensors [rows, …] by name.", path.string());
    return out;
}

std::string namesOf(const Columns& columns) {
    std::vector<std::string> names;
    for (const auto& [name, tensor] : columns) names.push_back(name);
    return joined(names);
}

/// Whether the second file goes on where the first ends.
Status checkAlike(const Columns& first, const Columns& next, const std::string& place) {
    for (const auto& [name, tensor] : first) {
        const auto found = next.find(name);
        if (found == next.end() || next.size() != first.size())
            return fail("has the columns " + namesOf(next) + "; the files before have " + namesOf(first) + ".", "All files need the same columns.", place);
        if (found->second.sizes().slice(1) != tensor.sizes().slice(1) || found->second.scalar_type() != tensor.scalar_type())
            return fail("has a column \"" + name + "\" of another shape or type than the files before.", {}, place);
    }
    return {};
}

} // namespace

Result<std::shared_ptr<TensorDataset>> openTensorFiles(const std::vector<std::filesystem::path>& paths) {
    std::map<std::string, std::vector<at::Tensor>> parts;
    Columns first;
    for (const auto& path : paths) {
        CELLOOM_TRY(columns, read(path));
        if (first.empty()) first = columns;
        CELLOOM_TRY_STATUS(checkAlike(first, columns, path.string()));
        for (const auto& [name, tensor] : columns) parts[name].push_back(tensor);
    }
    Columns whole;
    for (const auto& [name, tensors] : parts) whole[name] = tensors.size() == 1 ? tensors[0] : at::cat(tensors);
    return TensorDataset::create(std::move(whole));
}

} // namespace celloom::engine
