#include "engine/data/random_batch.h"

#include "engine/exec/network_state.h"
#include "models/base/text.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>

#include <algorithm>
#include <limits>
#include <set>

namespace celloom::engine {
namespace {

constexpr std::int64_t kMostNumbers = std::int64_t{1} << 31; // of one input

/// Types whose output has the values of an input, elsewhere.
bool passesValues(const std::string& type) {
    static const std::set<std::string> kTypes{"Reshape", "Transpose", "Flatten", "Slice", "Split", "Concat"};
    return kTypes.contains(type);
}

/// The rows of the smallest embedding that the value reaches; 0: it reaches none.
std::int64_t rangeOf(graph::ValueId value, const graph::ExpandedModel& model) {
    std::set<graph::ValueId> reached{value};
    std::int64_t least = std::numeric_limits<std::int64_t>::max();
    for (const graph::CellInstance& cell : model.cells) { // in an order in which they can run
        const bool reads = std::any_of(cell.inputs.begin(), cell.inputs.end(), [&](graph::ValueId id) { return reached.contains(id); });
        if (!reads) continue;
        if (cell.type == "Embedding") least = std::min(least, cell.weights.front().dims.front());
        if (passesValues(cell.type)) reached.insert(cell.outputs.begin(), cell.outputs.end());
    }
    return least == std::numeric_limits<std::int64_t>::max() ? 0 : least;
}

Result<std::vector<std::int64_t>> sizesOf(const std::string& name, const graph::ValueInfo& value, const RandomBatchOptions& options) {
    std::vector<std::int64_t> out;
    double total = 1;
    for (const graph::Dim& dim : value.shape) {
        const auto given = options.symbols.find(dim.symbol);
        const std::int64_t symbol = dim.symbol.empty() ? 1 : given != options.symbols.end() ? given->second : dim.symbol == "B" ? options.rows : options.length;
        total *= static_cast<double>(dim.number) * static_cast<double>(symbol);
        if (total > static_cast<double>(kMostNumbers))
            return fail("of the shape " + graph::toString(value.shape) + " would have more than " + std::to_string(kMostNumbers) + " numbers.", "Give fewer rows or a shorter length.",
                        "input " + name);
        out.push_back(dim.number * symbol);
    }
    return out;
}

Result<at::Tensor> drawn(const std::string& name, graph::ValueId id, const graph::ExpandedModel& model, const RandomBatchOptions& options) {
    const graph::ValueInfo& value = model.values[static_cast<std::size_t>(id)];
    CELLOOM_TRY(sizes, sizesOf(name, value, options));
    const at::Generator generator = generatorFor(options.seed, name);
    if (name == "attention_mask") return at::ones(sizes, value.dtype == "bool" ? at::kBool : at::kLong);
    if (value.dtype == "bool") return at::empty(sizes).uniform_(0, 1, generator).lt(0.5);
    if (value.dtype == "float") return at::empty(sizes).normal_(0, 1, generator);
    if (name == "positions") return at::arange(sizes.back()).expand(sizes).contiguous();
    const std::int64_t range = rangeOf(id, model);
    if (range == 0)
        return fail("is of whole numbers, and reaches no Embedding that would tell how large they may be.", "Give a file with --inputs, or a recipe with --data.", "input " + name);
    return at::empty(sizes, at::kLong).random_(0, range, generator);
}

} // namespace

Result<Batch> randomBatch(const graph::ExpandedModel& model, const RandomBatchOptions& options) {
    CELLOOM_CHECK(options.rows > 0 && options.length > 0);
    at::NoGradGuard guard;
    for (const auto& [symbol, size] : options.symbols) {
        const bool isUsed = std::any_of(model.inputs.begin(), model.inputs.end(), [&](const graph::NamedValue& input) {
            const graph::Shape& shape = model.values[static_cast<std::size_t>(input.value)].shape;
            return std::any_of(shape.begin(), shape.end(), [&](const graph::Dim& dim) { return dim.symbol == symbol; });
        });
        if (!isUsed || size < 1) return fail(inQuotes(symbol) + " = " + std::to_string(size) + " is not a size of an input.", "Name a symbol of the inputs' shapes, and 1 or more.", "--size");
    }
    Batch batch;
    for (const graph::NamedValue& input : model.inputs) {
        CELLOOM_TRY(tensor, drawn(input.name, input.value, model, options));
        if (input.name == "input_ids") batch.inputIds = tensor;
        else if (input.name == "attention_mask") batch.attentionMask = tensor;
        else if (input.name == "positions") batch.positions = tensor;
        else batch.columns[input.name] = tensor;
    }
    return batch;
}

} // namespace celloom::engine
