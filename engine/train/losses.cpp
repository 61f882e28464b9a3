#include "engine/train/losses.h"

#include "engine/kernels/cross_entropy.h"
#include "models/base/text.h"

#include <ATen/ops/abs.h>
#include <ATen/ops/binary_cross_entropy.h>
#include <ATen/ops/binary_cross_entropy_with_logits.h>
#include <ATen/ops/l1_loss.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/mse_loss.h>
#include <ATen/ops/ne.h>
#include <ATen/ops/sigmoid.h>

#include <sstream>

namespace celloom::engine {
namespace {

std::string shapeOf(const at::Tensor& tensor) {
    std::ostringstream out;
    out << tensor.sizes();
    return out.str();
}

bool isWhole(const at::Tensor& tensor) { return at::isIntegralType(tensor.scalar_type(), false); }

tl::unexpected<Error> doNotFit(const LossTerm& term, const at::Tensor& prediction, const at::Tensor& target, const std::string& hint) {
    return fail("The output \"" + term.output + "\" is " + shapeOf(prediction) + ", the label \"" + term.label + "\" is " + shapeOf(target) + ": they cannot be compared.",
                hint, "loss");
}

} // namespace

OutputLoss::OutputLoss(TermOptions options)
    : m_terms{{.name = std::move(options.name), .weight = options.weight, .output = std::move(options.output), .label = std::move(options.label),
               .reduction = options.reduction}} {}

Result<LossValues> OutputLoss::values(const Outputs& outputs, const Batch& batch) const {
    const auto found = outputs.find(term().output);
    if (found == outputs.end()) {
        std::string known;
        for (const auto& [name, tensor] : outputs) known += (known.empty() ? "" : ", ") + name;
        return fail("The network has no output \"" + term().output + "\", which the loss compares.", "Its outputs are " + known + ".", "loss");
    }
    const at::Tensor target = batch.column(term().label);
    if (!target.defined()) return fail("The data have no column \"" + term().label + "\", which the loss compares with.", {}, "loss");
    CELLOOM_TRY(compared, compare(found->second, target.to(found->second.device())));
    return LossValues{{compared.first}, {std::move(compared.second)}};
}

std::vector<std::int64_t> SoftmaxCrossEntropyWithLogits::items(const Batch& batch) const {
    const at::Tensor target = batch.column(term().label);
    if (!target.defined() || target.dim() == 0) return {0};
    if (!m_options.sparse) return {target.numel() / std::max<std::int64_t>(target.size(-1), 1)};
    return {at::ne(target, kernels::kIgnoredTarget).sum().item<std::int64_t>()}; // sync: labels are still on the CPU
}

Result<std::pair<at::Tensor, Compared>> SoftmaxCrossEntropyWithLogits::compare(const at::Tensor& logits, const at::Tensor& target) const {
    if (logits.dim() < 2) return doNotFit(term(), logits, target, "Cross-entropy needs a class dimension: [rows, classes].");
    const at::Tensor rows_NC = logits.reshape({-1, logits.size(-1)});
    if (m_options.sparse) {
        if (!isWhole(target)) return fail("The label \"" + term().label + "\" is not of whole numbers.", "A sparse label is the number of a class.", "loss");
        if (target.numel() != rows_NC.size(0)) return doNotFit(term(), logits, target, "A sparse label has one number for each row of logits.");
        const at::Tensor flat = target.reshape({-1}).to(at::kLong);
        return std::pair{kernels::crossEntropySum(rows_NC, flat, m_options.labelSmoothing), Compared{rows_NC.detach(), flat}};
    }
    if (target.sizes() != logits.sizes())
        return doNotFit(term(), logits, target, "A label that is not sparse has a probability for each class; for numbers of classes choose sparse.");
    at::Tensor probabilities = target.reshape({-1, logits.size(-1)}).to(at::kFloat);
    const at::Tensor compared = probabilities;
    if (m_options.labelSmoothing > 0)
        probabilities = probabilities.mul(1 - m_options.labelSmoothing).add(m_options.labelSmoothing / static_cast<double>(logits.size(-1)));
    return std::pair{at::log_softmax(rows_NC, -1).mul(probabilities).sum().neg(), Compared{rows_NC.detach(), compared}};
}

std::vector<std::int64_t> ElementLoss::items(const Batch& batch) const {
    const at::Tensor target = batch.column(term().label);
    return {target.defined() ? target.numel() : 0};
}

Result<std::pair<at::Tensor, Compared>> ElementLoss::compare(const at::Tensor& prediction, const at::Tensor& target) const {
    const bool isColumn = prediction.dim() == target.dim() + 1 && prediction.size(-1) == 1;
    const at::Tensor given = isColumn ? prediction.squeeze(-1) : prediction;
    if (given.sizes() != target.sizes()) return doNotFit(term(), prediction, target, "Both must have the same shape.");
    const at::Tensor wanted = target.to(at::kFloat);
    return std::pair{sum(given, wanted), Compared{measured(given.detach()), wanted}};
}

at::Tensor MSELoss::sum(const at::Tensor& prediction, const at::Tensor& target) const { return at::mse_loss(prediction, target, at::Reduction::Sum); }

at::Tensor L1Loss::sum(const at::Tensor& prediction, const at::Tensor& target) const { return at::l1_loss(prediction, target, at::Reduction::Sum); }

at::Tensor BCELoss::sum(const at::Tensor& prediction, const at::Tensor& target) const {
    return at::binary_cross_entropy(prediction, target, m_weight, at::Reduction::Sum);
}

at::Tensor BCEWithLogitsLoss::sum(const at::Tensor& prediction, const at::Tensor& target) const {
    return at::binary_cross_entropy_with_logits(prediction, target, m_weight, m_positiveWeight, at::Reduction::Sum);
}

at::Tensor BCEWithLogitsLoss::measured(const at::Tensor& prediction) const { return at::sigmoid(prediction); }

WeightedLoss::WeightedLoss(std::vector<std::shared_ptr<const Loss>> parts) : m_parts(std::move(parts)) {
    CELLOOM_CHECK(!m_parts.empty());
    for (const auto& part : m_parts) m_terms.insert(m_terms.end(), part->terms().begin(), part->terms().end());
}

std::vector<std::int64_t> WeightedLoss::items(const Batch& batch) const {
    std::vector<std::int64_t> out;
    for (const auto& part : m_parts) {
        const auto items = part->items(batch);
        out.insert(out.end(), items.begin(), items.end());
    }
    return out;
}

Result<LossValues> WeightedLoss::values(const Outputs& outputs, const Batch& batch) const {
    LossValues out;
    for (const auto& part : m_parts) {
        CELLOOM_TRY(values, part->values(outputs, batch));
        out.sums.insert(out.sums.end(), values.sums.begin(), values.sums.end());
        out.compared.insert(out.compared.end(), values.compared.begin(), values.compared.end());
    }
    return out;
}

} // namespace celloom::engine
