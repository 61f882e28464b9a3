// Files of named columns: safetensors whose tensors are [rows, …], one row an example.
#pragma once

#include "engine/data/dataset.h"

#include <filesystem>

namespace celloom::engine {

/// All files must have the same columns, in the same shapes but for the rows; they follow one another. Whole numbers become int64, all others
/// and truth values float32. NaN and infinite numbers are refused, with column and row.
Result<std::shared_ptr<TensorDataset>> openTensorFiles(const std::vector<std::filesystem::path>& paths);

} // namespace celloom::engine
