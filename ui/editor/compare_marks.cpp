#include "ui/editor/compare_marks.h"

#include "ui/common/format.h"
#include "ui/common/theme.h"
#include "ui/editor/graph_view.h"

#include <QGraphicsItem>
#include <QPainter>

#include <cmath>
#include <map>
#include <optional>

namespace celloom::ui {

namespace {

constexpr double kSign = 20;                      // across
constexpr double kGhostGap = 40, kGhostStep = 66; // beside the box that a ghost hangs on, and to the next one
constexpr double kBelow = 90, kWide = 170, kTall = 58; // under or over it; closer to another box than this, they would overlap
constexpr QSizeF kGhost{160, 54};

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
        const QRectF circle(m_rect.topRight() - QPointF(kSign / 2, kSign / 2), QSizeF(kSign, kSign));
        painter->setPen(QPen(m_color, 1.5));
        painter->setBrush(m_isInside ? m_surface : m_color);
        painter->drawEllipse(circle);
        QFont font = painter->font();
        font.setBold(true);
        font.setPixelSize(14);
        painter->setFont(font);
        painter->setPen(m_isInside ? m_color : m_surface);
        painter->drawText(circle, Qt::AlignCenter, QString::fromUtf8(signOf(m_fate)));
    }

private:
    QRectF m_rect;
    graph::Fate m_fate;
    bool m_isInside;
    QColor m_color, m_surface;
};

/// A cell that is not there any more, at the side of one that is, or alone.
class Ghost : public QGraphicsItem {
public:
    Ghost(const graph::Cell& cell, QGraphicsItem* beside, Theme& theme)
        : QGraphicsItem(beside), m_name(fromUtf8(cell.name)), m_type(fromUtf8(cell.type)), m_color(theme.color(colorOf(graph::Fate::Removed))), m_muted(theme.color("muted")), m_surface(theme.color("surface")) {
        setAcceptedMouseButtons(Qt::NoButton);
        setToolTip(m_name);
    }
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
        const QRectF circle(rect().topRight() - QPointF(kSign / 2, kSign / 2), QSizeF(kSign, kSign));
        painter->setPen(QPen(m_color, 1.5));
        painter->setBrush(m_color);
        painter->drawEllipse(circle);
        font.setBold(true);
        font.setPixelSize(14);
        painter->setFont(font);
        painter->setPen(m_surface);
        painter->drawText(circle, Qt::AlignCenter, QString::fromUtf8(signOf(graph::Fate::Removed)));
    }

private:
    static QRectF rect() { return {QPointF(-kGhost.width() / 2, -kGhost.height() / 2), kGhost}; }
    QString m_name, m_type;
    QColor m_color, m_muted, m_surface;
};

/// The box that a ghost hangs on: the cell that fed it, or that it fed, as far as that is still there.
struct Anchor {
    std::size_t box = 0;
    bool isAbove = true;
};
std::optional<Anchor> anchorOf(const std::string& cell, const graph::Graph& before, const std::map<std::string, std::size_t>& boxes) {
    for (const bool isUpward : {true, false})
        for (const graph::Wire& wire : before.wires) {
            const graph::Endpoint &own = isUpward ? wire.to : wire.from, &other = isUpward ? wire.from : wire.to;
            if (own.cell != cell) continue;
            const auto found = boxes.find(other.cell.empty() ? other.port : other.cell);
            if (found != boxes.end()) return Anchor{found->second, isUpward};
        }
    return boxes.empty() ? std::nullopt : std::optional(Anchor{boxes.begin()->second, true});
}

/// Where it stood, if the document says where the others stand and nothing took the place.
std::optional<QPointF> gapAt(const Anchor& anchor, const ModelLevel& level) {
    const auto& place = level.boxes[anchor.box].position;
    if (!place) return std::nullopt;
    const QPointF offset(0, anchor.isAbove ? kBelow : -kBelow), at = QPointF(place->x, place->y) + offset;
    for (const LevelBox& box : level.boxes)
        if (box.position && std::abs(box.position->x - at.x()) < kWide && std::abs(box.position->y - at.y()) < kTall) return std::nullopt;
    return offset;
}

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
    std::map<std::string, std::size_t> boxes;
    for (std::size_t i = 0; i < level.boxes.size(); ++i) boxes.emplace(level.boxes[i].name, i);
    std::set<std::string> marked;
    std::map<std::size_t, int> ghosts; // beside each box
    using What = graph::Finding::What;
    for (const graph::Finding& finding : findings) {
        if (finding.graph != level.graphName) continue;
        const bool isBox = finding.what == What::Cell || finding.what == What::Input || finding.what == What::Output;
        if (!isBox) continue;
        if (finding.fate == graph::Fate::Removed) {
            if (!before || !finding.before) continue;
            const auto anchor = anchorOf(finding.name, *before, boxes);
            BoxItem* box = anchor ? view.items()[anchor->box] : nullptr;
            auto* ghost = new Ghost(*finding.before, box, theme);
            if (!box) {
                view.scene()->addItem(ghost);
                continue;
            }
            const auto gap = ghosts[anchor->box] == 0 ? gapAt(*anchor, level) : std::nullopt;
            ghost->setPos(gap.value_or(QPointF(box->rect().right() + kGhostGap + kGhost.width() / 2, kGhostStep * ghosts[anchor->box])));
            ++ghosts[anchor->box];
            continue;
        }
        const auto found = boxes.find(finding.name);
        if (found == boxes.end()) continue;
        new Mark(view.items()[found->second], finding.fate, false, theme);
        marked.insert(finding.name);
    }
    for (const auto& [name, index] : boxes)
        if (!marked.contains(name) && level.boxes[index].kind == BoxKind::Composite && differing.contains(level.boxes[index].type)) new Mark(view.items()[index], graph::Fate::Changed, true, theme);
}

} // namespace celloom::ui
