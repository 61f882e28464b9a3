#include "models/recipe/memory_plan.h"

#include "models/base/capped.h"
#include "models/base/half_support.h"
#include "models/catalog/catalog.h"
#include "models/recipe/parameter_table.h"

#include <algorithm>
#include <memory>
#include <vector>

namespace celloom::recipe {
namespace {

constexpr std::int64_t kFloatBytes = 4, kDoubleBytes = 8, kIdBytes = 8;

enum class Kind { Weights, Gradients, Optimizer, Activations };

/// Memory held now, and at most, by phase.
class Ledger {
public:
    void take(Kind kind, std::int64_t bytes) {
        part(kind) = addCapped(part(kind), bytes);
        note();
    }
    void give(Kind kind, std::int64_t bytes) { part(kind) -= std::min(bytes, part(kind)); }
    /// What exists only for a moment.
    void touch(Kind kind, std::int64_t bytes) {
        take(kind, bytes);
        give(kind, bytes);
    }
    void enter(MemoryPhase phase) {
        m_phase = phase;
        note();
    }
    [[nodiscard]] const MemoryParts& now() const { return m_now; }
    [[nodiscard]] const MemoryPlan& plan() const { return m_plan; }

private:
    std::int64_t& part(Kind kind) {
        switch (kind) {
        case Kind::Weights:
            return m_now.weights;
        case Kind::Gradients:
            return m_now.gradients;
        case Kind::Optimizer:
            return m_now.optimizer;
        case Kind::Activations:
            break;
        }
        return m_now.activations;
    }
    void note() {
        const std::int64_t total = m_now.total();
        auto& highest = m_plan.phasePeaks[static_cast<std::size_t>(m_phase)];
        highest = std::max(highest, total);
        if (total <= m_plan.peak.total()) return;
        m_plan.peak = m_now;
        m_plan.peakPhase = m_phase;
    }

    MemoryParts m_now;
    MemoryPlan m_plan;
    MemoryPhase m_phase = MemoryPhase::Forward;
};

/// A tensor's memory, shared by its views and by whoever keeps it; given back with the last of them.
class Storage {
public:
    Storage() = default; // none, or one that is counted elsewhere: a weight seen as it is
    Storage(Ledger& ledger, Kind kind, std::int64_t bytes) : m_block(std::make_shared<Block>(ledger, kind, bytes)) {}
    [[nodiscard]] bool isShared() const { return m_block.use_count() > 1; }
    [[nodiscard]] std::int64_t bytes() const { return m_block ? m_block->bytes : 0; }

private:
    struct Block {
        Ledger& ledger;
        Kind kind;
        std::int64_t bytes;
        Block(Ledger& ledger, Kind kind, std::int64_t bytes) : ledger(ledger), kind(kind), bytes(bytes) { ledger.take(kind, bytes); }
        Block(const Block&) = delete;
        Block& operator=(const Block&) = delete;
        ~Block() { ledger.give(kind, bytes); }
    };
    std::shared_ptr<Block> m_block;
};

/// A value on a wire.
struct Held {
    Storage storage;
    std::int64_t typeBytes = 0;
    bool needsGradient = false;
    bool isFloat = true;
};

/// What never changes from pass to pass about one cell.
struct CellPlan {
    const graph::CellInstance* cell = nullptr;
    const Treatment* treatment = nullptr;
    catalog::CellCost cost;
    std::int64_t typeBytes = kFloatBytes; // of what it computes with
    std::int64_t wireBytes = kFloatBytes; // of what it gives
    std::int64_t weightValues = 0;        // of its own weights
    std::int64_t bufferValues = 0;        // of its buffers, in float32
    std::int64_t adapterValues = 0;       // of its adapter
    std::int64_t learningValues = 0;      // of its own weights, those that learn
    bool multipliesInFloat = false;       // attention in float16 without instructions for it (engine/kernels/linear)
    bool learnsMatrix = false;            // a weight of two dimensions or more is among these
    int segment = -1; // of recomputed cells: those of one number run again together
};

/// "layers.3.": up to the first number of a repeated cell; the whole path where there is none.
std::string layerOf(const std::string& path) {
    for (std::size_t from = 0; from < path.size();) {
        const std::size_t dot = std::min(path.find('.', from), path.size());
        if (std::all_of(path.begin() + static_cast<std::ptrdiff_t>(from), path.begin() + static_cast<std::ptrdiff_t>(dot),
                        [](unsigned char c) { return c >= '0' && c <= '9'; }))
            return path.substr(0, dot + 1);
        from = dot + 1;
    }
    return path;
}

/// Numbers that the optimizer keeps for one weight.
std::int64_t stateValuesOf(const std::vector<std::int64_t>& dims, const OptimizerMemory& optimizer) {
    const std::int64_t values = sizeCapped(dims);
    if (!optimizer.isFactored || dims.size() < 2) return multiplyCapped(values, optimizer.isFactored ? 1 : optimizer.states);
    const std::int64_t columns = std::max<std::int64_t>(dims.back(), 1), rows = std::max<std::int64_t>(dims[dims.size() - 2], 1);
    return addCapped(values / columns, values / rows);
}

class Simulation {
public:
    Simulation(const graph::ExpandedModel& model, const TreatmentTable& treatment, const MemoryOptions& options);
    MemoryPlan train();
    MemoryPlan predict();

private:
    [[nodiscard]] std::int64_t valuesOf(graph::ValueId id) const { return m_sizes[static_cast<std::size_t>(id)]; }
    [[nodiscard]] Held& held(graph::ValueId id) { return m_values[static_cast<std::size_t>(id)]; }
    [[nodiscard]] Storage activation(std::int64_t bytes) { return {m_ledger, Kind::Activations, bytes}; }

    void begin(bool isTraining);
    void forward(bool keeps);
    void runCell(std::size_t index, bool keeps);
    Held inputOf(const CellPlan& plan, graph::ValueId id);
    std::vector<Storage> weightCopies(const CellPlan& plan);
    void addAdapter(const CellPlan& plan, const Held& input, bool keeps, std::vector<Storage>& kept);
    Storage maskFor(const CellPlan& plan);
    void releaseAfter(std::size_t index);
    Storage logits();
    void lossForward();
    void backward();
    void lossBackward();
    void backwardCell(std::size_t index);
    void backwardWeights(const CellPlan& plan);
    void addGradient(graph::ValueId id, Storage gradient, std::int64_t typeBytes);
    void recompute(std::size_t last);
    void keepBorders(std::size_t index);

    const graph::ExpandedModel& m_model;
    const MemoryOptions& m_options;
    Ledger m_ledger;
    std::vector<std::int64_t> m_sizes; // numbers in each value
    std::vector<std::vector<std::int64_t>> m_dims;
    std::vector<CellPlan> m_cells;
    std::vector<std::size_t> m_lastUse;
    std::int64_t m_trainable = 0;       // numbers
    std::int64_t m_largest = 0;         // of these, in one weight
    std::int64_t m_optimizerValues = 0; // numbers in the optimizer's state

    std::vector<Held> m_values;
    std::vector<std::vector<Storage>> m_kept; // by cell, for its backward pass
    std::vector<Storage> m_gradients;         // of values
    std::map<std::string, Storage> m_masks;
    std::map<int, std::map<graph::ValueId, Storage>> m_borders; // by segment: what a recomputation starts from
    Storage m_logits, m_lossOwn;
};

Simulation::Simulation(const graph::ExpandedModel& model, const TreatmentTable& treatment, const MemoryOptions& options)
    : m_model(model), m_options(options), m_lastUse(model.values.size(), 0) {
    CELLOOM_CHECK(treatment.cells.size() == model.cells.size());
    for (const graph::ValueInfo& value : model.values) {
        auto& dims = m_dims.emplace_back();
        for (const graph::Dim& dim : value.shape) {
            const auto symbol = options.symbols.find(dim.symbol);
            CELLOOM_CHECK(dim.symbol.empty() || symbol != options.symbols.end());
            dims.push_back(multiplyCapped(dim.number, dim.symbol.empty() ? 1 : symbol->second));
        }
        m_sizes.push_back(sizeCapped(dims));
    }
    const auto precision = precisionOf(model, treatment, options.precision);
    CELLOOM_CHECK(precision.has_value());
    int segment = -1;
    std::string layer;
    for (std::size_t i = 0; i < model.cells.size(); ++i) {
        const graph::CellInstance& cell = model.cells[i];
        const catalog::CellType* type = catalog::find(cell.type);
        CELLOOM_CHECK(type != nullptr);
        const auto dimsOf = [&](const std::vector<graph::ValueId>& ids) {
            catalog::Sizes out;
            for (const graph::ValueId id : ids)
                out.push_back(id < 0 ? std::vector<std::int64_t>{} : m_dims[static_cast<std::size_t>(id)]);
            return out;
        };
        CellPlan plan{&cell, &treatment.cells[i], type->cost(cell, dimsOf(cell.inputs), dimsOf(cell.outputs)),
                      bytesOf(precision->cells[i].compute), bytesOf(precision->cells[i].wire)};
        plan.multipliesInFloat = cell.type == "Attention" && precision->cells[i].compute == FloatType::Float16 && !options.isGpu &&
                                 !processorHalfSupport().float16;
        for (const graph::WeightSpec& weight : cell.weights) {
            std::int64_t& values = weight.isBuffer ? plan.bufferValues : plan.weightValues;
            values = addCapped(values, sizeCapped(weight.dims));
        }
        if (treatment.cells[i].recompute) {
            if (m_cells.empty() || m_cells.back().segment < 0 || layerOf(cell.path) != layer) ++segment;
            layer = layerOf(cell.path);
            plan.segment = segment;
        }
        if (cell.type == "LMHead" && options.lastPositionOnly) {
            const auto& dims = m_dims[static_cast<std::size_t>(cell.outputs[0])]; // [B,T,V], of which [B,1,V] is made
            m_sizes[static_cast<std::size_t>(cell.outputs[0])] = multiplyCapped(dims[0], dims[2]);
        }
        for (const graph::ValueId id : cell.inputs)
            if (id >= 0) m_lastUse[static_cast<std::size_t>(id)] = i;
        m_cells.push_back(std::move(plan));
    }
    for (const ParameterRow& row : parameterTable(model, treatment)) {
        CellPlan& plan = m_cells[static_cast<std::size_t>(row.cell)];
        const std::int64_t values = sizeCapped(row.dims);
        if (row.isAdapter) plan.adapterValues = addCapped(plan.adapterValues, values);
        if (row.isTrainable) {
            m_trainable = addCapped(m_trainable, values);
            m_largest = std::max(m_largest, values);
            m_optimizerValues = addCapped(m_optimizerValues, stateValuesOf(row.dims, options.optimizer));
        }
        if (row.isAdapter || !row.isTrainable) continue;
        plan.learningValues = addCapped(plan.learningValues, values);
        plan.learnsMatrix = plan.learnsMatrix || row.dims.size() > 1;
    }
    for (const graph::NamedValue& output : model.outputs) m_lastUse[static_cast<std::size_t>(output.value)] = model.cells.size();
}

/// What is there before the first pass: weights and, in training, the moments.
void Simulation::begin(bool isTraining) {
    std::int64_t weights = 0, frozen = 0;
    for (const CellPlan& plan : m_cells) {
        weights = addCapped(weights, addCapped(plan.bufferValues, addCapped(plan.learningValues, plan.adapterValues)));
        frozen = addCapped(frozen, plan.weightValues - plan.learningValues);
    }
    m_ledger.take(Kind::Weights, addCapped(multiplyCapped(weights, kFloatBytes), multiplyCapped(frozen, m_options.frozenBytes)));
    if (m_options.keepsBestWeights) m_ledger.take(Kind::Weights, multiplyCapped(m_trainable, kFloatBytes));
    if (isTraining) m_ledger.take(Kind::Optimizer, multiplyCapped(m_optimizerValues, kFloatBytes));
}

MemoryPlan Simulation::train() {
    begin(true);
    const std::int64_t gradients = multiplyCapped(m_trainable, kFloatBytes);
    if (m_options.isAccumulated) m_ledger.take(Kind::Gradients, gradients); // of the micro-batches before: the last one is the fullest
    MemoryParts whole = m_ledger.now();
    forward(true);
    lossForward();
    whole.activations = m_ledger.now().activations;
    whole.weights = m_ledger.now().weights;
    whole.gradients = gradients;
    m_ledger.enter(MemoryPhase::Backward);
    backward();
    m_ledger.enter(MemoryPhase::Update);
    const OptimizerMemory& optimizer = m_options.optimizer;
    const std::int64_t copied = optimizer.isFactored ? multiplyCapped(m_largest, kFloatBytes) : gradients;
    if (optimizer.updateCopies > 0) m_ledger.touch(Kind::Optimizer, multiplyCapped(copied, optimizer.updateCopies));
    if (m_options.evaluates) {
        m_ledger.enter(MemoryPhase::Evaluation);
        forward(false);
        m_logits = {};
    }
    MemoryPlan plan = m_ledger.plan();
    plan.whole = whole;
    return plan;
}

MemoryPlan Simulation::predict() {
    begin(false);
    m_ledger.enter(MemoryPhase::Evaluation);
    forward(false);
    m_logits = {};
    MemoryPlan plan = m_ledger.plan();
    plan.whole = plan.peak;
    plan.phasePeaks[static_cast<std::size_t>(MemoryPhase::Forward)] = 0;
    return plan;
}

// ---- forward ----

void Simulation::forward(bool keeps) {
    m_values.assign(m_model.values.size(), {});
    m_kept.assign(m_cells.size(), {});
    m_gradients.assign(m_model.values.size(), {});
    m_masks.clear();
    for (const graph::NamedValue& input : m_model.inputs) {
        Held& value = held(input.value);
        value.isFloat = m_model.values[static_cast<std::size_t>(input.value)].dtype == "float";
        value.typeBytes = value.isFloat ? kFloatBytes : kIdBytes;
        value.storage = activation(multiplyCapped(valuesOf(input.value), value.typeBytes));
    }
    m_borders.clear();
    for (std::size_t i = 0; i < m_cells.size(); ++i) {
        if (keeps) keepBorders(i);
        runCell(i, keeps && m_cells[i].segment < 0);
        releaseAfter(i);
    }
    m_logits = logits();
    for (Held& value : m_values) value.storage = {}; // types and needs stay, for the backward pass
    m_masks.clear();
}

/// The value in the cell's type: as it is, or a copy.
Held Simulation::inputOf(const CellPlan& plan, graph::ValueId id) {
    if (id < 0) return {};
    Held out = held(id);
    if (!out.isFloat || out.typeBytes == plan.typeBytes) return out;
    out.typeBytes = plan.typeBytes;
    out.storage = activation(multiplyCapped(valuesOf(id), plan.typeBytes));
    return out;
}

/// Where a cell computes in another type than its weights are kept in (at O2), each pass copies them; the copy of a matrix stays for the
/// gradient of its input.
std::vector<Storage> Simulation::weightCopies(const CellPlan& plan) {
    const std::int64_t keptBytes = plan.learningValues > 0 ? kFloatBytes : m_options.frozenBytes;
    if (plan.typeBytes == keptBytes || plan.weightValues == 0) return {};
    return {Storage(m_ledger, Kind::Weights, multiplyCapped(plan.weightValues, plan.typeBytes))};
}

void Simulation::runCell(std::size_t index, bool keeps) {
    const CellPlan& plan = m_cells[index];
    const graph::CellInstance& cell = *plan.cell;
    std::vector<Held> inputs;
    bool inputNeedsGradient = false;
    for (const graph::ValueId id : cell.inputs) {
        inputs.push_back(inputOf(plan, id));
        inputNeedsGradient = inputNeedsGradient || inputs.back().needsGradient;
    }
    const bool needsGradient = inputNeedsGradient || plan.learningValues > 0 || plan.adapterValues > 0;
    const std::vector<Storage> copies = weightCopies(plan);
    std::vector<Storage> kept;
    if (cell.type == "Attention") kept.push_back(maskFor(plan));

    Storage own; // statistics, masks, repeated keys: what the cell makes and keeps
    if (plan.cost.keptValues > 0) own = activation(multiplyCapped(plan.cost.keptValues, plan.typeBytes));
    std::vector<Storage> computed; // the outputs before they are brought to the type of their wires
    for (std::size_t port = 0; port < cell.outputs.size(); ++port) {
        const graph::ValueId id = cell.outputs[port];
        Held& out = held(id);
        out.isFloat = true;
        out.typeBytes = plan.wireBytes;
        out.needsGradient = needsGradient;
        const bool isWeight = plan.cost.weightOutput == static_cast<int>(port);
        if (isWeight)
            out.storage = copies.empty() ? Storage() : copies.front();
        else if (plan.cost.areOutputsViews)
            out.storage = inputs[0].storage;
        else
            out.storage = activation(multiplyCapped(valuesOf(id), plan.typeBytes));
        computed.push_back(out.storage);
        if (plan.wireBytes != plan.typeBytes) out.storage = activation(multiplyCapped(valuesOf(id), plan.wireBytes));
    }
    if (plan.cost.forwardWorkspace > 0) m_ledger.touch(Kind::Activations, multiplyCapped(plan.cost.forwardWorkspace, plan.typeBytes));
    if (plan.treatment->lora) addAdapter(plan, inputs[0], keeps, kept);
    if (!keeps || !needsGradient) return;

    const bool keepsFloat = ((cell.type == "RMSNorm" || cell.type == "BatchNorm2d") && plan.typeBytes != kFloatBytes) || plan.multipliesInFloat; // its inputs in float32
    const auto& forWeights = plan.cost.keptForWeights;
    for (const int port : plan.cost.keptInputs) {
        const bool isForWeights = std::find(forWeights.begin(), forWeights.end(), port) != forWeights.end();
        if (isForWeights && !plan.learnsMatrix) continue;
        const Held& input = inputs[static_cast<std::size_t>(port)];
        const graph::ValueId id = cell.inputs[static_cast<std::size_t>(port)];
        kept.push_back(keepsFloat ? activation(multiplyCapped(valuesOf(id), kFloatBytes)) : input.storage);
    }
    for (const int port : plan.cost.keptOutputs) kept.push_back(computed[static_cast<std::size_t>(port)]);
    kept.push_back(own);
    if (inputNeedsGradient) kept.insert(kept.end(), copies.begin(), copies.end());
    m_kept[index] = std::move(kept);
}

/// out = out + B(A(drop(x))): x and A(x) are kept; the change, and the sum, exist beside the output for a moment.
void Simulation::addAdapter(const CellPlan& plan, const Held& input, bool keeps, std::vector<Storage>& kept) {
    const graph::ValueId in = plan.cell->inputs[0], out = plan.cell->outputs[0];
    const std::int64_t rows = valuesOf(in) / std::max<std::int64_t>(plan.cell->weights.front().dims[1], 1);
    std::vector<Storage> needed{input.storage};
    if (plan.treatment->lora->dropout > 0) {
        const std::int64_t bytes = multiplyCapped(valuesOf(in), plan.typeBytes);
        needed = {activation(bytes), activation(bytes)}; // mask, thinned-out x
    }
    needed.push_back(activation(multiplyCapped(multiplyCapped(rows, plan.treatment->lora->rank), plan.typeBytes)));
    m_ledger.touch(Kind::Activations, multiplyCapped(valuesOf(out), 2 * plan.typeBytes));
    if (keeps) kept.insert(kept.end(), needed.begin(), needed.end());
}

/// One additive mask for all layers of a pass, in the cell's type: documents' borders, ALiBi. Made in double precision for ALiBi.
Storage Simulation::maskFor(const CellPlan& plan) {
    const graph::CellInstance& cell = *plan.cell;
    const bool isAlibi = cell.text("position") == "alibi";
    const auto& q = m_dims[static_cast<std::size_t>(cell.inputs[0])];
    const auto& k = m_dims[static_cast<std::size_t>(cell.inputs[1])];
    const bool isWrittenOut = cell.real("dropout") > 0;
    if (!isAlibi && !m_options.hasDocumentAttention && !isWrittenOut) return {};
    const std::int64_t pairs = multiplyCapped(q[1], k[1]), heads = isAlibi ? cell.integer("num_heads") : 1;
    const std::int64_t batch = m_options.hasDocumentAttention ? q[0] : 1; // ALiBi alone is one for all rows
    Storage& mask = m_masks[std::to_string(heads) + "/" + std::to_string(plan.typeBytes)];
    if (mask.bytes() > 0) return mask;
    const Storage allowed = activation(multiplyCapped(batch, pairs)); // bool
    if (isAlibi) {
        const std::int64_t bias = multiplyCapped(heads, pairs);
        m_ledger.touch(Kind::Activations, multiplyCapped(bias, kDoubleBytes + plan.typeBytes));
        const Storage slopes = activation(multiplyCapped(bias, plan.typeBytes));
        mask = activation(multiplyCapped(multiplyCapped(batch, bias), plan.typeBytes));
        return mask;
    }
    mask = activation(multiplyCapped(multiplyCapped(batch, pairs), plan.typeBytes));
    return mask;
}

void Simulation::releaseAfter(std::size_t index) {
    const auto drop = [&](graph::ValueId id) {
        if (id >= 0 && m_lastUse[static_cast<std::size_t>(id)] <= index) held(id).storage = {};
    };
    for (const graph::ValueId id : m_cells[index].cell->inputs) drop(id);
    for (const graph::ValueId id : m_cells[index].cell->outputs) drop(id);
}

/// The outputs in float32.
Storage Simulation::logits() {
    Storage out;
    for (const graph::NamedValue& output : m_model.outputs) {
        const Held& value = held(output.value);
        out = value.typeBytes == kFloatBytes ? value.storage : activation(multiplyCapped(valuesOf(output.value), kFloatBytes));
    }
    return out;
}

// ---- loss and backward ----

void Simulation::lossForward() {
    if (m_options.isGpu) m_lossOwn = activation(m_logits.bytes()); // LibTorch's own loss keeps the logarithms
}

/// The gradient of the logits. A z-loss makes one of its own first, and adds up both.
void Simulation::lossBackward() {
    Storage gradient = activation(m_logits.bytes());
    if (m_options.hasZLoss) m_ledger.touch(Kind::Activations, m_logits.bytes());
    m_lossOwn = {};
    m_logits = {}; // the step does not keep what nobody measures
    for (const graph::NamedValue& output : m_model.outputs) addGradient(output.value, gradient, kFloatBytes);
}

void Simulation::backward() {
    lossBackward();
    for (std::size_t i = m_cells.size(); i-- > 0;) backwardCell(i);
    m_gradients.assign(m_model.values.size(), {});
}

/// Gradients of inputs and weights come to be while those of the outputs, and what was kept, are still there.
void Simulation::backwardCell(std::size_t index) {
    const CellPlan& plan = m_cells[index];
    const graph::CellInstance& cell = *plan.cell;
    std::vector<Storage> outer;
    for (const graph::ValueId id : cell.outputs) {
        Storage& gradient = m_gradients[static_cast<std::size_t>(id)];
        if (gradient.bytes() > 0) outer.push_back(gradient);
        gradient = {};
    }
    if (outer.empty()) return;
    if (plan.wireBytes != plan.typeBytes)
        for (Storage& gradient : outer) gradient = activation(gradient.bytes() / plan.wireBytes * plan.typeBytes);
    if (plan.segment >= 0 && m_borders.contains(plan.segment)) recompute(index);

    std::vector<std::pair<graph::ValueId, Storage>> gradients;
    for (const graph::ValueId id : cell.inputs) {
        if (id < 0 || !held(id).needsGradient) continue;
        const bool isSame = plan.cost.passesGradient && outer.front().bytes() == multiplyCapped(valuesOf(id), plan.typeBytes);
        gradients.emplace_back(id, isSame ? outer.front() : activation(multiplyCapped(valuesOf(id), plan.typeBytes)));
    }
    if (plan.cost.backwardWorkspace > 0) m_ledger.touch(Kind::Activations, multiplyCapped(plan.cost.backwardWorkspace, plan.typeBytes));
    if (plan.treatment->lora) // the input's gradient through the adapter, before it is added to the other
        m_ledger.touch(Kind::Activations, multiplyCapped(valuesOf(cell.inputs[0]), plan.typeBytes));
    backwardWeights(plan);
    m_kept[index].clear();
    outer.clear();
    for (auto& [id, gradient] : gradients) addGradient(id, std::move(gradient), plan.typeBytes);
}

/// In the half type first where the cell computes in it; then in float32, which stays, or is added to what earlier micro-batches left.
void Simulation::backwardWeights(const CellPlan& plan) {
    const auto learn = [&](std::int64_t values) {
        const std::int64_t bytes = multiplyCapped(values, kFloatBytes);
        if (m_options.isAccumulated)
            m_ledger.touch(Kind::Gradients, bytes);
        else
            m_ledger.take(Kind::Gradients, bytes);
    };
    if (plan.adapterValues > 0) learn(plan.adapterValues);
    if (plan.learningValues == 0) return;
    Storage half;
    if (plan.typeBytes != kFloatBytes) half = activation(multiplyCapped(plan.learningValues, plan.typeBytes));
    learn(plan.learningValues);
}

/// To the value's own type; added in place where another reader gave a gradient before, unless that one is shared.
void Simulation::addGradient(graph::ValueId id, Storage gradient, std::int64_t typeBytes) {
    const Held& value = held(id);
    if (!value.needsGradient) return;
    if (value.typeBytes != typeBytes) {
        const Storage given = gradient;
        gradient = activation(multiplyCapped(valuesOf(id), value.typeBytes));
    }
    Storage& sum = m_gradients[static_cast<std::size_t>(id)];
    if (sum.bytes() == 0)
        sum = std::move(gradient);
    else if (sum.isShared())
        sum = activation(sum.bytes());
}

// ---- recomputation ----

/// Cells of a segment keep nothing but what comes from outside of it.
void Simulation::keepBorders(std::size_t index) {
    const int segment = m_cells[index].segment;
    if (segment < 0) return;
    const bool isFirst = index == 0 || m_cells[index - 1].segment != segment;
    if (isFirst) m_borders[segment] = {};
    for (const graph::ValueId id : m_cells[index].cell->inputs) {
        if (id < 0) continue;
        bool isInside = false;
        for (std::size_t i = index; i-- > 0 && m_cells[i].segment == segment && !isInside;) {
            const auto& outputs = m_cells[i].cell->outputs;
            isInside = std::find(outputs.begin(), outputs.end(), id) != outputs.end();
        }
        if (!isInside) m_borders[segment][id] = held(id).storage;
    }
}

/// The segment that ends with cell `last` runs forward again, keeping everything this time.
void Simulation::recompute(std::size_t last) {
    const int segment = m_cells[last].segment;
    std::size_t first = last;
    while (first > 0 && m_cells[first - 1].segment == segment) --first;
    for (const auto& [id, storage] : m_borders[segment]) held(id).storage = storage;
    m_borders.erase(segment);
    for (std::size_t i = first; i <= last; ++i) {
        runCell(i, true);
        releaseAfter(i);
    }
    for (Held& value : m_values) value.storage = {};
    m_masks.clear();
}

} // namespace

OptimizerMemory optimizerMemoryOf(const Recipe& recipe) {
    const std::string& type = recipe.text("optimizer.type");
    const int momentum = recipe.real("optimizer.momentum") > 0 ? 1 : 0;
    if (type == "AdamWeightDecay") return {2, false, 2};
    if (type == "SGD" || type == "Momentum") return {momentum, false, 0};
    if (type == "Lion") return {1, false, 1};
    if (type == "Adafactor") return {0, true, 2};
    if (type == "RMSProp") // the root and, where it is decayed, the gradient
        return {1 + momentum + (recipe.flag("optimizer.centered") ? 1 : 0), false, recipe.real("optimizer.weight_decay") > 0 ? 2 : 1};
    return {};
}

MemoryPlan planTraining(const graph::ExpandedModel& model, const TreatmentTable& treatment, const MemoryOptions& options) {
    return Simulation(model, treatment, options).train();
}

MemoryPlan planPrediction(const graph::ExpandedModel& model, const TreatmentTable& treatment, const MemoryOptions& options) {
    return Simulation(model, treatment, options).predict();
}

} // namespace celloom::recipe
