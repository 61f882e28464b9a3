// Runs an expanded model cell by cell (PyNative mode).
#include "engine/exec/network.h"

#include "engine/cells/cell.h"
#include "engine/generate/key_value_cache.h"
#include "models/recipe/checks.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/aminmax.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <algorithm>
#include <sstream>

namespace celloom::engine {

using graph::CellInstance;
using graph::WeightSpec;

struct Network::State {
    graph::ExpandedModel model;
    NetworkOptions options;
    std::vector<std::unique_ptr<Cell>> cells;
    std::vector<Parameter> parameters;
    std::vector<std::size_t> lastUse; // by value: the number of the last cell that reads it; outputs are kept to the end
    TensorCache tables;
};

namespace {

std::uint64_t hashOf(const std::string& text) { // FNV-1a: the same on every machine, unlike std::hash
    std::uint64_t hash = 14695981039346656037ull;
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ull;
    return hash;
}

void initialise(at::Tensor& tensor, const CellInstance& cell, const WeightSpec& spec, const std::string& path,
                const NetworkOptions& options) {
    switch (spec.init) {
    case WeightSpec::Init::Ones:
        tensor.fill_(1);
        return;
    case WeightSpec::Init::Zeros:
        tensor.fill_(0);
        return;
    case WeightSpec::Init::Normal:
        break;
    }
    tensor.normal_(0, options.initStd, at::detail::createCPUGenerator(mixSeed(options.seed, hashOf(path))));
    if (cell.type != "Embedding") return;
    const std::int64_t padding = cell.integer("padding_idx");
    if (padding >= 0 && padding < tensor.size(0)) tensor.select(0, padding).fill_(0);
}

Result<at::ScalarType> computeTypeOf(const Cell& cell, const recipe::Treatment& treatment, const NetworkOptions& options) {
    if (treatment.dtype == "float32") return at::kFloat;
    if (treatment.dtype == "bfloat16") return at::kBFloat16;
    if (treatment.dtype == "float16") return at::kHalf;
    if (!treatment.dtype.empty())
        return fail("has dtype \"" + treatment.dtype + "\".", "float32, bfloat16 and float16 are known.", cell.instance().path);
    return options.ampLevel == AmpLevel::O0 || cell.needsFloat32() ? at::kFloat : options.halfType;
}

std::string shapesOf(const std::vector<at::Tensor>& tensors) {
    std::ostringstream out;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
        if (i > 0) out << ", ";
        if (tensors[i].defined())
            out << tensors[i].sizes();
        else
            out << "nothing";
    }
    return out.str();
}

Result<at::Tensor> inputNamed(const std::string& name, const Batch& batch) {
    at::Tensor tensor;
    if (name == "input_ids")
        tensor = batch.inputIds;
    else if (name == "attention_mask")
        tensor = batch.attentionMask;
    else if (name == "positions")
        tensor = batch.positions;
    else
        return fail("this graph asks for an input \"" + name + "\", which text batches do not have.", "Graphs over input_ids can be run.");
    if (!tensor.defined()) return fail("the batch has no \"" + name + "\".");
    return tensor;
}

// Masks, segments and positions that say nothing cost attention its fast path. They are looked at only where they lie on the CPU.
bool canLook(const at::Tensor& tensor) {
    return tensor.defined() && tensor.is_cpu() && tensor.numel() > 0;
}

at::Tensor usefulMask(const at::Tensor& mask) {
    return canLook(mask) && mask.to(at::kBool).all().item<bool>() ? at::Tensor() : mask;
}
at::Tensor usefulSegments(const at::Tensor& segments) {
    return canLook(segments) && segments.eq(segments.narrow(1, 0, 1)).all().item<bool>() ? at::Tensor() : segments;
}
at::Tensor usefulPositions(const at::Tensor& positions) {
    return canLook(positions) && positions.eq(at::arange(positions.size(1))).all().item<bool>() ? at::Tensor() : positions;
}

/// Who comes after whom, on the host: positions and lengths of the rows.
void placeTokens(const Batch& batch, KeyValueCache* cache, StepContext& context) {
    const std::int64_t length = batch.inputIds.defined() ? batch.inputIds.size(1) : 0;
    context.positionsEnd = length;
    if (cache) {
        CELLOOM_CHECK(!batch.positions.defined() && !batch.lengths.defined() && !batch.segments.defined() && !context.isTraining);
        cache->begin(length, batch.attentionMask);
        context.cache = cache;
        context.positions = cache->positions();
        context.firstPosition = context.positions.defined() ? 0 : cache->firstPosition();
        context.rowLengths = cache->countsAfter();
        context.positionsEnd = cache->firstPosition() + length;
        return;
    }
    context.positions = usefulPositions(batch.positions);
    if (context.positions.defined() && context.positions.numel() > 0) {
        const auto [low, high] = at::aminmax(context.positions);
        TORCH_CHECK_INDEX(low.item<std::int64_t>() >= 0, "position ", low.item<std::int64_t>(), " is negative"); // sync
        context.positionsEnd = std::max(length, high.item<std::int64_t>() + 1);                                  // sync
    }
    if (!batch.lengths.defined()) return;
    const at::Tensor lengths = batch.lengths.to(at::kCPU).contiguous();
    context.rowLengths.assign(lengths.const_data_ptr<std::int64_t>(), lengths.const_data_ptr<std::int64_t>() + lengths.numel());
}

bool isFloating(const at::Tensor& tensor) {
    return tensor.defined() && at::isFloatingType(tensor.scalar_type());
}

/// Gathers the inputs in the cell's compute type, computes, and puts the results on their wires.
std::vector<at::Tensor> runCell(Cell& cell, std::vector<at::Tensor>& values, StepContext& context) {
    std::vector<at::Tensor> inputs;
    for (const graph::ValueId id : cell.instance().inputs) {
        at::Tensor input = id < 0 ? at::Tensor() : values[static_cast<std::size_t>(id)];
        inputs.push_back(isFloating(input) ? input.to(cell.computeType()) : input);
    }
    try {
        std::vector<at::Tensor> results = cell.construct(inputs, context);
        TORCH_CHECK(results.size() == cell.instance().outputs.size(), "the cell gave ", results.size(), " results, its type has ",
                    cell.instance().outputs.size());
        for (std::size_t i = 0; i < results.size(); ++i) values[static_cast<std::size_t>(cell.instance().outputs[i])] = results[i];
        return results;
    } catch (c10::Error& error) {
        error.add_context("inputs: " + shapesOf(inputs));
        throw;
    }
}

/// Drops what no later cell reads; autograd keeps what the backward pass needs.
void release(const CellInstance& cell, std::size_t index, const std::vector<std::size_t>& lastUse, std::vector<at::Tensor>& values) {
    const auto drop = [&](graph::ValueId id) {
        if (id >= 0 && lastUse[static_cast<std::size_t>(id)] <= index) values[static_cast<std::size_t>(id)].reset();
    };
    for (const graph::ValueId id : cell.inputs) drop(id);
    for (const graph::ValueId id : cell.outputs) drop(id);
}

} // namespace

Network::Network(std::unique_ptr<State> state) : m_state(std::move(state)) {}
Network::~Network() = default;
std::vector<Parameter>& Network::parameters() {
    return m_state->parameters;
}
const std::vector<Parameter>& Network::parameters() const {
    return m_state->parameters;
}
const graph::ExpandedModel& Network::model() const {
    return m_state->model;
}
const NetworkOptions& Network::options() const {
    return m_state->options;
}

Result<std::unique_ptr<Network>> Network::create(graph::ExpandedModel model, const recipe::TreatmentTable& treatment,
                                                 const NetworkOptions& options, const CellRegistry* registry) {
    CELLOOM_CHECK(treatment.cells.size() == model.cells.size());
    auto state = std::make_unique<State>();
    state->options = options;
    state->lastUse.assign(model.values.size(), 0);
    std::string place;
    try {
        at::NoGradGuard guard;
        for (std::size_t index = 0; index < model.cells.size(); ++index) {
            const CellInstance& instance = model.cells[index];
            place = instance.path;
            auto cell = (registry ? *registry : CellRegistry::standard()).make(instance);
            if (!cell) return fail("has the type " + instance.type + ", which this engine cannot compute.", {}, instance.path);
            CELLOOM_TRY_STATUS(recipe::checkSupported(treatment.cells[index], instance.path));
            CELLOOM_TRY(type, computeTypeOf(*cell, treatment.cells[index], options));
            std::vector<at::Tensor> weights;
            for (const WeightSpec& spec : instance.weights) {
                Parameter parameter{instance.path + "." + spec.name, at::empty(spec.dims, at::kFloat), static_cast<int>(index),
                                    treatment.cells[index].frozen};
                if (options.initialise) initialise(parameter.tensor, instance, spec, parameter.path, options);
                parameter.tensor = parameter.tensor.to(options.device).requires_grad_(!parameter.isFrozen);
                weights.push_back(parameter.tensor);
                state->parameters.push_back(std::move(parameter));
            }
            cell->bind(std::move(weights), type, index);
            state->cells.push_back(std::move(cell));
            for (const graph::ValueId input : instance.inputs)
                if (input >= 0) state->lastUse[static_cast<std::size_t>(input)] = index;
        }
    } catch (const std::exception& exception) {
        return tl::unexpected(errorOf(exception, place));
    }
    for (const graph::NamedValue& output : model.outputs) state->lastUse[static_cast<std::size_t>(output.value)] = model.cells.size();
    state->model = std::move(model);
    return std::unique_ptr<Network>(new Network(std::move(state)));
}

bool Network::logitsComeFromTheHead() const {
    const graph::ExpandedModel& model = m_state->model;
    std::size_t heads = 0;
    bool isLast = false;
    for (const CellInstance& cell : model.cells) {
        if (cell.type != "LMHead") continue;
        ++heads;
        for (const graph::NamedValue& output : model.outputs) isLast = isLast || (output.name == "logits" && output.value == cell.outputs[0]);
        for (const CellInstance& other : model.cells)
            if (std::find(other.inputs.begin(), other.inputs.end(), cell.outputs[0]) != other.inputs.end()) return false;
    }
    return heads == 1 && isLast;
}

Result<std::map<std::string, at::Tensor>> Network::forward(const Batch& batch, const ForwardOptions& options) {
    const State& state = *m_state;
    at::AutoGradMode record(options.training);
    StepContext context;
    context.isTraining = options.training;
    context.lastPositionOnly = options.lastPositionOnly;
    CELLOOM_CHECK(!options.headPositions.defined() || logitsComeFromTheHead());
    context.dropoutSeed = options.dropoutSeed;
    context.tables = &m_state->tables;
    std::vector<at::Tensor> values(state.model.values.size());
    std::string place = "the batch";
    try {
        const auto toDevice = [&](const at::Tensor& tensor) { return tensor.defined() ? tensor.to(state.options.device) : tensor; };
        context.attentionMask = toDevice(usefulMask(batch.attentionMask));
        context.segments = toDevice(usefulSegments(batch.segments));
        context.headPositions = toDevice(options.headPositions);
        placeTokens(batch, options.cache, context);
        context.positions = toDevice(context.positions);
        for (const graph::NamedValue& input : state.model.inputs) {
            CELLOOM_TRY(tensor, inputNamed(input.name, batch));
            values[static_cast<std::size_t>(input.value)] = toDevice(tensor);
        }
        for (std::size_t index = 0; index < state.cells.size(); ++index) {
            place = state.model.cells[index].path;
            const std::vector<at::Tensor> results = runCell(*state.cells[index], values, context);
            if (options.observer) options.observer(state.model.cells[index], results);
            release(state.model.cells[index], index, state.lastUse, values);
        }
        if (options.cache) options.cache->commit();
        std::map<std::string, at::Tensor> outputs;
        for (const graph::NamedValue& output : state.model.outputs) {
            const at::Tensor& value = values[static_cast<std::size_t>(output.value)];
            outputs[output.name] = isFloating(value) ? value.to(at::kFloat) : value;
        }
        return outputs;
    } catch (const std::exception& exception) {
        return tl::unexpected(errorOf(exception, place));
    }
}

} // namespace celloom::engine
