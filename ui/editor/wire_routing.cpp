#include "ui/editor/wire_routing.h"

#include <algorithm>
#include <cmath>
#include <optional>

namespace celloom::ui {

namespace {

constexpr double kCell = 256;       // of the grid
constexpr double kRoom = 4;         // between a wire and a box
constexpr double kAround = 28;      // a wire that goes around keeps this far away
constexpr int kPieces = 8;          // of a curve
constexpr int kMostDetours = 4;     // boxes beside boxes: then it is drawn over them
constexpr double kMostCells = 4096; // of one look-up; a wire of a million pixels is drawn over what is there

std::int32_t cellOf(double value) {
    return static_cast<std::int32_t>(std::floor(std::clamp(value, -1e11, 1e11) / kCell));
}

std::uint64_t keyOf(std::int32_t x, std::int32_t y) {
    return static_cast<std::uint64_t>(static_cast<std::uint32_t>(x)) << 32 | static_cast<std::uint32_t>(y);
}

QPointF cubicAt(QPointF a, QPointF b, QPointF c, QPointF d, double t) {
    const double s = 1 - t;
    return s * s * s * a + 3 * s * s * t * b + 3 * s * t * t * c + t * t * t * d;
}

/// Whether a segment meets a rectangle (Liang and Barsky).
bool meets(QPointF from, QPointF to, const QRectF& rect) {
    const double dx = to.x() - from.x(), dy = to.y() - from.y();
    double begin = 0, end = 1;
    const auto clip = [&](double p, double q) {
        if (p == 0) return q >= 0;
        const double r = q / p;
        if (p < 0) begin = std::max(begin, r);
        else end = std::min(end, r);
        return begin <= end;
    };
    return clip(-dx, from.x() - rect.left()) && clip(dx, rect.right() - from.x()) && clip(-dy, from.y() - rect.top()) && clip(dy, rect.bottom() - from.y());
}

struct Extent {
    double left = 1e300, right = -1e300;
};

/// How far what a line meets reaches to both sides; nothing where it meets nothing.
std::optional<Extent> inTheWay(const QPolygonF& line, const RectGrid& boxes, std::size_t own, std::size_t other) {
    Extent extent;
    std::vector<std::size_t> near;
    for (int i = 1; i < line.size(); ++i) {
        near.clear();
        boxes.near(line[i - 1], line[i], near);
        for (const std::size_t box : near) {
            if (box == own || box == other) continue;
            const QRectF rect = boxes.at(box).adjusted(-kRoom, -kRoom, kRoom, kRoom);
            if (!meets(line[i - 1], line[i], rect)) continue;
            extent.left = std::min(extent.left, boxes.at(box).left());
            extent.right = std::max(extent.right, boxes.at(box).right());
        }
    }
    return extent.right < extent.left ? std::nullopt : std::optional(extent);
}

QPainterPath curveAround(QPointF from, QPointF to, double x) {
    const double third = std::min(std::abs(to.y() - from.y()) / 3, 90.0);
    QPainterPath path(from);
    path.cubicTo(from + QPointF(0, third / 2), {x, from.y() + third / 4}, {x, from.y() + third});
    path.lineTo(x, to.y() - third);
    path.cubicTo({x, to.y() - third / 4}, to - QPointF(0, third / 2), to);
    return path;
}

} // namespace

RectGrid::RectGrid(std::vector<QRectF> rects) : m_rects(std::move(rects)) {
    for (std::size_t i = 0; i < m_rects.size(); ++i)
        for (std::int32_t x = cellOf(m_rects[i].left()); x <= cellOf(m_rects[i].right()); ++x)
            for (std::int32_t y = cellOf(m_rects[i].top()); y <= cellOf(m_rects[i].bottom()); ++y) m_cells[keyOf(x, y)].push_back(static_cast<std::uint32_t>(i));
}

void RectGrid::near(QPointF from, QPointF to, std::vector<std::size_t>& out) const {
    // A long slanted piece would ask for a large field of cells: halves ask for a quarter each.
    const std::int32_t left = cellOf(std::min(from.x(), to.x()) - kRoom), right = cellOf(std::max(from.x(), to.x()) + kRoom);
    const std::int32_t top = cellOf(std::min(from.y(), to.y()) - kRoom), bottom = cellOf(std::max(from.y(), to.y()) + kRoom);
    if (right - left > 1 && bottom - top > 1) {
        const QPointF middle = (from + to) / 2;
        near(from, middle, out);
        near(middle, to, out);
        return;
    }
    if (static_cast<double>(right - left + 1) * (bottom - top + 1) > kMostCells) return;
    for (std::int32_t x = left; x <= right; ++x)
        for (std::int32_t y = top; y <= bottom; ++y)
            if (const auto cell = m_cells.find(keyOf(x, y)); cell != m_cells.end()) out.insert(out.end(), cell->second.begin(), cell->second.end());
}

QPainterPath wireCurve(QPointF from, QPointF to) {
    const double bend = std::clamp(std::abs(to.y() - from.y()) / 2, 24.0, 120.0);
    QPainterPath path(from);
    path.cubicTo(from + QPointF(0, bend), to - QPointF(0, bend), to);
    return path;
}

QPainterPath wireCurve(QPointF from, QPointF to, const RectGrid& boxes, std::size_t own, std::size_t other) {
    QPainterPath path = wireCurve(from, to);
    auto met = inTheWay(straightened(path), boxes, own, other);
    if (!met) return path;
    Extent extent = *met;
    for (int detour = 0; detour < kMostDetours && met; ++detour) {
        extent = {std::min(extent.left, met->left), std::max(extent.right, met->right)};
        const double middle = (from.x() + to.x()) / 2;
        const double x = extent.right - middle <= middle - extent.left ? extent.right + kAround : extent.left - kAround; // the shorter way round
        path = curveAround(from, to, x);
        met = inTheWay(straightened(path), boxes, own, other);
    }
    return path;
}

QPolygonF straightened(const QPainterPath& path) {
    QPolygonF line;
    for (int i = 0; i < path.elementCount(); ++i) {
        const QPainterPath::Element element = path.elementAt(i);
        if (element.type != QPainterPath::CurveToElement) {
            line.append(element);
            continue;
        }
        if (line.isEmpty() || i + 2 >= path.elementCount()) break;
        const QPointF start = line.last(), first = element, second = path.elementAt(i + 1), end = path.elementAt(i + 2);
        // As many pieces as it bends.
        const QPointF way = end - start;
        const double length = std::hypot(way.x(), way.y());
        const auto off = [&](QPointF p) { return length == 0 ? 1e9 : std::abs(way.x() * (p.y() - start.y()) - way.y() * (p.x() - start.x())) / length; };
        const int pieces = std::max(off(first), off(second)) < 0.5 ? 1 : kPieces;
        for (int piece = 1; piece <= pieces; ++piece) line.append(cubicAt(start, first, second, end, static_cast<double>(piece) / pieces));
        i += 2;
    }
    return line;
}

double distanceTo(const QPolygonF& line, QPointF point) {
    double nearest = 1e300;
    for (int i = 1; i < line.size(); ++i) {
        const QPointF a = line[i - 1], way = line[i] - a, to = point - a;
        const double square = QPointF::dotProduct(way, way);
        const double t = square == 0 ? 0 : std::clamp(QPointF::dotProduct(to, way) / square, 0.0, 1.0);
        const QPointF off = to - t * way;
        nearest = std::min(nearest, std::hypot(off.x(), off.y()));
    }
    return nearest;
}

} // namespace celloom::ui
