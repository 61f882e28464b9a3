// Activation recomputation: a piece of a network whose inside is forgotten after the forward pass and computed again in the backward one
// (Chen et al., arXiv:1604.06174). Knows nothing about cells.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

namespace celloom::engine {

/// The piece: its inputs (some may be undefined) to its outputs. Called twice, the second time (`isAgain`) from the backward pass: it must
/// do the same both times, so what it draws must come from a seed, and it must own what it needs.
using Piece = std::function<std::vector<at::Tensor>(const std::vector<at::Tensor>& inputs, bool isAgain)>;

/// The piece's outputs, differentiable in its inputs and in `parameters` (the tensors with gradients that it uses besides). Gradients are
/// bit for bit those of calling it plainly. Only first derivatives.
std::vector<at::Tensor> recomputed(Piece piece, const std::vector<at::Tensor>& inputs, const std::vector<at::Tensor>& parameters);

} // namespace celloom::engine
