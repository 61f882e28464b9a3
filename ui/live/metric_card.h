// A chart with its name and its latest values.
#pragma once

#include "ui/common/plot.h"
#include "ui/common/widgets.h"
#include "ui/live/run_curves.h"

#include <functional>
#include <string>
#include <vector>

namespace celloom::ui {

class Theme;

/// One metric on a card: the curve as measured (faint when there is a smoothed one), the smoothed one, and what was superseded.
struct MetricLook {
    std::string metric;
    const char* color;
    std::function<QString(double)> format;
    bool isSmoothed = false;
    bool hasPoints = false; // measured seldom: each point shows
    bool isLevel = false;   // one number to compare with: a line across the whole chart
};

class MetricCard : public Card {
    Q_OBJECT
public:
    MetricCard(Theme& theme, std::vector<MetricLook> looks, QWidget* parent = nullptr);

    /// Names shown before the values, where a card has several metrics.
    void setNames(const QStringList& names);
    void setXAxis(XAxis axis, const QString& title);
    void setShowsSuperseded(bool isShown);
    [[nodiscard]] Plot& plot() { return *m_plot; }
    void show(const RunCurves& curves);

private:
    void refreshValues(double hoveredX);
    [[nodiscard]] QString valueText(const MetricLook& look, const QString& name, double hoveredX) const;

    Theme& m_theme;
    std::vector<MetricLook> m_looks;
    QStringList m_names;
    QLabel* m_values;
    Plot* m_plot;
    const RunCurves* m_curves = nullptr;
    std::vector<double> m_levelX, m_levelY; // of the level, where there is one
    XAxis m_axis = XAxis::Step;
    bool m_showsSuperseded = true;
    double m_hoveredX;
};

} // namespace celloom::ui
