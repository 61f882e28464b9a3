// Keys and values of the tokens already seen, so that generating a token computes that token alone.
// Letters in shapes: B rows, K key/value heads, T new tokens, S tokens so far with the new ones, D head dimension.
#pragma once

#include "models/base/result.h"
#include "models/graph/expand.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace celloom::engine {

/// One slot for each Attention cell. Keys are kept as attention uses them, rotated. That is exact as long as the rotary base does not
/// change; where it does (dynamic NTK past the trained window, each token) the states of earlier tokens change with it, in every layer but
/// the first, so neither unrotated nor re-rotated keys equal the full computation (docs/performance.md has the measured difference):
/// RotaryEmbedding refuses such a pass, and the generator computes the row anew.
///
/// A pass is begin(), append() by each Attention cell, commit(): a pass that failed half-way leaves the cache as it was.
class KeyValueCache {
public:
    /// Whether each cell of the model treats a token without looking at others, or is causal self-attention. Says which one does not.
    static Status check(const graph::ExpandedModel& model);
    /// Longest row whose rotary base is the trained one: the smallest max_positions of dynamically scaled cells; 0: any length.
    static std::int64_t lengthWithFixedBase(const graph::ExpandedModel& model);

    explicit KeyValueCache(std::int64_t rows) : m_counts(static_cast<std::size_t>(rows), 0) {}

    std::int64_t rows() const { return static_cast<std::int64_t>(m_counts.size()); }
    std::int64_t length() const { return m_length; }                        // columns, padding included
    const std::vector<std::int64_t>& counts() const { return m_counts; }    // real tokens of each row
    std::uint64_t sizeBytes() const;                                        // of all slots, with the room kept for tokens to come

    /// Announces T new columns. `mask` [B,T] int64 or bool on the CPU, 1 = real; undefined: all real. Padding stands left of a row's first
    /// token.
    void begin(std::int64_t newTokens, const at::Tensor& mask);
    /// Positions of the new columns, real tokens counted from 0: [B,T] int64, or undefined where all rows hold firstPosition() … in a row.
    const at::Tensor& positions() const { return m_positions; }
    std::int64_t firstPosition() const { return m_length; }
    /// Real tokens of each row with the new ones.
    const std::vector<std::int64_t>& countsAfter() const { return m_countsAfter; }
    /// [B,S] bool, true = real; undefined: no padding.
    const at::Tensor& mask() const { return m_maskAfter; }
    /// k, v [B,K,T,D] of that cell; returns all S of them as views that are good until the next pass.
    std::pair<at::Tensor, at::Tensor> append(std::size_t cell, const at::Tensor& k, const at::Tensor& v);
    void commit();

    /// Keeps these rows, in this order.
    void keepRows(const std::vector<std::int64_t>& rows);

    /// Tensors that follow from the weights alone (a normalised head), made once for the life of the cache: a cache must not outlive a
    /// change of the weights.
    std::map<std::string, at::Tensor> fromWeights;

private:
    struct Slot {
        at::Tensor keys, values; // [B,K,capacity,D]
    };
    void reserve(at::Tensor& held, const at::Tensor& like, std::int64_t needed) const;

    std::map<std::size_t, Slot> m_slots; // by the cell's number
    std::vector<std::int64_t> m_counts, m_countsAfter;
    at::Tensor m_mask, m_maskAfter, m_positions;
    std::int64_t m_length = 0, m_newTokens = 0;
};

} // namespace celloom::engine
