#include "engine/cells/adapter.h"

#include "engine/kernels/linear.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/matmul.h>

namespace celloom::engine {
namespace {

/// scale B A [out, in] in float32.
at::Tensor changeOf(const CellAdapter& adapter) { return at::matmul(adapter.b, adapter.a) * (adapter.scale * adapter.weight); }

/// The learned length of each row over the length that it has: [out], float32; differentiable in the learned one.
at::Tensor rowFactors(const CellAdapter& adapter, const at::Tensor& matrix) {
    const at::Tensor whole = (matrix.to(at::kFloat) + changeOf(adapter)).detach();
    return adapter.magnitude / at::linalg_vector_norm(whole, 2, at::IntArrayRef{1});
}

} // namespace

at::Tensor adapterChange(const CellAdapter& adapter, const at::Tensor& x, const at::Tensor& matrix, const at::Tensor& plain) {
    const auto type = x.scalar_type();
    const at::Tensor inside = kernels::linear(x, adapter.a.to(type)) * (adapter.scale * adapter.weight); // [..., r]: the small side
    const at::Tensor low = kernels::linear(inside, adapter.b.to(type));
    if (!adapter.magnitude.defined()) return low;
    const at::Tensor factors = rowFactors(adapter, matrix).to(type);
    return (factors - 1) * plain + factors * low;
}

at::Tensor mergedMatrix(const CellAdapter& adapter, const at::Tensor& matrix) {
    const at::Tensor whole = matrix.to(at::kFloat) + changeOf(adapter);
    return adapter.magnitude.defined() ? whole * rowFactors(adapter, matrix).unsqueeze(1) : whole;
}

} // namespace celloom::engine
