#include "ui/common/decimate.h"

#include "models/base/result.h"

#include <algorithm>
#include <cmath>

namespace celloom::ui {

namespace {

/// Collects one pixel column and hands out its extremes.
class Column {
public:
    explicit Column(Decimated& out) : m_out(out) {}

    void add(double x, double y) {
        const std::size_t at = m_count++;
        if (at == 0 || y < m_least.y()) {
            m_least = {x, y};
            m_leastAt = at;
        }
        if (at == 0 || y > m_greatest.y()) {
            m_greatest = {x, y};
            m_greatestAt = at;
        }
    }
    void flush() {
        if (m_count == 0) return;
        const bool leastFirst = m_leastAt <= m_greatestAt;
        m_out.points.push_back(leastFirst ? m_least : m_greatest);
        if (m_leastAt != m_greatestAt) m_out.points.push_back(leastFirst ? m_greatest : m_least);
        m_count = 0;
    }

private:
    Decimated& m_out;
    QPointF m_least, m_greatest;
    std::size_t m_leastAt = 0, m_greatestAt = 0, m_count = 0;
};

} // namespace

Decimated decimate(const std::vector<double>& x, const std::vector<double>& y, double from, double to, int columns) {
    CELLOOM_CHECK(x.size() == y.size() && columns > 0);
    Decimated out;
    if (x.empty() || !(to >= from)) return out;
    auto first = static_cast<std::size_t>(std::lower_bound(x.begin(), x.end(), from) - x.begin());
    auto last = static_cast<std::size_t>(std::upper_bound(x.begin(), x.end(), to) - x.begin());
    if (first > 0) --first;
    if (last < x.size()) ++last;
    const double scale = to > from ? columns / (to - from) : 0;
    const auto columnOf = [&](double at) { return static_cast<long>(std::clamp(std::floor((at - from) * scale), -1.0, columns + 1.0)); };
    const bool isSparse = last - first <= 2 * static_cast<std::size_t>(columns);
    Column column(out);
    long current = -2, lastBad = -2;
    for (std::size_t i = first; i < last; ++i) {
        const long here = columnOf(x[i]);
        if (!std::isfinite(y[i])) {
            if (here != lastBad && x[i] >= from && x[i] <= to) out.notFinite.push_back(x[i]);
            lastBad = here;
            continue;
        }
        if (isSparse) {
            out.points.emplace_back(x[i], y[i]);
            continue;
        }
        if (here != current) column.flush();
        current = here;
        column.add(x[i], y[i]);
    }
    column.flush();
    return out;
}

} // namespace celloom::ui
