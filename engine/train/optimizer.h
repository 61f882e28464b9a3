// Optimizers over groups of parameters. Moments are float32; the learning rate comes with each step.
#pragma once

#include "engine/exec/network.h"
#include "models/recipe/recipe.h"

#include <map>
#include <memory>

namespace celloom::engine {

struct ParameterGroup {
    std::vector<std::string> paths;
    std::vector<at::Tensor> tensors;
    double weightDecay = 0;
    double lrScale = 1;
};

struct AdamOptions {
    double beta1 = 0.9, beta2 = 0.95, eps = 1e-8;
};

class Optimizer {
public:
    virtual ~Optimizer() = default;
    /// One update from the parameters' gradients; a parameter without a gradient is left as it is.
    virtual void step(double learningRate) = 0;
    /// Steps done and moments, under names such as "exp_avg.layers.0.mlp.up_proj.weight". The tensors are the optimizer's own.
    virtual std::map<std::string, at::Tensor> state() = 0;
    /// Copies into the state; a missing, unexpected or mis-shaped tensor is an error.
    Status restore(const std::map<std::string, at::Tensor>& saved);

    const std::vector<ParameterGroup>& groups() const { return m_groups; }
    std::vector<at::Tensor> gradients() const;
    void zeroGrad();

protected:
    explicit Optimizer(std::vector<ParameterGroup> groups) : m_groups(std::move(groups)) {}
    std::vector<ParameterGroup> m_groups;
};

/// Decoupled weight decay, moments corrected for their bias (Loshchilov and Hutter 2019; torch.optim.AdamW).
std::unique_ptr<Optimizer> makeAdamW(std::vector<ParameterGroup> groups, const AdamOptions& options);

/// MindSpore's nn.AdamWeightDecay: no bias correction; w -= lr (m / (sqrt(v) + eps) + decay w).
std::unique_ptr<Optimizer> makeAdamWeightDecay(std::vector<ParameterGroup> groups, const AdamOptions& options);

/// The trainable parameters by decay and rate: optimizer.weight_decay, unless a rule says otherwise; none for paths that
/// optimizer.no_decay matches and, unless optimizer.decay_vectors, for parameters of one dimension.
Result<std::vector<ParameterGroup>> groupParameters(const recipe::Recipe& recipe, const std::vector<Parameter>& parameters,
                                                    const recipe::TreatmentTable& treatment);
Result<std::unique_ptr<Optimizer>> makeOptimizer(const recipe::Recipe& recipe, const std::vector<Parameter>& parameters,
                                                 const recipe::TreatmentTable& treatment);

/// L2 norm over all gradients together. // sync
double globalNorm(const std::vector<at::Tensor>& gradients);
/// torch.nn.utils.clip_grad_norm_: scales by min(1, limit / (norm + 1e-6)).
void clipByNorm(const std::vector<at::Tensor>& gradients, double norm, double limit);

} // namespace celloom::engine
