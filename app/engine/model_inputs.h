// Inputs of a model from a safetensors file, and the loss of its outputs: what forward and verify share.
#pragma once

#include "engine/exec/network.h"

#include <map>
#include <string>

namespace celloom::app {

/// input_ids [B,T]; optional labels (-100 ignored), attention_mask, segments, positions of the same shape; whole numbers.
Result<engine::Batch> readBatch(const std::string& path);

/// What the network could not compute with, before it tries: ids outside the vocabulary (0: not known), masks other than 0 and 1, positions
/// too far. The error has no place: the caller knows the file.
Status checkValues(const engine::Batch& batch, std::int64_t vocabulary);

/// With labels and "logits", adds "loss": the mean over valid labels, plus the model's z-loss. Fails where every label is ignored.
Status addLoss(const engine::Batch& batch, const engine::Network& network, std::map<std::string, at::Tensor>& results);

} // namespace celloom::app
