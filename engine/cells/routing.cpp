// Branch and MixtureOfExperts. Letters: N tokens, C channels, F inside of an expert, E experts, K experts of a token.
#include "engine/cells/cell.h"
#include "engine/kernels/linear.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/nonzero.h>
#include <ATen/ops/one_hot.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/topk.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>

namespace celloom::engine {
namespace {

/// The network does not compute what feeds an arm alone where no row takes it: that arm is undefined then.
class Branch final : public Cell {
public:
    using Cell::Cell;
    std::vector<at::Tensor> construct(const std::vector<at::Tensor>& inputs, StepContext&) override {
        const at::Tensor &whenTrue = inputs[1], &whenFalse = inputs[2];
        if (!whenTrue.defined() || !whenFalse.defined()) return {whenTrue.defined() ? whenTrue : whenFalse};
        at::Tensor takes = inputs[0] > 0;
        while (takes.dim() < whenTrue.dim()) takes = takes.unsqueeze(-1);
        return {at::where(takes, whenTrue, whenFalse)};
    }
};

/// Each token goes to the K likeliest experts; probabilities and their choice are in float32.
class MixtureOfExperts final : public Cell {
public:
    using Cell::Cell;
    std::vector<at::Tensor> construct(const std::vector<at::Tensor>& inputs, StepContext& context) override {
        const at::Tensor x_NC = inputs[0].flatten(0, -2);
        const auto exact = x_NC.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
        const at::Tensor probabilities_NE = at::softmax(kernels::linear(x_NC.to(exact), weight("router").to(exact)), -1);
        auto [share_NK, expert_NK] = at::topk(probabilities_NE, instance().integer("top_k"), -1);
        if (context.isTraining && instance().real("balance") > 0)
            context.addLoss(balanceLoss(probabilities_NE, expert_NK, inputs[0], context));
        if (instance().flag("renormalise")) share_NK = share_NK / share_NK.sum(-1, true);
        return {spread(x_NC, share_NK, expert_NK).view_as(inputs[0])};
    }

private:
    bool isGated() const { return instance().text("kind") == "swiglu"; }

    /// Every expert computes the rows that were sent to it; they are added up where they came from.
    at::Tensor spread(const at::Tensor& x_NC, const at::Tensor& share_NK, const at::Tensor& expert_NK) const {
        const std::vector<at::Tensor> up = weight("up").unbind(0), down = weight("down").unbind(0); // one gradient for all experts
        const std::vector<at::Tensor> gate = isGated() ? weight("gate").unbind(0) : std::vector<at::Tensor>();
        const at::Tensor shares = share_NK.flatten();
        std::vector<at::Tensor> tokens, results;
        for (std::size_t e = 0; e < up.size(); ++e) {
            const at::Tensor sent = at::nonzero(expert_NK == static_cast<std::int64_t>(e)); // [M,2]: token, choice; sync on a GPU
            if (sent.size(0) == 0) continue;
            const at::Tensor token = sent.select(1, 0), rows = x_NC.index_select(0, token);
            const at::Tensor wide = kernels::linear(rows, up[e]);
            const at::Tensor inside = isGated() ? at::silu(kernels::linear(rows, gate[e])) * wide : at::gelu(wide);
            const at::Tensor share = shares.index_select(0, token * share_NK.size(1) + sent.select(1, 1)).unsqueeze(-1);
            results.push_back(kernels::linear(inside, down[e]) * share.to(x_NC.scalar_type()));
            tokens.push_back(token);
        }
        return at::zeros_like(x_NC).index_add(0, at::cat(tokens), at::cat(results));
    }

    /// E Σ (tokens sent to e / N) (mean probability of e), times its weight (Fedus et al., arXiv:2101.03961, eq. 4; for K > 1 as Mixtral:
    /// a token counts for each of its experts). Padding is left out.
    at::Tensor balanceLoss(const at::Tensor& probabilities_NE, const at::Tensor& expert_NK, const at::Tensor& x,
                           const StepContext& context) const {
        const std::int64_t experts = probabilities_NE.size(-1);
        at::Tensor sent_NE = at::one_hot(expert_NK, experts).sum(1).to(probabilities_NE.scalar_type());
        at::Tensor probabilities = probabilities_NE;
        const at::Tensor& mask = context.attentionMask;
        if (mask.defined() && x.dim() == 3 && mask.sizes() == x.sizes().slice(0, 2)) {
            const at::Tensor real = at::nonzero(mask.flatten()).squeeze(-1);
            if (real.numel() > 0) {
                sent_NE = sent_NE.index_select(0, real);
                probabilities = probabilities.index_select(0, real);
            }
        }
        return (sent_NE.mean(0) * probabilities.mean(0)).sum() * (static_cast<double>(experts) * instance().real("balance"));
    }
};

} // namespace

void addRoutingCells(CellRegistry& registry) {
    registry.add<Branch>("Branch");
    registry.add<MixtureOfExperts>("MixtureOfExperts");
}

} // namespace celloom::engine
