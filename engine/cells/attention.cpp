// RotaryEmbedding and Attention. Letters: B batch, T sequence, H query heads, K key/value heads, D head dimension.
#include "engine/cells/attention_weights.h"
#include "engine/generate/key_value_cache.h"
#include "engine/kernels/linear.h"
#include "engine/kernels/rotary.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cos.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/outer.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/sin.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/tril.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numbers>
#include <optional>
#include <sstream>

namespace celloom::engine {
namespace {

constexpr std::int64_t kTableBlock = 256; // rows by which rotary tables grow

/// Rotates each input [B,T,heads*D] by its positions. Scaling: "linear" divides positions by `factor`; "dynamic" (NTK) enlarges the base
/// once a row exceeds max_positions: base * (factor L / max - (factor - 1)) ^ (D / (D - 2)); "llama3" divides the frequencies of long waves.
class RotaryEmbedding final : public Cell {
public:
    using Cell::Cell;
    std::vector<at::Tensor> construct(const std::vector<at::Tensor>& inputs, StepContext& context) override {
        const std::int64_t dim = instance().integer("head_dim");
        const auto [cos, sin] = angles(inputs[0].size(1), inputs[0].device(), context);
        std::vector<at::Tensor> out;
        for (const at::Tensor& input : inputs) out.push_back(kernels::rotate(input, cos, sin, dim));
        return out;
    }

private:
    bool scales(const char* kind) const { return instance().text("scaling") == kind; }

    /// cos and sin [T,D/2], or [B,T,D/2] where rows differ in their positions or in their base.
    std::pair<at::Tensor, at::Tensor> angles(std::int64_t length, at::Device device, StepContext& context) const {
        const std::int64_t end = std::max(context.positionsEnd, context.firstPosition + length);
        const std::vector<double> bases = basesOf(context, end);
        if (bases.size() == 1 && !context.positions.defined()) {
            const at::Tensor both = table(bases[0], end, device, context).narrow(1, context.firstPosition, length);
            return {both[0], both[1]};
        }
        const std::string key = "rotary/" + nameOf(bases);
        at::Tensor& chosen = context.masks[key]; // [2,B,T,D/2]
        if (!chosen.defined() && bases.size() == 1)
            chosen = table(bases[0], end, device, context)
                         .index_select(1, context.positions.flatten())
                         .unflatten(1, context.positions.sizes());
        if (!chosen.defined()) chosen = anglesByRow(bases, length, device, context);
        return {chosen[0], chosen[1]};
    }

    /// One base, or where the lengths of rows make them differ, one for each row. Keys in a cache must have been rotated under the same.
    std::vector<double> basesOf(const StepContext& context, std::int64_t end) const {
        if (!scales("dynamic")) return {instance().real("base")};
        if (context.rowLengths.empty()) return {baseFor(end)};
        std::vector<double> out;
        for (std::size_t row = 0; row < context.rowLengths.size(); ++row) {
            out.push_back(baseFor(context.rowLengths[row]));
            TORCH_CHECK(!context.cache || context.cache->length() == 0 || out[row] == baseFor(context.cache->counts()[row]),
                        "row ", row, " grew to ", context.rowLengths[row], " tokens, past the trained window of ",
                        instance().integer("max_positions"), ": its rotary base changes, so its cached keys are of no use");
        }
        const bool areEqual = std::all_of(out.begin(), out.end(), [&](double base) { return base == out[0]; });
        return areEqual ? std::vector<double>{out[0]} : out;
    }

    at::Tensor anglesByRow(const std::vector<double>& bases, std::int64_t length, at::Device device, const StepContext& context) const {
        std::vector<at::Tensor> rows;
        for (std::size_t row = 0; row < bases.size(); ++row) {
            const at::Tensor both = build(bases[row], context.positionsEnd).to(device);
            rows.push_back(context.positions.defined() ? both.index_select(1, context.positions[static_cast<std::int64_t>(row)])
                                                       : both.narrow(1, context.firstPosition, length));
        }
        return at::stack(rows, 1);
    }

    /// [2,N,D/2] with N >= end, kept between passes.
    at::Tensor table(double base, std::int64_t end, at::Device device, StepContext& context) const {
        if (context.tables->size() > 64) context.tables->clear(); // past the trained window generation asks for one base after another
        at::Tensor& both = (*context.tables)[nameOf({base})];
        if (!both.defined() || both.size(1) < end || both.device() != device)
            both = build(base, (end + kTableBlock - 1) / kTableBlock * kTableBlock).to(device);
        return both;
    }

    /// All that the angles depend on.
    std::string nameOf(const std::vector<double>& bases) const {
        std::ostringstream name;
        name << std::hexfloat << instance().integer("head_dim");
        for (const double base : bases) name << '/' << base;
        if (scales("linear")) name << "/linear/" << instance().real("factor");
        if (scales("llama3"))
            name << "/llama3/" << instance().real("factor") << '/' << instance().integer("max_positions") << '/'
                 << instance().real("low_freq_factor") << '/' << instance().real("high_freq_factor");
        return name.str();
    }

    double baseFor(std::int64_t length) const {
        const double base = instance().real("base"), factor = instance().real("factor");
        const auto longest = instance().integer("max_positions"), dim = instance().integer("head_dim");
        if (!scales("dynamic") || length <= longest) return base;
        return base * std::pow(factor * static_cast<double>(length) / static_cast<double>(longest) - (factor - 1),
                               static_cast<double>(dim) / static_cast<double>(dim - 2));
    }

    at::Tensor build(double base, std::int64_t length) const {
        const std::int64_t dim = instance().integer("head_dim");
        at::Tensor t = at::arange(length, at::kFloat);
        if (scales("linear")) t = t / instance().real("factor");
        at::Tensor inverse = 1.0 / at::pow(at::scalar_tensor(base, at::kFloat), at::arange(0, dim, 2, at::kLong).to(at::kFloat) / dim);
        if (scales("llama3")) inverse = slowed(inverse);
        const at::Tensor angle = at::outer(t, inverse);
        return at::stack({at::cos(angle), at::sin(angle)});
    }

    /// Llama 3.1: with w = original length / wave length, frequencies are divided by `factor` for w below low, kept for w above high, and
    /// mixed linearly in w between.
    at::Tensor slowed(const at::Tensor& inverse) const {
        const double low = instance().real("low_freq_factor"), high = instance().real("high_freq_factor");
        const at::Tensor waves = inverse * (static_cast<double>(instance().integer("max_positions")) / (2 * std::numbers::pi));
        const at::Tensor kept = ((waves - low) / (high - low)).clamp(0, 1);
        return inverse * kept + inverse / instance().real("factor") * (1 - kept);
    }
};

/// ALiBi slopes (Press et al., arXiv:2108.12409): 2^(-8 (i+1) / n) for the largest power of two n <= heads, then every other one of 2n.
std::vector<double> alibiSlopes(std::int64_t heads) {
    const auto n = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(heads)));
    std::vector<double> out;
    for (std::int64_t i = 0; i < n; ++i) out.push_back(std::exp2(-8.0 / static_cast<double>(n) * static_cast<double>(i + 1)));
    for (std::int64_t i = 0; static_cast<std::int64_t>(out.size()) < heads; i += 2)
        out.push_back(std::exp2(-8.0 / static_cast<double>(2 * n) * static_cast<double>(i + 1)));
    return out;
}

/// q [B,T,H*D], k and v [B,S,K*D], mask [B,T,S] bool (true where a query may see a key; optional) -> [B,T,H*D]. Query head h reads
/// key/value head h / (H/K). Softmax sums in float32. Padding, document borders and ALiBi come as one additive mask that all layers
/// share; without any of them LibTorch's causal kernel runs without a mask.
class Attention final : public Cell {
public:
    using Cell::Cell;
    std::vector<at::Tensor> construct(const std::vector<at::Tensor>& inputs, StepContext& context) override {
        if (context.cache) return {attendCached(inputs, context)};
        const std::int64_t heads = instance().integer("num_heads"), kvHeads = instance().integer("num_kv_heads");
        const auto type = inputs[0].scalar_type();
        const at::Tensor q = split(wide(inputs[0]), heads), k = repeat(split(wide(inputs[1]), kvHeads), heads),
                         v = repeat(split(wide(inputs[2]), kvHeads), heads);
        at::Tensor mask = sharedMask(q, k, context);
        if (inputs[3].defined()) mask = combine(mask, inputs[3], q, k);
        const double dropout = context.isTraining ? instance().real("dropout") : 0;
        const at::Tensor out = dropout > 0 ? attendWithDropout(q, k, v, mask, dropout, context) : attend(q, k, v, mask);
        return {out.transpose(1, 2).flatten(2).to(type)};
    }

    /// See engine/cells/attention_weights.h.
    at::Tensor weights(const std::vector<at::Tensor>& inputs, StepContext& context, const QueryRange& range) const {
        const std::int64_t heads = instance().integer("num_heads"), kvHeads = instance().integer("num_kv_heads");
        const at::Tensor q = split(wide(inputs[0]), heads), k = split(wide(inputs[1]), kvHeads);
        at::Tensor mask = sharedMask(q, k, context); // as construct() makes it
        if (inputs[3].defined()) mask = combine(mask, inputs[3], q, k);
        const auto ofRange = [&](const at::Tensor& x) { return x.narrow(0, range.first, range.count).to(at::kFloat); };
        const at::Tensor queries = ofRange(q[range.row][range.head]), keys = k[range.row][range.head / (heads / kvHeads)].to(at::kFloat);
        at::Tensor scores = at::matmul(queries, keys.t()) / std::sqrt(static_cast<double>(q.size(-1)));
        if (mask.defined())
            scores = scores + ofRange(mask[mask.size(0) > 1 ? range.row : 0][mask.size(1) > 1 ? range.head : 0]);
        else if (isCausal())
            scores = at::where(at::ones(scores.sizes(), scores.options().dtype(at::kBool)).tril(range.first), scores, minusInfinity(scores));
        return at::softmax(scores, -1);
    }

private:
    /// The new tokens see those in the cache and, causally, each other.
    at::Tensor attendCached(const std::vector<at::Tensor>& inputs, StepContext& context) const {
        TORCH_CHECK(isCausal() && !inputs[3].defined(), "only causal attention without a mask of its own can use a key/value cache");
        const std::int64_t heads = instance().integer("num_heads"), kvHeads = instance().integer("num_kv_heads");
        const at::Tensor q = split(inputs[0], heads);
        const auto [keys, values] = context.cache->append(index(), split(inputs[1], kvHeads), split(inputs[2], kvHeads));
        const at::Tensor mask = cachedMask(q, keys, context);
        if (q.size(2) > 1) return attend(q, repeat(keys, heads), repeat(values, heads), mask).transpose(1, 2).flatten(2);
        // One token: the query heads that share a key/value head stand in for the positions, so that keys need not be repeated.
        const at::Tensor groups = inputs[0].reshape({q.size(0), kvHeads, heads / kvHeads, q.size(3)});
        std::optional<at::Tensor> shared;
        if (mask.defined()) shared = mask.size(1) > 1 ? mask.reshape({mask.size(0), kvHeads, heads / kvHeads, -1}) : mask;
        const at::Tensor out = at::scaled_dot_product_attention(groups, keys, values, shared);
        return out.reshape({q.size(0), 1, heads * q.size(3)});
    }

    /// Undefined where causality alone is asked for, or nothing.
    at::Tensor cachedMask(const at::Tensor& q, const at::Tensor& k, StepContext& context) const {
        const at::Tensor& real = context.cache->mask();
        if (!hasAlibi() && !real.defined() && (q.size(2) == 1 || q.size(2) == k.size(2))) return {};
        return remembered(q, k, context);
    }

    static at::Tensor wide(const at::Tensor& x) { return kernels::multipliesInFloat(x) ? x.to(at::kFloat) : x; }
    /// [B,T,N*D] -> [B,N,T,D], without a copy.
    static at::Tensor split(const at::Tensor& x, std::int64_t heads) {
        return x.unflatten(-1, {heads, x.size(-1) / heads}).transpose(1, 2);
    }
    static at::Tensor repeat(const at::Tensor& x, std::int64_t heads) {
        return x.size(1) == heads ? x : x.repeat_interleave(heads / x.size(1), 1);
    }
    static at::Tensor minusInfinity(const at::Tensor& like) {
        return at::scalar_tensor(-std::numeric_limits<double>::infinity(), like.options());
    }

    bool isCausal() const { return instance().flag("causal"); }
    bool hasAlibi() const { return instance().text("position") == "alibi"; }

    at::Tensor attend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& mask) const {
        if (!mask.defined()) return at::scaled_dot_product_attention(q, k, v, {}, 0.0, isCausal());
        return at::scaled_dot_product_attention(q, k, v, mask);
    }

    /// Written out, because LibTorch would draw from its global generator.
    at::Tensor attendWithDropout(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, at::Tensor mask, double p,
                                 StepContext& context) const {
        if (!mask.defined() && isCausal()) mask = buildMask(q, k, context);
        at::Tensor scores = at::matmul(q, k.transpose(-1, -2)) / std::sqrt(static_cast<double>(q.size(-1)));
        if (mask.defined()) scores = scores + mask;
        const at::Tensor weights = at::softmax(scores, -1, q.scalar_type() == at::kDouble ? at::kDouble : at::kFloat);
        return at::matmul((weights * dropoutMask(weights, p, context)).to(v.scalar_type()), v);
    }

    /// The part that follows from the batch and the cell's parameters; undefined where causality alone is asked for, or nothing.
    at::Tensor sharedMask(const at::Tensor& q, const at::Tensor& k, StepContext& context) const {
        const bool isOfBatch = q.size(2) == k.size(2) && (context.attentionMask.defined() || context.segments.defined());
        if (!hasAlibi() && !isOfBatch) return {};
        return remembered(q, k, context);
    }

    /// The mask that all layers of this pass share.
    at::Tensor remembered(const at::Tensor& q, const at::Tensor& k, StepContext& context) const {
        std::ostringstream key;
        key << "attention/" << isCausal() << "/" << (hasAlibi() ? q.size(1) : 0) << "/" << q.scalar_type() << "/" << q.size(2) << "/"
            << k.size(2);
        at::Tensor& mask = context.masks[key.str()];
        if (!mask.defined()) mask = buildMask(q, k, context);
        return mask;
    }

    at::Tensor combine(const at::Tensor& shared, const at::Tensor& maySee, const at::Tensor& q, const at::Tensor& k) const {
        at::Tensor allowed = maySee.to(at::kBool).unsqueeze(1);
        if (isCausal()) allowed = allowed & at::tril(at::ones({q.size(2), k.size(2)}, allowed.options()));
        return at::where(allowed, shared.defined() ? shared : at::zeros({1}, q.options()), minusInfinity(q));
    }

    /// [B or 1, H or 1, T, S]: 0 or the ALiBi bias slope * (key - query) where query may see key, -inf elsewhere. In self-attention a
    /// position always sees itself, so that no row of a padded batch is empty (its softmax would be NaN); nothing reads those rows.
    at::Tensor buildMask(const at::Tensor& q, const at::Tensor& k, const StepContext& context) const {
        const auto flags = q.options().dtype(at::kBool);
        const std::int64_t before = context.cache ? k.size(2) - q.size(2) : 0; // tokens that the first query comes after
        at::Tensor allowed = at::ones({q.size(2), k.size(2)}, flags);
        if (isCausal()) allowed = at::tril(allowed, before);
        allowed = allowed.unsqueeze(0).unsqueeze(0);
        const at::Tensor& real = context.cache ? context.cache->mask() : context.attentionMask;
        if (context.cache || q.size(2) == k.size(2)) {
            if (real.defined()) allowed = allowed & real.to(q.device(), at::kBool).unsqueeze(1).unsqueeze(1);
            if (context.segments.defined())
                allowed = allowed & (context.segments.unsqueeze(1).unsqueeze(3) == context.segments.unsqueeze(1).unsqueeze(2));
            allowed = allowed | (at::arange(k.size(2), q.device()).unsqueeze(0) ==
                                 at::arange(before, before + q.size(2), q.device()).unsqueeze(1)); // itself
        }
        return at::where(allowed, hasAlibi() ? alibi(q, k, before) : at::zeros({1}, q.options()), minusInfinity(q));
    }

    static at::Tensor alibi(const at::Tensor& q, const at::Tensor& k, std::int64_t before) {
        const auto exact = q.options().dtype(at::kDouble);
        const at::Tensor distance =
            at::arange(k.size(2), exact).unsqueeze(0) - at::arange(before, before + q.size(2), exact).unsqueeze(1);
        return (at::tensor(alibiSlopes(q.size(1)), exact).reshape({1, -1, 1, 1}) * distance).to(q.scalar_type());
    }
};

} // namespace

std::int64_t attentionHeads(const graph::CellInstance& cell) { return cell.type == "Attention" ? cell.integer("num_heads") : 0; }

at::Tensor attentionWeights(const graph::CellInstance& cell, const std::vector<at::Tensor>& inputs, StepContext& context, const QueryRange& range) {
    CELLOOM_CHECK(attentionHeads(cell) > 0);
    return Attention(cell).weights(inputs, context, range);
}

void addAttentionCells(CellRegistry& registry) {
    registry.add<RotaryEmbedding>("RotaryEmbedding");
    registry.add<Attention>("Attention");
}

} // namespace celloom::engine
