// z-loss, as Baichuan 2's code adds it to the cross-entropy: weight · mean of the squared largest logit, over every position that
// predicts a token, those with an ignored label too. It keeps logits from growing.
#pragma once

#include "models/graph/expand.h"

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace celloom::engine {

/// As LossSum, the mean is sum / positions, so that a step spread over several batches weighs each position alike.
struct ZLossSum {
    at::Tensor sum;             // scalar float32, differentiable
    std::int64_t positions = 0; // B * (T - 1)
};
/// logits [B,T,V] float32.
ZLossSum zLossSum(const at::Tensor& logits);

/// The model's own weight, its hyper-parameter z_loss_weight; 0 where it has none. Published models have 0.
double zLossWeightOf(const graph::ExpandedModel& model);

} // namespace celloom::engine
