#include "engine/train/metric.h"

#include "engine/train/metrics.h"

#include <cmath>

namespace celloom::engine {
namespace {

constexpr const char* kKnown = "loss, perplexity, accuracy, top_1_accuracy, top_5_accuracy, precision, recall, F1, mae, mse";

} // namespace

Status LossMetric::update(const MetricInput& input) {
    const std::vector<LossTerm>& terms = input.loss.terms();
    m_terms.resize(terms.size());
    for (std::size_t t = 0; t < terms.size(); ++t) {
        if (terms[t].isRegularizer) continue;
        m_terms[t].weight = terms[t].weight;
        m_terms[t].reduction = terms[t].reduction;
        m_terms[t].sum += input.sums[t];
        m_terms[t].items += input.items[t];
    }
    return {};
}

Result<double> LossMetric::eval() const {
    double out = 0;
    std::int64_t items = 0;
    for (const Sum& term : m_terms) {
        items += term.items;
        if (term.items > 0) out += term.weight * term.sum / (term.reduction == Reduction::Sum ? 1.0 : static_cast<double>(term.items));
    }
    if (items == 0) return fail("The loss of no item was measured.", "Give data with labels that count.");
    return out;
}

Result<double> Perplexity::eval() const {
    CELLOOM_TRY(loss, LossMetric::eval());
    return std::exp(loss);
}

Result<std::shared_ptr<Metric>> metricNamed(const std::string& name, std::size_t term) {
    if (name == "loss") return std::make_shared<LossMetric>();
    if (name == "perplexity") return std::make_shared<Perplexity>();
    if (name == "accuracy" || name == "acc") return std::make_shared<Accuracy>(term);
    if (name == "top_1_accuracy") return std::make_shared<TopKCategoricalAccuracy>(1, term);
    if (name == "top_5_accuracy") return std::make_shared<TopKCategoricalAccuracy>(5, term);
    if (name == "precision") return std::make_shared<Precision>(term);
    if (name == "recall") return std::make_shared<Recall>(term);
    if (name == "F1" || name == "f1") return std::make_shared<F1>(term);
    if (name == "mae") return std::make_shared<MAE>(term);
    if (name == "mse") return std::make_shared<MSE>(term);
    return fail("The metric \"" + name + "\" is not known.", std::string("Known are ") + kKnown + ".", "evaluate.metrics");
}

Result<Metrics> metricsNamed(const std::vector<std::string>& names) {
    Metrics out;
    for (const std::string& name : names) {
        CELLOOM_TRY(metric, metricNamed(name));
        out[name] = std::move(metric);
    }
    return out;
}

} // namespace celloom::engine
