#include "engine/generate/key_value_cache.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/cumsum.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <algorithm>
#include <set>

namespace celloom::engine {
namespace {

constexpr std::int64_t kBlock = 128; // columns; a slot grows by half its size at least, so that copying stays cheap

/// Cells whose output at a position follows from their inputs at that position.
bool isPositionWise(const graph::CellInstance& cell) {
    static const std::set<std::string> types{"Dense", "Embedding", "LMHead",   "RMSNorm", "LayerNorm", "Dropout",         "ReLU",
                                             "GELU",  "SiLU",      "Tanh",     "Sigmoid", "Add",       "Multiply",        "Residual",
                                             "Split", "Concat",    "Softmax",  "RotaryEmbedding"};
    if (cell.type == "Softmax") return cell.integer("axis") == -1 || cell.integer("axis") == 2;
    return types.contains(cell.type);
}

} // namespace

Status KeyValueCache::check(const graph::ExpandedModel& model) {
    const std::string hint = "It can be generated from without a cache, which is slower.";
    if (model.inputs.size() != 1 || model.inputs[0].name != "input_ids") return fail("the graph has other inputs than input_ids.", hint);
    for (const graph::CellInstance& cell : model.cells) {
        if (isPositionWise(cell)) continue;
        if (cell.type != "Attention") return fail("may look at other positions than its own (" + cell.type + ").", hint, cell.path);
        const bool isMasked = cell.inputs.size() > 3 && cell.inputs[3] >= 0;
        if (!cell.flag("causal") || isMasked) return fail("is attention that is not causal, or has a mask of its own.", hint, cell.path);
    }
    return {};
}

std::int64_t KeyValueCache::lengthWithFixedBase(const graph::ExpandedModel& model) {
    std::int64_t out = 0;
    for (const graph::CellInstance& cell : model.cells) {
        if (cell.type != "RotaryEmbedding" || cell.text("scaling") != "dynamic") continue;
        const std::int64_t length = cell.integer("max_positions");
        out = out == 0 ? length : std::min(out, length);
    }
    return out;
}

std::uint64_t KeyValueCache::sizeBytes() const {
    std::uint64_t out = 0;
    for (const auto& [cell, slot] : m_slots) out += slot.keys.nbytes() + slot.values.nbytes();
    return out;
}

void KeyValueCache::begin(std::int64_t newTokens, const at::Tensor& mask) {
    m_newTokens = newTokens;
    m_countsAfter = m_counts;
    m_maskAfter = m_mask;
    m_positions.reset();
    const bool isPadded = mask.defined() && !mask.to(at::kBool).all().item<bool>();
    if (!isPadded)
        for (std::int64_t& count : m_countsAfter) count += newTokens;
    if (!isPadded && !m_mask.defined()) return; // every row is full: positions are the columns
    const at::Tensor real = mask.defined() ? mask.to(at::kCPU, at::kBool) : at::ones({rows(), newTokens}, at::kBool);
    const at::Tensor before = m_mask.defined() ? m_mask : at::ones({rows(), m_length}, at::kBool);
    m_maskAfter = at::cat({before, real}, 1);
    const at::Tensor counted = at::cumsum(real.to(at::kLong), 1);
    m_positions = (counted + at::tensor(m_counts).unsqueeze(1) - 1).clamp_min(0);
    const at::Tensor sums = counted.select(1, newTokens - 1).contiguous();
    for (std::size_t row = 0; isPadded && row < m_counts.size(); ++row)
        m_countsAfter[row] = m_counts[row] + sums.const_data_ptr<std::int64_t>()[row];
}

void KeyValueCache::reserve(at::Tensor& held, const at::Tensor& like, std::int64_t needed) const {
    if (held.defined() && held.size(2) >= needed) return;
    const std::int64_t wanted = std::max(needed, held.defined() ? held.size(2) * 3 / 2 : 0);
    at::Tensor larger = at::empty({like.size(0), like.size(1), (wanted + kBlock - 1) / kBlock * kBlock, like.size(3)}, like.options());
    if (m_length > 0) larger.narrow(2, 0, m_length).copy_(held.narrow(2, 0, m_length));
    held = std::move(larger);
}

std::pair<at::Tensor, at::Tensor> KeyValueCache::append(std::size_t cell, const at::Tensor& k, const at::Tensor& v) {
    CELLOOM_CHECK(k.size(2) == m_newTokens && k.size(0) == rows());
    Slot& slot = m_slots[cell];
    reserve(slot.keys, k, m_length + m_newTokens);
    reserve(slot.values, v, m_length + m_newTokens);
    slot.keys.narrow(2, m_length, m_newTokens).copy_(k);
    slot.values.narrow(2, m_length, m_newTokens).copy_(v);
    return {slot.keys.narrow(2, 0, m_length + m_newTokens), slot.values.narrow(2, 0, m_length + m_newTokens)};
}

void KeyValueCache::commit() {
    m_length += m_newTokens;
    m_counts = m_countsAfter;
    m_mask = m_maskAfter;
}

void KeyValueCache::keepRows(const std::vector<std::int64_t>& rows) {
    std::vector<std::int64_t> counts;
    for (const std::int64_t row : rows) counts.push_back(m_counts[static_cast<std::size_t>(row)]);
    const at::Tensor index = at::tensor(rows, at::kLong);
    for (auto& [cell, slot] : m_slots) {
        const at::Tensor there = index.to(slot.keys.device());
        slot.keys = slot.keys.index_select(0, there);
        slot.values = slot.values.index_select(0, there);
    }
    if (m_mask.defined()) m_mask = m_mask.index_select(0, index);
    m_counts = std::move(counts);
}

} // namespace celloom::engine
