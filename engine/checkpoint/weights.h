// A model's weights on disk: which rows of which files hold each parameter, whatever the format and whoever named them. One tensor at a
// time is read from them, so that opening a checkpoint never takes its size twice.
#pragma once

#include "engine/checkpoint/tensor_file.h"
#include "models/graph/expand.h"

#include <memory>
#include <string>
#include <vector>

namespace celloom::engine {

/// A parameter that a model has: its path ("layers.0.mlp.up_proj.weight") and shape.
struct WantedTensor {
    std::string path;
    std::vector<std::int64_t> shape;
    bool isBuffer = false; // WeightSpec::isBuffer: float32 in whatever is written
};
/// All parameters of a model, in its order.
std::vector<WantedTensor> tensorsOf(const graph::ExpandedModel& model);

struct WeightPlan {
    /// Rows (of dimension 0) of a tensor in a file.
    struct Rows {
        std::shared_ptr<TensorFile> file;
        std::string name;
        std::int64_t first = 0, count = 0;
        bool isWhole = true;
    };
    struct Item {
        std::string path, name; // name: the checkpoint name of the model's family
        std::vector<std::int64_t> shape;
        ElementType type = ElementType::Float32; // in the file
        std::vector<Rows> rows;                  // one after another they are the parameter
        bool isBuffer = false;
    };
    std::vector<Item> items;
    std::vector<std::string> notRead; // what the files hold besides, in words
};

/// Names in the files: those of the model's family, or MindFormers' names for it. `prefix` is taken off the files' names where they have
/// it. Missing, unexpected and mis-shaped tensors are all told in one error, with a guess; so is a tied head that differs from its
/// embedding.
Result<WeightPlan> planWeights(const std::vector<std::filesystem::path>& files, const graph::ExpandedModel& model,
                               const std::vector<WantedTensor>& wanted, const std::filesystem::path& place, const std::string& prefix = {});

/// Copies the parameter into `target` (of its shape, any float type, any device), converting; then gives the memory of its pages back.
Status copyWeight(const WeightPlan::Item& item, at::Tensor& target);

} // namespace celloom::engine
