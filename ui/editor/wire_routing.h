// The curves of wires: from an output down to an input, around the boxes that lie between. Knows rectangles, no graph.
#pragma once

#include <QPainterPath>
#include <QPolygonF>
#include <QRectF>

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace celloom::ui {

/// Finds the rectangles near a place without looking at all of them.
class RectGrid {
public:
    explicit RectGrid(std::vector<QRectF> rects = {});
    [[nodiscard]] const QRectF& at(std::size_t index) const { return m_rects[index]; }
    /// Indices of those that a segment comes near to (they may be named twice, and some that it misses too).
    void near(QPointF from, QPointF to, std::vector<std::size_t>& out) const;

private:
    std::vector<QRectF> m_rects;
    std::unordered_map<std::uint64_t, std::vector<std::uint32_t>> m_cells;
};

/// From an output down to an input. Around the grid's rectangles, but for `own` and `other`, which the wire joins.
QPainterPath wireCurve(QPointF from, QPointF to);
QPainterPath wireCurve(QPointF from, QPointF to, const RectGrid& boxes, std::size_t own, std::size_t other);

/// A curve as a few straight pieces: for drawing from afar and for being hit.
QPolygonF straightened(const QPainterPath& path);
/// How far a point is from a line of straight pieces.
double distanceTo(const QPolygonF& line, QPointF point);

} // namespace celloom::ui
