#include "engine/exec/z_loss.h"

#include "models/base/result.h"

#include <ATen/ops/max.h>

#include <algorithm>

namespace celloom::engine {

ZLossSum zLossSum(const at::Tensor& logits) {
    CELLOOM_CHECK(logits.dim() == 3);
    const std::int64_t predicting = std::max<std::int64_t>(logits.size(1) - 1, 0);
    return {std::get<0>(at::max(logits.narrow(1, 0, predicting), -1)).square().sum(), logits.size(0) * predicting};
}

double zLossWeightOf(const graph::ExpandedModel& model) {
    const auto found = model.hyper.find("z_loss_weight");
    if (found == model.hyper.end()) return 0;
    if (const auto* weight = std::get_if<double>(&found->second)) return *weight;
    if (const auto* weight = std::get_if<std::int64_t>(&found->second)) return static_cast<double>(*weight);
    return 0;
}

} // namespace celloom::engine
