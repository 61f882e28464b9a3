// Windows that slide over an image: the numbers of a convolution or a pool, by height and width. Catalogue, engine and code share them.
#pragma once

#include "models/graph/expand.h"

#include <array>
#include <cstdint>

namespace celloom::catalog {

/// Index 0: height, 1: width.
struct Window {
    using Pair = std::array<std::int64_t, 2>;
    Pair kernel{1, 1}, stride{1, 1}, dilation{1, 1};
    Pair before{0, 0}, after{0, 0}; // padding above and left, below and right
    bool roundsUp = false;          // a window that begins inside and ends outside counts

    /// Numbers that the kernel reaches over.
    [[nodiscard]] std::int64_t reach(std::size_t side) const { return dilation[side] * (kernel[side] - 1) + 1; }
    /// How many windows there are; 0 or less where not one fits. As LibTorch counts them.
    [[nodiscard]] std::int64_t count(std::size_t side, std::int64_t size) const;
    [[nodiscard]] bool isSymmetric() const { return before == after; }
};

/// Of a Conv2d, MaxPool2d or AvgPool2d whose image has this height and width (pad_mode "same" follows them).
Window windowOf(const graph::CellInstance& cell, std::int64_t height, std::int64_t width);

} // namespace celloom::catalog
