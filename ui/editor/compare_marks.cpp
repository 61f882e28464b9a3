#include "ui/editor/compare_marks.h"

#include "ui/common/format.h"
#include "ui/common/theme.h"
#include "ui/editor/graph_view.h"
#include "ui/editor/wire_routing.h"

#include <QGraphicsObject>
#include <QGraphicsScene>
#include <QPainter>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

namespace celloom::ui {

namespace {

constexpr double kSign = 20, kWireSign = 15;        // across
constexpr double kSignAt = 0.3;                     // of a wire's way: its numbers stand in the middle
constexpr double kBelow = 90;                       // from a box to a ghost that follows it
constexpr double kGhostGap = 24;                    // around a ghost
constexpr double kStepAside = 92, kStepDown = 78;   // to the next place that is looked at
constexpr int kMostSteps = 12;                      // to each side; then it stands beside everything
constexpr QSizeF kGhost{160, 54};

void paintSign(QPainter* painter, QPointF middle, double across, graph::Fate fate, const QColor& front, const QColor& back, const QColor& line) {
    const QRectF circle(middle - QPointF(across / 2, across / 2), QSizeF(across, across));
    painter->setPen(QPen(line, 1.5));
    painter->setBrush(back);
    painter->drawEllipse(circle);
    QFont font = painter->font();
    font.setBold(true);
    font.setStrikeOut(false);
    font.setPixelSize(static_cast<int>(across * 0.7));
    painter->setFont(font);
    painter->setPen(front);
    painter->drawText(circle, Qt::AlignCenter, QString::fromUtf8(signOf(fate)));
}

/// A child of a box: it goes where the box goes, and away with it.
class Mark : public QGraphicsItem {
public:
    Mark(BoxItem* box, graph::Fate fate, bool isInside, Theme& theme) : QGraphicsItem(box), m_rect(box->rect()), m_fate(fate), m_isInside(isInside), m_color(theme.color(colorOf(fate))), m_surface(theme.color("surface")) {
        setAcceptedMouseButtons(Qt::NoButton);
    }
    [[nodiscard]] QRectF boundingRect() const override { return m_rect.adjusted(-6, -kSign / 2 - 2, kSign / 2 + 2, 6); }
    void paint(QPainter* painter, const QStyleOptionGraphicsItem*, QWidget*) override {
        painter->setRenderHint(QPainter::Antialiasing);
        painter->setBrush(Qt::NoBrush);
        painter->setPen(QPen(m_color, 2, m_isInside ? Qt::DashLine : Qt::SolidLine));
        painter->drawRoundedRect(m_rect.adjusted(-4, -4, 4, 4), 8, 8);
        paintSign(painter, m_rect.topRight(), kSign, m_fate, m_isInside ? m_color : m_surface, m_isInside ? m_surface : m_color, m_color);
    }

private:
    QRectF m_rect;
    graph::Fate m_fate;
    bool m_isInside;
    QColor m_color, m_surface;
};

/// A cell or port that is not there any more.
class Ghost : public QGraphicsItem {
public:
    Ghost(const QString& name, const QString& type, QGraphicsItem* parent, Theme& theme)
        : QGraphicsItem(parent), m_name(name), m_type(type), m_color(theme.color(colorOf(graph::Fate::Removed))), m_muted(theme.color("muted")), m_surface(theme.color("surface")) {
        setAcceptedMouseButtons(Qt::NoButton);
        setToolTip(m_name);
    }
    static QRectF rect() { return {QPointF(-kGhost.width() / 2, -kGhost.height() / 2), kGhost}; }
    [[nodiscard]] QRectF boundingRect() const override { return rect().adjusted(-4, -kSign / 2 - 2, kSign / 2 + 2, 4); }
    void paint(QPainter* painter, const QStyleOptionGraphicsItem*, QWidget*) override {
        painter->setRenderHint(QPainter::Antialiasing);
        painter->setBrush(Qt::NoBrush);
        painter->setPen(QPen(m_color, 1.5, Qt::DashLine));
        painter->drawRoundedRect(rect(), 6, 6);
        QFont font = painter->font();
        font.setPixelSize(13);
        font.setBold(true);
        font.setStrikeOut(true);
        painter->setFont(font);
        painter->setPen(m_muted);
        const QRectF inside = rect().adjusted(12, 6, -12, -6);
        painter->drawText(inside, Qt::AlignLeft | Qt::AlignTop, QFontMetricsF(font).elidedText(m_name, Qt::ElideRight, inside.width()));
        font.setStrikeOut(false);
        font.setBold(false);
        font.setPixelSize(11);
        painter->setFont(font);
        painter->drawText(inside, Qt::AlignRight | Qt::AlignBottom, m_type);
        paintSign(painter, rect().topRight(), kSign, graph::Fate::Removed, m_surface, m_color, m_color);
    }

private:
    QString m_name, m_type;
    QColor m_color, m_muted, m_surface;
};

/// A box, or a port of the graph itself, by the end of a wire.
enum class EndKind { Cell, Input, Output };
using EndKey = std::pair<EndKind, std::string>;
EndKey keyOf(const graph::Endpoint& end, bool isSource) {
    return end.cell.empty() ? EndKey{isSource ? EndKind::Input : EndKind::Output, end.port} : EndKey{EndKind::Cell, end.cell};
}
EndKey keyOf(const LevelBox& box) {
    return {box.kind == BoxKind::Input ? EndKind::Input : box.kind == BoxKind::Output ? EndKind::Output : EndKind::Cell, box.name};
}

/// Ghosts and wires of the level on show. They find their places when the boxes have theirs, and again when one moves.
class CompareLayer : public QGraphicsObject {
public:
    CompareLayer(GraphView& view, Theme& theme, const graph::Graph* before) : m_view(view), m_theme(theme) {
        if (before) m_before = *before;
        setZValue(-0.5); // over the wires, under the boxes
        setAcceptedMouseButtons(Qt::NoButton);
        setVisible(false);
        for (std::size_t i = 0; i < view.level().boxes.size(); ++i) m_boxes.emplace(keyOf(view.level().boxes[i]), i);
        QObject::connect(&view, &GraphView::placed, this, [this] { place(); });
    }

    void addGhost(const EndKey& key, const QString& type) { m_ghosts.emplace(key, Placed{new Ghost(fromUtf8(key.second), type, this, m_theme), {}}); }
    void addWire(graph::Fate fate, const graph::Wire& wire) { m_wires.push_back({fate, wire, {}}); }

    [[nodiscard]] QRectF boundingRect() const override { return m_bounds; }
    void paint(QPainter* painter, const QStyleOptionGraphicsItem*, QWidget*) override {
        painter->setRenderHint(QPainter::Antialiasing);
        for (const Drawn& wire : m_wires) {
            const QColor color = m_theme.color(colorOf(wire.fate));
            const Qt::PenStyle style = wire.fate == graph::Fate::Added ? Qt::SolidLine : wire.fate == graph::Fate::Removed ? Qt::DashLine : Qt::DashDotLine;
            painter->setPen(QPen(color, wire.fate == graph::Fate::Removed ? 1.8 : 2.8, style));
            painter->setBrush(Qt::NoBrush);
            painter->drawPath(wire.path);
            if (!wire.path.isEmpty()) paintSign(painter, wire.path.pointAtPercent(kSignAt), kWireSign, wire.fate, m_theme.color("surface"), color, color);
        }
    }

private:
    struct Placed {
        Ghost* ghost;
        std::optional<QPointF> at;
    };
    struct Drawn {
        graph::Fate fate;
        graph::Wire wire;
        QPainterPath path;
    };

    /// Where something stands now, be it box or ghost.
    [[nodiscard]] std::optional<QPointF> placeOf(const EndKey& key) const {
        if (const auto box = m_boxes.find(key); box != m_boxes.end()) return m_view.items()[box->second]->pos();
        const auto ghost = m_ghosts.find(key);
        return ghost == m_ghosts.end() ? std::nullopt : ghost->second.at;
    }

    /// As far from a neighbour as it was, or under what fed it, over what it fed. Nothing: no neighbour has a place.
    [[nodiscard]] std::optional<QPointF> wishOf(const EndKey& key) const {
        const auto oldPlace = [this](const EndKey& of) {
            const graph::Cell* cell = of.first == EndKind::Cell ? graph::findCell(m_before, of.second) : nullptr;
            return cell && cell->position ? std::optional(QPointF(cell->position->x, cell->position->y)) : std::nullopt;
        };
        for (const bool isUpward : {true, false})
            for (const graph::Wire& wire : m_before.wires) {
                const EndKey own = isUpward ? keyOf(wire.to, false) : keyOf(wire.from, true), other = isUpward ? keyOf(wire.from, true) : keyOf(wire.to, false);
                if (own != key) continue;
                const auto there = placeOf(other);
                if (!there) continue;
                const auto own0 = oldPlace(own), other0 = oldPlace(other);
                return own0 && other0 ? *there + *own0 - *other0 : *there + QPointF(0, isUpward ? kBelow : -kBelow);
            }
        return std::nullopt;
    }

    static QRectF around(QPointF at) { return Ghost::rect().translated(at).adjusted(-kGhostGap / 2, -kGhostGap / 2, kGhostGap / 2, kGhostGap / 2); }

    /// The nearest place to a wish where nothing lies, looked for to the right first.
    [[nodiscard]] static QPointF freeNear(QPointF wish, const std::vector<QRectF>& taken) {
        const auto isFree = [&](QPointF at) { return std::none_of(taken.begin(), taken.end(), [&](const QRectF& rect) { return rect.intersects(around(at)); }); };
        for (int ring = 0; ring <= kMostSteps; ++ring)
            for (int aside = ring; aside >= -ring; --aside)
                for (const int down : {0, ring, -ring}) {
                    if (std::max(std::abs(aside), std::abs(down)) != ring) continue;
                    if (const QPointF at = wish + QPointF(aside * kStepAside, down * kStepDown); isFree(at)) return at;
                }
        double right = wish.x();
        for (const QRectF& rect : taken) right = std::max(right, rect.right());
        return {right + kGhostGap + kGhost.width() / 2, wish.y()};
    }

    void placeGhosts() {
        std::vector<QRectF> taken;
        for (const BoxItem* item : m_view.items()) taken.push_back(item->sceneRect());
        const auto settle = [&](Placed& one, QPointF wish) {
            const bool canStay = m_view.isInGesture() && one.at && std::none_of(taken.begin(), taken.end(), [&](const QRectF& rect) { return rect.intersects(around(*one.at)); });
            if (!canStay) one.at = freeNear(wish, taken);
            one.ghost->setPos(*one.at);
            taken.push_back(Ghost::rect().translated(*one.at));
        };
        std::set<EndKey> waiting;
        for (const auto& [key, ghost] : m_ghosts) waiting.insert(key);
        for (bool isFurther = true; isFurther;) { // one that hangs on a ghost comes after that
            isFurther = false;
            for (auto key = waiting.begin(); key != waiting.end();) {
                Placed& one = m_ghosts.at(*key);
                const auto wish = wishOf(*key);
                if (wish) settle(one, *wish);
                isFurther |= wish.has_value();
                key = wish ? waiting.erase(key) : std::next(key);
            }
        }
        const QPointF beside = m_view.items().empty() ? QPointF() : m_view.items().front()->pos();
        for (const EndKey& key : waiting) settle(m_ghosts.at(key), beside);
    }

    /// Where a wire meets it.
    [[nodiscard]] std::optional<QPointF> portOf(const graph::Endpoint& end, bool isSource) const {
        const EndKey key = keyOf(end, isSource);
        const auto place = placeOf(key);
        const auto found = m_boxes.find(key);
        if (!place || found == m_boxes.end()) return place ? std::optional(*place + QPointF(0, (isSource ? 1 : -1) * kGhost.height() / 2)) : std::nullopt;
        const BoxItem& item = *m_view.items()[found->second];
        const auto& ports = isSource ? item.box().outputs : item.box().inputs;
        for (std::size_t i = 0; i < ports.size(); ++i)
            if (end.cell.empty() || ports[i].name == end.port) return *place + item.portAt(isSource, i);
        return *place + QPointF(0, (isSource ? 1 : -1) * item.size().height() / 2); // the port is gone
    }

    void drawWires() {
        std::vector<QRectF> rects;
        for (const BoxItem* item : m_view.items()) rects.push_back(item->sceneRect());
        const std::size_t none = rects.size();
        const RectGrid grid(std::move(rects));
        const auto& level = m_view.level();
        for (Drawn& one : m_wires) {
            one.path = {};
            const auto here = std::find_if(level.wires.begin(), level.wires.end(), [&](const LevelWire& wire) { return wire.wire == one.wire; });
            if (here != level.wires.end()) {
                one.path = m_view.curveOf(static_cast<std::size_t>(here - level.wires.begin()));
                continue;
            }
            const auto from = portOf(one.wire.from, true), to = portOf(one.wire.to, false);
            if (!from || !to) continue;
            const auto indexOf = [&](const EndKey& key) {
                const auto found = m_boxes.find(key);
                return found == m_boxes.end() ? none : found->second;
            };
            one.path = wireCurve(*from, *to, grid, indexOf(keyOf(one.wire.from, true)), indexOf(keyOf(one.wire.to, false)));
        }
    }

    void place() {
        if (!m_view.isShown()) return;
        prepareGeometryChange();
        setVisible(true);
        placeGhosts();
        drawWires();
        m_bounds = {};
        for (const Drawn& one : m_wires) m_bounds |= one.path.boundingRect().adjusted(-kWireSign, -kWireSign, kWireSign, kWireSign);
        m_view.setBeside(m_bounds | childrenBoundingRect());
        update();
    }

    GraphView& m_view;
    Theme& m_theme;
    graph::Graph m_before;
    std::map<EndKey, std::size_t> m_boxes;
    std::map<EndKey, Placed> m_ghosts;
    std::vector<Drawn> m_wires;
    QRectF m_bounds;
};

} // namespace

const char* signOf(graph::Fate fate) {
    switch (fate) {
        case graph::Fate::Added: return "+";
        case graph::Fate::Removed: return "−";
        case graph::Fate::Changed: return "≠";
    }
    return "";
}

const char* colorOf(graph::Fate fate) {
    switch (fate) {
        case graph::Fate::Added: return "good";
        case graph::Fate::Removed: return "bad";
        case graph::Fate::Changed: return "warning";
    }
    return "text";
}

void markLevel(GraphView& view, Theme& theme, const std::vector<graph::Finding>& findings, const graph::Graph* before, const std::set<std::string>& differing) {
    const ModelLevel& level = view.level();
    std::map<EndKey, std::size_t> boxes;
    for (std::size_t i = 0; i < level.boxes.size(); ++i) boxes.emplace(keyOf(level.boxes[i]), i);
    std::set<std::size_t> marked;
    auto* layer = new CompareLayer(view, theme, before);
    view.scene()->addItem(layer); // which goes with the level
    using What = graph::Finding::What;
    for (const graph::Finding& finding : findings) {
        if (finding.graph != level.graphName) continue;
        if (finding.what == What::Wire) {
            if (finding.wireBefore) layer->addWire(graph::Fate::Removed, *finding.wireBefore);
            if (finding.wire) layer->addWire(finding.fate, *finding.wire);
            continue;
        }
        if (finding.what != What::Cell && finding.what != What::Input && finding.what != What::Output) continue;
        const EndKey key{finding.what == What::Cell ? EndKind::Cell : finding.what == What::Input ? EndKind::Input : EndKind::Output, finding.name};
        if (finding.fate == graph::Fate::Removed) {
            layer->addGhost(key, finding.before ? fromUtf8(finding.before->type) : finding.what == What::Input ? GraphView::tr("input") : GraphView::tr("output"));
            continue;
        }
        const auto found = boxes.find(key);
        if (found == boxes.end()) continue;
        new Mark(view.items()[found->second], finding.fate, false, theme);
        marked.insert(found->second);
    }
    for (const auto& [key, index] : boxes)
        if (!marked.contains(index) && level.boxes[index].kind == BoxKind::Composite && differing.contains(level.boxes[index].type)) new Mark(view.items()[index], graph::Fate::Changed, true, theme);
}

} // namespace celloom::ui
