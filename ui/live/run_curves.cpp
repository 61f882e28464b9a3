#include "ui/live/run_curves.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace celloom::ui {

namespace {
const std::string kMemory = "system/memory_bytes"; // drawn in GiB, so that the axis reads well
const std::string kBaseline = "baseline/bigram_perplexity";
constexpr double kGiB = 1024.0 * 1024 * 1024;
} // namespace

double Curve::last() const {
    return value.empty() ? std::numeric_limits<double>::quiet_NaN() : value.back();
}

double RunCurves::Smoother::push(double value, double past) {
    sum = past * sum + (1 - past) * value;
    weight = past * weight + (1 - past);
    return sum / weight;
}

void RunCurves::clear() {
    m_curves.clear();
    m_superseded.clear();
    m_smoothers.clear();
    m_firstTime = -1;
}

void RunCurves::append(Curve& curve, const store::MetricRow& row) {
    if (m_firstTime < 0) m_firstTime = row.time;
    // A plot's x never falls, even where the clock was set back.
    const auto rising = [](std::vector<double>& x, double next) { x.push_back(x.empty() ? next : std::max(next, x.back())); };
    rising(curve.step, static_cast<double>(row.step));
    rising(curve.epoch, row.epoch);
    rising(curve.time, row.time - m_firstTime);
    curve.value.push_back(row.name == kMemory ? row.value / kGiB : row.value);
}

void RunCurves::appendSuperseded(const store::MetricRow& row) {
    if (m_firstTime < 0) m_firstTime = row.time;
    const double value = row.name == kMemory ? row.value / kGiB : row.value;
    std::array<Points, 3>& all = m_superseded[row.name];
    const std::array<double, 3> at{static_cast<double>(row.step), row.epoch, row.time - m_firstTime};
    for (std::size_t axis = 0; axis < all.size(); ++axis) {
        Points& points = all[axis]; // a part that was run again begins a little before the end of the one before
        const auto place = std::upper_bound(points.x.begin(), points.x.end(), at[axis]) - points.x.begin();
        points.x.insert(points.x.begin() + place, at[axis]);
        points.y.insert(points.y.begin() + place, value);
    }
}

void RunCurves::add(const std::vector<store::MetricRow>& rows) {
    for (store::MetricRow row : rows) {
        if (row.name == kBaseline) {
            row.name = kBaselineLoss;
            row.value = std::log(row.value);
        }
        if (row.isSuperseded) {
            appendSuperseded(row);
            continue;
        }
        Curve& curve = m_curves[row.name];
        append(curve, row);
        curve.smooth.push_back(std::isfinite(row.value) ? m_smoothers[row.name].push(curve.value.back(), m_past)
                                                        : std::numeric_limits<double>::quiet_NaN());
    }
}

void RunCurves::setSmoothing(double weight) {
    m_past = weight;
    resmooth();
}

void RunCurves::resmooth() {
    m_smoothers.clear();
    for (auto& [name, curve] : m_curves) {
        for (std::size_t i = 0; i < curve.value.size(); ++i)
            curve.smooth[i] =
                std::isfinite(curve.value[i]) ? m_smoothers[name].push(curve.value[i], m_past) : std::numeric_limits<double>::quiet_NaN();
    }
}

const Curve& RunCurves::curve(const std::string& name) const {
    static const Curve none;
    const auto found = m_curves.find(name);
    return found == m_curves.end() ? none : found->second;
}

const RunCurves::Points& RunCurves::superseded(const std::string& name, XAxis axis) const {
    static const Points none;
    const auto found = m_superseded.find(name);
    return found == m_superseded.end() ? none : found->second.at(static_cast<std::size_t>(axis));
}

} // namespace celloom::ui
