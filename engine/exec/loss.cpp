// The loss of language models.
#include "engine/exec/network.h"
#include "engine/kernels/cross_entropy.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/isfinite.h>

namespace celloom::engine {
/// Shifting the labels spares a copy of the logits.
at::Tensor shiftedTargets(const at::Tensor& labels, const at::Tensor& segments) {
    at::NoGradGuard guard;
    at::Tensor targets = at::full_like(labels, kernels::kIgnoredTarget);
    const std::int64_t next = labels.size(1) - 1;
    if (next <= 0) return targets;
    targets.narrow(1, 0, next).copy_(labels.narrow(1, 1, next));
    if (segments.defined()) {
        const at::Tensor documents = segments.to(labels.device());
        targets.narrow(1, 0, next).masked_fill_(documents.narrow(1, 1, next) != documents.narrow(1, 0, next), kernels::kIgnoredTarget);
    }
    return targets;
}

LossSum languageModelLoss(const at::Tensor& logits, const at::Tensor& labels, const at::Tensor& segments) {
    CELLOOM_CHECK(logits.dim() == 3 && labels.dim() == 2 && logits.size(0) == labels.size(0) && logits.size(1) == labels.size(1));
    const at::Tensor targets = shiftedTargets(labels.to(logits.device()), segments).flatten();
    LossSum loss;
    loss.count = targets.ne(kernels::kIgnoredTarget).sum().item<std::int64_t>(); // sync: the mean needs it
    loss.sum = kernels::crossEntropySum(logits.flatten(0, 1), targets);
    return loss;
}

LossTargets lossTargets(const at::Tensor& labels, const at::Tensor& segments) {
    at::NoGradGuard guard;
    const at::Tensor all = shiftedTargets(labels, segments).flatten();
    LossTargets out;
    out.positions = all.ne(kernels::kIgnoredTarget).nonzero().flatten();
    out.targets = all.index_select(0, out.positions);
    out.all = all.numel();
    return out;
}

LossSum languageModelLoss(const at::Tensor& logits, const LossTargets& targets) {
    CELLOOM_CHECK(logits.dim() == 3 && logits.size(0) == 1 && logits.size(1) == targets.targets.size(0));
    return {kernels::crossEntropySum(logits.flatten(0, 1), targets.targets.to(logits.device())), targets.targets.size(0)};
}

bool isFinite(const at::Tensor& tensor) {
    return at::isfinite(tensor).all().item<bool>();
} // sync

} // namespace celloom::engine
