// Metrics of classes and of numbers, under MindSpore's names (train/metrics). Letters in shapes: N items, C classes.
// Each compares one term of the loss. Targets of -100 do not count. Where predictions have no class dimension they are probabilities of class 1.
#pragma once

#include "engine/train/metric.h"

namespace celloom::engine {

/// Compares predictions with targets, of the items that count.
class ComparingMetric : public Metric {
public:
    /// `term`: which of the loss's terms is compared.
    explicit ComparingMetric(std::size_t term) : m_term(term) {}
    Status update(const MetricInput& input) override;

protected:
    /// predictions [N,C] or [N] float32, targets [N] int64 or like the predictions; N > 0.
    virtual Status compare(const at::Tensor& predictions, const at::Tensor& targets) = 0;

private:
    std::size_t m_term;
};

/// Share of items whose largest prediction is the target.
class Accuracy : public ComparingMetric {
public:
    explicit Accuracy(std::size_t term = 0) : ComparingMetric(term) {}
    void clear() override { m_right = m_items = 0; }
    Result<double> eval() const override;

protected:
    Status compare(const at::Tensor& predictions, const at::Tensor& targets) override;

private:
    std::int64_t m_right = 0, m_items = 0;
};

/// Share of items whose target is among the `k` largest predictions.
class TopKCategoricalAccuracy : public ComparingMetric {
public:
    explicit TopKCategoricalAccuracy(std::int64_t k, std::size_t term = 0) : ComparingMetric(term), m_k(k) {}
    void clear() override { m_right = m_items = 0; }
    Result<double> eval() const override;

protected:
    Status compare(const at::Tensor& predictions, const at::Tensor& targets) override;

private:
    std::int64_t m_k, m_right = 0, m_items = 0;
};

/// How often each class was right, predicted and meant. A class that never was counts as 0, as in MindSpore.
class ClassMetric : public ComparingMetric {
public:
    void clear() override { m_right = m_predicted = m_meant = at::Tensor(); }
    /// The mean over classes (macro; MindSpore's eval(average=True)).
    Result<double> eval() const override;
    /// By class (MindSpore's eval()).
    [[nodiscard]] Result<std::vector<double>> perClass() const;

protected:
    using ComparingMetric::ComparingMetric;
    Status compare(const at::Tensor& predictions, const at::Tensor& targets) override;
    [[nodiscard]] virtual double value(double right, double predicted, double meant) const = 0;

private:
    at::Tensor m_right, m_predicted, m_meant; // [C] int64; undefined: nothing seen
};

class Precision : public ClassMetric {
public:
    explicit Precision(std::size_t term = 0) : ClassMetric(term) {}

protected:
    double value(double right, double predicted, double) const override { return predicted > 0 ? right / predicted : 0; }
};

class Recall : public ClassMetric {
public:
    explicit Recall(std::size_t term = 0) : ClassMetric(term) {}

protected:
    double value(double right, double, double meant) const override { return meant > 0 ? right / meant : 0; }
};

class F1 : public ClassMetric {
public:
    explicit F1(std::size_t term = 0) : ClassMetric(term) {}

protected:
    double value(double right, double predicted, double meant) const override { return predicted + meant > 0 ? 2 * right / (predicted + meant) : 0; }
};

/// Sum of |prediction - target| over an item's numbers, averaged over items, as MindSpore counts.
class MAE : public ComparingMetric {
public:
    explicit MAE(std::size_t term = 0) : ComparingMetric(term) {}
    void clear() override { m_sum = 0, m_items = 0; }
    Result<double> eval() const override;

protected:
    Status compare(const at::Tensor& predictions, const at::Tensor& targets) override;
    virtual at::Tensor errors(const at::Tensor& differences) const;

private:
    double m_sum = 0;
    std::int64_t m_items = 0;
};

/// The same of (prediction - target)².
class MSE : public MAE {
public:
    using MAE::MAE;

protected:
    at::Tensor errors(const at::Tensor& differences) const override;
};

} // namespace celloom::engine
