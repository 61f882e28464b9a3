// What an evaluation measures: the interface of metrics in the manner of MindSpore's (clear, update, eval), and their names.
#pragma once

#include "engine/train/loss.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace celloom::engine {

/// One batch of an evaluation.
struct MetricInput {
    const Batch& batch; // on the network's device
    const Loss& loss;
    const LossValues& values;               // what the terms compare: predictions and targets
    const std::vector<double>& sums;        // by term, over its items
    const std::vector<std::int64_t>& items; // by term
};

class Metric {
public:
    virtual ~Metric() = default;
    virtual void clear() = 0;
    /// Shapes or types that the metric cannot measure are an error.
    virtual Status update(const MetricInput& input) = 0;
    /// Over all that was seen since clear(). Nothing seen is an error.
    [[nodiscard]] virtual Result<double> eval() const = 0;
};

using Metrics = std::map<std::string, std::shared_ptr<Metric>>; // by the name under which they are reported

/// A metric by MindSpore's name for it: "loss", "perplexity", "accuracy", "top_5_accuracy", "F1" … (metrics.h), of one term of the loss. An
/// unknown name is an error that lists the known.
Result<std::shared_ptr<Metric>> metricNamed(const std::string& name, std::size_t term = 0);
Result<Metrics> metricsNamed(const std::vector<std::string>& names);

/// The loss that training makes small, without regularizers: of each term the mean over all items of the data (MindSpore: the mean of the
/// batches' means).
class LossMetric : public Metric {
public:
    void clear() override { *this = {}; }
    Status update(const MetricInput& input) override;
    Result<double> eval() const override;

private:
    struct Sum {
        double weight = 1, sum = 0;
        std::int64_t items = 0;
        Reduction reduction = Reduction::Mean;
    };
    std::vector<Sum> m_terms;
};

/// exp of the loss.
class Perplexity : public LossMetric {
public:
    Result<double> eval() const override;
};

} // namespace celloom::engine
