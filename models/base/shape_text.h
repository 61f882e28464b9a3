// A tensor's shape as messages write it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace celloom {

/// "[4096, 64]"; of a scalar "[]".
inline std::string shapeText(const std::vector<std::int64_t>& shape) {
    std::string out = "[";
    for (std::size_t i = 0; i < shape.size(); ++i) out += (i > 0 ? ", " : "") + std::to_string(shape[i]);
    return out + "]";
}

} // namespace celloom
