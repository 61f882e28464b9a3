// Optimizers over groups of parameters. Their state is float32; the learning rate comes with each step.
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

/// torch.optim.SGD; MindSpore's nn.SGD and nn.Momentum do the same. The first step takes the gradient itself as momentum.
struct SgdOptions {
    double momentum = 0.9, dampening = 0;
    bool isNesterov = false; // needs momentum and no dampening
};

/// torch.optim.RMSprop: the root is taken first and eps added to it. `alpha`: decay of the squares' mean.
struct RmsPropOptions {
    double alpha = 0.99, eps = 1e-8, momentum = 0;
    bool isCentered = false; // squares less the square of the gradient's own mean
};

/// torch.optim.Adafactor. The rate of a step is min(lr, 1 / √t) times the weights' root mean square, at least `minScale`.
struct AdafactorOptions {
    double beta2Decay = -0.8; // of the squares' mean at step t: 1 - t^beta2Decay
    double minScale = 1e-3;
    double clip = 1; // an update whose root mean square is above this is scaled down to it
};

class Optimizer {
public:
    virtual ~Optimizer() = default;
    /// One update from the parameters' gradients; a parameter without a gradient is left as it is.
    void step(double learningRate);
    /// Of the step under way or the last one; before the first step 0. A group's own is this times its lrScale.
    [[nodiscard]] double learningRate() const { return m_learningRate; }
    /// Steps done and moments, under names such as "exp_avg.layers.0.mlp.up_proj.weight". The tensors are the optimizer's own.
    virtual std::map<std::string, at::Tensor> state() = 0;
    /// Copies into the state; a missing, unexpected or mis-shaped tensor is an error.
    Status restore(const std::map<std::string, at::Tensor>& saved);

    const std::vector<ParameterGroup>& groups() const { return m_groups; }
    std::vector<at::Tensor> gradients() const;
    void zeroGrad();
    /// Parameters without a gradient get one of zeros: what did not run in this step did not matter in it, but moments and decay go on.
    void fillGradients();

protected:
    explicit Optimizer(std::vector<ParameterGroup> groups) : m_groups(std::move(groups)) {}
    virtual void update(double learningRate) = 0;
    std::vector<ParameterGroup> m_groups;

private:
    double m_learningRate = 0;
};

// Decay is decoupled (each step takes rate * decay of a weight away) in AdamW, AdamWeightDecay, Lion and Adafactor, and added to the gradient
// in the others.

/// Moments corrected for their bias (Loshchilov and Hutter, arXiv:1711.05101; torch.optim.AdamW).
std::unique_ptr<Optimizer> makeAdamW(std::vector<ParameterGroup> groups, const AdamOptions& options);
/// MindSpore's nn.AdamWeightDecay: no bias correction; w -= lr (m / (sqrt(v) + eps) + decay w).
std::unique_ptr<Optimizer> makeAdamWeightDecay(std::vector<ParameterGroup> groups, const AdamOptions& options);
/// Kingma and Ba, arXiv:1412.6980; torch.optim.Adam and MindSpore's nn.Adam.
std::unique_ptr<Optimizer> makeAdam(std::vector<ParameterGroup> groups, const AdamOptions& options);
std::unique_ptr<Optimizer> makeSgd(std::vector<ParameterGroup> groups, const SgdOptions& options);
/// Chen et al., arXiv:2302.06675: the sign of a mix of momentum and gradient. Wants rates 3 to 10 times smaller than AdamW. No eps.
std::unique_ptr<Optimizer> makeLion(std::vector<ParameterGroup> groups, const AdamOptions& options);
/// Shazeer and Stern, arXiv:1804.04235: of a matrix only the means of rows and of columns are kept.
std::unique_ptr<Optimizer> makeAdafactor(std::vector<ParameterGroup> groups, const AdafactorOptions& options);
std::unique_ptr<Optimizer> makeRmsProp(std::vector<ParameterGroup> groups, const RmsPropOptions& options);

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
