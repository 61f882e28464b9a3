#include "engine/train/optimizer.h"

#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_foreach_addcmul.h>
#include <ATen/ops/_foreach_div.h>
#include <ATen/ops/_foreach_lerp.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/_foreach_norm.h>
#include <ATen/ops/_foreach_sqrt.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>

namespace celloom::engine {
namespace {

/// What both optimizers keep: two moments a parameter and one count of steps.
class AdamBase : public Optimizer {
public:
    AdamBase(std::vector<ParameterGroup> groups, const AdamOptions& options) : Optimizer(std::move(groups)), m_options(options) {
        for (const ParameterGroup& group : m_groups) {
            m_mean.emplace_back();
            m_square.emplace_back();
            for (const at::Tensor& tensor : group.tensors) {
                m_mean.back().push_back(at::zeros_like(tensor, at::kFloat));
                m_square.back().push_back(at::zeros_like(tensor, at::kFloat));
            }
        }
        const at::Device device = m_groups.empty() ? at::Device(at::kCPU) : m_groups[0].tensors[0].device();
        m_steps = at::zeros({}, at::TensorOptions().dtype(at::kFloat).device(device)); // exact up to 2^24 steps
    }

    void step(double learningRate) override {
        const c10::NoGradGuard noGrad;
        m_steps.add_(1);
        for (std::size_t g = 0; g < m_groups.size(); ++g) {
            const ParameterGroup& group = m_groups[g];
            Lists lists;
            for (std::size_t p = 0; p < group.tensors.size(); ++p) {
                if (!group.tensors[p].grad().defined()) continue;
                lists.weights.push_back(group.tensors[p]);
                lists.gradients.push_back(group.tensors[p].grad());
                lists.mean.push_back(m_mean[g][p]);
                lists.square.push_back(m_square[g][p]);
            }
            if (!lists.weights.empty()) update(lists, learningRate * group.lrScale, group.weightDecay);
        }
    }

    std::map<std::string, at::Tensor> state() override {
        std::map<std::string, at::Tensor> out{{"steps", m_steps}};
        for (std::size_t g = 0; g < m_groups.size(); ++g) {
            for (std::size_t p = 0; p < m_groups[g].paths.size(); ++p) {
                out["exp_avg." + m_groups[g].paths[p]] = m_mean[g][p];
                out["exp_avg_sq." + m_groups[g].paths[p]] = m_square[g][p];
            }
        }
        return out;
    }

protected:
    struct Lists {
        std::vector<at::Tensor> weights, gradients, mean, square;
    };
    virtual void update(Lists& lists, double learningRate, double weightDecay) = 0;

    AdamOptions m_options;
    at::Tensor m_steps;
    std::vector<std::vector<at::Tensor>> m_mean, m_square; // like the groups
};

class AdamW : public AdamBase {
    using AdamBase::AdamBase;
    void update(Lists& lists, double learningRate, double weightDecay) override {
        const std::vector<at::Tensor> steps(lists.weights.size(), m_steps);
        at::_fused_adamw_(lists.weights, lists.gradients, lists.mean, lists.square, {}, steps, learningRate, m_options.beta1, m_options.beta2,
                          weightDecay, m_options.eps, /*amsgrad=*/false, /*maximize=*/false);
    }
};

class AdamWeightDecay : public AdamBase {
    using AdamBase::AdamBase;
    void update(Lists& lists, double learningRate, double weightDecay) override {
        at::_foreach_lerp_(lists.mean, lists.gradients, 1 - m_options.beta1);
        at::_foreach_mul_(lists.square, m_options.beta2);
        at::_foreach_addcmul_(lists.square, lists.gradients, lists.gradients, 1 - m_options.beta2);
        std::vector<at::Tensor> denominator = at::_foreach_sqrt(lists.square);
        at::_foreach_add_(denominator, m_options.eps);
        std::vector<at::Tensor> change = at::_foreach_div(lists.mean, denominator);
        if (weightDecay != 0) at::_foreach_add_(change, lists.weights, weightDecay);
        at::_foreach_add_(lists.weights, change, -learningRate);
    }
};

bool hasDecay(const recipe::Recipe& recipe, const Parameter& parameter) {
    if (parameter.tensor.dim() <= 1 && !recipe.flag("optimizer.decay_vectors")) return false;
    const auto& patterns = recipe.list("optimizer.no_decay");
    return std::none_of(patterns.begin(), patterns.end(), [&](const std::string& pattern) { return recipe::matches(pattern, parameter.path); });
}

} // namespace

Status Optimizer::restore(const std::map<std::string, at::Tensor>& saved) {
    const c10::NoGradGuard noGrad;
    auto own = state();
    for (auto& [name, tensor] : own) {
        const auto found = saved.find(name);
        if (found == saved.end()) return fail("lacks the optimizer's \"" + name + "\".", "Was it saved with another optimizer or other rules?");
        if (found->second.sizes() != tensor.sizes()) return fail("has the optimizer's \"" + name + "\" in another shape.", "Is it of another model?");
    }
    for (const auto& [name, tensor] : saved)
        if (!own.contains(name)) return fail("has \"" + name + "\", which this optimizer does not know.", "Was it saved with another optimizer or other rules?");
    for (auto& [name, tensor] : own) tensor.copy_(saved.at(name));
    return {};
}

std::vector<at::Tensor> Optimizer::gradients() const {
    std::vector<at::Tensor> out;
    for (const ParameterGroup& group : m_groups)
        for (const at::Tensor& tensor : group.tensors)
            if (tensor.grad().defined()) out.push_back(tensor.grad());
    return out;
}

void Optimizer::zeroGrad() {
    for (ParameterGroup& group : m_groups)
        for (at::Tensor& tensor : group.tensors) tensor.mutable_grad().reset();
}

std::unique_ptr<Optimizer> makeAdamW(std::vector<ParameterGroup> groups, const AdamOptions& options) {
    return std::make_unique<AdamW>(std::move(groups), options);
}

std::unique_ptr<Optimizer> makeAdamWeightDecay(std::vector<ParameterGroup> groups, const AdamOptions& options) {
    return std::make_unique<AdamWeightDecay>(std::move(groups), options);
}

Result<std::vector<ParameterGroup>> groupParameters(const recipe::Recipe& recipe, const std::vector<Parameter>& parameters,
                                                    const recipe::TreatmentTable& treatment) {
    std::vector<ParameterGroup> groups;
    for (const Parameter& parameter : parameters) {
        if (parameter.isFrozen) continue;
        const recipe::Treatment& rules = treatment.cells[static_cast<std::size_t>(parameter.cell)];
        const double standard = rules.weightDecay.value_or(recipe.real("optimizer.weight_decay"));
        const double decay = hasDecay(recipe, parameter) ? standard : 0;
        auto group = std::find_if(groups.begin(), groups.end(),
                                  [&](const ParameterGroup& g) { return g.weightDecay == decay && g.lrScale == rules.lrScale; });
        if (group == groups.end()) group = groups.insert(groups.end(), ParameterGroup{{}, {}, decay, rules.lrScale});
        group->paths.push_back(parameter.path);
        group->tensors.push_back(parameter.tensor);
    }
    if (groups.empty()) return fail("freeze every parameter; there is nothing to train.", "Leave a part of the model free.", "rules");
    return groups;
}

Result<std::unique_ptr<Optimizer>> makeOptimizer(const recipe::Recipe& recipe, const std::vector<Parameter>& parameters,
                                                 const recipe::TreatmentTable& treatment) {
    CELLOOM_TRY(groups, groupParameters(recipe, parameters, treatment));
    const AdamOptions options{recipe.real("optimizer.beta1"), recipe.real("optimizer.beta2"), recipe.real("optimizer.eps")};
    return recipe.text("optimizer.type") == "AdamW" ? makeAdamW(std::move(groups), options) : makeAdamWeightDecay(std::move(groups), options);
}

double globalNorm(const std::vector<at::Tensor>& gradients) {
    CELLOOM_CHECK(!gradients.empty());
    return at::linalg_vector_norm(at::stack(at::_foreach_norm(gradients, 2))).item<double>(); // sync
}

void clipByNorm(const std::vector<at::Tensor>& gradients, double norm, double limit) {
    const double scale = limit / (norm + 1e-6);
    if (scale < 1) at::_foreach_mul_(gradients, scale);
}

} // namespace celloom::engine
