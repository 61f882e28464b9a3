// Runs an expanded model cell by cell (PyNative mode).
#include "engine/exec/network_state.h"

#include "engine/exec/recompute.h"
#include "engine/generate/key_value_cache.h"
#include "models/base/text.h"
#include "models/recipe/checks.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/aminmax.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <algorithm>
#include <array>
#include <cmath>
#include <sstream>
#include <utility>

namespace celloom::engine {

using graph::CellInstance;
using graph::WeightSpec;

namespace {

std::uint64_t hashOf(const std::string& text) { // FNV-1a: the same on every machine, unlike std::hash
    std::uint64_t hash = 14695981039346656037ull;
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ull;
    return hash;
}

/// Draws `tensor` (float32) as its kind of weight begins.
void initialise(at::Tensor& tensor, const CellInstance& cell, const WeightSpec& spec, const std::string& path,
                const NetworkOptions& options) {
    switch (spec.init) {
    case WeightSpec::Init::Ones:
        tensor.fill_(1);
        return;
    case WeightSpec::Init::Zeros:
        tensor.fill_(0);
        return;
    case WeightSpec::Init::FanIn: {
        const double bound = 1 / std::sqrt(static_cast<double>(std::max<std::int64_t>(1, tensor.numel() / spec.dims[0])));
        tensor.uniform_(-bound, bound, generatorFor(options.seed, path));
        return;
    }
    case WeightSpec::Init::Normal:
        break;
    }
    tensor.normal_(0, options.initStd, generatorFor(options.seed, path));
    if (cell.type != "Embedding") return;
    const std::int64_t padding = cell.integer("padding_idx");
    if (padding >= 0 && padding < tensor.size(0)) tensor.select(0, padding).fill_(0);
}

recipe::PrecisionSettings precisionSettingsOf(const NetworkOptions& options) {
    CELLOOM_CHECK(options.halfType == at::kBFloat16 || options.halfType == at::kHalf);
    const auto half = options.halfType == at::kHalf ? recipe::FloatType::Float16 : recipe::FloatType::BFloat16;
    return {options.ampLevel, half, options.allow, options.deny};
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
    const at::Tensor tensor = batch.column(name);
    if (tensor.defined()) return tensor;
    return fail("this graph asks for an input \"" + name + "\", which the data do not have.", "Name a column of the data so, or the graph's input as the data do.");
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

void addTypes(std::vector<at::ScalarType>& types, const std::vector<at::Tensor>& tensors) {
    for (const at::Tensor& tensor : tensors)
        if (isFloating(tensor)) types.push_back(tensor.scalar_type());
}

/// Gathers the inputs in the cell's compute type, computes, and puts the results on their wires in the type that these have. `types` is
/// filled where it is given.
std::vector<at::Tensor> runCell(Cell& cell, recipe::FloatType wire, std::vector<at::Tensor>& values, StepContext& context, ObservedTypes* types) {
    std::vector<at::Tensor> inputs;
    for (const graph::ValueId id : cell.instance().inputs) {
        at::Tensor input = id < 0 ? at::Tensor() : values[static_cast<std::size_t>(id)];
        inputs.push_back(isFloating(input) ? input.to(cell.computeType()) : input);
    }
    try {
        std::vector<at::Tensor> results = cell.construct(inputs, context);
        TORCH_CHECK(results.size() == cell.instance().outputs.size(), "the cell gave ", results.size(), " results, its type has ",
                    cell.instance().outputs.size());
        if (types) addTypes(types->results, results);
        for (at::Tensor& result : results)
            if (isFloating(result)) result = result.to(scalarTypeOf(wire));
        if (types) {
            addTypes(types->inputs, inputs);
            addTypes(types->wires, results);
        }
        for (std::size_t i = 0; i < results.size(); ++i) values[static_cast<std::size_t>(cell.instance().outputs[i])] = results[i];
        return results;
    } catch (c10::Error& error) {
        error.add_context("inputs: " + shapesOf(inputs));
        throw;
    }
}

/// One forward pass. Pieces that are computed again share it, so it lives until their backward passes are done.
struct Pass {
    StepContext context;
    std::map<std::size_t, std::array<bool, 2>> taken; // by a Branch: whether a row takes when_false, when_true
    std::string place = "the batch"; // the cell at work, for errors
};

/// Drops what no later cell reads; autograd keeps what the backward pass needs.
void release(const CellInstance& cell, std::size_t place, const std::vector<std::size_t>& lastUse, std::vector<at::Tensor>& values) {
    const auto drop = [&](graph::ValueId id) {
        if (id >= 0 && lastUse[static_cast<std::size_t>(id)] <= place) values[static_cast<std::size_t>(id)].reset();
    };
    for (const graph::ValueId id : cell.inputs) drop(id);
    for (const graph::ValueId id : cell.outputs) drop(id);
}

/// "layers.3" of "layers.3.mlp.up_proj"; empty where no name is a number.
std::string layerOf(const std::string& path) {
    for (std::size_t from = 0; from < path.size();) {
        const auto dot = std::min(path.find('.', from), path.size());
        std::int64_t number = 0;
        if (readNumber(std::string_view(path).substr(from, dot - from), number)) return path.substr(0, dot);
        from = dot + 1;
    }
    return {};
}

/// Runs a cell and tells the observers about it.
using RunCell = std::function<void(std::size_t index, std::vector<at::Tensor>& values, bool isAgain)>;

/// Whether some row takes each arm that a cell feeds alone. Every Branch is asked once a pass, by the condition that it will see.
bool isTaken(const Network::State& state, std::size_t cell, const std::vector<at::Tensor>& values, Pass& pass) {
    for (const Arm& arm : state.order.arms[cell]) {
        const auto [found, isNew] = pass.taken.try_emplace(arm.branch);
        if (isNew) {
            const Cell& branch = *state.cells[arm.branch];
            const at::Tensor takesTrue = values[static_cast<std::size_t>(branch.instance().inputs[0])].to(branch.computeType()) > 0;
            found->second = {!takesTrue.all().item<bool>(), takesTrue.any().item<bool>()}; // sync
        }
        if (!found->second[arm.whenTrue ? 1 : 0]) return false;
    }
    return true;
}

/// Runs a layer so that its inside is forgotten and computed again in the backward pass. What its cells add to the loss is one output more.
void runRecomputed(const Network::State& state, const RecomputedLayer& layer, std::vector<at::Tensor>& values, const RunCell& run,
                   const std::shared_ptr<Pass>& pass) {
    std::vector<at::Tensor> inputs;
    for (const graph::ValueId id : layer.inputs) inputs.push_back(values[static_cast<std::size_t>(id)]);
    const auto piece = [&state, &layer, run, pass](const std::vector<at::Tensor>& given, bool isAgain) {
        std::vector<at::Tensor> inside(state.model.values.size());
        for (std::size_t i = 0; i < given.size(); ++i) inside[static_cast<std::size_t>(layer.inputs[i])] = given[i];
        const at::Tensor before = std::exchange(pass->context.auxiliaryLoss, {});
        pass->context.isAgain = isAgain;
        for (std::size_t place = layer.first; place <= layer.last; ++place) {
            run(state.order.cells[place], inside, isAgain);
            release(state.model.cells[state.order.cells[place]], place, state.lastUse, inside);
        }
        std::vector<at::Tensor> outputs;
        for (const graph::ValueId id : layer.outputs) outputs.push_back(inside[static_cast<std::size_t>(id)]);
        if (at::Tensor added = std::exchange(pass->context.auxiliaryLoss, before); added.defined()) outputs.push_back(std::move(added));
        pass->context.isAgain = false;
        return outputs;
    };
    const std::vector<at::Tensor> outputs = recomputed(piece, inputs, layer.parameters);
    for (std::size_t i = 0; i < layer.outputs.size(); ++i) values[static_cast<std::size_t>(layer.outputs[i])] = outputs[i];
    if (outputs.size() > layer.outputs.size()) pass->context.addLoss(outputs.back());
    for (std::size_t place = layer.first; place <= layer.last; ++place)
        release(state.model.cells[state.order.cells[place]], layer.last, state.lastUse, values);
}

template <class T> void addOnce(std::vector<T>& list, const T& item) {
    if (std::find(list.begin(), list.end(), item) == list.end()) list.push_back(item);
}

} // namespace

at::Tensor Batch::column(const std::string& name) const {
    if (name == "input_ids") return inputIds;
    if (name == "labels" && labels.defined()) return labels;
    if (name == "attention_mask") return attentionMask;
    if (name == "positions" && positions.defined()) return positions;
    const auto found = columns.find(name);
    return found == columns.end() ? at::Tensor() : found->second;
}

std::int64_t Batch::rows() const {
    if (inputIds.defined()) return inputIds.size(0);
    return columns.empty() ? 0 : columns.begin()->second.size(0);
}

at::ScalarType scalarTypeOf(recipe::FloatType type) {
    switch (type) {
    case recipe::FloatType::BFloat16:
        return at::kBFloat16;
    case recipe::FloatType::Float16:
        return at::kHalf;
    case recipe::FloatType::Float32:
        break;
    }
    return at::kFloat;
}

at::Generator generatorFor(std::uint64_t seed, const std::string& path) {
    return at::detail::createCPUGenerator(mixSeed(seed, hashOf(path)));
}

std::vector<RecomputedLayer> layersToRecompute(const Network::State& state) {
    const auto& cells = state.model.cells;
    const auto& order = state.order.cells;
    const auto areTogether = [&](std::size_t a, std::size_t b) {
        return layerOf(cells[a].path) == layerOf(cells[b].path) && state.order.arms[a] == state.order.arms[b];
    };
    std::vector<RecomputedLayer> out;
    for (std::size_t place = 0; place < order.size(); ++place) {
        if (!state.treatment.cells[order[place]].recompute) continue;
        const bool goesOn = !out.empty() && out.back().last + 1 == place && areTogether(order[place], order[place - 1]);
        if (goesOn) out.back().last = place;
        else out.push_back({place, place, {}, {}, {}});
    }
    std::vector<std::vector<at::Tensor>> learning(cells.size()); // by cell
    for (const Parameter& parameter : state.parameters)
        if (!parameter.isFrozen) learning[static_cast<std::size_t>(parameter.cell)].push_back(parameter.tensor);
    for (RecomputedLayer& layer : out) {
        std::vector<graph::ValueId> made;
        for (std::size_t place = layer.first; place <= layer.last; ++place) {
            const CellInstance& cell = cells[order[place]];
            for (const graph::ValueId id : cell.inputs)
                if (id >= 0 && std::find(made.begin(), made.end(), id) == made.end()) addOnce(layer.inputs, id);
            made.insert(made.end(), cell.outputs.begin(), cell.outputs.end());
            const auto& own = learning[order[place]];
            layer.parameters.insert(layer.parameters.end(), own.begin(), own.end());
        }
        for (const graph::ValueId id : made)
            if (state.lastUse[static_cast<std::size_t>(id)] > layer.last) layer.outputs.push_back(id);
    }
    return out;
}

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
const recipe::TreatmentTable& Network::treatment() const {
    return m_state->treatment;
}
const recipe::PrecisionTable& Network::precision() const {
    return m_state->precision;
}
const recipe::BaseIdentity& Network::base() const {
    return m_state->base;
}
void Network::setBase(recipe::BaseIdentity base) {
    m_state->base = std::move(base);
}

Result<std::unique_ptr<Network>> Network::create(graph::ExpandedModel model, const recipe::TreatmentTable& treatment,
                                                 const NetworkOptions& options, const CellRegistry* registry) {
    CELLOOM_CHECK(treatment.cells.size() == model.cells.size());
    CELLOOM_TRY_STATUS(recipe::checkTreatment(model, treatment));
    for (const graph::NamedValue& output : model.outputs)
        if (output.name == kAuxiliaryLoss)
            return fail("An output of the graph is named " + output.name + ", as what cells add to the loss is.", "Give it another name.", output.name);
    CELLOOM_TRY(precision, recipe::precisionOf(model, treatment, precisionSettingsOf(options)));
    auto state = std::make_unique<State>();
    state->precision = std::move(precision);
    state->options = options;
    state->treatment = treatment;
    state->lastUse.assign(model.values.size(), 0);
    state->model = std::move(model);
    std::string place;
    try {
        at::NoGradGuard guard;
        for (std::size_t index = 0; index < state->model.cells.size(); ++index) {
            const CellInstance& instance = state->model.cells[index];
            const recipe::Treatment& treated = treatment.cells[index];
            place = instance.path;
            auto cell = (registry ? *registry : options.cells ? *options.cells : CellRegistry::standard()).make(instance);
            if (!cell) return fail("has the type " + instance.type + ", which this engine cannot compute.", {}, instance.path);
            std::vector<at::Tensor> weights;
            for (const WeightSpec& spec : instance.weights) {
                Parameter parameter{instance.path + "." + spec.name, {}, static_cast<int>(index), spec.isBuffer || !treated.trains(spec.name), spec.isBuffer};
                const at::ScalarType stored = parameter.isFrozen && !spec.isBuffer ? options.baseType : at::kFloat;
                parameter.tensor = at::empty(spec.dims, options.initialise ? at::kFloat : stored);
                if (options.initialise) initialise(parameter.tensor, instance, spec, parameter.path, options);
                parameter.tensor = parameter.tensor.to(options.device, stored).requires_grad_(!parameter.isFrozen);
                state->slots.push_back({index, weights.size()});
                weights.push_back(parameter.tensor);
                state->parameters.push_back(std::move(parameter));
            }
            cell->bind(std::move(weights), scalarTypeOf(state->precision.cells[index].compute), index);
            state->cells.push_back(std::move(cell));
            if (treated.lora) state->addTrainedAdapter(index, *treated.lora);
        }
    } catch (const std::exception& exception) {
        return tl::unexpected(errorOf(exception, place));
    }
    state->order = runOrderOf(state->model);
    for (std::size_t place = 0; place < state->order.cells.size(); ++place)
        for (const graph::ValueId input : state->model.cells[state->order.cells[place]].inputs)
            if (input >= 0) state->lastUse[static_cast<std::size_t>(input)] = place;
    for (const graph::NamedValue& output : state->model.outputs)
        state->lastUse[static_cast<std::size_t>(output.value)] = state->model.cells.size();
    state->recomputedLayers = layersToRecompute(*state);
    if (treatment.hasAdapters()) state->active = {{kTrainedAdapter, 1}};
    std::unique_ptr<Network> network(new Network(std::move(state)));
    network->baseChanged();
    return network;
}

bool Network::hasBranches() const { return m_state->order.hasArms(); }

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
    const auto pass = std::make_shared<Pass>();
    StepContext& context = pass->context;
    context.isTraining = options.training;
    context.lastPositionOnly = options.lastPositionOnly;
    CELLOOM_CHECK(!options.headPositions.defined() || logitsComeFromTheHead());
    context.dropoutSeed = options.dropoutSeed;
    context.tables = &m_state->tables;
    std::vector<at::Tensor> values(state.model.values.size());
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
        const auto run = [&state, pass, observer = options.observer, typeObserver = options.typeObserver](
                             std::size_t index, std::vector<at::Tensor>& wires, bool isAgain) {
            const CellInstance& cell = state.model.cells[index];
            pass->place = cell.path;
            ObservedTypes types;
            const bool looks = typeObserver && !isAgain;
            const auto results =
                runCell(*state.cells[index], state.precision.cells[index].wire, wires, pass->context, looks ? &types : nullptr);
            if (observer && !isAgain) observer(cell, results);
            if (looks) typeObserver(cell, types);
        };
        auto layer = state.recomputedLayers.begin();
        for (std::size_t place = 0; place < state.cells.size(); ++place) {
            const std::size_t index = state.order.cells[place];
            pass->place = state.model.cells[index].path;
            const bool runs = options.cache || isTaken(state, index, values, *pass); // a cache misses no token
            if (options.training && layer != state.recomputedLayers.end() && layer->first == place) {
                if (runs) runRecomputed(state, *layer, values, run, pass);
                place = layer->last;
                ++layer;
                continue;
            }
            if (runs) run(index, values, false);
            release(state.model.cells[index], place, state.lastUse, values);
        }
        if (options.cache) options.cache->commit();
        std::map<std::string, at::Tensor> outputs;
        for (const graph::NamedValue& output : state.model.outputs) {
            const at::Tensor& value = values[static_cast<std::size_t>(output.value)];
            outputs[output.name] = isFloating(value) ? value.to(at::kFloat) : value;
        }
        if (context.auxiliaryLoss.defined()) outputs[kAuxiliaryLoss] = context.auxiliaryLoss;
        return outputs;
    } catch (const std::exception& exception) {
        return tl::unexpected(errorOf(exception, pass->place));
    }
}

} // namespace celloom::engine
