#include "ui/common/plot.h"

#include "models/base/result.h"
#include "ui/common/decimate.h"
#include "ui/common/theme.h"

#include <QChart>
#include <QChartView>
#include <QEvent>
#include <QGraphicsLayout>
#include <QLineSeries>
#include <QLogValueAxis>
#include <QMouseEvent>
#include <QScatterSeries>
#include <QTimer>
#include <QVBoxLayout>
#include <QValueAxis>
#include <QWheelEvent>

#include <algorithm>
#include <cmath>
#include <limits>

namespace celloom::ui {

double niceStep(double span, int most) {
    if (!(span > 0) || !std::isfinite(span) || most < 1) return 1;
    const double raw = span / most;
    const double power = std::pow(10.0, std::floor(std::log10(raw)));
    for (double factor : {1.0, 2.0, 5.0, 10.0}) {
        if (factor * power >= raw * (1 - 1e-9)) return factor * power;
    }
    return 10 * power;
}

struct Plot::Private {
    Plot* q;
    Theme& theme;
    std::vector<PlotLine> lines;
    std::vector<PlotData> data;
    std::vector<QLineSeries*> series;
    QScatterSeries* marks = nullptr;
    QChart* chart = nullptr;
    QChartView* canvas = nullptr;
    QValueAxis* xAxis = nullptr;
    QAbstractAxis* yAxis = nullptr;
    bool isLogarithmic = false;
    QString xTitle, xFormat = QStringLiteral("%g"), yFormat = QStringLiteral("%.3g");
    std::optional<double> floor;
    std::optional<std::pair<double, double>> view;
    QSizeF drawnSize; // of the plot's area, at the last redraw
    std::optional<QPointF> dragFrom;
    std::pair<double, double> dragView;

    std::vector<QXYSeries*> allSeries() const {
        std::vector<QXYSeries*> all(series.begin(), series.end());
        all.push_back(marks);
        return all;
    }

    void styleAxis(QAbstractAxis* axis) {
        QFont font = q->font();
        font.setPointSizeF(8);
        axis->setLabelsFont(font);
        axis->setTitleFont(font);
        axis->setLabelsColor(theme.color("muted"));
        axis->setTitleBrush(theme.color("muted"));
        axis->setGridLinePen(QPen(theme.color("grid"), 1));
        axis->setMinorGridLineVisible(false);
        axis->setLinePen(QPen(theme.color("grid"), 1));
    }

    void style() {
        for (std::size_t i = 0; i < lines.size(); ++i) {
            QColor color = theme.color(lines[i].color);
            color.setAlphaF(static_cast<float>(lines[i].opacity));
            QPen pen(color, lines[i].width, lines[i].isPointsOnly ? Qt::NoPen : lines[i].isDashed ? Qt::DashLine : Qt::SolidLine, Qt::RoundCap, Qt::RoundJoin);
            series[i]->setPen(pen);
            series[i]->setPointsVisible(lines[i].hasPoints || lines[i].isPointsOnly);
            series[i]->setMarkerSize(lines[i].isPointsOnly ? 1.8 : 2.5);
        }
        marks->setColor(theme.color("bad"));
        marks->setBorderColor(theme.color("surface"));
        styleAxis(xAxis);
        styleAxis(yAxis);
        xAxis->setGridLineVisible(false);
    }

    void makeYAxis() {
        if (yAxis) {
            chart->removeAxis(yAxis);
            delete yAxis;
        }
        if (isLogarithmic) {
            auto* axis = new QLogValueAxis;
            axis->setBase(10);
            yAxis = axis;
        } else {
            auto* axis = new QValueAxis;
            axis->setTickType(QValueAxis::TicksDynamic);
            yAxis = axis;
        }
        chart->addAxis(yAxis, Qt::AlignLeft);
        for (QXYSeries* one : allSeries()) one->attachAxis(yAxis);
        style();
    }

    std::pair<double, double> extentX() const {
        double least = std::numeric_limits<double>::infinity(), greatest = -least;
        for (const PlotData& one : data) {
            if (!one.x || one.x->empty() || !one.isShown) continue;
            least = std::min(least, one.x->front());
            greatest = std::max(greatest, one.x->back());
        }
        if (!(least <= greatest)) return {0, 1};
        if (least == greatest) return {least, least + 1};
        return {least, greatest};
    }

    /// In the order in which there are never many ticks: a fine step on a wide range is thousands of labels.
    static void setRange(QValueAxis& axis, double low, double high, double step) {
        axis.setTickAnchor(std::floor(low / step) * step); // Qt Charts counts ticks from the anchor on
        if (step > axis.tickInterval()) axis.setTickInterval(step);
        axis.setRange(low, high);
        if (step < axis.tickInterval()) axis.setTickInterval(step);
    }

    void setYRange(double least, double greatest) {
        if (!(least <= greatest)) { // nothing to show
            least = isLogarithmic ? 1 : 0;
            greatest = isLogarithmic ? 10 : 1;
        }
        if (isLogarithmic) {
            const double low = std::pow(10, std::floor(std::log10(least) * 10 - 0.2) / 10),
                         high = std::pow(10, std::ceil(std::log10(greatest) * 10 + 0.2) / 10);
            yAxis->setRange(low, high);
            static_cast<QLogValueAxis*>(yAxis)->setLabelFormat(yFormat);
            return;
        }
        if (floor) least = std::min(*floor, least);
        // Values that differ only by rounding are one value: Qt Charts takes no range that narrow.
        const bool isFlat = greatest - least <= 1e-9 * std::max(std::abs(least), std::abs(greatest));
        const double pad = isFlat ? std::max(std::abs(greatest) * 0.05, 1e-12) : (greatest - least) * 0.04;
        const double low = floor ? least : least - pad, high = greatest + pad;
        const int most = std::clamp(static_cast<int>(chart->plotArea().height() / 22), 3, 6);
        auto* axis = static_cast<QValueAxis*>(yAxis);
        const double step = niceStep(high - low, most);
        setRange(*axis, low, high, step);
        // As many digits as neighbouring ticks need to differ.
        const double size = std::max(std::abs(low), std::abs(high));
        if (yFormat == QLatin1String("auto")) {
            const bool isTiny = size < 1e-2 || size >= 1e6;
            const int decimals = std::clamp(static_cast<int>(std::ceil(-std::log10(step) - 1e-9)), 0, 6);
            axis->setLabelFormat(isTiny ? QStringLiteral("%.3g") : QStringLiteral("%.%1f").arg(decimals));
        } else {
            axis->setLabelFormat(yFormat);
        }
    }

    void redraw() {
        drawnSize = chart->plotArea().size();
        const auto [from, to] = view ? *view : extentX();
        const int columns = std::max(50, static_cast<int>(chart->plotArea().width() * q->devicePixelRatioF()));
        double least = std::numeric_limits<double>::infinity(), greatest = -least;
        std::vector<double> bad;
        for (std::size_t i = 0; i < data.size(); ++i) {
            QList<QPointF> points;
            if (data[i].x && data[i].isShown) {
                const Decimated thin = decimate(*data[i].x, *data[i].y, from, to, columns);
                points.reserve(static_cast<qsizetype>(thin.points.size()));
                for (const QPointF& point : thin.points) {
                    if (isLogarithmic && point.y() <= 0) continue; // has no place on this axis
                    points.append(point);
                    least = std::min(least, point.y());
                    greatest = std::max(greatest, point.y());
                }
                if (lines[i].marksNotFinite) bad.insert(bad.end(), thin.notFinite.begin(), thin.notFinite.end());
            }
            series[i]->replace(points);
        }
        setYRange(least, greatest);
        const bool hasData = least <= greatest || !bad.empty();
        xAxis->setLabelsVisible(hasData);
        xAxis->setTitleVisible(hasData && !xAxis->titleText().isEmpty());
        yAxis->setLabelsVisible(hasData);
        yAxis->setGridLineVisible(hasData);
        const int most = std::clamp(static_cast<int>(chart->plotArea().width() / 50), 2, 10);
        // A run that diverged ends with its mark: room for the right half of it.
        const double room = !view && !bad.empty() ? 0.02 * (to - from) : 0;
        setRange(*xAxis, from, to + room, niceStep(to - from, most));
        QList<QPointF> markPoints;
        for (double x : bad) markPoints.append({x, justAboveBottom()});
        marks->replace(markPoints);
    }

    /// Where the marks stand whole, whatever the axis.
    double justAboveBottom() const {
        constexpr double part = 0.05;
        if (!isLogarithmic) {
            const auto* axis = static_cast<const QValueAxis*>(yAxis);
            return axis->min() + part * (axis->max() - axis->min());
        }
        const auto* axis = static_cast<const QLogValueAxis*>(yAxis);
        return axis->min() * std::pow(axis->max() / axis->min(), part);
    }

    void zoom(double factor, double around) {
        const auto [from, to] = view ? *view : extentX();
        const auto [least, greatest] = extentX();
        const double low = std::max(least, around - (around - from) * factor), high = std::min(greatest, around + (to - around) * factor);
        if (high - low >= (greatest - least) * (1 - 1e-9)) {
            q->setView(std::nullopt);
        } else if (high - low > (greatest - least) * 1e-6) {
            q->setView(std::pair{low, high});
        }
        Q_EMIT q->viewChanged();
    }

    double valueAt(const QPointF& position) const {
        return chart->mapToValue(chart->mapFromScene(canvas->mapToScene(position.toPoint())), marks).x();
    }

    void drag(const QPointF& position) {
        const double width = std::max(1.0, chart->plotArea().width());
        const auto [least, greatest] = extentX();
        double shift = (dragFrom->x() - position.x()) / width * (dragView.second - dragView.first);
        shift = std::clamp(shift, least - dragView.first, greatest - dragView.second);
        q->setView(std::pair{dragView.first + shift, dragView.second + shift});
        Q_EMIT q->viewChanged();
    }
};

Plot::Plot(Theme& theme, std::vector<PlotLine> lines, QWidget* parent) : QWidget(parent), m(new Private{this, theme, std::move(lines)}) {
    m->data.resize(m->lines.size());
    m->chart = new QChart;
    m->chart->legend()->hide();
    m->chart->setBackgroundVisible(false);
    m->chart->setPlotAreaBackgroundVisible(false);
    m->chart->setMargins({0, 0, 4, 0});
    m->chart->layout()->setContentsMargins(0, 0, 0, 0);
    m->xAxis = new QValueAxis;
    m->xAxis->setTickType(QValueAxis::TicksDynamic);
    m->chart->addAxis(m->xAxis, Qt::AlignBottom);
    for (std::size_t i = 0; i < m->lines.size(); ++i) {
        auto* series = new QLineSeries;
        m->chart->addSeries(series);
        series->attachAxis(m->xAxis);
        m->series.push_back(series);
    }
    m->marks = new QScatterSeries;
    m->marks->setMarkerShape(QScatterSeries::MarkerShapeTriangle);
    m->marks->setMarkerSize(11);
    m->chart->addSeries(m->marks);
    m->marks->attachAxis(m->xAxis);
    m->makeYAxis();

    m->canvas = new QChartView(m->chart, this);
    m->canvas->setRenderHint(QPainter::Antialiasing);
    m->canvas->setBackgroundBrush(Qt::NoBrush);
    m->canvas->setFrameShape(QFrame::NoFrame);
    m->canvas->setFocusPolicy(Qt::NoFocus);
    m->canvas->viewport()->setMouseTracking(true);
    m->canvas->viewport()->installEventFilter(this);
    m->canvas->viewport()->setAutoFillBackground(false);
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->addWidget(m->canvas);
    m->canvas->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Ignored); // as large as there is room for, whatever a view would like
    setMinimumSize(120, 80);
    connect(&theme, &Theme::changed, this, [this] { m->style(); });
    // Drawing changes the labels and labels change the plot's area: small changes are let pass, so that this ends.
    connect(
        m->chart, &QChart::plotAreaChanged, this,
        [this](const QRectF& area) {
            if (std::abs(area.height() - m->drawnSize.height()) > 4 || std::abs(area.width() - m->drawnSize.width()) > 24) redraw();
        },
        Qt::QueuedConnection);
}

Plot::~Plot() = default;

void Plot::setData(std::size_t line, PlotData data) {
    CELLOOM_CHECK(line < m->data.size());
    m->data[line] = data;
}

void Plot::setLogarithmic(bool isLogarithmic) {
    if (m->isLogarithmic == isLogarithmic) return;
    m->isLogarithmic = isLogarithmic;
    m->makeYAxis();
    redraw();
}

void Plot::setXTitle(const QString& title) {
    m->xAxis->setTitleText(title);
    redraw();
}

void Plot::setFormats(const QString& x, const QString& y) {
    m->xFormat = x;
    m->yFormat = y;
    m->xAxis->setLabelFormat(x);
    redraw();
}

void Plot::setFloor(std::optional<double> floor) {
    m->floor = floor;
}

void Plot::setView(std::optional<std::pair<double, double>> view) {
    m->view = view;
    redraw();
}

std::optional<std::pair<double, double>> Plot::view() const {
    return m->view;
}

void Plot::redraw() {
    m->redraw();
}

void Plot::resizeEvent(QResizeEvent* event) {
    QWidget::resizeEvent(event);
    QTimer::singleShot(0, this, [this] { redraw(); });
}

bool Plot::eventFilter(QObject* watched, QEvent* event) {
    switch (event->type()) {
    case QEvent::Wheel: {
        auto* wheel = static_cast<QWheelEvent*>(event);
        if (!(wheel->modifiers() & Qt::ControlModifier) && !m->view) break; // the page scrolls until one zooms on purpose
        if (wheel->angleDelta().y() == 0) break;
        m->zoom(wheel->angleDelta().y() > 0 ? 0.8 : 1.25, m->valueAt(wheel->position()));
        return true;
    }
    case QEvent::MouseButtonPress: {
        auto* mouse = static_cast<QMouseEvent*>(event);
        if (mouse->button() == Qt::LeftButton && m->view) {
            m->dragFrom = mouse->position();
            m->dragView = *m->view;
        }
        break;
    }
    case QEvent::MouseMove: {
        auto* mouse = static_cast<QMouseEvent*>(event);
        if (m->dragFrom) m->drag(mouse->position());
        Q_EMIT hovered(m->valueAt(mouse->position()));
        break;
    }
    case QEvent::MouseButtonRelease:
        m->dragFrom.reset();
        break;
    case QEvent::MouseButtonDblClick:
        setView(std::nullopt);
        Q_EMIT viewChanged();
        return true;
    case QEvent::Leave:
        Q_EMIT hovered(std::nan(""));
        break;
    default:
        break;
    }
    return QWidget::eventFilter(watched, event);
}

} // namespace celloom::ui
