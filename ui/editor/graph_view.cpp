#include "ui/editor/graph_view.h"

#include "ui/common/format.h"
#include "ui/common/theme.h"

#include <QFontDatabase>
#include <QGraphicsItem>
#include <QGraphicsScene>
#include <QKeyEvent>
#include <QPainter>
#include <QScrollBar>
#include <QWheelEvent>

#include <algorithm>
#include <cmath>

namespace celloom::ui {

namespace {

constexpr double kBoxHeight = 54, kPortHeight = 40, kLeastWidth = 168, kMostWidth = 340;
constexpr double kStripe = 6, kPad = 12;
constexpr double kLeastZoom = 0.1, kMostZoom = 3;

QFont sized(const QFont& font, double points, bool isBold = false) {
    QFont out = font;
    out.setPointSizeF(points);
    out.setBold(isBold);
    return out;
}

QFont mono(double points) {
    QFont font(QStringLiteral("DejaVu Sans Mono"));
    font.setStyleHint(QFont::Monospace);
    font.setPointSizeF(points);
    return font;
}

} // namespace

const char* categoryColor(const LevelBox& box) {
    if (box.kind == BoxKind::Composite) return "accent";
    if (box.kind != BoxKind::Cell) return "slate";
    const QString category = fromUtf8(box.category).toLower();
    if (category.contains(QLatin1String("attention"))) return "teal";
    if (category.contains(QLatin1String("norm"))) return "brown";
    if (category.contains(QLatin1String("activation"))) return "pink";
    if (category.contains(QLatin1String("output"))) return "orange";
    if (category.contains(QLatin1String("dense")) || category.contains(QLatin1String("embedding"))) return "violet";
    return "slate";
}

/// One box. Draws itself from the level's data.
class BoxItem : public QGraphicsItem {
public:
    BoxItem(const LevelBox& box, const BoxBadges& badges, Theme& theme, const QFont& font)
        : m_box(box), m_badges(badges), m_theme(theme), m_font(font) {
        m_title = fromUtf8(box.name);
        m_type = box.kind == BoxKind::Cell || box.kind == BoxKind::Composite ? fromUtf8(box.type) : QString();
        m_shape = fromUtf8(box.shape);
        if (box.parameters > 0) m_count = Format::shortCount(static_cast<double>(box.parameters));
        if (!box.repeatText.empty()) m_repeat = QStringLiteral("×") + fromUtf8(box.repeatText);
        const QFontMetricsF bold(sized(font, 9.5, true)), plain(sized(font, 8.5)), code(mono(8));
        const double first = bold.horizontalAdvance(m_title) + (m_repeat.isEmpty() ? 0 : bold.horizontalAdvance(m_repeat) + 8) + 18 +
                             plain.horizontalAdvance(m_count);
        double second = code.horizontalAdvance(m_shape) + 12 + plain.horizontalAdvance(m_type);
        for (const Badge& badge : m_badges) second += plain.horizontalAdvance(badge.text) + 14;
        const double width = std::clamp(std::ceil(std::max(first, second) + kStripe + 2 * kPad), kLeastWidth, kMostWidth);
        m_size = {width, isPort() ? kPortHeight : kBoxHeight};
    }

    QSizeF size() const { return m_size; }
    void setChosen(bool isChosen) {
        m_isChosen = isChosen;
        update();
    }
    QRectF boundingRect() const override {
        return QRectF(-m_size.width() / 2, -m_size.height() / 2, m_size.width(), m_size.height()).adjusted(-3, -3, 9, 9);
    }

    void paint(QPainter* painter, const QStyleOptionGraphicsItem*, QWidget*) override {
        const QRectF rect(-m_size.width() / 2, -m_size.height() / 2, m_size.width(), m_size.height());
        const QPen border(m_theme.color(m_isChosen ? "accent" : "borderStrong"), m_isChosen ? 2 : 1);
        if (!m_box.repeatText.empty()) { // more of the same behind it
            painter->setPen(QPen(m_theme.color("borderStrong"), 1));
            painter->setBrush(m_theme.color("sunken"));
            painter->drawRoundedRect(rect.translated(5, 5), 6, 6);
        }
        painter->setPen(border);
        painter->setBrush(m_theme.color("surface"));
        painter->drawRoundedRect(rect, 6, 6);
        if (isPort()) {
            paintPort(painter, rect);
            return;
        }
        painter->setPen(Qt::NoPen);
        painter->setBrush(m_theme.color(categoryColor(m_box)));
        painter->drawRoundedRect(QRectF(rect.left(), rect.top(), kStripe, rect.height()), 3, 3);
        paintTexts(painter, rect.adjusted(kStripe + kPad, 6, -kPad, -6));
    }

private:
    bool isPort() const { return m_box.kind == BoxKind::Input || m_box.kind == BoxKind::Output; }

    void paintPort(QPainter* painter, const QRectF& rect) const {
        painter->setPen(m_theme.color("text"));
        painter->setFont(sized(m_font, 9.5, true));
        painter->drawText(rect.adjusted(kPad, 0, -kPad, 0), Qt::AlignVCenter | Qt::AlignLeft, m_title);
        painter->setPen(m_theme.color("muted"));
        painter->setFont(mono(8));
        painter->drawText(rect.adjusted(kPad, 0, -kPad, 0), Qt::AlignVCenter | Qt::AlignRight, m_shape);
    }

    void paintTexts(QPainter* painter, const QRectF& rect) const {
        const QFont bold = sized(m_font, 9.5, true), plain = sized(m_font, 8.5);
        const QRectF upper(rect.left(), rect.top(), rect.width(), rect.height() / 2),
            lower(rect.left(), rect.center().y(), rect.width(), rect.height() / 2);
        painter->setFont(plain);
        painter->setPen(m_theme.color("muted"));
        painter->drawText(upper, Qt::AlignRight | Qt::AlignVCenter, m_count);
        const double room = upper.width() - QFontMetricsF(plain).horizontalAdvance(m_count) - 12;
        painter->setFont(bold);
        painter->setPen(m_theme.color("text"));
        const QFontMetricsF metrics(bold);
        const double repeatWidth = m_repeat.isEmpty() ? 0 : metrics.horizontalAdvance(m_repeat) + 8;
        const QString title = metrics.elidedText(m_title, Qt::ElideRight, room - repeatWidth);
        painter->drawText(upper, Qt::AlignLeft | Qt::AlignVCenter, title);
        if (!m_repeat.isEmpty()) {
            painter->setPen(m_theme.color("accent"));
            painter->drawText(upper.adjusted(metrics.horizontalAdvance(title) + 8, 0, 0, 0), Qt::AlignLeft | Qt::AlignVCenter, m_repeat);
        }
        painter->setFont(mono(8));
        painter->setPen(m_theme.color("muted"));
        painter->drawText(lower, Qt::AlignLeft | Qt::AlignVCenter, m_shape);
        double right = lower.right();
        painter->setFont(plain);
        for (const Badge& badge : m_badges) {
            const double width = QFontMetricsF(plain).horizontalAdvance(badge.text) + 10;
            const QRectF pill(right - width, lower.center().y() - 8, width, 16);
            painter->setPen(Qt::NoPen);
            painter->setBrush(m_theme.color(badge.isQuiet ? "pressed" : "accentSoft"));
            painter->drawRoundedRect(pill, 8, 8);
            painter->setPen(m_theme.color(badge.isQuiet ? "muted" : "accent"));
            painter->drawText(pill, Qt::AlignCenter, badge.text);
            right -= width + 4;
        }
        painter->setPen(m_theme.color("muted"));
        painter->drawText(QRectF(lower.left(), lower.top(), right - lower.left(), lower.height()), Qt::AlignRight | Qt::AlignVCenter,
                          m_type);
    }

    LevelBox m_box;
    BoxBadges m_badges;
    Theme& m_theme;
    QFont m_font;
    QString m_title, m_type, m_shape, m_count, m_repeat;
    QSizeF m_size;
    bool m_isChosen = false;
};

GraphView::GraphView(Theme& theme, QWidget* parent) : QGraphicsView(parent), m_theme(theme) {
    setScene(new QGraphicsScene(this));
    setRenderHints(QPainter::Antialiasing | QPainter::TextAntialiasing);
    setDragMode(QGraphicsView::ScrollHandDrag);
    setTransformationAnchor(QGraphicsView::AnchorUnderMouse);
    setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    setVerticalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    setFocusPolicy(Qt::StrongFocus);
    viewport()->setCursor(Qt::ArrowCursor);
    connect(&theme, &Theme::changed, this, [this] {
        for (QGraphicsPathItem* wire : m_wires) wire->setPen(QPen(m_theme.color("wire"), 1.4));
        resetCachedContent();
        viewport()->update();
        scene()->update();
    });
}

void GraphView::setLevel(const ModelLevel& level, const std::vector<BoxBadges>& badges) {
    CELLOOM_CHECK(badges.size() == level.boxes.size());
    scene()->clear();
    m_items.clear();
    m_wires.clear();
    m_chosen.reset();
    m_level = level;
    for (std::size_t i = 0; i < level.boxes.size(); ++i) m_items.push_back(new BoxItem(level.boxes[i], badges[i], m_theme, font()));
    for (BoxItem* item : m_items) {
        item->setVisible(false);
        scene()->addItem(item);
    }
}

LayoutInput GraphView::layoutInput() const {
    LayoutInput input;
    for (const BoxItem* item : m_items) input.boxes.push_back(item->size());
    for (const LevelWire& wire : m_level.wires) input.arrows.push_back({static_cast<int>(wire.from), static_cast<int>(wire.to)});
    return input;
}

void GraphView::place(const LayoutResult& layout) {
    if (layout.centers.size() != m_items.size()) return; // of a level that is no longer shown
    for (QGraphicsPathItem* wire : m_wires) delete wire;
    m_wires.clear();
    for (const QPainterPath& curve : layout.curves) {
        auto* wire = scene()->addPath(curve, QPen(m_theme.color("wire"), 1.4));
        wire->setZValue(-1);
        m_wires.push_back(wire);
    }
    for (std::size_t i = 0; i < m_items.size(); ++i) {
        m_items[i]->setPos(layout.centers[i]);
        m_items[i]->setVisible(true);
    }
    const double margin = 400; // room to pan
    scene()->setSceneRect(layout.bounds.adjusted(-margin, -margin, margin, margin));
    fit();
}

void GraphView::fit() {
    QRectF bounds;
    for (const BoxItem* item : m_items) bounds |= item->sceneBoundingRect();
    for (const QGraphicsPathItem* wire : m_wires) bounds |= wire->sceneBoundingRect();
    if (bounds.isEmpty()) return;
    resetTransform();
    const QSizeF room = viewport()->size() - QSize(48, 48);
    const double factor = std::clamp(std::min(room.width() / bounds.width(), room.height() / bounds.height()), kLeastZoom, 1.0);
    scale(factor, factor);
    centerOn(bounds.center());
    Q_EMIT zoomChanged();
}

void GraphView::zoomBy(double factor) {
    const double now = transform().m11(), next = std::clamp(now * factor, kLeastZoom, kMostZoom);
    scale(next / now, next / now);
    Q_EMIT zoomChanged();
}

int GraphView::zoomPercent() const {
    return static_cast<int>(std::lround(transform().m11() * 100));
}

void GraphView::choose(std::optional<std::size_t> box) {
    if (m_chosen) m_items[*m_chosen]->setChosen(false);
    m_chosen = box;
    if (m_chosen) {
        m_items[*m_chosen]->setChosen(true);
        ensureVisible(m_items[*m_chosen], 30, 30);
    }
    Q_EMIT boxChosen(m_chosen);
}

std::optional<std::size_t> GraphView::boxAt(const QPoint& position) const {
    for (QGraphicsItem* item : items(position)) {
        const auto found = std::find(m_items.begin(), m_items.end(), item);
        if (found != m_items.end()) return static_cast<std::size_t>(found - m_items.begin());
    }
    return std::nullopt;
}

void GraphView::chooseNext(int direction) {
    if (m_items.empty()) return;
    const int count = static_cast<int>(m_items.size());
    const int next = m_chosen ? (static_cast<int>(*m_chosen) + direction + count) % count : direction > 0 ? 0 : count - 1;
    choose(static_cast<std::size_t>(next));
}

void GraphView::wheelEvent(QWheelEvent* event) {
    if (event->angleDelta().y() != 0) zoomBy(std::pow(1.0015, event->angleDelta().y()));
    event->accept();
}

void GraphView::keyPressEvent(QKeyEvent* event) {
    switch (event->key()) {
    case Qt::Key_Down:
    case Qt::Key_Right:
        chooseNext(1);
        return;
    case Qt::Key_Up:
    case Qt::Key_Left:
        chooseNext(-1);
        return;
    case Qt::Key_Return:
    case Qt::Key_Enter:
        if (m_chosen) Q_EMIT stepInRequested(*m_chosen);
        return;
    case Qt::Key_Backspace:
    case Qt::Key_Escape:
        Q_EMIT stepOutRequested();
        return;
    case Qt::Key_Plus:
    case Qt::Key_Equal:
        zoomBy(1.2);
        return;
    case Qt::Key_Minus:
        zoomBy(1 / 1.2);
        return;
    case Qt::Key_0:
        fit();
        return;
    default:
        QGraphicsView::keyPressEvent(event);
    }
}

void GraphView::mousePressEvent(QMouseEvent* event) {
    if (event->button() == Qt::LeftButton) choose(boxAt(event->pos()));
    QGraphicsView::mousePressEvent(event);
}

void GraphView::mouseDoubleClickEvent(QMouseEvent* event) {
    if (const auto box = boxAt(event->pos())) Q_EMIT stepInRequested(*box);
}

void GraphView::drawBackground(QPainter* painter, const QRectF& rect) {
    painter->fillRect(rect, m_theme.color("window"));
    if (transform().m11() < 0.5) return;
    constexpr double gap = 24;
    painter->setPen(QPen(m_theme.color("border"), 1.5));
    QList<QPointF> dots;
    for (double x = std::floor(rect.left() / gap) * gap; x < rect.right(); x += gap) {
        for (double y = std::floor(rect.top() / gap) * gap; y < rect.bottom(); y += gap) dots.append({x, y});
    }
    painter->drawPoints(dots.constData(), static_cast<int>(dots.size()));
}

} // namespace celloom::ui
