// Whether a wire can be, from what is known of a level: asked for every port while a wire is drawn, so it looks at no wire twice.
#pragma once

#include "ui/editor/model_level.h"

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace celloom::ui {

/// Of one level, which must outlive it.
class WireJudge {
public:
    explicit WireJudge(const ModelLevel& level);
    /// No circle, the same kind of numbers, and, where all shapes are known, shapes that the cell takes.
    [[nodiscard]] bool isFit(const graph::Wire& wire);

private:
    using Reach = std::optional<std::pair<std::size_t, std::vector<bool>>>; // of which box, and what is reached

    [[nodiscard]] std::optional<std::size_t> boxOf(const graph::Endpoint& end, BoxKind kind) const;
    [[nodiscard]] bool closesCircle(std::size_t from, std::size_t to);
    [[nodiscard]] std::vector<bool> reached(std::size_t start, const std::vector<std::vector<std::size_t>>& ways) const;

    const ModelLevel& m_level;
    std::map<std::pair<BoxKind, std::string>, std::size_t> m_boxes; // composites are cells here
    std::vector<std::vector<std::size_t>> m_before, m_after;
    Reach m_above, m_below; // one end of the wires that are asked about stays the same
    std::map<std::string, const graph::Cell*> m_cells;
};

} // namespace celloom::ui
