#include "ui/editor/graph_items.h"

#include "ui/common/format.h"
#include "ui/common/theme.h"

#include <QPainter>
#include <QPainterPathStroker>

#include <algorithm>
#include <cmath>

namespace celloom::ui {

namespace {

constexpr double kBoxHeight = 54, kPortHeight = 40, kLeastWidth = 168, kMostWidth = 340;
constexpr double kStripe = 6, kPad = 12;
constexpr double kPortRadius = 4.5, kPortGap = 26;
constexpr double kHitWidth = 10;

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

const char* categoryColor(const std::string& name) {
    const QString category = fromUtf8(name).toLower();
    if (category.contains(QLatin1String("attention"))) return "teal";
    if (category.contains(QLatin1String("norm"))) return "brown";
    if (category.contains(QLatin1String("activation"))) return "pink";
    if (category.contains(QLatin1String("output"))) return "orange";
    if (category.contains(QLatin1String("dense")) || category.contains(QLatin1String("embedding"))) return "violet";
    return "slate";
}

const char* categoryColor(const LevelBox& box) {
    if (box.kind == BoxKind::Composite) return "accent";
    return box.kind == BoxKind::Cell ? categoryColor(box.category) : "slate";
}

// ---- boxes ----

BoxItem::BoxItem(const LevelBox& box, const BoxBadges& badges, Theme& theme, const QFont& font)
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
    const double widest = isPort() ? bold.horizontalAdvance(m_title) + 18 + code.horizontalAdvance(m_shape) : std::max(first, second); // a port has one line
    const double texts = std::clamp(std::ceil(widest + kStripe + 2 * kPad), kLeastWidth, kMostWidth);
    const double ports = kPortGap * static_cast<double>(std::max(box.inputs.size(), box.outputs.size()) + 1);
    m_size = {std::max(texts, ports), isPort() ? kPortHeight : kBoxHeight};
    setCacheMode(QGraphicsItem::DeviceCoordinateCache);
}

QPointF BoxItem::portAt(bool isOutput, std::size_t index) const {
    const auto count = static_cast<double>((isOutput ? m_box.outputs : m_box.inputs).size());
    const double x = m_size.width() * ((static_cast<double>(index) + 1) / (count + 1) - 0.5);
    return {x, isOutput ? m_size.height() / 2 : -m_size.height() / 2};
}

std::optional<BoxItem::Port> BoxItem::portNear(QPointF point, double reach) const {
    std::optional<Port> best;
    double nearest = reach;
    for (const bool isOutput : {false, true})
        for (std::size_t i = 0; i < (isOutput ? m_box.outputs : m_box.inputs).size(); ++i) {
            const QPointF away = portAt(isOutput, i) - point;
            const double distance = std::hypot(away.x(), away.y());
            if (distance > nearest) continue;
            nearest = distance;
            best = {isOutput, i};
        }
    return best;
}

void BoxItem::setChosen(bool isChosen) {
    if (m_isChosen == isChosen) return;
    m_isChosen = isChosen;
    update();
}

void BoxItem::setProblem(bool hasProblem) {
    m_hasProblem = hasProblem;
    update();
}

void BoxItem::setPortLooks(std::vector<PortLook> inputs, std::vector<PortLook> outputs) {
    m_inputLooks = std::move(inputs);
    m_outputLooks = std::move(outputs);
    update();
}

QRectF BoxItem::boundingRect() const {
    return rect().adjusted(-8, -8, 9, 9);
}

void BoxItem::paint(QPainter* painter, const QStyleOptionGraphicsItem*, QWidget*) {
    const QRectF rect = this->rect();
    const QPen border(m_theme.color(m_isChosen ? "accent" : m_hasProblem ? "bad" : "borderStrong"), m_isChosen || m_hasProblem ? 2 : 1);
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
    } else {
        painter->setPen(Qt::NoPen);
        painter->setBrush(m_theme.color(categoryColor(m_box)));
        painter->drawRoundedRect(QRectF(rect.left(), rect.top(), kStripe, rect.height()), 3, 3);
        paintTexts(painter, rect.adjusted(kStripe + kPad, 6, -kPad, -6));
    }
    paintPorts(painter);
}

void BoxItem::paintPorts(QPainter* painter) const {
    for (const bool isOutput : {false, true}) {
        const auto& ports = isOutput ? m_box.outputs : m_box.inputs;
        const auto& looks = isOutput ? m_outputLooks : m_inputLooks;
        for (std::size_t i = 0; i < ports.size(); ++i) {
            const PortLook look = i < looks.size() ? looks[i] : PortLook::Plain;
            const bool isStrange = ports[i].dtype.empty(); // a wire names it, the cell does not
            const char* color = isStrange ? "bad" : look == PortLook::Fits ? "good" : look == PortLook::Unfit ? "borderStrong" : "wire";
            painter->setPen(QPen(m_theme.color(color), look == PortLook::Fits ? 2 : 1.4, ports[i].isOptional ? Qt::DotLine : Qt::SolidLine));
            painter->setBrush(m_theme.color(look == PortLook::Fits ? "good" : "surface"));
            const double radius = look == PortLook::Fits ? kPortRadius + 1.5 : kPortRadius;
            painter->drawEllipse(portAt(isOutput, i), radius, radius);
        }
    }
}

void BoxItem::paintPort(QPainter* painter, const QRectF& rect) const {
    painter->setPen(m_theme.color("text"));
    painter->setFont(sized(m_font, 9.5, true));
    painter->drawText(rect.adjusted(kPad, 0, -kPad, 0), Qt::AlignVCenter | Qt::AlignLeft, m_title);
    painter->setPen(m_theme.color("muted"));
    painter->setFont(mono(8));
    const double room = rect.width() - 2 * kPad - 12 - QFontMetricsF(sized(m_font, 9.5, true)).horizontalAdvance(m_title);
    painter->drawText(rect.adjusted(kPad, 0, -kPad, 0), Qt::AlignVCenter | Qt::AlignRight, QFontMetricsF(mono(8)).elidedText(m_shape, Qt::ElideRight, room));
}

void BoxItem::paintTexts(QPainter* painter, const QRectF& rect) const {
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
    painter->drawText(QRectF(lower.left(), lower.top(), right - lower.left(), lower.height()), Qt::AlignRight | Qt::AlignVCenter, m_type);
}

// ---- wires ----

WireItem::WireItem(std::size_t index, Theme& theme) : m_index(index), m_theme(theme) {
    setZValue(-1);
    applyLook();
}

void WireItem::setChosen(bool isChosen) {
    if (m_isChosen == isChosen) return;
    m_isChosen = isChosen;
    applyLook();
}

void WireItem::setLit(bool isLit) {
    if (m_isLit == isLit) return;
    m_isLit = isLit;
    applyLook();
}

void WireItem::applyLook() {
    setPen(QPen(m_theme.color(m_isChosen || m_isLit ? "accent" : "wire"), m_isChosen || m_isLit ? 2.6 : 1.4));
}

QPainterPath WireItem::shape() const {
    QPainterPathStroker stroker;
    stroker.setWidth(kHitWidth);
    return stroker.createStroke(path());
}

QPainterPath wireCurve(QPointF from, QPointF to, const std::vector<QRectF>& obstacles) {
    const double bend = std::clamp(std::abs(to.y() - from.y()) / 2, 24.0, 120.0);
    QPainterPath straight(from);
    straight.cubicTo(from + QPointF(0, bend), to - QPointF(0, bend), to);
    double right = -1e300, left = 1e300;
    for (const QRectF& obstacle : obstacles)
        if (straight.intersects(obstacle.adjusted(-4, -4, 4, 4))) {
            right = std::max(right, obstacle.right());
            left = std::min(left, obstacle.left());
        }
    if (right < left) return straight;
    const double middle = (from.x() + to.x()) / 2;
    const double x = right - middle <= middle - left ? right + 28 : left - 28; // the shorter way round
    const double third = std::min(std::abs(to.y() - from.y()) / 3, 90.0);
    QPainterPath around(from);
    around.cubicTo(from + QPointF(0, third / 2), {x, from.y() + third / 4}, {x, from.y() + third});
    around.lineTo(x, to.y() - third);
    around.cubicTo({x, to.y() - third / 4}, to - QPointF(0, third / 2), to);
    return around;
}

} // namespace celloom::ui
