// Names of MindFormers' checkpoints, both ways: where a parameter of these families lies in a .ckpt that its convert_weight.py wrote.
#pragma once

#include "models/graph/expand.h"

#include <string>
#include <vector>

namespace celloom::families {

/// Rows (of dimension 0) of a tensor in a file: `count` from `first` on; -1: all of them.
struct TensorRows {
    std::string name;
    std::int64_t first = 0, count = -1;
};

/// The ways in which MindFormers' versions store a parameter; in each, the rows of these tensors, one after another, are the parameter's
/// rows. The first way is what convert_weight.py writes by default, and what an export writes: it uses each tensor whole. The others: q, k
/// and v in one tensor (w_qkv), gate and up in one (w_gate_hidden), InternLM2's wqkv taken apart.
std::vector<std::vector<TensorRows>> mindFormersTensors(const graph::ExpandedModel& model, const std::string& parameterPath);

/// Whether a checkpoint with these names is one of MindFormers.
bool areMindFormersNames(const std::vector<std::string>& names);

/// What MindSpore's training adds to the model's tensors: moments, counters, the loss scale. Holds nothing for a model.
bool isMindSporeTrainingState(const std::string& name);

} // namespace celloom::families
