#include "engine/train/loss.h"

#include "engine/data/dataset.h"
#include "engine/exec/z_loss.h"
#include "engine/kernels/cross_entropy.h"

#include <algorithm>

namespace celloom::engine {
namespace {

/// Where less than this part of the positions counts in the loss, the head computes those alone.
constexpr double kFewLabels = 0.9;

/// What the network's cells add to the loss; no output that a term could compare.
at::Tensor takeAuxiliary(Outputs& outputs) {
    auto node = outputs.extract(Network::kAuxiliaryLoss);
    return node ? node.mapped() : at::Tensor();
}

} // namespace

Result<LossValues> Loss::of(Network& network, const Batch& batch, const ForwardOptions& options) const {
    CELLOOM_TRY(outputs, network.forward(batch, options));
    const at::Tensor auxiliary = takeAuxiliary(outputs);
    CELLOOM_TRY(out, values(outputs, batch));
    out.auxiliary = auxiliary;
    return out;
}

std::vector<std::string> Loss::labels() const {
    std::vector<std::string> out;
    for (const LossTerm& term : terms())
        if (std::find(out.begin(), out.end(), term.label) == out.end()) out.push_back(term.label);
    return out;
}

LanguageModelLoss::LanguageModelLoss(LanguageModelOptions options) : m_options(options) {
    m_terms.push_back({});
    if (options.zLossWeight > 0) m_terms.push_back({.name = "z_loss", .weight = options.zLossWeight, .isRegularizer = true});
}

std::vector<std::int64_t> LanguageModelLoss::items(const Batch& batch) const {
    std::vector<std::int64_t> out{validLabels(batch)};
    if (m_terms.size() > 1) out.push_back(batch.inputIds.size(0) * (batch.inputIds.size(1) - 1));
    return out;
}

Result<LossValues> LanguageModelLoss::values(const Outputs& outputs, const Batch& batch) const {
    return ofAllPositions(outputs, batch, true);
}

Result<LossValues> LanguageModelLoss::ofAllPositions(const Outputs& outputs, const Batch& batch, bool isTraining) const {
    const auto found = outputs.find("logits");
    if (found == outputs.end()) return fail("The network has no output \"logits\", which the loss of language models reads.", "Name the head's output so.");
    const at::Tensor& logits = found->second;
    const at::Tensor targets = shiftedTargets(batch.labels.to(logits.device()), batch.segments).flatten();
    LossValues out{{kernels::crossEntropySum(logits.flatten(0, 1), targets, isTraining ? m_options.labelSmoothing : 0)},
                   {{logits.detach().flatten(0, 1), targets}}};
    if (isTraining && m_options.zLossWeight > 0) out.sums.push_back(zLossSum(logits).sum);
    out.sums.resize(m_terms.size());
    out.compared.resize(m_terms.size());
    return out;
}

Result<LossValues> LanguageModelLoss::of(Network& network, const Batch& batch, const ForwardOptions& options) const {
    const bool hasZLoss = m_options.zLossWeight > 0 && options.training; // it looks at every position
    const LossTargets targets = hasZLoss ? LossTargets() : lossTargets(batch.labels, batch.segments);
    const bool areFew = !hasZLoss && network.logitsComeFromTheHead() && static_cast<double>(targets.targets.size(0)) < kFewLabels * static_cast<double>(targets.all);
    ForwardOptions asked = options;
    if (areFew) asked.headPositions = targets.positions;
    CELLOOM_TRY(outputs, network.forward(batch, asked));
    const at::Tensor auxiliary = takeAuxiliary(outputs);
    if (!areFew) {
        CELLOOM_TRY(all, ofAllPositions(outputs, batch, options.training));
        all.auxiliary = auxiliary;
        return all;
    }
    const at::Tensor& logits = outputs.at("logits");
    const at::Tensor few_N = targets.targets.to(logits.device());
    LossValues out{{kernels::crossEntropySum(logits.flatten(0, 1), few_N, options.training ? m_options.labelSmoothing : 0)},
                   {{logits.detach().flatten(0, 1), few_N}},
                   auxiliary};
    out.sums.resize(m_terms.size());
    out.compared.resize(m_terms.size());
    return out;
}

} // namespace celloom::engine
