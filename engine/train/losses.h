// Losses over named outputs, under MindSpore's names (nn/loss), and their weighted sum. Letters in shapes: N items, C classes.
#pragma once

#include "engine/train/loss.h"

namespace celloom::engine {

/// What of network and data a loss compares, and with which weight it counts.
struct TermOptions {
    std::string name = "loss", output = "logits", label = "label";
    double weight = 1;
    Reduction reduction = Reduction::Mean;
};

/// One output against one label column.
class OutputLoss : public Loss {
public:
    const std::vector<LossTerm>& terms() const override { return m_terms; }
    Result<LossValues> values(const Outputs& outputs, const Batch& batch) const override;

protected:
    explicit OutputLoss(TermOptions options);
    /// Sum over the items, differentiable, and what metrics compare. Shapes that do not fit are an error.
    virtual Result<std::pair<at::Tensor, Compared>> compare(const at::Tensor& prediction, const at::Tensor& target) const = 0;
    const LossTerm& term() const { return m_terms[0]; }

private:
    std::vector<LossTerm> m_terms;
};

/// -Σ target · log softmax(logits) over the last dimension. Sparse: target [N] of whole numbers below C, -100 not counted; otherwise [N,C] of
/// probabilities. MindSpore's defaults: not sparse, reduction none. `labelSmoothing` s mixes targets with the uniform distribution: (1 - s) target +
/// s / C (MindSpore's ops.cross_entropy, torch.nn.CrossEntropyLoss).
class SoftmaxCrossEntropyWithLogits : public OutputLoss {
public:
    struct Options {
        TermOptions term{.reduction = Reduction::None};
        bool sparse = false;
        double labelSmoothing = 0;
    };
    explicit SoftmaxCrossEntropyWithLogits(const Options& options) : OutputLoss(options.term), m_options(options) {}
    std::vector<std::int64_t> items(const Batch& batch) const override;

protected:
    Result<std::pair<at::Tensor, Compared>> compare(const at::Tensor& logits, const at::Tensor& target) const override;

private:
    Options m_options;
};

/// Element by element, prediction and target of one shape ([N,1] and [N] are one); items are elements.
class ElementLoss : public OutputLoss {
public:
    std::vector<std::int64_t> items(const Batch& batch) const override;

protected:
    using OutputLoss::OutputLoss;
    Result<std::pair<at::Tensor, Compared>> compare(const at::Tensor& prediction, const at::Tensor& target) const override;
    virtual at::Tensor sum(const at::Tensor& prediction, const at::Tensor& target) const = 0; // both float32, of one shape
    virtual at::Tensor measured(const at::Tensor& prediction) const { return prediction; } // what metrics see
};

/// (prediction - target)².
class MSELoss : public ElementLoss {
public:
    explicit MSELoss(const TermOptions& term = {}) : ElementLoss(term) {}

protected:
    at::Tensor sum(const at::Tensor& prediction, const at::Tensor& target) const override;
};

/// |prediction - target|.
class L1Loss : public ElementLoss {
public:
    explicit L1Loss(const TermOptions& term = {}) : ElementLoss(term) {}

protected:
    at::Tensor sum(const at::Tensor& prediction, const at::Tensor& target) const override;
};

/// -(t log p + (1 - t) log(1 - p)) of probabilities p; logarithms not below -100, as in MindSpore and PyTorch.
class BCELoss : public ElementLoss {
public:
    /// `weight`: of each element, broadcast; may be undefined.
    explicit BCELoss(const TermOptions& term = {}, at::Tensor weight = {}) : ElementLoss(term), m_weight(std::move(weight)) {}

protected:
    at::Tensor sum(const at::Tensor& prediction, const at::Tensor& target) const override;

private:
    at::Tensor m_weight;
};

/// The same of sigmoid(prediction); metrics see the probabilities. `positiveWeight` counts the positives so many times; may be undefined.
class BCEWithLogitsLoss : public ElementLoss {
public:
    explicit BCEWithLogitsLoss(const TermOptions& term = {}, at::Tensor weight = {}, at::Tensor positiveWeight = {})
        : ElementLoss(term), m_weight(std::move(weight)), m_positiveWeight(std::move(positiveWeight)) {}

protected:
    at::Tensor sum(const at::Tensor& prediction, const at::Tensor& target) const override;
    at::Tensor measured(const at::Tensor& prediction) const override;

private:
    at::Tensor m_weight, m_positiveWeight;
};

/// The sum of several losses over one pass of the network: several named outputs, each with its own loss and weight.
class WeightedLoss : public Loss {
public:
    explicit WeightedLoss(std::vector<std::shared_ptr<const Loss>> parts);
    const std::vector<LossTerm>& terms() const override { return m_terms; }
    std::vector<std::int64_t> items(const Batch& batch) const override;
    Result<LossValues> values(const Outputs& outputs, const Batch& batch) const override;

private:
    std::vector<std::shared_ptr<const Loss>> m_parts;
    std::vector<LossTerm> m_terms;
};

} // namespace celloom::engine
