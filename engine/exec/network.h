// A graph that computes: parameters and, cell by cell (PyNative), the forward pass. Gradients come from LibTorch's autograd.
#pragma once

#include "models/base/result.h"
#include "models/graph/expand.h"
#include "models/recipe/rules.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace celloom::engine {

/// Letters in shapes: B batch, T sequence, V vocabulary.
struct Batch {
    at::Tensor inputIds;      // [B,T] int64
    at::Tensor labels;        // [B,T] int64, -100 ignored; undefined for prediction. Not shifted: the loss shifts.
    at::Tensor attentionMask; // [B,T] int64 or bool, 1 = real; undefined: all real
    at::Tensor segments;      // [B,T] int64, document number inside a packed row; attention stays inside one; undefined: one document
    at::Tensor positions;     // [B,T] int64; undefined: 0..T-1 (packed rows restart at each document)
};

/// Compute types by level: O0 all float32; O2 cells in `halfType` except normalisations, network output back to float32.
enum class AmpLevel { O0, O2 };

struct NetworkOptions {
    at::Device device = at::kCPU;
    AmpLevel ampLevel = AmpLevel::O0;
    at::ScalarType halfType = at::kBFloat16;
    std::uint64_t seed = 0;         // of the initial weights: normal(0, initStd), norms 1, biases 0
    double initStd = 0.02;
    bool initialise = true;         // false: parameters are allocated but not filled (a checkpoint follows)
};

/// One learnable tensor. `path` is "layers.0.mlp.up_proj.weight"; always float32 in this version.
struct Parameter {
    std::string path;
    at::Tensor tensor;
    int cell = 0; // index into ExpandedModel::cells and TreatmentTable::cells
    bool isFrozen = false;
};

struct ForwardOptions {
    bool training = false;
    /// Called after each cell with its path, type and outputs: probes, hidden states. May be empty.
    std::function<void(const graph::CellInstance&, const std::vector<at::Tensor>&)> observer;
    /// Only these positions of the row reach the head (generation needs the last alone). Undefined: all.
    bool lastPositionOnly = false;
};

class Network {
public:
    static Result<std::unique_ptr<Network>> create(graph::ExpandedModel model, const recipe::TreatmentTable& treatment,
                                                   const NetworkOptions& options);
    ~Network();

    /// Named outputs; "logits" [B,T,V] float32 for language models. An error names the cell where it happened.
    Result<std::map<std::string, at::Tensor>> forward(const Batch& batch, const ForwardOptions& options = {});

    std::vector<Parameter>& parameters();
    const graph::ExpandedModel& model() const;
    const NetworkOptions& options() const;

private:
    struct State;
    std::unique_ptr<State> m_state;
    explicit Network(std::unique_ptr<State> state);
};

/// Shifted cross-entropy summed over valid labels, and their number. logits [B,T,V] float32, labels [B,T]; see reference: mean = sum / count.
struct LossSum {
    at::Tensor sum;          // scalar, float32, differentiable
    std::int64_t count = 0;  // labels that are not -100, after the shift
};
LossSum languageModelLoss(const at::Tensor& logits, const at::Tensor& labels, const at::Tensor& segments = {});

} // namespace celloom::engine
