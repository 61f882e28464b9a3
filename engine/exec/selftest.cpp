#include "engine/exec/selftest.h"

#include "engine/exec/network.h"
#include "engine/kernels/cross_entropy.h"
#include "engine/kernels/cuda_library.h"
#include "engine/kernels/rms_norm.h"
#include "engine/kernels/rotary.h"
#include "models/families/families.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <algorithm>
#include <cmath>
#include <cstdio>

namespace celloom::engine {
namespace {

using Outcome = SelfTestCheck::Outcome;

at::Tensor normal(at::IntArrayRef shape, std::uint64_t seed) {
    return at::randn(shape, at::detail::createCPUGenerator(seed), at::kFloat);
}
at::Tensor leaf(const at::Tensor& tensor, at::Device device, at::ScalarType type) {
    return tensor.to(device, type, false, true).requires_grad_(true);
}

/// Largest difference relative to the largest expected value.
double difference(const at::Tensor& actual, const at::Tensor& expected) {
    const double scale = std::max(1e-30, expected.abs().max().item<double>());
    return (actual.to(at::kCPU, at::kDouble) - expected).abs().max().item<double>() / scale;
}

SelfTestCheck within(const std::string& name, double error, double tolerance) {
    char detail[96];
    std::snprintf(detail, sizeof detail, "largest error %.1e, allowed %.0e", error, tolerance);
    return {error <= tolerance ? Outcome::Passed : Outcome::Failed, name, detail}; // NaN fails
}

SelfTestCheck checkRmsNorm(at::Device device) {
    const at::Tensor x = normal({4, 33, 320}, 1), weight = normal({320}, 2), dy = normal({4, 33, 320}, 3);
    const at::Tensor x1 = leaf(x, device, at::kFloat), w1 = leaf(weight, device, at::kFloat);
    const at::Tensor x2 = leaf(x, at::kCPU, at::kDouble), w2 = leaf(weight, at::kCPU, at::kDouble);
    const at::Tensor y1 = kernels::rmsNorm(x1, w1, 1e-6), y2 = kernels::rmsNormReference(x2, w2, 1e-6);
    y1.backward(dy.to(device));
    y2.backward(dy.to(at::kDouble));
    return within("RMSNorm, forward and backward",
                  std::max({difference(y1, y2), difference(x1.grad(), x2.grad()), difference(w1.grad(), w2.grad())}), 1e-5);
}

SelfTestCheck checkRotary(at::Device device) {
    const at::Tensor x = normal({2, 17, 96}, 1), angle = normal({17, 12}, 2), dy = normal({2, 17, 96}, 3);
    const at::Tensor x1 = leaf(x, device, at::kFloat), x2 = leaf(x, at::kCPU, at::kDouble);
    const at::Tensor y1 = kernels::rotate(x1, angle.cos().to(device), angle.sin().to(device), 24);
    const at::Tensor y2 = kernels::rotateReference(x2, angle.cos().to(at::kDouble), angle.sin().to(at::kDouble), 24);
    y1.backward(dy.to(device));
    y2.backward(dy.to(at::kDouble));
    return within("rotary embedding, forward and backward", std::max(difference(y1, y2), difference(x1.grad(), x2.grad())), 1e-5);
}

SelfTestCheck checkCrossEntropy(at::Device device) {
    const at::Tensor logits = normal({19, 5003}, 1) * 3;
    at::Tensor targets = at::randint(0, 5003, {19}, at::detail::createCPUGenerator(2), at::kLong);
    targets[4].fill_(kernels::kIgnoredTarget);
    const at::Tensor l1 = leaf(logits, device, at::kFloat), l2 = leaf(logits, at::kCPU, at::kDouble);
    const at::Tensor loss1 = kernels::crossEntropySum(l1, targets.to(device)), loss2 = kernels::crossEntropySumReference(l2, targets);
    loss1.backward();
    loss2.backward();
    return within("cross-entropy, forward and backward", std::max(difference(loss1, loss2), difference(l1.grad(), l2.grad())), 1e-5);
}

/// Expected values: the same network written in plain PyTorch 2.11 in float64, weights drawn from the same seeds. Loss of the first
/// step, loss after one step of plain gradient descent at rate 0.1, norm of the first gradient.
constexpr double kFirstLoss = 6.655974500452338, kSecondLoss = 4.688698108242822, kGradientNorm = 7.049582441295787;

SelfTestCheck checkTrainingStep(at::Device device, AmpLevel level, double tolerance) {
    const std::string name = level == AmpLevel::O0 ? "a training step in float32" : "a training step at O2 (bfloat16)";
    const auto document = families::buildPreset("baichuan-tiny");
    CELLOOM_CHECK(document.has_value());
    const auto whole = [](std::int64_t value) { return graph::ParamValue(value); };
    graph::Expansion expansion = graph::expand(
        *document, {{"vocab", whole(256)}, {"hidden", whole(64)}, {"intermediate", whole(160)}, {"layers", whole(2)}, {"heads", whole(4)}});
    CELLOOM_CHECK(expansion.ok());
    recipe::TreatmentTable plain;
    plain.cells.resize(expansion.model.cells.size());
    auto network = Network::create(std::move(expansion.model), plain, {.device = device, .ampLevel = level, .seed = 1, .initStd = 0.2});
    if (!network) return {Outcome::Failed, name, network.error().text()};
    const at::Tensor ids = ((at::arange(64) * 37 + 11) % 253 + 3).reshape({2, 32});
    double losses[2] = {0, 0}, squares = 0;
    for (double& loss : losses) {
        const auto outputs = (*network)->forward({.inputIds = ids}, {.training = true});
        if (!outputs) return {Outcome::Failed, name, outputs.error().text()};
        const LossSum sum = languageModelLoss(outputs->at("logits"), ids);
        const at::Tensor mean = sum.sum / sum.count;
        mean.backward();
        loss = mean.item<double>();
        at::NoGradGuard guard;
        for (Parameter& parameter : (*network)->parameters()) {
            if (&loss == losses) squares += parameter.tensor.grad().square().sum().item<double>();
            parameter.tensor.sub_(parameter.tensor.grad() * 0.1);
            parameter.tensor.mutable_grad().reset();
        }
    }
    const auto relative = [](double actual, double expected) { return std::abs(actual - expected) / expected; };
    return within(
        name, std::max({relative(losses[0], kFirstLoss), relative(losses[1], kSecondLoss), relative(std::sqrt(squares), kGradientNorm)}),
        tolerance);
}

template <class F> SelfTestCheck guarded(const char* name, const F& check) {
    try {
        return check();
    } catch (const std::exception& exception) {
        return {Outcome::Failed, name, errorOf(exception).text()};
    }
}

} // namespace

std::vector<SelfTestCheck> selfTest(at::Device device) {
    std::vector<SelfTestCheck> out;
    if (device.is_cuda() && kernels::cudaKernels() == nullptr)
        out.push_back({Outcome::Skipped, "fused CUDA kernels", "their library is not loaded; LibTorch's operations are checked instead"});
    out.push_back(guarded("RMSNorm", [&] { return checkRmsNorm(device); }));
    out.push_back(guarded("rotary embedding", [&] { return checkRotary(device); }));
    out.push_back(guarded("cross-entropy", [&] { return checkCrossEntropy(device); }));
    out.push_back(guarded("a training step in float32", [&] { return checkTrainingStep(device, AmpLevel::O0, 1e-4); }));
    out.push_back(guarded("a training step at O2", [&] { return checkTrainingStep(device, AmpLevel::O2, 3e-2); })); // bfloat16 keeps 8 bits
    return out;
}

} // namespace celloom::engine
