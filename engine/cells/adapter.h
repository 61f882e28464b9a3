// Low-rank adapters beside a cell's weight matrix: W x becomes W x + scale B A drop(x), or its DoRA form.
#pragma once

#include <ATen/core/Tensor.h>

namespace celloom::engine {

/// One adapter of one cell. Tensors are float32 whatever the base's type.
struct CellAdapter {
    at::Tensor a, b;      // [r, in], [out, r]
    at::Tensor magnitude; // [out], of DoRA; undefined: none
    double scale = 1;     // recipe::LoraSettings::scale()
    double dropout = 0;   // of x, in training
    double weight = 1;    // how much of it counts; see Network::activate
};

/// What the adapter adds to `plain` = x W^T: x [..., in], W [out, in], in the type of x. `x` is dropped out already where it should be.
/// DoRA scales each row of W + scale B A to its learned length; the row's length counts as constant in the backward pass, as in PEFT.
at::Tensor adapterChange(const CellAdapter& adapter, const at::Tensor& x, const at::Tensor& matrix, const at::Tensor& plain);

/// The weight that computes the same as `matrix` [out, in] with the adapter: float32.
at::Tensor mergedMatrix(const CellAdapter& adapter, const at::Tensor& matrix);

} // namespace celloom::engine
