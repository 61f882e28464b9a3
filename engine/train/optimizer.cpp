#include "engine/train/optimizer.h"

#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_foreach_addcdiv.h>
#include <ATen/ops/_foreach_addcmul.h>
#include <ATen/ops/_foreach_div.h>
#include <ATen/ops/_foreach_lerp.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/_foreach_norm.h>
#include <ATen/ops/_foreach_sign.h>
#include <ATen/ops/_foreach_sqrt.h>
#include <ATen/ops/_fused_adam.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/_fused_sgd.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace celloom::engine {
namespace {

constexpr float kFloatEps = std::numeric_limits<float>::epsilon();

/// Keeps tensors of each weight's shape, one for each name, and one count of steps.
class SlotOptimizer : public Optimizer {
public:
    std::map<std::string, at::Tensor> state() override {
        std::map<std::string, at::Tensor> out{{"steps", m_steps}};
        for (std::size_t slot = 0; slot < m_names.size(); ++slot)
            for (std::size_t g = 0; g < m_groups.size(); ++g)
                for (std::size_t p = 0; p < m_groups[g].paths.size(); ++p)
                    out[m_names[slot] + "." + m_groups[g].paths[p]] = m_slots[slot][g][p];
        return out;
    }

protected:
    using Tensors = std::vector<at::Tensor>;
    /// The parameters of a group that have a gradient.
    struct Lists {
        Tensors weights, gradients;
        std::vector<Tensors> slots; // in the order of the names
    };

    SlotOptimizer(std::vector<ParameterGroup> groups, std::vector<std::string> names) : Optimizer(std::move(groups)), m_names(std::move(names)) {
        m_slots.resize(m_names.size());
        for (auto& slot : m_slots) {
            for (const ParameterGroup& group : m_groups) {
                Tensors& tensors = slot.emplace_back();
                for (const at::Tensor& tensor : group.tensors) tensors.push_back(at::zeros_like(tensor, at::kFloat));
            }
        }
        const at::Device device = m_groups.empty() ? at::Device(at::kCPU) : m_groups[0].tensors[0].device();
        m_steps = at::zeros({}, at::TensorOptions().dtype(at::kFloat).device(device)); // exact up to 2^24 steps
    }

    void update(double learningRate) override {
        const c10::NoGradGuard noGrad;
        const bool isFirst = m_steps.item<double>() == 0; // sync
        m_steps.add_(1);
        for (std::size_t g = 0; g < m_groups.size(); ++g) {
            const ParameterGroup& group = m_groups[g];
            Lists lists;
            lists.slots.resize(m_slots.size());
            for (std::size_t p = 0; p < group.tensors.size(); ++p) {
                if (!group.tensors[p].grad().defined()) continue;
                lists.weights.push_back(group.tensors[p]);
                lists.gradients.push_back(group.tensors[p].grad());
                for (std::size_t slot = 0; slot < m_slots.size(); ++slot) lists.slots[slot].push_back(m_slots[slot][g][p]);
            }
            if (!lists.weights.empty()) updateGroup(lists, learningRate * group.lrScale, group.weightDecay, isFirst);
        }
    }
    virtual void updateGroup(Lists& lists, double learningRate, double weightDecay, bool isFirst) = 0;

    at::Tensor m_steps;

private:
    std::vector<std::string> m_names;
    std::vector<std::vector<Tensors>> m_slots; // by name, then like the groups
};

class AdamBase : public SlotOptimizer {
public:
    AdamBase(std::vector<ParameterGroup> groups, const AdamOptions& options)
        : SlotOptimizer(std::move(groups), {"exp_avg", "exp_avg_sq"}), m_options(options) {}

protected:
    AdamOptions m_options;
};

class AdamW final : public AdamBase {
    using AdamBase::AdamBase;
    void updateGroup(Lists& lists, double learningRate, double weightDecay, bool) override {
        const Tensors steps(lists.weights.size(), m_steps);
        at::_fused_adamw_(lists.weights, lists.gradients, lists.slots[0], lists.slots[1], {}, steps, learningRate, m_options.beta1,
                          m_options.beta2, weightDecay, m_options.eps, /*amsgrad=*/false, /*maximize=*/false);
    }
};

class Adam final : public AdamBase {
    using AdamBase::AdamBase;
    void updateGroup(Lists& lists, double learningRate, double weightDecay, bool) override {
        const Tensors steps(lists.weights.size(), m_steps);
        at::_fused_adam_(lists.weights, lists.gradients, lists.slots[0], lists.slots[1], {}, steps, learningRate, m_options.beta1,
                         m_options.beta2, weightDecay, m_options.eps, /*amsgrad=*/false, /*maximize=*/false);
    }
};

class AdamWeightDecay final : public AdamBase {
    using AdamBase::AdamBase;
    void updateGroup(Lists& lists, double learningRate, double weightDecay, bool) override {
        Tensors &mean = lists.slots[0], &square = lists.slots[1];
        at::_foreach_lerp_(mean, lists.gradients, 1 - m_options.beta1);
        at::_foreach_mul_(square, m_options.beta2);
        at::_foreach_addcmul_(square, lists.gradients, lists.gradients, 1 - m_options.beta2);
        Tensors denominator = at::_foreach_sqrt(square);
        at::_foreach_add_(denominator, m_options.eps);
        Tensors change = at::_foreach_div(mean, denominator);
        if (weightDecay != 0) at::_foreach_add_(change, lists.weights, weightDecay);
        at::_foreach_add_(lists.weights, change, -learningRate);
    }
};

class Sgd final : public SlotOptimizer {
public:
    Sgd(std::vector<ParameterGroup> groups, const SgdOptions& options)
        : SlotOptimizer(std::move(groups), options.momentum > 0 ? std::vector<std::string>{"momentum_buffer"} : std::vector<std::string>{}),
          m_options(options) {}

private:
    void updateGroup(Lists& lists, double learningRate, double weightDecay, bool isFirst) override {
        const Tensors buffers = m_options.momentum > 0 ? lists.slots[0] : Tensors{};
        at::_fused_sgd_(lists.weights, lists.gradients, buffers, weightDecay, m_options.momentum, learningRate, m_options.dampening,
                        m_options.isNesterov, /*maximize=*/false, isFirst);
    }
    SgdOptions m_options;
};

class Lion final : public SlotOptimizer {
public:
    Lion(std::vector<ParameterGroup> groups, const AdamOptions& options) : SlotOptimizer(std::move(groups), {"exp_avg"}), m_options(options) {}

private:
    void updateGroup(Lists& lists, double learningRate, double weightDecay, bool) override {
        Tensors change = at::_foreach_lerp(lists.slots[0], lists.gradients, 1 - m_options.beta1);
        at::_foreach_sign_(change);
        if (weightDecay != 0) at::_foreach_mul_(lists.weights, 1 - learningRate * weightDecay);
        at::_foreach_add_(lists.weights, change, -learningRate);
        at::_foreach_lerp_(lists.slots[0], lists.gradients, 1 - m_options.beta2);
    }
    AdamOptions m_options;
};

class RmsProp final : public SlotOptimizer {
public:
    RmsProp(std::vector<ParameterGroup> groups, const RmsPropOptions& options)
        : SlotOptimizer(std::move(groups), namesFor(options)), m_options(options) {}

private:
    static std::vector<std::string> namesFor(const RmsPropOptions& options) {
        std::vector<std::string> names{"square_avg"};
        if (options.isCentered) names.emplace_back("grad_avg");
        if (options.momentum > 0) names.emplace_back("momentum_buffer");
        return names;
    }
    void updateGroup(Lists& lists, double learningRate, double weightDecay, bool) override {
        const Tensors gradients = weightDecay != 0 ? at::_foreach_add(lists.gradients, lists.weights, weightDecay) : lists.gradients;
        Tensors& square = lists.slots[0];
        at::_foreach_mul_(square, m_options.alpha);
        at::_foreach_addcmul_(square, gradients, gradients, 1 - m_options.alpha);
        Tensors root;
        if (m_options.isCentered) {
            Tensors& mean = lists.slots[1];
            at::_foreach_lerp_(mean, gradients, 1 - m_options.alpha);
            root = at::_foreach_addcmul(square, mean, mean, -1);
            at::_foreach_sqrt_(root);
        } else {
            root = at::_foreach_sqrt(square);
        }
        at::_foreach_add_(root, m_options.eps);
        if (m_options.momentum > 0) {
            Tensors& buffer = lists.slots.back();
            at::_foreach_mul_(buffer, m_options.momentum);
            at::_foreach_addcdiv_(buffer, gradients, root, 1);
            at::_foreach_add_(lists.weights, buffer, -learningRate);
        } else {
            at::_foreach_addcdiv_(lists.weights, gradients, root, -learningRate);
        }
    }
    RmsPropOptions m_options;
};

/// Goes tensor by tensor, unlike the others: an estimate of the squares exists for one weight at a time, which is what it is chosen for. Nothing
/// waits for the device.
class Adafactor final : public Optimizer {
public:
    Adafactor(std::vector<ParameterGroup> groups, const AdafactorOptions& options) : Optimizer(std::move(groups)), m_options(options) {
        for (const ParameterGroup& group : m_groups) {
            auto& squares = m_squares.emplace_back();
            for (const at::Tensor& tensor : group.tensors) {
                const auto kind = tensor.options().dtype(at::kFloat);
                auto rows = tensor.sizes().vec(), columns = rows;
                if (tensor.dim() < 2) {
                    squares.push_back({at::zeros(rows, kind), {}, {}});
                    continue;
                }
                rows.back() = 1;
                columns[columns.size() - 2] = 1;
                squares.push_back({{}, at::zeros(rows, kind), at::zeros(columns, kind)});
            }
        }
    }

    std::map<std::string, at::Tensor> state() override {
        std::map<std::string, at::Tensor> out{{"steps", m_steps}};
        for (std::size_t g = 0; g < m_groups.size(); ++g) {
            for (std::size_t p = 0; p < m_groups[g].paths.size(); ++p) {
                const Squares& squares = m_squares[g][p];
                const std::string& path = m_groups[g].paths[p];
                if (squares.all.defined()) out["variance." + path] = squares.all;
                if (squares.rows.defined()) out["row_var." + path] = squares.rows;
                if (squares.columns.defined()) out["col_var." + path] = squares.columns;
            }
        }
        return out;
    }

private:
    /// Means of the squared gradient: of each number, or of each row and each column of the last two dimensions.
    struct Squares {
        at::Tensor all, rows, columns;
    };

    void update(double learningRate) override {
        const c10::NoGradGuard noGrad;
        m_steps.add_(1);
        const double step = m_steps.item<double>(), newest = std::pow(step, m_options.beta2Decay); // on the CPU
        for (std::size_t g = 0; g < m_groups.size(); ++g) {
            const double rate = learningRate * m_groups[g].lrScale;
            for (std::size_t p = 0; p < m_groups[g].tensors.size(); ++p) {
                at::Tensor weight = m_groups[g].tensors[p];
                if (weight.grad().defined()) updateWeight(weight, m_squares[g][p], rate, m_groups[g].weightDecay, step, newest);
            }
        }
    }

    void updateWeight(at::Tensor& weight, Squares& squares, double rate, double weightDecay, double step, double newest) const {
        const at::Tensor& gradient = weight.grad();
        const at::Tensor scale = rootMeanSquare(weight).clamp_min_(m_options.minScale).mul_(std::min(rate, 1 / std::sqrt(step)));
        if (weightDecay != 0) weight.mul_(1 - rate * weightDecay);
        at::Tensor change = estimate(squares, gradient, newest).clamp_min_(kFloatEps * kFloatEps).rsqrt_().mul_(gradient);
        const at::Tensor excess = rootMeanSquare(change).div_(m_options.clip).clamp_min_(1);
        weight.sub_(change.mul_(scale.div(excess)));
    }

    static at::Tensor estimate(Squares& squares, const at::Tensor& gradient, double newest) {
        if (squares.all.defined()) return squares.all.lerp_(gradient.square(), newest).clone();
        const auto meanSquare = [&](std::int64_t dim) {
            return at::linalg_vector_norm(gradient, 2, at::IntArrayRef{dim}, true).square_().div_(gradient.size(dim));
        };
        squares.rows.lerp_(meanSquare(-1), newest);
        squares.columns.lerp_(meanSquare(-2), newest);
        return at::mul(squares.rows.div(squares.rows.mean(at::IntArrayRef{-2}, true).clamp_min_(kFloatEps)), squares.columns);
    }
    static at::Tensor rootMeanSquare(const at::Tensor& x) {
        return at::linalg_vector_norm(x, 2).div_(std::sqrt(static_cast<double>(x.numel())));
    }

    AdafactorOptions m_options;
    at::Tensor m_steps = at::zeros({}, at::kFloat);
    std::vector<std::vector<Squares>> m_squares; // like the groups
};

bool hasDecay(const recipe::Recipe& recipe, const Parameter& parameter) {
    if (parameter.tensor.dim() <= 1 && !recipe.flag("optimizer.decay_vectors")) return false;
    const auto& patterns = recipe.list("optimizer.no_decay");
    return std::none_of(patterns.begin(), patterns.end(), [&](const std::string& pattern) { return recipe::matches(pattern, parameter.path); });
}

} // namespace

void Optimizer::step(double learningRate) {
    m_learningRate = learningRate;
    update(learningRate);
}

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

void Optimizer::fillGradients() {
    for (ParameterGroup& group : m_groups)
        for (at::Tensor& tensor : group.tensors)
            if (!tensor.grad().defined()) tensor.mutable_grad() = at::zeros_like(tensor);
}

std::unique_ptr<Optimizer> makeAdamW(std::vector<ParameterGroup> groups, const AdamOptions& options) {
    return std::make_unique<AdamW>(std::move(groups), options);
}

std::unique_ptr<Optimizer> makeAdamWeightDecay(std::vector<ParameterGroup> groups, const AdamOptions& options) {
    return std::make_unique<AdamWeightDecay>(std::move(groups), options);
}
std::unique_ptr<Optimizer> makeAdam(std::vector<ParameterGroup> groups, const AdamOptions& options) {
    return std::make_unique<Adam>(std::move(groups), options);
}
std::unique_ptr<Optimizer> makeSgd(std::vector<ParameterGroup> groups, const SgdOptions& options) {
    CELLOOM_CHECK(!options.isNesterov || (options.momentum > 0 && options.dampening == 0));
    return std::make_unique<Sgd>(std::move(groups), options);
}
std::unique_ptr<Optimizer> makeLion(std::vector<ParameterGroup> groups, const AdamOptions& options) {
    return std::make_unique<Lion>(std::move(groups), options);
}
std::unique_ptr<Optimizer> makeAdafactor(std::vector<ParameterGroup> groups, const AdafactorOptions& options) {
    return std::make_unique<Adafactor>(std::move(groups), options);
}
std::unique_ptr<Optimizer> makeRmsProp(std::vector<ParameterGroup> groups, const RmsPropOptions& options) {
    return std::make_unique<RmsProp>(std::move(groups), options);
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
    const std::string& type = recipe.text("optimizer.type");
    const AdamOptions adam{recipe.real("optimizer.beta1"), recipe.real("optimizer.beta2"), recipe.real("optimizer.eps")};
    if (type == "AdamW") return makeAdamW(std::move(groups), adam);
    if (type == "AdamWeightDecay") return makeAdamWeightDecay(std::move(groups), adam);
    if (type == "Adam") return makeAdam(std::move(groups), adam);
    if (type == "Lion") return makeLion(std::move(groups), adam);
    if (type == "RMSProp")
        return makeRmsProp(std::move(groups), {recipe.real("optimizer.alpha"), adam.eps, recipe.real("optimizer.momentum"),
                                               recipe.flag("optimizer.centered")});
    if (type == "Adafactor")
        return makeAdafactor(std::move(groups), {recipe.real("optimizer.beta2_decay"), recipe.real("optimizer.min_scale"),
                                                 recipe.real("optimizer.update_clip")});
    CELLOOM_CHECK(type == "SGD" || type == "Momentum");
    const SgdOptions sgd{recipe.real("optimizer.momentum"), type == "SGD" ? recipe.real("optimizer.dampening") : 0,
                         recipe.flag("optimizer.nesterov")};
    if (sgd.isNesterov && (sgd.momentum == 0 || sgd.dampening > 0))
        return fail("Nesterov's way needs momentum above 0 and no dampening.", "Raise the momentum, set the dampening to 0, or switch it off.",
                    "optimizer.nesterov");
    return makeSgd(std::move(groups), sgd);
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
