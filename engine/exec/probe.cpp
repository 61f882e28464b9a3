#include "engine/exec/probe.h"

#include "engine/cells/attention_weights.h"
#include "engine/train/loss.h"
#include "models/base/text.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <chrono>
#include <map>

namespace celloom::engine {
namespace {

using Clock = std::chrono::steady_clock;

std::string typeName(at::ScalarType type) {
    switch (type) {
    case at::kFloat: return "float32";
    case at::kDouble: return "float64";
    case at::kBFloat16: return "bfloat16";
    case at::kHalf: return "float16";
    case at::kLong: return "int64";
    case at::kBool: return "bool";
    default: return c10::toString(type);
    }
}

std::string shapeText(at::IntArrayRef sizes) { return "[" + c10::Join(", ", sizes) + "]"; }

ProbedWire wireOf(std::string name, std::string port, const at::Tensor& tensor, std::int64_t bins) {
    return {std::move(name), std::move(port), tensor.sizes().vec(), typeName(tensor.scalar_type()), statisticsOf(tensor, bins)};
}

std::string portOf(const std::string& producer, const std::string& path) {
    return producer.starts_with(path + ".") ? producer.substr(path.size() + 1) : producer;
}

bool isWanted(const std::string& path, const std::vector<recipe::PathPattern>& patterns) {
    return patterns.empty() || std::any_of(patterns.begin(), patterns.end(), [&](const recipe::PathPattern& pattern) { return liesUnder(path, pattern); });
}

/// Adds the weights of some queries to the map's row.
void addToRow(const at::Tensor& weights, std::int64_t columns, float* row) {
    const at::Tensor values = weights.to(at::kCPU).contiguous(); // sync
    const std::int64_t count = values.size(0), keys = values.size(1);
    const float* from = values.const_data_ptr<float>();
    for (std::int64_t column = 0; column < columns; ++column) {
        double sum = 0;
        for (std::int64_t q = 0; q < count; ++q)
            for (std::int64_t key = column * keys / columns; key < (column + 1) * keys / columns; ++key) sum += static_cast<double>(from[q * keys + key]);
        row[column] = static_cast<float>(sum / static_cast<double>(count));
    }
}

AttentionMap attentionMap(const graph::CellInstance& cell, const std::vector<at::Tensor>& inputs, StepContext& context, const ProbeOptions& options) {
    const std::int64_t queries = inputs[0].size(1), keys = inputs[1].size(1);
    AttentionMap map{options.mapRow, attentionHeads(cell), queries, keys, std::min(queries, options.mapSize), std::min(keys, options.mapSize), {}};
    map.weights.resize(static_cast<std::size_t>(map.heads * map.rows * map.columns));
    float* row = map.weights.data();
    for (std::int64_t head = 0; head < map.heads; ++head)
        for (std::int64_t r = 0; r < map.rows; ++r, row += map.columns) {
            const std::int64_t first = r * queries / map.rows, count = (r + 1) * queries / map.rows - first;
            addToRow(attentionWeights(cell, inputs, context, {map.batchRow, head, first, count}), map.columns, row);
        }
    return map;
}

/// What attention cells will read, kept from the cell that made it until then: the network tells of outputs alone.
class AttentionInputs {
public:
    explicit AttentionInputs(const Network& network) : m_network(network) {
        const auto& cells = network.model().cells;
        for (std::size_t i = 0; i < cells.size(); ++i)
            if (attentionHeads(cells[i]) > 0)
                for (const graph::ValueId id : cells[i].inputs) ++m_readers[id];
    }
    void add(graph::ValueId id, const at::Tensor& tensor) {
        if (m_readers.contains(id)) m_kept[id] = tensor.detach();
    }
    /// In the type that the cell computes in. Afterwards nobody needs what no other attention reads.
    std::vector<at::Tensor> take(std::size_t cell) {
        std::vector<at::Tensor> out;
        const at::ScalarType type = scalarTypeOf(m_network.precision().cells[cell].compute);
        for (const graph::ValueId id : m_network.model().cells[cell].inputs) {
            const at::Tensor tensor = id < 0 ? at::Tensor() : m_kept.at(id);
            out.push_back(tensor.defined() && at::isFloatingType(tensor.scalar_type()) ? tensor.to(type) : tensor);
            if (id >= 0 && --m_readers.at(id) == 0) m_kept.erase(id);
        }
        return out;
    }

private:
    const Network& m_network;
    std::map<graph::ValueId, std::int64_t> m_readers;
    std::map<graph::ValueId, at::Tensor> m_kept;
};

/// Whether the input is as the graph says; symbols are bound to what they are in the first input that has them.
Status checkInput(const std::string& name, const graph::ValueInfo& declared, const at::Tensor& tensor, std::map<std::string, std::int64_t>& symbols) {
    const auto wrong = [&](const std::string& why) {
        return fail("is " + shapeText(tensor.sizes()) + ", the graph's input is " + graph::toString(declared.shape) + why + ".", "Give a tensor of that shape.",
                    "input " + name);
    };
    if (tensor.dim() != std::ssize(declared.shape)) return wrong("");
    if (tensor.numel() == 0) return wrong(": it holds nothing");
    for (std::size_t i = 0; i < declared.shape.size(); ++i) {
        const graph::Dim& dim = declared.shape[i];
        const std::int64_t size = tensor.size(static_cast<std::int64_t>(i));
        if (dim.symbol.empty() ? size != dim.number : size % dim.number != 0) return wrong("");
        if (dim.symbol.empty()) continue;
        const auto [bound, isNew] = symbols.emplace(dim.symbol, size / dim.number);
        if (!isNew && bound->second != size / dim.number) return wrong(", where " + dim.symbol + " is " + std::to_string(bound->second) + " already");
    }
    const bool isFloating = at::isFloatingType(tensor.scalar_type());
    if (declared.dtype == "float" ? !isFloating : isFloating)
        return fail("is " + typeName(tensor.scalar_type()) + ", the graph's input is " + (declared.dtype == "float" ? "a floating type" : declared.dtype) + ".", {},
                    "input " + name);
    return {};
}

/// One pass of a probe.
class Probing {
public:
    Probing(Network& network, const ProbeOptions& options, const ProbeListener& listener) 
        : m_network(network), m_options(options), m_listener(listener), m_attention(network), m_isReached(network.model().cells.size()) {}

    Status inputs(Batch& batch) {
        std::map<std::string, std::int64_t> symbols;
        for (const graph::NamedValue& input : m_network.model().inputs) {
            const at::Tensor tensor = batch.column(input.name);
            if (!tensor.defined()) continue; // forward() says so
            CELLOOM_TRY_STATUS(checkInput(input.name, valueOf(input.value), tensor, symbols));
            if (m_options.mapSize > 0) m_attention.add(input.value, tensor.to(m_network.options().device));
            if (m_listener.input) m_listener.input(wireOf(input.name, input.name, tensor, m_options.bins));
            if (const auto column = batch.columns.find(input.name); m_options.gradients && column != batch.columns.end() && at::isFloatingType(tensor.scalar_type())) {
                column->second = tensor.detach().clone().requires_grad_(true);
                watchGradient(column->second, input.name, input.name);
            }
        }
        if (m_options.mapSize > 0 && m_options.mapRow >= batch.rows())
            return fail("The batch has " + std::to_string(batch.rows()) + " rows, so there is no row " + std::to_string(m_options.mapRow) + ".", "Rows count from 0.", "--row");
        const auto toDevice = [&](const at::Tensor& tensor) { return tensor.defined() ? tensor.to(m_network.options().device) : tensor; };
        m_context.attentionMask = toDevice(batch.attentionMask);
        m_context.segments = toDevice(batch.segments);
        m_begun = Clock::now();
        return {};
    }

    void cell(const graph::CellInstance& cell, const std::vector<at::Tensor>& outputs) {
        const auto index = static_cast<std::size_t>(&cell - m_network.model().cells.data());
        m_isReached[index] = true;
        for (std::size_t i = 0; m_options.mapSize > 0 && i < outputs.size(); ++i) m_attention.add(cell.outputs[i], outputs[i]);
        const bool hasMap = m_options.mapSize > 0 && attentionHeads(cell) > 0;
        const std::vector<at::Tensor> read = hasMap ? m_attention.take(index) : std::vector<at::Tensor>();
        if (!isWanted(cell.path, m_options.cells)) return;
        ProbedCell out{cell.path, cell.type, index, m_network.model().cells.size(), std::chrono::duration<double>(Clock::now() - m_begun).count(), {}, {}};
        at::NoGradGuard guard;
        for (std::size_t i = 0; i < outputs.size(); ++i) {
            const std::string& name = valueOf(cell.outputs[i]).producer;
            out.wires.push_back(wireOf(name, portOf(name, cell.path), outputs[i], m_options.bins));
            if (m_options.gradients && outputs[i].requires_grad()) watchGradient(outputs[i], name, out.wires.back().port);
        }
        if (hasMap) out.attention.push_back(attentionMap(cell, read, m_context, m_options));
        if (m_listener.cell) m_listener.cell(out);
        ++m_summary.cells;
        m_begun = Clock::now();
    }

    ProbeSummary finish(double loss) {
        for (std::size_t i = 0; i < m_isReached.size(); ++i)
            if (!m_isReached[i]) m_summary.notComputed.push_back(m_network.model().cells[i].path);
        m_summary.loss = loss;
        return std::move(m_summary);
    }

private:
    const graph::ValueInfo& valueOf(graph::ValueId id) const { return m_network.model().values[static_cast<std::size_t>(id)]; }
    void watchGradient(const at::Tensor& tensor, const std::string& name, const std::string& port) {
        if (!m_listener.gradient) return;
        tensor.register_hook([this, name, port](const at::Tensor& gradient) {
            if (gradient.defined()) m_listener.gradient(wireOf(name, port, gradient, m_options.bins));
        });
    }

    Network& m_network;
    const ProbeOptions& m_options;
    const ProbeListener& m_listener;
    AttentionInputs m_attention;
    StepContext m_context; // what masks of attention are made of
    Clock::time_point m_begun;
    std::vector<bool> m_isReached;
    ProbeSummary m_summary;
};

/// Of one batch: each term's mean times its weight, and what cells add.
Result<at::Tensor> lossOf(const Loss& loss, const Outputs& outputs, const Batch& batch) {
    CELLOOM_TRY(values, loss.values(outputs, batch));
    const std::vector<std::int64_t> items = loss.items(batch);
    at::Tensor total;
    for (std::size_t t = 0; t < items.size(); ++t) {
        const LossTerm& term = loss.terms()[t];
        if (!values.sums[t].defined()) continue;
        if (items[t] == 0) continue;
        const at::Tensor part = values.sums[t] * (term.weight / (term.reduction == Reduction::Sum ? 1.0 : static_cast<double>(items[t])));
        total = total.defined() ? total + part : part;
    }
    if (const auto added = outputs.find(Network::kAuxiliaryLoss); added != outputs.end() && total.defined()) total = total + added->second; // in training
    if (!total.defined()) return fail("No label of the batch counts in the loss.", "Check the labels of the data.", "labels");
    return total;
}

} // namespace

bool liesUnder(const std::string& path, const recipe::PathPattern& pattern) {
    for (std::size_t end = path.find('.');; end = path.find('.', end + 1)) {
        if (pattern.matches(path.substr(0, end))) return true;
        if (end == std::string::npos) return false;
    }
}

Result<ProbeSummary> probe(Network& network, const Batch& batch, const Loss* loss, const ProbeOptions& options, const ProbeListener& listener) {
    CELLOOM_CHECK(options.bins >= 1 && options.mapSize >= 0 && options.mapRow >= 0);
    if (options.gradients && !loss) return fail("There is no loss whose gradients could be shown.", "Give labels: a recipe with its data, or a text.", "--gradients");
    Probing probing(network, options, listener);
    Batch given = batch;
    try {
        CELLOOM_TRY_STATUS(probing.inputs(given));
        ForwardOptions forward;
        forward.training = options.gradients;
        forward.dropoutSeed = options.dropoutSeed;
        forward.observer = [&](const graph::CellInstance& cell, const std::vector<at::Tensor>& outputs) { probing.cell(cell, outputs); };
        CELLOOM_TRY(outputs, network.forward(given, forward));
        if (!loss) return probing.finish(0);
        at::AutoGradMode record(options.gradients);
        CELLOOM_TRY(total, lossOf(*loss, outputs, given));
        outputs.clear();
        if (options.gradients) total.backward();
        return probing.finish(total.item<double>()); // sync
    } catch (const std::exception& exception) {
        return tl::unexpected(errorOf(exception, "the batch"));
    }
}

} // namespace celloom::engine
