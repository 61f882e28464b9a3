// What training makes small: the interface of losses, and the loss of language models. Losses over other outputs are in losses.h.
// Letters in shapes: B rows, T tokens, V vocabulary, N items that a mean is taken over.
#pragma once

#include "engine/exec/network.h"

#include <memory>
#include <string>
#include <vector>

namespace celloom::engine {

using Outputs = std::map<std::string, at::Tensor>; // of a network, by name

/// How a term's items become a number (MindSpore's `reduction`). Gradients of None are those of Sum, as MindSpore's training takes them, and what is
/// reported is the mean.
enum class Reduction { Mean, Sum, None };

/// One summand of a loss.
struct LossTerm {
    std::string name = "loss"; // of its metric where there are several
    double weight = 1;
    std::string output = "logits", label = "labels"; // of the network; of the data
    Reduction reduction = Reduction::Mean;
    bool isRegularizer = false; // counts in training, not in an evaluation, and does not make a step worth running
};

/// What a term compares, for metrics. Sparse targets are -100 where they do not count.
struct Compared {
    at::Tensor predictions; // [N,…] float32
    at::Tensor targets;     // [N] int64, or like the predictions
};

struct LossValues {
    std::vector<at::Tensor> sums;   // by term, over the batch's items, unweighted: scalar float32, differentiable; undefined where it has none
    std::vector<Compared> compared; // by term; undefined tensors where there is nothing to compare
    at::Tensor auxiliary = {};      // Network::kAuxiliaryLoss, beside the terms; undefined: none. of() fills it
};

/// A loss is a weighted sum of terms, each the mean over its items. How many items a batch has is known before it is computed, so that a step
/// spread over several batches divides by what all of them have (cases: accumulation weighs by valid tokens).
class Loss {
public:
    virtual ~Loss() = default;
    virtual const std::vector<LossTerm>& terms() const = 0;
    /// By term, of a batch whose labels still lie on the CPU.
    virtual std::vector<std::int64_t> items(const Batch& batch) const = 0;
    /// Of what the network gave for the batch. A shape or a type that does not fit is an error.
    virtual Result<LossValues> values(const Outputs& outputs, const Batch& batch) const = 0;
    /// The network's pass over a batch and its loss. To be overridden where only a part of the outputs is needed.
    virtual Result<LossValues> of(Network& network, const Batch& batch, const ForwardOptions& options) const;

    /// Columns of the data that the terms read, each once.
    [[nodiscard]] std::vector<std::string> labels() const;
};

struct LanguageModelOptions {
    double zLossWeight = 0; // 0: off; see z_loss.h
    double labelSmoothing = 0; // s: the target is (1 - s) of the label and s / V of every word; in training alone, so that perplexities compare
};

/// Cross-entropy of the next token: labels are shifted, -100 and the first label of a packed document are ignored. Where few labels count, only
/// their positions reach the network's head.
class LanguageModelLoss : public Loss {
public:
    explicit LanguageModelLoss(LanguageModelOptions options = {});
    const std::vector<LossTerm>& terms() const override { return m_terms; }
    std::vector<std::int64_t> items(const Batch& batch) const override;
    Result<LossValues> values(const Outputs& outputs, const Batch& batch) const override;
    Result<LossValues> of(Network& network, const Batch& batch, const ForwardOptions& options) const override;

private:
    Result<LossValues> ofAllPositions(const Outputs& outputs, const Batch& batch, bool isTraining) const;

    LanguageModelOptions m_options;
    std::vector<LossTerm> m_terms;
};

} // namespace celloom::engine
