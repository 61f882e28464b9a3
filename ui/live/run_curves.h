// A run's metrics as curves: plain vectors that grow, with a smoothed twin, and what was superseded by a resume kept apart.
#pragma once

#include "models/store/run_store.h"

#include <cstdint>
#include <array>
#include <map>
#include <string>
#include <vector>

namespace celloom::ui {

enum class XAxis { Step, Epoch, Time };

struct Curve {
    std::vector<double> step, epoch, time; // time in seconds since the run's first row
    std::vector<double> value, smooth;     // smooth: NaN where value is not finite
    [[nodiscard]] const std::vector<double>& x(XAxis axis) const {
        return axis == XAxis::Step ? step : axis == XAxis::Epoch ? epoch : time;
    }
    [[nodiscard]] bool isEmpty() const { return value.empty(); }
    /// The last value, NaN where there is none.
    [[nodiscard]] double last() const;
};

class RunCurves {
public:
    /// The yardstick of a run (baseline/bigram_perplexity) as a loss, so that it stands on the same axis.
    static constexpr const char* kBaselineLoss = "baseline/loss";

    void clear();
    void add(const std::vector<store::MetricRow>& rows);
    /// Weight of the past in the smoothed twin, 0 (none) to below 1. Exponential, corrected for the start.
    void setSmoothing(double weight);

    /// Rows that count. An unknown name is an empty curve.
    [[nodiscard]] const Curve& curve(const std::string& name) const;
    /// Rows that a resume has run again: of all such parts together, so that one x may have several values. x never falls.
    struct Points {
        std::vector<double> x, y;
    };
    [[nodiscard]] const Points& superseded(const std::string& name, XAxis axis) const;

private:
    struct Smoother {
        double sum = 0, weight = 0;
        double push(double value, double past);
    };
    void append(Curve& curve, const store::MetricRow& row);
    void appendSuperseded(const store::MetricRow& row);
    void resmooth();

    std::map<std::string, Curve> m_curves;
    std::map<std::string, std::array<Points, 3>> m_superseded; // by axis
    std::map<std::string, Smoother> m_smoothers;
    double m_past = 0.9;
    double m_firstTime = -1;
};

} // namespace celloom::ui
