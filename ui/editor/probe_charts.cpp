#include "ui/editor/probe_charts.h"

#include "ui/common/format.h"
#include "ui/common/theme.h"

#include <QHelpEvent>
#include <QImage>
#include <QPainter>
#include <QToolTip>

#include <algorithm>
#include <cmath>

namespace celloom::ui {

namespace {

constexpr double kAxis = 12; // beside an attention map, for what its sides are

} // namespace

// ---- histogram ----

HistogramChart::HistogramChart(Theme& theme, QWidget* parent) : QWidget(parent), m_theme(theme) {
    setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
    connect(&theme, &Theme::changed, this, qOverload<>(&QWidget::update));
}

void HistogramChart::setValues(const ProbedValues& values) {
    m_values = values;
    setAccessibleName(tr("Histogram of %1").arg(fromUtf8(values.wire)));
    if (values.minimum) setAccessibleDescription(tr("%1 values from %2 to %3").arg(Format::count(values.count), Format::number(*values.minimum), Format::number(*values.maximum)));
    update();
}

void HistogramChart::paintEvent(QPaintEvent*) {
    QPainter painter(this);
    const QRectF field = rect().adjusted(0, 2, 0, -2);
    painter.setPen(QPen(m_theme.color("border"), 1));
    painter.drawLine(field.bottomLeft(), field.bottomRight());
    if (m_values.histogram.empty()) return;
    const double most = static_cast<double>(*std::max_element(m_values.histogram.begin(), m_values.histogram.end()));
    const double width = field.width() / static_cast<double>(m_values.histogram.size());
    QColor fill = m_theme.color("accent");
    fill.setAlphaF(0.38F);
    for (std::size_t i = 0; most > 0 && i < m_values.histogram.size(); ++i) {
        if (m_values.histogram[i] == 0) continue;
        const double height = std::max(1.0, field.height() * static_cast<double>(m_values.histogram[i]) / most); // one value is seen, too
        painter.fillRect(QRectF(field.left() + width * static_cast<double>(i), field.bottom() - height, std::max(1.0, width - 1), height), fill);
    }
    const double least = *m_values.minimum, greatest = *m_values.maximum;
    if (least >= 0 || greatest <= 0) return;
    const double zero = field.left() + field.width() * -least / (greatest - least);
    painter.setPen(QPen(m_theme.color("muted"), 1, Qt::DotLine));
    painter.drawLine(QPointF(zero, field.top()), QPointF(zero, field.bottom()));
}

bool HistogramChart::event(QEvent* event) {
    if (event->type() != QEvent::ToolTip || m_values.histogram.empty()) return QWidget::event(event);
    const auto* help = static_cast<QHelpEvent*>(event);
    const auto steps = static_cast<int>(m_values.histogram.size());
    const int step = std::clamp(help->pos().x() * steps / std::max(1, width()), 0, steps - 1);
    const double wide = (*m_values.maximum - *m_values.minimum) / steps;
    QToolTip::showText(help->globalPos(), tr("%1 values from %2 to %3")
                                              .arg(Format::count(m_values.histogram[static_cast<std::size_t>(step)]), Format::number(*m_values.minimum + wide * step),
                                                   Format::number(*m_values.minimum + wide * (step + 1))), this);
    return true;
}

// ---- attention ----

AttentionChart::AttentionChart(Theme& theme, QWidget* parent) : QWidget(parent), m_theme(theme) {
    QSizePolicy policy(QSizePolicy::Expanding, QSizePolicy::Preferred);
    policy.setHeightForWidth(true);
    setSizePolicy(policy);
    connect(&theme, &Theme::changed, this, qOverload<>(&QWidget::update));
}

int AttentionChart::heightForWidth(int width) const {
    return m_map.columns == 0 ? width : static_cast<int>(std::min(1.0, static_cast<double>(m_map.rows) / m_map.columns) * (width - kAxis) + kAxis);
}

void AttentionChart::setMap(const ProbedAttention& map, int head) {
    m_map = map;
    m_head = std::clamp(head, 0, static_cast<int>(map.heads.size()) - 1);
    setAccessibleName(tr("Attention of head %1").arg(m_head));
    setAccessibleDescription(tr("%1 queries by %2 keys").arg(map.queries).arg(map.keys));
    updateGeometry();
    update();
}

QRectF AttentionChart::field() const {
    const double room = std::min(width() - kAxis, m_map.rows == 0 ? 0.0 : (height() - kAxis) * m_map.columns / m_map.rows);
    return {kAxis, kAxis, room, m_map.columns == 0 ? 0 : room * m_map.rows / m_map.columns};
}

void AttentionChart::paintEvent(QPaintEvent*) {
    if (m_map.heads.empty()) return;
    QPainter painter(this);
    const std::vector<float>& weights = m_map.heads[static_cast<std::size_t>(m_head)];
    float most = 0;
    for (const float weight : weights)
        if (!std::isnan(weight)) most = std::max(most, weight);
    const QColor low = m_theme.color("sunken"), high = m_theme.color("accent"), none = m_theme.color("badSoft");
    QImage image(m_map.columns, m_map.rows, QImage::Format_RGB32);
    for (int row = 0; row < m_map.rows; ++row)
        for (int column = 0; column < m_map.columns; ++column) {
            const float weight = weights[static_cast<std::size_t>(row * m_map.columns + column)];
            const double part = most > 0 ? std::sqrt(weight / most) : 0; // weak ones are seen, too
            const auto mix = [part](int a, int b) { return static_cast<int>(a + (b - a) * part); };
            image.setPixelColor(column, row, std::isnan(weight) ? none : QColor(mix(low.red(), high.red()), mix(low.green(), high.green()), mix(low.blue(), high.blue())));
        }
    const QRectF field = this->field();
    painter.drawImage(field, image);
    painter.setPen(m_theme.color("border"));
    painter.drawRect(field);
    QFont small = font();
    small.setPointSizeF(7.5);
    painter.setFont(small);
    painter.setPen(m_theme.color("muted"));
    painter.drawText(QRectF(field.left(), 0, field.width(), kAxis), Qt::AlignLeft | Qt::AlignVCenter, tr("keys →"));
    painter.rotate(-90);
    painter.drawText(QRectF(-field.bottom(), 0, field.height(), kAxis), Qt::AlignRight | Qt::AlignVCenter, tr("← queries"));
}

bool AttentionChart::event(QEvent* event) {
    if (event->type() != QEvent::ToolTip || m_map.heads.empty()) return QWidget::event(event);
    const auto* help = static_cast<QHelpEvent*>(event);
    const QRectF field = this->field();
    if (!field.contains(help->pos())) return QWidget::event(event);
    const int column = std::clamp(static_cast<int>((help->pos().x() - field.left()) * m_map.columns / field.width()), 0, m_map.columns - 1);
    const int row = std::clamp(static_cast<int>((help->pos().y() - field.top()) * m_map.rows / field.height()), 0, m_map.rows - 1);
    const float weight = m_map.heads[static_cast<std::size_t>(m_head)][static_cast<std::size_t>(row * m_map.columns + column)];
    const auto begin = [](int part, std::int64_t whole, int parts) { return part * whole / parts; };
    QToolTip::showText(help->globalPos(), std::isnan(weight) ? tr("query %1 sees no key").arg(begin(row, m_map.queries, m_map.rows))
                                                             : tr("query %1, key %2: %3")
                                                                   .arg(begin(row, m_map.queries, m_map.rows)).arg(begin(column, m_map.keys, m_map.columns)).arg(Format::number(weight, 3)), this);
    return true;
}

} // namespace celloom::ui
