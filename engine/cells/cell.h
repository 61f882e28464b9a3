// A cell that computes. Subclass Cell and override construct to make one of your own, as with MindSpore's nn.Cell.
// Letters in shapes: B batch, T sequence, H heads, D head dimension, C channels, V vocabulary.
#pragma once

#include "engine/cells/adapter.h"
#include "models/graph/expand.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace celloom::engine {

class KeyValueCache;

/// Tensors that many cells need and one builds: rotary tables, attention masks. Keyed by what they depend on.
using TensorCache = std::map<std::string, at::Tensor>;

/// What a cell may know about the step besides its inputs.
struct StepContext {
    bool isTraining = false;       // dropout is active
    bool lastPositionOnly = false; // the language-model head computes the last position alone
    at::Tensor headPositions;      // [N] int64 in the flattened [B*T]: the head computes these alone; undefined: all
    std::uint64_t dropoutSeed = 0; // the same seed gives the same masks
    at::Tensor attentionMask;      // [B,T], 1 = real; undefined: all real
    at::Tensor segments;           // [B,T] int64, document numbers in a packed row; undefined: one document
    at::Tensor positions;          // [B,T] int64; undefined: firstPosition, firstPosition + 1, …
    std::int64_t firstPosition = 0;
    std::int64_t positionsEnd = 0;        // no position of this pass is this or higher
    std::vector<std::int64_t> rowLengths; // tokens of each row so far (dynamic rotary scaling follows them); empty: positionsEnd for all
    KeyValueCache* cache = nullptr;       // causal attention reads earlier keys and values from it and adds its own; null: there are none
    bool isAgain = false;          // a recomputed layer runs a second time for its gradients: buffers stay as they are
    at::Tensor auxiliaryLoss;      // scalar float32, differentiable: what cells add to the loss in training; undefined: nothing. See addLoss
    TensorCache masks;             // of this forward pass
    TensorCache* tables = nullptr; // of the network, kept between passes

    /// A cell adds to the loss: a scalar, the mean over the batch. In a recomputed layer both times: the network counts it once.
    void addLoss(const at::Tensor& loss);
};

class Cell {
public:
    explicit Cell(const graph::CellInstance& instance) : m_instance(instance) {}
    Cell(const Cell&) = delete;
    Cell& operator=(const Cell&) = delete;
    virtual ~Cell() = default;

    /// Inputs in the catalogue's port order (undefined where an optional port has no wire), floating ones already in computeType().
    /// Returns as many tensors as the type has outputs; the network brings them to the type of their wires. May throw c10::Error: the network reports it with the cell's path.
    virtual std::vector<at::Tensor> construct(const std::vector<at::Tensor>& inputs, StepContext& context) = 0;

    const graph::CellInstance& instance() const { return m_instance; }
    at::ScalarType computeType() const { return m_computeType; }

    /// Called once by the network. `weights` in the order of CellInstance::weights; `index` is the cell's number in the model.
    void bind(std::vector<at::Tensor> weights, at::ScalarType computeType, std::size_t index);

    /// The adapters that count from now on. Only types that take adapters look at them.
    void setAdapters(std::vector<CellAdapter> adapters) { m_adapters = std::move(adapters); }
    /// Another tensor in place of the weight of that number: an adapter's own bias or head, or a merged matrix.
    void setWeight(std::size_t number, at::Tensor tensor);

protected:
    /// The weight of that name in computeType() (differentiable in the float32 original), or undefined where the cell has none.
    at::Tensor weight(const std::string& name) const;
    /// The buffer of that name itself, float32, to be read and changed in place (in training only, and not where StepContext::isAgain).
    at::Tensor buffer(const std::string& name) const;
    /// Whether its first weight takes a gradient: false of a frozen cell, and of one of which the bias alone learns.
    bool learns() const;
    std::size_t index() const { return m_index; }
    const std::vector<CellAdapter>& adapters() const { return m_adapters; }

    /// 0 with probability p, else 1 / (1 - p), in the shape, type and place of x. Follows from the step's seed and the cell's number alone,
    /// so that a resumed run draws the same; drawn on the CPU, so that every device has the same.
    at::Tensor dropoutMask(const at::Tensor& x, double p, const StepContext& context) const;

private:
    graph::CellInstance m_instance;
    std::vector<at::Tensor> m_weights;
    std::vector<CellAdapter> m_adapters;
    at::ScalarType m_computeType = at::kFloat;
    std::size_t m_index = 0;
};

/// Type name -> computation. The standard one holds exactly the catalogue's types; add() makes room for a user's own.
class CellRegistry {
public:
    using Factory = std::function<std::unique_ptr<Cell>(const graph::CellInstance&)>;
    static const CellRegistry& standard();

    void add(const std::string& type, Factory factory);
    template <class T> void add(const std::string& type) {
        add(type, [](const graph::CellInstance& instance) { return std::make_unique<T>(instance); });
    }
    /// Another computation of a type that is there.
    void replace(const std::string& type, Factory factory);
    /// A cell of this program itself, which graphs name as {"type": "Plugin", "params": {"cell": NAME, …}} without a library: it needs no entry in
    /// the catalogue, since such a cell declares its ports and weights.
    void addOwn(const std::string& name, Factory factory);
    template <class T> void addOwn(const std::string& name) {
        addOwn(name, [](const graph::CellInstance& instance) { return std::make_unique<T>(instance); });
    }
    /// Null where the type is unknown. Throws CellError where a cell's own code refuses to be made.
    std::unique_ptr<Cell> make(const graph::CellInstance& instance) const;
    std::vector<std::string> types() const;

private:
    std::map<std::string, Factory> m_factories, m_own;
};

/// Mixes numbers into one seed (splitmix64), so that neighbouring seeds give unrelated streams.
std::uint64_t mixSeed(std::uint64_t a, std::uint64_t b);

// Each family of cells adds its types.
void addDenseCells(CellRegistry& registry);
void addNormCells(CellRegistry& registry);
void addActivationCells(CellRegistry& registry);
void addStructureCells(CellRegistry& registry);
void addAttentionCells(CellRegistry& registry);
void addShapeCells(CellRegistry& registry);
void addArithmeticCells(CellRegistry& registry);
void addImageCells(CellRegistry& registry);
void addRoutingCells(CellRegistry& registry);
void addScriptCells(CellRegistry& registry);
void addPluginCells(CellRegistry& registry);

} // namespace celloom::engine
