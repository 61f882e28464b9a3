#include "ui/live/metric_card.h"

#include "ui/common/format.h"
#include "ui/common/theme.h"

#include <QHBoxLayout>
#include <QVBoxLayout>

#include <algorithm>
#include <cmath>

namespace celloom::ui {

namespace {

std::vector<PlotLine> linesOf(const std::vector<MetricLook>& looks) {
    std::vector<PlotLine> lines;
    for (const MetricLook& look : looks) {
        if (look.isLevel) {
            for (int i = 0; i < 3; ++i) lines.push_back({look.color, 1.2, 0.8, true});
            continue;
        }
        PlotLine old{look.color, 1, 0.4}; // superseded
        old.isPointsOnly = true;
        lines.push_back(old);
        lines.push_back({look.color, look.isSmoothed ? 1.0 : 1.6, look.isSmoothed ? 0.35 : 1, false, true, look.hasPoints}); // as measured
        lines.push_back({look.color, 2});                                                                                    // smoothed
    }
    return lines;
}

} // namespace

MetricCard::MetricCard(Theme& theme, std::vector<MetricLook> looks, QWidget* parent)
    : Card(parent), m_theme(theme), m_looks(std::move(looks)), m_hoveredX(std::nan("")) {
    m_values = makeLabel("value", this);
    m_values->setTextFormat(Qt::RichText);
    if (m_looks.size() > 1) {
        m_values->setWordWrap(true);
        body()->addWidget(m_values); // a line of its own: names and numbers need the width
    } else {
        titleRow()->addWidget(m_values);
    }
    m_plot = new Plot(theme, linesOf(m_looks), this);
    m_plot->setFormats(QStringLiteral("%g"), QStringLiteral("auto"));
    body()->addWidget(m_plot, 1);
    connect(m_plot, &Plot::hovered, this, &MetricCard::refreshValues);
    connect(&theme, &Theme::changed, this, [this] { refreshValues(m_hoveredX); });
}

void MetricCard::setNames(const QStringList& names) {
    m_names = names;
    refreshValues(m_hoveredX);
}

void MetricCard::setXAxis(XAxis axis, const QString& title) {
    if (axis != m_axis) m_plot->setView(std::nullopt);
    m_axis = axis;
    m_plot->setXTitle(title);
    if (m_curves) show(*m_curves);
}

void MetricCard::setShowsSuperseded(bool isShown) {
    m_showsSuperseded = isShown;
    if (m_curves) show(*m_curves);
}

void MetricCard::show(const RunCurves& curves) {
    m_curves = &curves;
    for (std::size_t i = 0; i < m_looks.size(); ++i) {
        const Curve& curve = curves.curve(m_looks[i].metric);
        if (m_looks[i].isLevel) {
            const std::vector<double>& extent = curves.curve(m_looks.front().metric).x(m_axis);
            const bool isShown = !curve.isEmpty() && extent.size() > 1;
            m_levelX = isShown ? std::vector<double>{extent.front(), extent.back()} : std::vector<double>();
            m_levelY.assign(m_levelX.size(), curve.last());
            m_plot->setData(3 * i, {&m_levelX, &m_levelY, true});
            continue;
        }
        const RunCurves::Points& old = curves.superseded(m_looks[i].metric, m_axis);
        m_plot->setData(3 * i, {&old.x, &old.y, m_showsSuperseded});
        m_plot->setData(3 * i + 1, {&curve.x(m_axis), &curve.value, true});
        m_plot->setData(3 * i + 2, {&curve.x(m_axis), &curve.smooth, m_looks[i].isSmoothed});
    }
    m_plot->redraw();
    refreshValues(m_hoveredX);
}

QString MetricCard::valueText(const MetricLook& look, const QString& name, double hoveredX) const {
    const Curve& curve = m_curves->curve(look.metric);
    if (curve.isEmpty()) return {};
    double value = curve.last();
    if (!std::isnan(hoveredX) && !look.isLevel) { // the nearest point
        const std::vector<double>& x = curve.x(m_axis);
        auto at = static_cast<std::size_t>(std::lower_bound(x.begin(), x.end(), hoveredX) - x.begin());
        if (at == x.size() || (at > 0 && hoveredX - x[at - 1] < x[at] - hoveredX)) --at;
        value = curve.value[at];
    }
    const QString color = m_theme.color(std::isfinite(value) ? "text" : "bad").name();
    const QString text = QStringLiteral("<span style=\"color:%1\">%2</span>").arg(color, look.format(value).toHtmlEscaped());
    if (name.isEmpty()) return text;
    return QStringLiteral("<span style=\"color:%1\">■</span> %2 ").arg(m_theme.color(look.color).name(), name.toHtmlEscaped()) + text;
}

void MetricCard::refreshValues(double hoveredX) {
    m_hoveredX = hoveredX;
    if (!m_curves) {
        m_values->clear();
        return;
    }
    QStringList parts;
    for (std::size_t i = 0; i < m_looks.size(); ++i) {
        const QString part = valueText(m_looks[i], m_names.value(static_cast<qsizetype>(i)), hoveredX);
        if (!part.isEmpty()) parts.append(part);
    }
    m_values->setText(parts.join(QStringLiteral(" &nbsp; ")));
}

} // namespace celloom::ui
