#include "ui/editor/minimap.h"

#include "ui/common/theme.h"
#include "ui/editor/graph_view.h"

#include <QAction>
#include <QEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QSettings>

#include <algorithm>

namespace celloom::ui {

namespace {

const QString kSetting = QStringLiteral("canvas/minimap");
constexpr int kWidth = 168, kHeight = 116, kMargin = 14, kPad = 8;

} // namespace

Minimap::Minimap(GraphView* view, Theme& theme, QSettings& settings) : QWidget(view), m_view(view), m_theme(theme), m_action(new QAction(this)) {
    resize(kWidth, kHeight);
    setCursor(Qt::PointingHandCursor);
    setMouseTracking(true);
    m_action->setCheckable(true);
    m_action->setChecked(settings.value(kSetting, true).toBool());
    connect(m_action, &QAction::toggled, this, [this, &settings](bool isWanted) {
        settings.setValue(kSetting, isWanted);
        refresh();
    });
    connect(view, &GraphView::placed, this, [this] {
        m_boxes = {};
        refresh();
    });
    connect(view, &GraphView::sightChanged, this, &Minimap::refresh);
    connect(view, &GraphView::resized, this, &Minimap::refresh);
    connect(&theme, &Theme::changed, this, [this] {
        m_boxes = {};
        update();
    });
    hide();
    setAccessibleName(tr("Minimap"));
    setToolTip(tr("Click to look elsewhere, or drag the frame (M hides it)"));
}

void Minimap::changeEvent(QEvent* event) {
    QWidget::changeEvent(event);
    if (event->type() != QEvent::LanguageChange) return;
    setAccessibleName(tr("Minimap"));
    setToolTip(tr("Click to look elsewhere, or drag the frame (M hides it)"));
}

void Minimap::refresh() {
    move(m_view->width() - width() - kMargin, m_view->height() - height() - kMargin);
    const QRectF whole = m_view->contents();
    if (whole != m_whole) m_boxes = {};
    m_whole = whole;
    if (!whole.isEmpty()) m_scale = std::min((width() - 2.0 * kPad) / whole.width(), (height() - 2.0 * kPad) / whole.height());
    const bool isUseful = m_view->isShown() && !whole.isEmpty() && !m_view->sight().contains(whole);
    setVisible(m_action->isChecked() && isUseful);
    update();
}

QRectF Minimap::onMap(const QRectF& sceneRect) const {
    const QPointF begin((width() - m_whole.width() * m_scale) / 2, (height() - m_whole.height() * m_scale) / 2);
    return {begin + (sceneRect.topLeft() - m_whole.topLeft()) * m_scale, sceneRect.size() * m_scale};
}

void Minimap::paintEvent(QPaintEvent*) {
    QPainter painter(this);
    if (m_boxes.isNull()) {
        const double ratio = devicePixelRatioF();
        m_boxes = QPixmap(size() * ratio);
        m_boxes.setDevicePixelRatio(ratio);
        m_boxes.fill(m_theme.color("surface"));
        QPainter boxes(&m_boxes);
        m_view->eachBox([&](const QRectF& rect, const QColor& color) {
            const QRectF there = onMap(rect);
            boxes.fillRect(QRectF(there.topLeft(), QSizeF(std::max(1.0, there.width()), std::max(1.0, there.height()))), color);
        });
    }
    painter.drawPixmap(0, 0, m_boxes);
    QColor fill = m_theme.color("accent");
    fill.setAlpha(30);
    painter.setPen(QPen(m_theme.color("accent"), 1));
    painter.setBrush(fill);
    painter.drawRect(frame().intersected(QRectF(rect()).adjusted(1, 1, -2, -2)));
    painter.setPen(m_theme.color("borderStrong"));
    painter.setBrush(Qt::NoBrush);
    painter.drawRect(rect().adjusted(0, 0, -1, -1));
}

void Minimap::lookAt(QPointF position) {
    m_view->lookAt(m_whole.topLeft() + (position - onMap(m_whole).topLeft()) / m_scale);
}

QRectF Minimap::frame() const {
    return onMap(m_view->sight());
}

/// On the frame it is taken where it is; elsewhere it comes to the pointer first.
void Minimap::mousePressEvent(QMouseEvent* event) {
    if (event->button() != Qt::LeftButton) return;
    const QRectF before = frame();
    m_grab = before.contains(event->position()) ? event->position() - before.center() : QPointF();
    if (!before.contains(event->position())) lookAt(event->position());
    setCursor(Qt::ClosedHandCursor);
}

void Minimap::mouseMoveEvent(QMouseEvent* event) {
    if (event->buttons().testFlag(Qt::LeftButton)) lookAt(event->position() - m_grab);
    else setCursor(frame().contains(event->position()) ? Qt::OpenHandCursor : Qt::PointingHandCursor);
}

void Minimap::mouseReleaseEvent(QMouseEvent* event) {
    setCursor(frame().contains(event->position()) ? Qt::OpenHandCursor : Qt::PointingHandCursor);
}

} // namespace celloom::ui
