#include "engine/train/metrics.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/abs.h>
#include <ATen/ops/argmax.h>
#include <ATen/ops/bincount.h>
#include <ATen/ops/eq.h>
#include <ATen/ops/ge.h>
#include <ATen/ops/ne.h>
#include <ATen/ops/nonzero.h>
#include <ATen/ops/topk.h>

#include <sstream>

namespace celloom::engine {
namespace {

constexpr std::int64_t kIgnored = -100;
constexpr std::int64_t kMostClasses = 1 << 20;

bool isWhole(const at::Tensor& tensor) { return at::isIntegralType(tensor.scalar_type(), false); }

tl::unexpected<Error> cannotCompare(const at::Tensor& predictions, const at::Tensor& targets, const std::string& what) {
    std::ostringstream out;
    out << "Predictions " << predictions.sizes() << " and targets " << targets.sizes() << " cannot be measured: " << what << ".";
    return fail(out.str(), "Choose a metric that fits the loss.", "evaluate.metrics");
}

tl::unexpected<Error> nothingSeen() { return fail("A metric has seen no item.", "Give data with labels that count.", "evaluate.metrics"); }

/// The class that a row stands for: of scores the largest, of probabilities [N] whether it is at least one half.
at::Tensor classesOf(const at::Tensor& scores) { return scores.dim() > 1 ? at::argmax(scores, -1) : at::ge(scores, 0.5).to(at::kLong); }

Result<at::Tensor> targetClasses(const at::Tensor& predictions, const at::Tensor& targets) {
    if (isWhole(targets)) return targets.to(at::kLong);
    if (targets.sizes() != predictions.sizes()) return cannotCompare(predictions, targets, "the targets are neither numbers of classes nor shares of each");
    return classesOf(targets);
}

double share(std::int64_t part, std::int64_t whole) { return static_cast<double>(part) / static_cast<double>(whole); }

} // namespace

Status ComparingMetric::update(const MetricInput& input) {
    if (m_term >= input.values.compared.size()) return fail("The loss has no term " + std::to_string(m_term + 1) + ", which a metric measures.", {}, "evaluate.metrics");
    const Compared& compared = input.values.compared[m_term];
    if (!compared.predictions.defined()) return {};
    at::Tensor predictions = compared.predictions, targets = compared.targets;
    if (isWhole(targets) && targets.dim() == 1) {
        const at::Tensor counted = at::ne(targets, kIgnored);
        if (!counted.all().item<bool>()) { // sync
            const at::Tensor rows = at::nonzero(counted).flatten();
            predictions = predictions.index_select(0, rows);
            targets = targets.index_select(0, rows);
        }
    }
    return targets.size(0) == 0 ? Status() : compare(predictions, targets);
}

Status Accuracy::compare(const at::Tensor& predictions, const at::Tensor& targets) {
    CELLOOM_TRY(meant, targetClasses(predictions, targets));
    const at::Tensor right = at::eq(classesOf(predictions), meant);
    m_right += right.sum().item<std::int64_t>(); // sync
    m_items += right.numel();
    return {};
}

Result<double> Accuracy::eval() const {
    if (m_items == 0) return nothingSeen();
    return share(m_right, m_items);
}

Status TopKCategoricalAccuracy::compare(const at::Tensor& predictions, const at::Tensor& targets) {
    if (predictions.dim() < 2 || predictions.size(-1) < m_k)
        return cannotCompare(predictions, targets, "fewer than " + std::to_string(m_k) + " classes");
    CELLOOM_TRY(meant, targetClasses(predictions, targets));
    const at::Tensor largest = std::get<1>(at::topk(predictions, m_k, -1));
    m_right += at::eq(largest, meant.unsqueeze(-1)).any(-1).sum().item<std::int64_t>(); // sync
    m_items += meant.numel();
    return {};
}

Result<double> TopKCategoricalAccuracy::eval() const {
    if (m_items == 0) return nothingSeen();
    return share(m_right, m_items);
}

Status ClassMetric::compare(const at::Tensor& predictions, const at::Tensor& targets) {
    CELLOOM_TRY(meant, targetClasses(predictions, targets));
    const std::int64_t classes = predictions.dim() > 1 ? predictions.size(-1) : 2;
    if (classes > kMostClasses) return cannotCompare(predictions, targets, "more than 1048576 classes");
    if (m_meant.defined() && m_meant.size(0) != classes) return cannotCompare(predictions, targets, "the number of classes changed");
    const at::Tensor predicted = classesOf(predictions).flatten(), given = meant.flatten();
    const auto counts = [classes](const at::Tensor& numbers) { return at::bincount(numbers, {}, classes).cpu(); }; // sync
    const at::Tensor right = counts(given.index_select(0, at::nonzero(at::eq(predicted, given)).flatten()));
    const auto add = [](at::Tensor& sum, const at::Tensor& part) { sum = sum.defined() ? sum + part : part; };
    const at::Tensor all = counts(given);
    if (all.size(0) != classes) return cannotCompare(predictions, targets, "a target is above the last class");
    add(m_right, right);
    add(m_predicted, counts(predicted));
    add(m_meant, all);
    return {};
}

Result<std::vector<double>> ClassMetric::perClass() const {
    if (!m_meant.defined()) return nothingSeen();
    std::vector<double> out;
    const auto *right = m_right.const_data_ptr<std::int64_t>(), *predicted = m_predicted.const_data_ptr<std::int64_t>(),
               *meant = m_meant.const_data_ptr<std::int64_t>();
    for (std::int64_t c = 0; c < m_meant.size(0); ++c)
        out.push_back(value(static_cast<double>(right[c]), static_cast<double>(predicted[c]), static_cast<double>(meant[c])));
    return out;
}

Result<double> ClassMetric::eval() const {
    CELLOOM_TRY(values, perClass());
    double sum = 0;
    for (const double value : values) sum += value;
    return sum / static_cast<double>(values.size());
}

Status MAE::compare(const at::Tensor& predictions, const at::Tensor& targets) {
    if (predictions.sizes() != targets.sizes()) return cannotCompare(predictions, targets, "they differ in shape");
    m_sum += errors(predictions.to(at::kDouble).sub(targets.to(at::kDouble))).sum().item<double>(); // sync
    m_items += targets.size(0);
    return {};
}

at::Tensor MAE::errors(const at::Tensor& differences) const { return at::abs(differences); }
at::Tensor MSE::errors(const at::Tensor& differences) const { return differences.square(); }

Result<double> MAE::eval() const {
    if (m_items == 0) return nothingSeen();
    return m_sum / static_cast<double>(m_items);
}

} // namespace celloom::engine
