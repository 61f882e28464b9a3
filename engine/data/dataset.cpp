#include "engine/data/dataset.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/ne.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros_like.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/constant_pad_nd.h>

#include <algorithm>

#include <numeric>

namespace celloom::engine {
namespace {

/// SplitMix64 (Steele, Lea, Flood 2014): std::shuffle and the standard distributions differ between libraries.
class SplitMix {
public:
    explicit SplitMix(std::uint64_t seed) : m_state(seed) {}
    std::uint64_t next() {
        std::uint64_t z = (m_state += 0x9E3779B97F4A7C15ull);
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
        return z ^ (z >> 31);
    }
    /// Uniform in [0, bound), without the bias of a plain remainder.
    std::uint64_t below(std::uint64_t bound) {
        const std::uint64_t limit = -bound % bound; // 2^64 mod bound
        std::uint64_t draw = next();
        while (draw < limit) draw = next();
        return draw % bound;
    }

private:
    std::uint64_t m_state;
};

} // namespace

std::vector<std::int64_t> shuffledOrder(std::int64_t count, std::uint64_t seed) {
    std::vector<std::int64_t> order(static_cast<std::size_t>(count));
    std::iota(order.begin(), order.end(), 0);
    SplitMix random(seed);
    for (std::size_t left = order.size(); left > 1; --left) std::swap(order[left - 1], order[random.below(left)]); // Fisher-Yates
    return order;
}

namespace {

constexpr std::int64_t kBatchesSortedTogether = 50; // more: fewer pads, less chance in what meets what

std::uint64_t epochSeed(std::uint64_t seed, std::int64_t epoch) {
    return SplitMix(seed + 0x632BE59BD9B4E019ull * static_cast<std::uint64_t>(epoch)).next();
}

/// Sorts stretches of the order by length, then shuffles whole batches. A last batch that is not full stays the last.
std::vector<std::int64_t> groupedByLength(const Dataset& source, std::vector<std::int64_t> order, std::int64_t batchRows, std::uint64_t seed) {
    const auto count = static_cast<std::int64_t>(order.size()), stretch = batchRows * kBatchesSortedTogether;
    for (std::int64_t from = 0; from < count; from += stretch)
        std::stable_sort(order.begin() + from, order.begin() + std::min(from + stretch, count),
                         [&](std::int64_t a, std::int64_t b) { return source.lengthOf(a) > source.lengthOf(b); });
    std::vector<std::int64_t> out;
    for (const std::int64_t batch : shuffledOrder(count / batchRows, seed))
        out.insert(out.end(), order.begin() + batch * batchRows, order.begin() + (batch + 1) * batchRows);
    out.insert(out.end(), order.begin() + count / batchRows * batchRows, order.end());
    return out;
}

at::Tensor filledUp(const at::Tensor& row, std::int64_t length, std::int64_t value) {
    return row.size(0) == length ? row : at::constant_pad_nd(row, {0, length - row.size(0)}, value);
}

} // namespace

ShuffledDataset::ShuffledDataset(const Dataset& source, std::uint64_t seed, std::int64_t epoch, std::int64_t groupRows)
    : m_source(source), m_order(shuffledOrder(source.size(), epochSeed(seed, epoch))), m_draw(epochSeed(seed, epoch)) {
    if (groupRows > 0) m_order = groupedByLength(source, std::move(m_order), groupRows, epochSeed(seed + 1, epoch));
}

EpochDataset::EpochDataset(const Dataset& source, std::uint64_t seed, std::int64_t epoch) : m_source(source), m_draw(epochSeed(seed, epoch)) {}

namespace {

void collateTokens(const Dataset& dataset, const std::vector<Row>& rows, Batch& batch) {
    bool hasSegments = false;
    std::int64_t length = 0;
    const auto count = std::ssize(rows);
    for (const Row& row : rows) {
        length = std::max(length, row.inputIds.size(0));
        hasSegments = hasSegments || row.segments.defined();
    }
    std::vector<at::Tensor> ids, labels, segments, positions;
    for (const Row& row : rows) {
        ids.push_back(filledUp(row.inputIds, length, dataset.padId()));
        if (row.labels.defined()) labels.push_back(filledUp(row.labels, length, -100));
        if (!hasSegments) continue;
        const std::int64_t last = row.segments.defined() ? row.segments[-1].item<std::int64_t>() : 0;
        segments.push_back(row.segments.defined() ? filledUp(row.segments, length, last) : at::zeros_like(ids.back()));
        const at::Tensor counted = at::arange(length, row.inputIds.options());
        positions.push_back(row.positions.defined() ? at::cat({row.positions, counted.slice(0, 0, length - row.inputIds.size(0))}) : counted);
    }
    if (std::any_of(rows.begin(), rows.end(), [&](const Row& row) { return row.inputIds.size(0) != length; })) {
        batch.lengths = at::empty({count}, at::kLong);
        for (std::int64_t i = 0; i < count; ++i) batch.lengths.data_ptr<std::int64_t>()[i] = rows[static_cast<std::size_t>(i)].inputIds.size(0);
    }
    batch.inputIds = at::stack(ids);
    if (!labels.empty()) batch.labels = at::stack(labels);
    if (!hasSegments) return;
    batch.segments = at::stack(segments);
    batch.positions = at::stack(positions);
}

} // namespace

Batch collate(const Dataset& dataset, std::int64_t first, std::int64_t count) {
    CELLOOM_CHECK(first >= 0 && count > 0 && first + count <= dataset.size());
    std::vector<Row> rows;
    for (std::int64_t i = 0; i < count; ++i) rows.push_back(dataset.get(first + i));
    Batch batch;
    if (rows[0].inputIds.defined()) collateTokens(dataset, rows, batch);
    for (const auto& [name, tensor] : rows[0].columns) {
        std::vector<at::Tensor> parts;
        for (const Row& row : rows) parts.push_back(row.columns.at(name));
        batch.columns[name] = at::stack(parts);
    }
    return batch;
}

Result<std::shared_ptr<TensorDataset>> TensorDataset::create(std::map<std::string, at::Tensor> columns) {
    if (columns.empty()) return fail("The data have no column.", "Give at least an input of the graph and a label.");
    const auto& [first, tensor] = *columns.begin();
    for (const auto& [name, column] : columns) {
        if (column.dim() == 0) return fail("The column \"" + name + "\" is a single number.", "Its first dimension counts the rows.");
        if (name == "input_ids" && (column.dim() != 2 || column.scalar_type() != at::kLong)) return fail("The column \"input_ids\" is not [rows, tokens] of int64.");
        if (column.size(0) != tensor.size(0))
            return fail("The column \"" + name + "\" has " + std::to_string(column.size(0)) + " rows, \"" + first + "\" has " + std::to_string(tensor.size(0)) + ".",
                        "All columns need the same number of rows.");
    }
    return std::shared_ptr<TensorDataset>(new TensorDataset(std::move(columns)));
}

Row TensorDataset::get(std::int64_t index) const {
    Row row;
    const bool hasTokens = m_columns.contains("input_ids");
    for (const auto& [name, tensor] : m_columns) {
        const at::Tensor value = tensor.select(0, index);
        if (name == "input_ids") row.inputIds = value;
        else if (name == "labels" && hasTokens) row.labels = value;
        else row.columns.emplace(name, value);
    }
    return row;
}

std::int64_t TensorDataset::lengthOf(std::int64_t) const {
    const auto tokens = m_columns.find("input_ids");
    return tokens == m_columns.end() ? 1 : tokens->second.size(1);
}

std::vector<std::string> TensorDataset::columns() const {
    std::vector<std::string> out;
    for (const auto& [name, tensor] : m_columns) out.push_back(name);
    return out;
}

std::int64_t validLabels(const Batch& batch) {
    return at::ne(batch.labels.slice(1, 1), -100).sum().item<std::int64_t>(); // sync: labels are still on the CPU
}

} // namespace celloom::engine
