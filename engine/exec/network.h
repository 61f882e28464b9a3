// A graph that computes: parameters and, cell by cell (PyNative), the forward pass. Gradients come from LibTorch's autograd.
#pragma once

#include "models/base/result.h"
#include "models/graph/expand.h"
#include "models/recipe/adapter_config.h"
#include "models/recipe/precision.h"
#include "models/recipe/rules.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace celloom::engine {

class CellRegistry;
class KeyValueCache;

/// Letters in shapes: B batch, T sequence, V vocabulary.
struct Batch {
    at::Tensor inputIds;      // [B,T] int64
    at::Tensor labels;        // [B,T] int64, -100 ignored; undefined for prediction. Not shifted: the loss shifts.
    at::Tensor attentionMask; // [B,T] int64 or bool, 1 = real; undefined: all real
    at::Tensor segments;      // [B,T] int64, document number inside a packed row; attention stays inside one; undefined: one document
    at::Tensor positions;     // [B,T] int64; undefined: 0..T-1 (packed rows restart at each document)
    at::Tensor lengths;       // [B] int64, real tokens of each row: dynamic rotary scaling follows them; undefined: T for all rows
    /// [B,…] by name, beside the tokens or instead of them: other inputs of the graph, other labels.
    std::map<std::string, at::Tensor> columns = {};

    /// "input_ids", "labels", "attention_mask", "positions" or a column; undefined where the batch has none.
    [[nodiscard]] at::Tensor column(const std::string& name) const;
    [[nodiscard]] std::int64_t rows() const; // B
};

using recipe::AmpLevel;

struct NetworkOptions {
    at::Device device = at::kCPU;
    AmpLevel ampLevel = AmpLevel::O0;
    at::ScalarType halfType = at::kBFloat16;
    std::uint64_t seed = 0; // of the initial weights: normal(0, initStd), norms 1, biases 0
    double initStd = 0.02;
    bool initialise = true; // false: the base's parameters are allocated but not filled (a checkpoint follows)
    at::ScalarType baseType = at::kFloat; // in which frozen parameters are kept
    std::vector<std::string> allow, deny; // of recipe::PrecisionSettings
    std::shared_ptr<const CellRegistry> cells = nullptr; // the cells' computations, such as trusted plugins'; null: the catalogue's
};

at::ScalarType scalarTypeOf(recipe::FloatType type);

/// One learnable tensor. `path` is "layers.0.mlp.up_proj.weight"; float32, unless it is frozen and NetworkOptions::baseType says otherwise.
struct Parameter {
    std::string path;
    at::Tensor tensor;
    int cell = 0; // index into ExpandedModel::cells and TreatmentTable::cells
    bool isFrozen = false; // takes no gradient
    bool isBuffer = false; // WeightSpec::isBuffer: float32, changed by its cell in training, by nothing else
    bool isAdapter = false; // "….lora_A.weight", "….lora_B.weight", "….lora_magnitude_vector": part of no base
};

/// How much of an adapter counts: 1 as it was trained, 0 nothing.
struct AdapterWeight {
    std::string name;
    double weight = 1;
    bool operator==(const AdapterWeight&) const = default;
};

/// The types that were really there when a cell computed.
struct ObservedTypes {
    std::vector<at::ScalarType> inputs;  // of the floating tensors that it was given
    std::vector<at::ScalarType> results; // of what it computed, floating ones
    std::vector<at::ScalarType> wires;   // of what others read
};

struct ForwardOptions {
    /// Dropout is active and autograd records. Otherwise neither: an evaluation needs no NoGradGuard.
    bool training = false;
    /// Of the dropout masks: one number for each forward pass (mix step and micro-batch into it); the same number gives the same masks,
    /// so that a resume needs no random state.
    std::uint64_t dropoutSeed = 0;
    /// Called after each cell with its path, type and outputs: probes, hidden states. May be empty.
    std::function<void(const graph::CellInstance&, const std::vector<at::Tensor>&)> observer;
    /// Called after each cell with its types. May be empty.
    std::function<void(const graph::CellInstance&, const ObservedTypes&)> typeObserver;
    /// Only these positions of the row reach the head (generation needs the last alone). Undefined: all.
    bool lastPositionOnly = false;
    /// [N] int64, positions of the flattened [B*T]: these alone reach the head, "logits" is then [1,N,V]. Where few labels count that saves
    /// most of the head's work and memory; see lossTargets. Only where logitsComeFromTheHead(). Undefined: all.
    at::Tensor headPositions;
    /// The batch goes on where this cache ends: only new tokens are given, their mask too; positions, lengths and segments stay undefined.
    /// Not for training. Null: the batch is all there is.
    KeyValueCache* cache = nullptr;
};

/// A network has its parameters, which the optimizer changes, and beside them adapters that are swapped while it lives.
class Network {
public:
    /// Weights are drawn parameter by parameter from (seed, path), on the CPU: the same on every device, and unmoved when a cell is added
    /// elsewhere. The row of an Embedding's padding_idx starts at 0. `registry`: as NetworkOptions::cells, which it goes before.
    static Result<std::unique_ptr<Network>> create(graph::ExpandedModel model, const recipe::TreatmentTable& treatment,
                                                   const NetworkOptions& options, const CellRegistry* registry = nullptr);
    ~Network();

    /// What cells add to the loss, among forward()'s outputs where a cell does: a float32 scalar, the mean over the batch.
    static constexpr const char* kAuxiliaryLoss = "auxiliary_loss";

    /// Named outputs; "logits" [B,T,V] float32 for language models. An error names the cell where it happened.
    Result<std::map<std::string, at::Tensor>> forward(const Batch& batch, const ForwardOptions& options = {});

    /// Whether a part of the graph runs only where a Branch takes it, so that a step may leave trainable parameters without a gradient.
    bool hasBranches() const;

    /// Whether "logits" is what a language-model head gives, unchanged, so that a part of its positions can be asked for.
    bool logitsComeFromTheHead() const;

    std::vector<Parameter>& parameters();
    const std::vector<Parameter>& parameters() const;
    const graph::ExpandedModel& model() const;
    const NetworkOptions& options() const;
    const recipe::TreatmentTable& treatment() const;
    /// In which type each cell computes, and what is on its wires.
    const recipe::PrecisionTable& precision() const;

    /// Which weights the base was filled with: loadWeights sets it. Empty where they were drawn.
    const recipe::BaseIdentity& base() const;
    void setBase(recipe::BaseIdentity base);

    // ---- adapters beside the base, which stays as it is ----

    /// The adapter that create() made where the treatment asked for LoRA; its tensors are among parameters(). A ~ U(±1/√in), B = 0.
    static constexpr const char* kTrainedAdapter = "default";

    /// To be called when the base's parameters were filled from outside: DoRA's lengths start at those of the base's rows.
    void baseChanged();
    /// Adds an adapter from elsewhere, inactive. `tensors`, by path: those that the treatment's parameterTable() has in an adapter's file,
    /// in its shapes. Fails where the name is taken.
    Status addAdapter(const std::string& name, const recipe::TreatmentTable& treatment, const std::map<std::string, at::Tensor>& tensors);
    Status removeAdapter(const std::string& name);
    std::vector<std::string> adapters() const;
    const std::vector<AdapterWeight>& activeAdapters() const;
    /// These adapters count from now on, and no other; none: the base alone. One that brings biases or whole cells of its own, or uses
    /// DoRA, can be active only alone, and with the weight 1. Refused while an adapter is merged.
    Status activate(const std::vector<AdapterWeight>& adapters);

    /// Writes the active adapters into the base's weights, computed in float32 and then rounded to the type that they are kept in. Refused
    /// where nothing is active or something is merged already. unmerge() puts back the base's own tensors, bit for bit.
    Status merge();
    Status unmerge();
    bool isMerged() const;

    struct State; // network_state.h

private:
    std::unique_ptr<State> m_state;
    explicit Network(std::unique_ptr<State> state);
};

/// Shifted cross-entropy summed over valid labels, and their number. logits [B,T,V] float32, labels [B,T]; see reference: mean = sum /
/// count.
struct LossSum {
    at::Tensor sum;         // scalar, float32, differentiable
    std::int64_t count = 0; // labels that are not -100, after the shift
};
/// With segments, the first label of each document of a packed row is ignored.
LossSum languageModelLoss(const at::Tensor& logits, const at::Tensor& labels, const at::Tensor& segments = {});

/// targets[b,t] = labels[b,t+1], the label of the next token; -100 at the row's end and where the next token begins another document.
at::Tensor shiftedTargets(const at::Tensor& labels, const at::Tensor& segments = {});

/// The positions that predict a label which counts, in order, for ForwardOptions::headPositions.
struct LossTargets {
    at::Tensor positions; // [N] int64 in the flattened [B*T]
    at::Tensor targets;   // [N] int64: the next token's label
    std::int64_t all = 0; // B*T
};
LossTargets lossTargets(const at::Tensor& labels, const at::Tensor& segments = {});
/// The same loss, of logits [1,N,V] at those positions.
LossSum languageModelLoss(const at::Tensor& logits, const LossTargets& targets);

/// Waits for the device. False where a value is NaN or infinite.
bool isFinite(const at::Tensor& tensor);

/// True where an error of forward() or of a caught exception says that memory ran out (exit code OutOfMemory).
bool isOutOfMemory(const Error& error);

/// What a LibTorch exception means to the user: one sentence without its stack trace, and a hint where memory ran out.
Error errorOf(const std::exception& exception, const std::string& place = {});

} // namespace celloom::engine
