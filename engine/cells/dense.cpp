// Dense (with its adapters), Embedding and LMHead.
#include "engine/cells/cell.h"
#include "engine/generate/key_value_cache.h"
#include "engine/kernels/linear.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/aminmax.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/linalg_vector_norm.h>

namespace celloom::engine {
namespace {

/// y [..., out] = x [..., in] weightᵀ + bias + what each adapter adds.
class Dense final : public Cell {
public:
    using Cell::Cell;
    std::vector<at::Tensor> construct(const std::vector<at::Tensor>& inputs, StepContext& context) override {
        const at::Tensor bias = weight("bias"), matrix = weight("weight");
        const at::Tensor base = kernels::linear(inputs[0], matrix, bias);
        at::Tensor out = base;
        for (const CellAdapter& adapter : adapters()) out = out + change(adapter, inputs[0], matrix, bias, base, context);
        return {out};
    }

private:
    at::Tensor change(const CellAdapter& adapter, at::Tensor x, const at::Tensor& matrix, const at::Tensor& bias, const at::Tensor& base,
                      const StepContext& context) const {
        const bool drops = context.isTraining && adapter.dropout > 0;
        if (drops) x = x * dropoutMask(x, adapter.dropout, context);
        at::Tensor plain;
        if (adapter.magnitude.defined()) plain = drops ? kernels::linear(x, matrix) : bias.defined() ? base - bias : base;
        return adapterChange(adapter, x, matrix, plain);
    }
};

/// ids [B,T] int64 -> rows of weight [vocab,dim]. The row of padding_idx gets no gradient by this way. Shared, the weight itself follows.
class Embedding final : public Cell {
public:
    using Cell::Cell;
    std::vector<at::Tensor> construct(const std::vector<at::Tensor>& inputs, StepContext&) override {
        const at::Tensor& ids = inputs[0];
        const at::Tensor table = weight("weight");
        if (ids.is_cpu() && ids.numel() > 0) { // on CUDA the kernel asserts by itself; looking would wait for the device
            const auto [low, high] = at::aminmax(ids);
            TORCH_CHECK_INDEX(low.item<std::int64_t>() >= 0 && high.item<std::int64_t>() < table.size(0), "token ids reach from ",
                              low.item<std::int64_t>(), " to ", high.item<std::int64_t>(), ", the vocabulary has 0..", table.size(0) - 1);
        }
        std::vector<at::Tensor> out{at::embedding(table, ids, instance().integer("padding_idx"))};
        if (instance().flag("shares_weight")) out.push_back(table);
        return out;
    }
};

/// logits [B,T,V] (or [B,1,V], the last position alone, or [1,N,V], chosen ones) = h weightᵀ; normalised: each row of the weight scaled to unit length first
/// (Baichuan2's NormHead; lengths below 1e-12 count as that). Tied: the weight [V,C] is the second input.
class LMHead final : public Cell {
public:
    using Cell::Cell;
    std::vector<at::Tensor> construct(const std::vector<at::Tensor>& inputs, StepContext& context) override {
        at::Tensor hidden = inputs[0];
        if (context.lastPositionOnly) hidden = hidden.narrow(1, hidden.size(1) - 1, 1);
        if (context.headPositions.defined()) hidden = hidden.flatten(0, 1).index_select(0, context.headPositions).unsqueeze(0);
        const std::string& kind = instance().text("kind");
        at::Tensor rows = kind == "tied" ? inputs[1] : weight("weight");
        if (kind == "normalised") rows = normalised(rows, context);
        return {kernels::linear(hidden, rows)};
    }

private:
    /// While a cache lives the weights stand still, so that generation normalises once and not for each token.
    at::Tensor normalised(const at::Tensor& rows, StepContext& context) const {
        at::Tensor* kept = context.cache ? &context.cache->fromWeights[instance().path] : nullptr;
        if (kept && kept->defined()) return *kept;
        at::Tensor out = rows / at::linalg_vector_norm(rows, 2, at::IntArrayRef{1}, true).clamp_min(1e-12);
        if (kept) *kept = out;
        return out;
    }
};

} // namespace

void addDenseCells(CellRegistry& registry) {
    registry.add<Dense>("Dense");
    registry.add<Embedding>("Embedding");
    registry.add<LMHead>("LMHead");
}

} // namespace celloom::engine
