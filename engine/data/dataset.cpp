#include "engine/data/dataset.h"

#include <ATen/ops/ne.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros_like.h>
#include <ATen/ops/arange.h>

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

ShuffledDataset::ShuffledDataset(const Dataset& source, std::uint64_t seed, std::int64_t epoch)
    : m_source(source), m_order(shuffledOrder(source.size(), SplitMix(seed + 0x632BE59BD9B4E019ull * static_cast<std::uint64_t>(epoch)).next())) {}

Batch collate(const Dataset& dataset, std::int64_t first, std::int64_t count) {
    CELLOOM_CHECK(first >= 0 && count > 0 && first + count <= dataset.size());
    std::vector<Row> rows;
    bool hasSegments = false;
    for (std::int64_t i = 0; i < count; ++i) {
        rows.push_back(dataset.get(first + i));
        hasSegments = hasSegments || rows.back().segments.defined();
    }
    std::vector<at::Tensor> ids, labels, segments, positions;
    for (const Row& row : rows) {
        ids.push_back(row.inputIds);
        labels.push_back(row.labels);
        if (!hasSegments) continue;
        segments.push_back(row.segments.defined() ? row.segments : at::zeros_like(row.inputIds));
        positions.push_back(row.positions.defined() ? row.positions : at::arange(row.inputIds.size(0), row.inputIds.options()));
    }
    Batch batch;
    batch.inputIds = at::stack(ids);
    batch.labels = at::stack(labels);
    if (hasSegments) {
        batch.segments = at::stack(segments);
        batch.positions = at::stack(positions);
    }
    return batch;
}

std::int64_t validLabels(const Batch& batch) {
    return at::ne(batch.labels.slice(1, 1), -100).sum().item<std::int64_t>(); // sync: labels are still on the CPU
}

} // namespace celloom::engine
