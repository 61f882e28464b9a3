#include "ui/editor/graph_items.h"

#include "ui/common/format.h"
#include "ui/common/theme.h"
#include "ui/editor/wire_routing.h"

#include <QPainter>
#include <QStyleOptionGraphicsItem>

#include <algorithm>
#include <cmath>
#include <cstring>

namespace celloom::ui {

namespace {

constexpr double kBoxHeight = 54, kPortHeight = 40, kLeastWidth = 168, kMostWidth = 340;
constexpr double kStripe = 6, kPad = 12;
constexpr double kPlainStripe = 10; // seen from afar
constexpr double kRing = 4;         // from the edge of a box to the mark that it is chosen
constexpr double kPortRadius = 4.5, kPortGap = 26;
constexpr double kWireMargin = 3;   // around a wire's curve: its width

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

/// Device pixels, whatever the scale.
QPen cosmetic(const QColor& color, double width) {
    QPen pen(color, width);
    pen.setCosmetic(true);
    return pen;
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

// ---- style ----

CanvasStyle::CanvasStyle(Theme& theme, const QFont& font) : bold(sized(font, 9.5, true)), plain(sized(font, 8.5)), code(mono(8)), note(mono(7)), m_theme(theme) {
    refresh();
}

QColor CanvasStyle::color(const char* name) const {
    if (m_isForPaper)
        for (const NamedColor& named : namedColors())
            if (std::strcmp(named.name, name) == 0) return named.light;
    return m_theme.color(name);
}

void CanvasStyle::setForPaper() {
    m_isForPaper = true;
    refresh();
}

void CanvasStyle::refresh() {
    window = color("window");
    surface = color("surface");
    sunken = color("sunken");
    border = color("borderStrong");
    text = color("text");
    muted = color("muted");
    accent = color("accent");
    accentSoft = color("accentSoft");
    pressed = color("pressed");
    bad = color("bad");
    badSoft = color("badSoft");
    good = color("good");
    wire = color("wire");
    m_categories.clear();
}

QColor CanvasStyle::category(const LevelBox& box) const {
    const QByteArray name(categoryColor(box));
    auto found = m_categories.find(name);
    if (found == m_categories.end()) found = m_categories.insert(name, color(name.constData()));
    return *found;
}

double CanvasStyle::Text::width(const QString& text) const {
    if (text.isEmpty()) return 0;
    auto found = m_widths.find(text);
    if (found == m_widths.end()) found = m_widths.insert(text, m_metrics.horizontalAdvance(text));
    return *found;
}

QString CanvasStyle::Text::elided(const QString& text, double room) const {
    return width(text) <= room ? text : m_metrics.elidedText(text, Qt::ElideRight, room);
}

// ---- boxes ----

BoxItem::BoxItem(const LevelBox& box, const BoxBadges& badges, const CanvasStyle& style) : m_box(box), m_badges(badges), m_style(style) {
    m_title = fromUtf8(box.name);
    m_type = box.kind == BoxKind::Cell || box.kind == BoxKind::Composite ? fromUtf8(box.type) : QString();
    m_shape = fromUtf8(box.shape);
    if (box.parameters > 0) m_count = Format::shortCount(static_cast<double>(box.parameters));
    if (!box.repeatText.empty()) m_repeat = QStringLiteral("×") + fromUtf8(box.repeatText);
    const double first = style.bold.width(m_title) + (m_repeat.isEmpty() ? 0 : style.bold.width(m_repeat) + 8) + 18 + style.plain.width(m_count);
    double second = style.code.width(m_shape) + 12 + style.plain.width(m_type);
    for (const Badge& badge : m_badges) second += style.plain.width(badge.text) + 14;
    const double widest = isPort() ? style.bold.width(m_title) + 18 + style.code.width(m_shape) : std::max(first, second); // a port has one line
    const double texts = std::clamp(std::ceil(widest + kStripe + 2 * kPad), kLeastWidth, kMostWidth);
    const double ports = kPortGap * static_cast<double>(std::max(box.inputs.size(), box.outputs.size()) + 1);
    m_size = {std::max(texts, ports), isPort() ? kPortHeight : kBoxHeight};
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

void BoxItem::setFailure(const QString& failure) {
    if (m_failure == failure) return;
    m_failure = failure;
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
    const double scale = QStyleOptionGraphicsItem::levelOfDetailFromTransform(painter->worldTransform());
    const bool isDetailed = scale >= CanvasStyle::kDetail;
    painter->setRenderHint(QPainter::Antialiasing, isDetailed);
    if (!isDetailed) {
        paintPlainly(painter, scale);
        return;
    }
    const QRectF rect = this->rect();
    if (!m_box.repeatText.empty()) { // more of the same behind it
        painter->setPen(QPen(m_style.border, 1));
        painter->setBrush(m_style.sunken);
        painter->drawRoundedRect(rect.translated(5, 5), 6, 6);
    }
    if (m_isChosen && isMarked()) { // the edge says that something is wrong, a ring around it that it is chosen
        painter->setPen(QPen(m_style.accent, 2));
        painter->setBrush(Qt::NoBrush);
        painter->drawRoundedRect(rect.adjusted(-kRing, -kRing, kRing, kRing), 6 + kRing, 6 + kRing);
    }
    painter->setPen(QPen(isMarked() ? m_style.bad : m_isChosen ? m_style.accent : m_style.border, m_isChosen || isMarked() ? 2 : 1));
    painter->setBrush(m_style.surface);
    painter->drawRoundedRect(rect, 6, 6);
    if (isPort()) {
        paintPort(painter, rect);
    } else {
        painter->setPen(Qt::NoPen);
        painter->setBrush(m_style.category(m_box));
        painter->drawRoundedRect(QRectF(rect.left(), rect.top(), kStripe, rect.height()), 3, 3);
        paintTexts(painter, rect.adjusted(kStripe + kPad, 6, -kPad, -6));
    }
    paintPorts(painter);
    if (!m_failure.isEmpty()) paintFailure(painter);
}

/// A mark at the upper right corner.
void BoxItem::paintFailure(QPainter* painter) const {
    const QRectF mark(rect().right() - 9, rect().top() - 8, 17, 17);
    painter->setPen(QPen(m_style.surface, 1.5));
    painter->setBrush(m_style.bad);
    painter->drawEllipse(mark);
    painter->setPen(m_style.surface);
    painter->setFont(m_style.bold.font());
    painter->drawText(mark, Qt::AlignCenter, QStringLiteral("!"));
}

/// From afar: where it is, of what kind, chosen or wrong.
void BoxItem::paintPlainly(QPainter* painter, double scale) const {
    const QRectF rect = this->rect();
    painter->fillRect(rect, m_isChosen ? m_style.accentSoft : m_style.surface);
    if (!isPort()) painter->fillRect(QRectF(rect.left(), rect.top(), std::max(kPlainStripe, 3 / scale), rect.height()), m_style.category(m_box));
    painter->setPen(cosmetic(isMarked() ? m_style.bad : m_isChosen ? m_style.accent : m_style.border, m_isChosen || isMarked() ? 2 : 1));
    painter->setBrush(Qt::NoBrush);
    painter->drawRect(rect);
    if (!m_inputLooks.empty() || !m_outputLooks.empty()) paintPorts(painter);
}

void BoxItem::paintPorts(QPainter* painter) const {
    for (const bool isOutput : {false, true}) {
        const auto& ports = isOutput ? m_box.outputs : m_box.inputs;
        const auto& looks = isOutput ? m_outputLooks : m_inputLooks;
        for (std::size_t i = 0; i < ports.size(); ++i) {
            const PortLook look = i < looks.size() ? looks[i] : PortLook::Plain;
            const bool isStrange = ports[i].dtype.empty(); // a wire names it, the cell does not
            const bool isFit = look == PortLook::Fits;
            const QColor& color = isStrange ? m_style.bad : isFit ? m_style.good : look == PortLook::Unfit ? m_style.border : m_style.wire;
            painter->setPen(QPen(color, isFit ? 2 : 1.4, ports[i].isOptional ? Qt::DotLine : Qt::SolidLine));
            painter->setBrush(isFit ? m_style.good : m_style.surface);
            const double radius = isFit ? kPortRadius + 1.5 : kPortRadius;
            painter->drawEllipse(portAt(isOutput, i), radius, radius);
        }
    }
}

void BoxItem::paintPort(QPainter* painter, const QRectF& rect) const {
    painter->setPen(m_style.text);
    painter->setFont(m_style.bold.font());
    painter->drawText(rect.adjusted(kPad, 0, -kPad, 0), Qt::AlignVCenter | Qt::AlignLeft, m_title);
    painter->setPen(m_style.muted);
    painter->setFont(m_style.code.font());
    const double room = rect.width() - 2 * kPad - 12 - m_style.bold.width(m_title);
    painter->drawText(rect.adjusted(kPad, 0, -kPad, 0), Qt::AlignVCenter | Qt::AlignRight, m_style.code.elided(m_shape, room));
}

void BoxItem::paintTexts(QPainter* painter, const QRectF& rect) const {
    const QRectF upper(rect.left(), rect.top(), rect.width(), rect.height() / 2), lower(rect.left(), rect.center().y(), rect.width(), rect.height() / 2);
    painter->setFont(m_style.plain.font());
    painter->setPen(m_style.muted);
    painter->drawText(upper, Qt::AlignRight | Qt::AlignVCenter, m_count);
    const double room = upper.width() - m_style.plain.width(m_count) - 12;
    painter->setFont(m_style.bold.font());
    painter->setPen(m_style.text);
    const double repeatWidth = m_repeat.isEmpty() ? 0 : m_style.bold.width(m_repeat) + 8;
    const QString title = m_style.bold.elided(m_title, room - repeatWidth);
    painter->drawText(upper, Qt::AlignLeft | Qt::AlignVCenter, title);
    if (!m_repeat.isEmpty()) {
        painter->setPen(m_style.accent);
        painter->drawText(upper.adjusted(m_style.bold.width(title) + 8, 0, 0, 0), Qt::AlignLeft | Qt::AlignVCenter, m_repeat);
    }
    painter->setFont(m_style.code.font());
    painter->setPen(m_style.muted);
    painter->drawText(lower, Qt::AlignLeft | Qt::AlignVCenter, m_shape);
    double right = lower.right();
    painter->setFont(m_style.plain.font());
    for (const Badge& badge : m_badges) {
        const double width = m_style.plain.width(badge.text) + 10;
        const QRectF pill(right - width, lower.center().y() - 8, width, 16);
        painter->setPen(Qt::NoPen);
        painter->setBrush(badge.isQuiet ? m_style.pressed : m_style.accentSoft);
        painter->drawRoundedRect(pill, 8, 8);
        painter->setPen(badge.isQuiet ? m_style.muted : m_style.accent);
        painter->drawText(pill, Qt::AlignCenter, badge.text);
        right -= width + 4;
    }
    painter->setPen(m_style.muted);
    painter->drawText(QRectF(lower.left(), lower.top(), right - lower.left(), lower.height()), Qt::AlignRight | Qt::AlignVCenter, m_type);
}

// ---- wires ----

WireLayer::WireLayer(const CanvasStyle& style) : m_style(style) {
    setZValue(-1);
    setFlag(QGraphicsItem::ItemUsesExtendedStyleOption); // what is to be drawn anew
}

WireLayer::Wire WireLayer::wireOf(QPainterPath path) {
    Wire wire{std::move(path), {}, {}};
    wire.line = straightened(wire.path);
    wire.bounds = wire.line.boundingRect().adjusted(-kWireMargin, -kWireMargin, kWireMargin, kWireMargin);
    return wire;
}

void WireLayer::setPaths(std::vector<QPainterPath> paths) {
    m_wires.clear();
    m_wires.reserve(paths.size());
    for (QPainterPath& path : paths) m_wires.push_back(wireOf(std::move(path)));
    updateBounds();
    setNotes(m_notes.size() == m_wires.size() ? std::move(m_notes) : std::vector<WireNote>());
}

void WireLayer::setPath(std::size_t wire, QPainterPath path) {
    update(m_wires[wire].bounds);
    m_wires[wire] = wireOf(std::move(path));
    const QRectF& bounds = m_wires[wire].bounds;
    if (!m_bounds.contains(bounds)) {
        prepareGeometryChange();
        m_bounds |= bounds;
    }
    update(bounds);
    if (wire < m_notes.size()) placeNote(wire);
}

void WireLayer::setNotes(std::vector<WireNote> notes) {
    CELLOOM_CHECK(notes.empty() || notes.size() == m_wires.size());
    m_notes = std::move(notes);
    placeNotes();
}

/// The chosen wire's own first, then those that say that something is wrong.
void WireLayer::placeNotes() {
    m_noteRects.assign(m_notes.size(), {});
    if (m_chosen && *m_chosen < m_notes.size()) placeNote(*m_chosen);
    for (const bool isBad : {true, false})
        for (std::size_t i = 0; i < m_notes.size(); ++i)
            if (m_notes[i].isBad == isBad && i != m_chosen) placeNote(i);
    update();
}

QRectF WireLayer::noteRect(std::size_t wire, double part) const {
    const WireNote& note = m_notes[wire];
    const double line = m_style.note.height();
    const QSizeF size(std::max(m_style.note.width(note.first), m_style.note.width(note.second)) + 10, (note.first.isEmpty() || note.second.isEmpty() ? 1 : 2) * line + 4);
    return {m_wires[wire].path.pointAtPercent(part) - QPointF(size.width() / 2, size.height() / 2), size};
}

/// In the middle of the wire, or a little away from it where another note lies there.
void WireLayer::placeNote(std::size_t wire) {
    const WireNote& note = m_notes[wire];
    update(m_noteRects[wire]);
    m_noteRects[wire] = {};
    if (note.first.isEmpty() && note.second.isEmpty()) return;
    const bool isKept = wire == m_chosen;
    for (const double part : {0.5, 0.38, 0.62, 0.26, 0.74}) {
        const QRectF rect = noteRect(wire, part);
        if (!isKept && std::any_of(m_noteRects.begin(), m_noteRects.end(), [&](const QRectF& other) { return other.intersects(rect); })) continue;
        m_noteRects[wire] = rect;
        break;
    }
    if (m_noteRects[wire].isEmpty()) return;
    if (!m_bounds.contains(m_noteRects[wire])) {
        prepareGeometryChange();
        m_bounds |= m_noteRects[wire];
    }
    update(m_noteRects[wire]);
}

void WireLayer::setChosen(std::optional<std::size_t> wire) {
    if (wire == m_chosen) return;
    change(m_chosen, wire);
    if (!m_notes.empty()) placeNotes();
}

void WireLayer::setLit(std::optional<std::size_t> wire, bool isRefused) {
    change(m_lit, wire);
    m_isRefused = isRefused;
}

void WireLayer::paintNote(QPainter* painter, std::size_t wire) const {
    const WireNote& note = m_notes[wire];
    QColor back = note.isBad ? m_style.badSoft : m_style.window;
    painter->setPen(note.isBad ? QPen(m_style.bad, 1) : QPen(Qt::NoPen));
    painter->setBrush(back);
    painter->drawRoundedRect(m_noteRects[wire], 4, 4);
    painter->setFont(m_style.note.font());
    painter->setPen(note.isBad ? m_style.bad : m_style.muted);
    const QRectF inner = m_noteRects[wire].adjusted(0, 2, 0, -2);
    painter->drawText(inner, Qt::AlignHCenter | Qt::AlignTop, note.first);
    painter->setPen(note.isBad ? m_style.bad : m_style.text);
    painter->drawText(inner, Qt::AlignHCenter | Qt::AlignBottom, note.second);
}

void WireLayer::updateBounds() {
    prepareGeometryChange();
    m_bounds = {};
    for (const Wire& wire : m_wires) m_bounds |= wire.bounds;
    for (const QRectF& note : m_noteRects) m_bounds |= note;
}

std::optional<std::size_t> WireLayer::near(QPointF point, double reach, const std::function<bool(std::size_t)>& isWanted) const {
    std::optional<std::size_t> best;
    double nearest = reach;
    for (std::size_t i = 0; i < m_wires.size(); ++i) {
        if (!m_wires[i].bounds.adjusted(-reach, -reach, reach, reach).contains(point) || (isWanted && !isWanted(i))) continue;
        const double distance = distanceTo(m_wires[i].line, point);
        if (distance > nearest) continue;
        nearest = distance;
        best = i;
    }
    return best;
}

double WireLayer::length(std::size_t wire) const {
    double sum = 0;
    const QPolygonF& line = m_wires[wire].line;
    for (int i = 1; i < line.size(); ++i) sum += QLineF(line[i - 1], line[i]).length();
    return sum;
}

void WireLayer::change(std::optional<std::size_t>& member, std::optional<std::size_t> wire) {
    if (member == wire) return;
    for (const auto& index : {member, wire})
        if (index && *index < m_wires.size()) update(m_wires[*index].bounds);
    member = wire;
}

void WireLayer::paint(QPainter* painter, const QStyleOptionGraphicsItem* option, QWidget*) {
    const bool isDetailed = QStyleOptionGraphicsItem::levelOfDetailFromTransform(painter->worldTransform()) >= CanvasStyle::kDetail;
    painter->setRenderHint(QPainter::Antialiasing, isDetailed);
    painter->setBrush(Qt::NoBrush);
    painter->setPen(isDetailed ? QPen(m_style.wire, 1.4) : cosmetic(m_style.wire, 1));
    const auto isAbove = [this](std::size_t i) { return m_chosen == i || m_lit == i; };
    for (std::size_t i = 0; i < m_wires.size(); ++i)
        if (m_hidden != i && !isAbove(i) && m_wires[i].bounds.intersects(option->exposedRect)) paintOne(painter, i, isDetailed);
    for (std::size_t i = 0; i < m_wires.size(); ++i) {
        if (m_hidden == i || !isAbove(i)) continue;
        const QColor& color = m_lit == i && m_isRefused ? m_style.bad : m_style.accent;
        painter->setPen(isDetailed ? QPen(color, 2.6) : cosmetic(color, 2));
        paintOne(painter, i, isDetailed);
    }
    if (!isDetailed) return;
    for (std::size_t i = 0; i < m_notes.size(); ++i)
        if (m_hidden != i && m_noteRects[i].intersects(option->exposedRect)) paintNote(painter, i);
}

void WireLayer::paintOne(QPainter* painter, std::size_t wire, bool isDetailed) const {
    if (isDetailed) painter->drawPath(m_wires[wire].path);
    else painter->drawPolyline(m_wires[wire].line);
}

} // namespace celloom::ui
