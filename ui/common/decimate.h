// Many points to few, for drawing: at most two a pixel column, and no extreme is lost.
#pragma once

#include <QPointF>

#include <cstddef>
#include <vector>

namespace celloom::ui {

struct Decimated {
    std::vector<QPointF> points;   // in the order of x; finite values only
    std::vector<double> notFinite; // where NaN or an infinity stands, at most one a column
};

/// The part of a curve that is seen between x = `from` and x = `to`, for a plot that is `columns` pixels wide. `x` does not fall.
/// Of each column the least and the greatest value remain, in their order. One point beyond each edge is kept, so that lines reach it.
Decimated decimate(const std::vector<double>& x, const std::vector<double>& y, double from, double to, int columns);

} // namespace celloom::ui
