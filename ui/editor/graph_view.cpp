#include "ui/editor/graph_view.h"

#include "ui/common/format.h"
#include "ui/common/theme.h"

#include <QGraphicsScene>
#include <QHelpEvent>
#include <QKeyEvent>
#include <QMimeData>
#include <QPainter>
#include <QScrollBar>
#include <QToolTip>
#include <QWheelEvent>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace celloom::ui {

namespace {

constexpr double kLeastZoom = 0.02, kMostZoom = 3;
constexpr double kReadableZoom = 0.7; // the texts on a box are 8 pixels high then
constexpr int kFitMargin = 24;        // pixels around what is fitted in
constexpr double kPortReach = 11;  // pixels of the screen
constexpr double kSnap = 8;        // boxes come to rest on multiples of it
constexpr double kRowGap = 88, kColumnGap = 36;
constexpr double kMargin = 4000;   // room to pan, at least
constexpr double kWireReach = 6;   // pixels of the screen
constexpr double kDropReach = 10;  // the same, of the middle of a cell that is dragged over a wire

/// The same boxes and wires, whatever is known of them.
bool isLike(const ModelLevel& a, const ModelLevel& b) {
    return a.prefix == b.prefix && a.graphName == b.graphName &&
           std::equal(a.boxes.begin(), a.boxes.end(), b.boxes.begin(), b.boxes.end(), [](const LevelBox& x, const LevelBox& y) { return x.kind == y.kind && x.name == y.name; }) &&
           std::equal(a.wires.begin(), a.wires.end(), b.wires.begin(), b.wires.end(), [](const LevelWire& x, const LevelWire& y) { return x.wire == y.wire; });
}

/// What stands where a box stood that is gone: the same one under another name.
bool isRenamed(const ModelLevel& before, const ModelLevel& after, std::size_t index) {
    const LevelBox &old = before.boxes[index], &now = after.boxes[index];
    const auto has = [](const ModelLevel& level, const LevelBox& wanted) {
        return std::any_of(level.boxes.begin(), level.boxes.end(), [&](const LevelBox& box) { return box.kind == wanted.kind && box.name == wanted.name; });
    };
    return before.boxes.size() == after.boxes.size() && old.kind == now.kind && old.type == now.type && old.name != now.name && !has(after, old) && !has(before, now);
}

double snapped(double value) {
    return std::round(value / kSnap) * kSnap;
}

} // namespace

GraphView::GraphView(Theme& theme, QWidget* parent) : QGraphicsView(parent), m_theme(theme), m_style(theme, font()) {
    setScene(new QGraphicsScene(this));
    setRenderHints(QPainter::Antialiasing | QPainter::TextAntialiasing);
    setOptimizationFlags(QGraphicsView::DontSavePainterState | QGraphicsView::DontAdjustForAntialiasing); // items say all that they need
    setViewportUpdateMode(QGraphicsView::SmartViewportUpdate);
    setDragMode(QGraphicsView::NoDrag);
    setTransformationAnchor(QGraphicsView::NoAnchor); // zoomBy() says what stays where it is
    setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    setVerticalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    setFocusPolicy(Qt::StrongFocus);
    setProperty("keys", false); // whether the keyboard came here by itself: then it is marked
    setAcceptDrops(true);
    setMouseTracking(true);
    connect(this, &GraphView::zoomChanged, this, &GraphView::sightChanged);
    connect(&theme, &Theme::changed, this, [this] {
        m_style.refresh();
        viewport()->update();
        scene()->update();
    });
}

GraphView::~GraphView() {
    clearItems();
}

// ---- what is shown ----

void GraphView::clearItems() {
    if (!m_isShown) qDeleteAll(m_items); // else they are the scene's
    scene()->clear();
    m_items.clear();
    m_wires = nullptr;
    m_beside = {};
    m_isShown = false;
    m_cursor.reset();
}

void GraphView::setLevel(const ModelLevel& level, const std::vector<BoxBadges>& badges) {
    CELLOOM_CHECK(badges.size() == level.boxes.size());
    endGesture();
    const bool isSameLevel = level.prefix == m_level.prefix && level.graphName == m_level.graphName;
    m_keepsSight = isSameLevel && m_isShown;
    if (!isLike(level, m_level) || !m_isShown) m_layout.reset();
    m_isLayoutOfLevel = false;
    std::set<std::pair<BoxKind, std::string>> kept;
    if (isSameLevel)
        for (const std::size_t index : m_chosen) {
            const LevelBox& box = index < level.boxes.size() && isRenamed(m_level, level, index) ? level.boxes[index] : m_level.boxes[index];
            kept.insert({box.kind, box.name});
        }
    clearItems();
    m_notes.clear();
    m_curves.clear();
    m_chosen.clear();
    m_chosenWire.reset();
    m_level = level;
    m_items.reserve(level.boxes.size());
    for (std::size_t i = 0; i < level.boxes.size(); ++i) {
        m_items.push_back(new BoxItem(level.boxes[i], badges[i], m_style));
        if (!kept.contains({level.boxes[i].kind, level.boxes[i].name})) continue;
        m_chosen.insert(i);
        m_items.back()->setChosen(true);
    }
}

void GraphView::forget() {
    endGesture();
    clearItems();
    m_level = {};
    m_layout.reset();
    m_chosen.clear();
    m_chosenWire.reset();
    m_sight.reset();
    m_fitsAll = false;
}

/// The boxes are at their places.
void GraphView::showItems() {
    if (!m_isShown) {
        for (BoxItem* item : m_items) scene()->addItem(item);
        m_wires = new WireLayer(m_style);
        scene()->addItem(m_wires);
        m_isShown = true;
    }
    drawWires();
    if (!m_notes.empty()) m_wires->setNotes(m_notes);
    updateSceneRect();
    Q_EMIT placed();
}

LayoutInput GraphView::layoutInput() const {
    LayoutInput input;
    for (const BoxItem* item : m_items) input.boxes.push_back(item->size());
    for (const LevelWire& wire : m_level.wires) input.arrows.push_back({static_cast<int>(wire.from), static_cast<int>(wire.to)});
    return input;
}

void GraphView::place(const LayoutResult& layout) {
    if (layout.centers.size() != m_items.size() || layout.curves.size() != m_level.wires.size()) return; // of a level that is no longer shown
    const auto anchor = m_isShown ? chosen() : std::nullopt; // stays where it is on the screen
    const QPointF before = anchor ? m_items[*anchor]->pos() : QPointF();
    for (std::size_t i = 0; i < m_items.size(); ++i) m_items[i]->setPos(layout.centers[i]);
    m_curves = layout.curves;
    m_layout = layout;
    m_isLayoutOfLevel = true;
    showItems();
    if (m_sight) setSight(m_sight->first, m_sight->second);
    else if (m_isFitted || !m_keepsSight) fitAgain();
    else if (anchor) centerOn(middle() + m_items[*anchor]->pos() - before);
    m_keepsSight = true;
}

bool GraphView::placeAsBefore() {
    if (!m_layout || m_isLayoutOfLevel) return false;
    const LayoutResult layout = *m_layout;
    place(layout);
    return true;
}

bool GraphView::isPlacedByDocument() const {
    return std::all_of(m_level.boxes.begin(), m_level.boxes.end(), [](const LevelBox& box) {
        return box.position || box.kind == BoxKind::Input || box.kind == BoxKind::Output;
    });
}

void GraphView::placeByDocument() {
    double top = 1e300, bottom = -1e300;
    for (std::size_t i = 0; i < m_items.size(); ++i) {
        if (!m_level.boxes[i].position) continue;
        m_items[i]->setPos(m_level.boxes[i].position->x, m_level.boxes[i].position->y);
        top = std::min(top, m_items[i]->y());
        bottom = std::max(bottom, m_items[i]->y());
    }
    if (top > bottom) top = bottom = 0;
    std::vector<std::pair<double, int>> neighbours(m_items.size(), {0, 0}); // sum and number of their places
    for (const LevelWire& wire : m_level.wires) {
        if (m_level.boxes[wire.to].position) neighbours[wire.from] = {neighbours[wire.from].first + m_items[wire.to]->x(), neighbours[wire.from].second + 1};
        if (m_level.boxes[wire.from].position) neighbours[wire.to] = {neighbours[wire.to].first + m_items[wire.from]->x(), neighbours[wire.to].second + 1};
    }
    for (const BoxKind kind : {BoxKind::Input, BoxKind::Output}) { // over and under the cells that they feed or read
        double next = -1e300;
        std::vector<std::pair<double, std::size_t>> row;
        for (std::size_t i = 0; i < m_items.size(); ++i)
            if (m_level.boxes[i].kind == kind) row.emplace_back(neighbours[i].second ? neighbours[i].first / neighbours[i].second : 0, i);
        std::stable_sort(row.begin(), row.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
        for (const auto& [x, i] : row) {
            const double half = m_items[i]->size().width() / 2;
            const double at = std::max(x, next + half);
            m_items[i]->setPos(at, kind == BoxKind::Input ? top - kRowGap : bottom + kRowGap);
            next = at + half + kColumnGap;
        }
    }
    m_curves.clear();
    m_layout.reset();
    showItems();
    if (!m_keepsSight) fitAgain();
    m_keepsSight = true;
}

void GraphView::setProblems(const std::set<std::string>& boxes) {
    for (std::size_t i = 0; i < m_items.size(); ++i)
        m_items[i]->setProblem(m_level.boxes[i].kind != BoxKind::Input && m_level.boxes[i].kind != BoxKind::Output && boxes.contains(m_level.boxes[i].name));
}

void GraphView::setNotes(std::vector<WireNote> notes) {
    m_notes = std::move(notes);
    if (m_wires) m_wires->setNotes(m_notes);
}

QString GraphView::failureAt(const std::string& box) const {
    for (std::size_t i = 0; i < m_items.size(); ++i)
        if (m_level.boxes[i].name == box && !m_items[i]->failure().isEmpty()) return m_items[i]->failure();
    return {};
}

std::vector<std::size_t> GraphView::wiresByLength() const {
    std::vector<std::size_t> order(m_level.wires.size());
    std::iota(order.begin(), order.end(), std::size_t(0));
    if (m_wires) std::stable_sort(order.begin(), order.end(), [this](std::size_t a, std::size_t b) { return m_wires->length(a) < m_wires->length(b); });
    return order;
}

void GraphView::setFailure(const std::string& box, const QString& failure) {
    for (std::size_t i = 0; i < m_items.size(); ++i) {
        const bool isCell = m_level.boxes[i].kind == BoxKind::Cell || m_level.boxes[i].kind == BoxKind::Composite;
        m_items[i]->setFailure(isCell && m_level.boxes[i].name == box ? failure : QString());
    }
}

void GraphView::updateSceneRect() {
    const QRectF all = contents();
    const double wide = std::max(kMargin, all.width()), high = std::max(kMargin, all.height());
    const QRectF wanted = all.adjusted(-wide, -high, wide, high);
    if (m_gesture == Gesture::None) scene()->setSceneRect(wanted.united(mapToScene(viewport()->rect()).boundingRect()));
}

QRectF GraphView::contents() const {
    QRectF bounds = m_wires ? m_wires->boundingRect() | m_beside : QRectF();
    for (const BoxItem* item : m_items) bounds |= item->boundingRect().translated(item->pos());
    return bounds;
}

RectGrid GraphView::boxGrid() const {
    std::vector<QRectF> rects;
    rects.reserve(m_items.size());
    for (const BoxItem* item : m_items) rects.push_back(item->sceneRect());
    return RectGrid(std::move(rects));
}

/// Graphviz's curves end at the middle of a box; their ends are pulled to the ports.
QPainterPath GraphView::wirePath(std::size_t index, const RectGrid& boxes) const {
    const LevelWire& wire = m_level.wires[index];
    const QPointF from = scenePoint({wire.from, true, wire.fromPort}), to = scenePoint({wire.to, false, wire.toPort});
    if (index >= m_curves.size() || m_curves[index].elementCount() < 4) return wireCurve(from, to, boxes, wire.from, wire.to);
    QPainterPath path = m_curves[index];
    const int last = path.elementCount() - 1;
    const QPointF first = path.elementAt(0), end = path.elementAt(last), afterFirst = path.elementAt(1), beforeEnd = path.elementAt(last - 1);
    path.setElementPositionAt(1, afterFirst.x() + from.x() - first.x(), afterFirst.y());
    path.setElementPositionAt(last - 1, beforeEnd.x() + to.x() - end.x(), beforeEnd.y());
    path.setElementPositionAt(0, from.x(), from.y());
    path.setElementPositionAt(last, to.x(), to.y());
    return path;
}

void GraphView::drawWires() {
    if (!m_wires) return;
    const RectGrid boxes = boxGrid();
    std::vector<QPainterPath> paths;
    paths.reserve(m_level.wires.size());
    for (std::size_t i = 0; i < m_level.wires.size(); ++i) paths.push_back(wirePath(i, boxes));
    m_wires->setPaths(std::move(paths));
    m_wires->setChosen(m_chosenWire);
}

void GraphView::redrawWires(const std::set<std::size_t>& boxes, const std::vector<QRectF>& places) {
    if (!m_wires) return;
    if (!m_curves.empty()) { // Graphviz's hold as long as nothing has moved
        m_curves.clear();
        drawWires();
        return;
    }
    const RectGrid grid = boxGrid();
    const bool isOneDragged = m_gesture == Gesture::Move && boxes.size() == 1; // may be dropped on a wire, which must not get out of its way
    for (std::size_t i = 0; i < m_level.wires.size(); ++i) {
        const LevelWire& wire = m_level.wires[i];
        if (isOneDragged && !boxes.contains(wire.from) && !boxes.contains(wire.to)) continue;
        const QRectF& bounds = m_wires->bounds(i);
        const bool isNear = boxes.contains(wire.from) || boxes.contains(wire.to) ||
                            std::any_of(places.begin(), places.end(), [&](const QRectF& place) { return place.intersects(bounds); }) ||
                            std::any_of(boxes.begin(), boxes.end(), [&](std::size_t box) { return grid.at(box).intersects(bounds); });
        if (isNear) m_wires->setPath(i, wirePath(i, grid));
    }
}

std::map<std::string, graph::Position> GraphView::positions() const {
    std::map<std::string, graph::Position> out;
    for (std::size_t i = 0; i < m_items.size(); ++i)
        if (m_level.boxes[i].kind == BoxKind::Cell || m_level.boxes[i].kind == BoxKind::Composite)
            out[m_level.boxes[i].name] = {std::round(m_items[i]->x()), std::round(m_items[i]->y())};
    return out;
}

void GraphView::fit() {
    m_fitsAll = false;
    fitAgain();
}

void GraphView::fitAll() {
    m_fitsAll = true;
    fitAgain();
}

/// What is looked at where not everything can be: what is chosen, else where the graph begins.
QRectF GraphView::firstToSee() const {
    QRectF chosen;
    for (const std::size_t index : m_chosen) chosen |= m_items[index]->sceneRect();
    if (!chosen.isEmpty()) return chosen;
    const auto first = std::min_element(m_items.begin(), m_items.end(), [](const BoxItem* a, const BoxItem* b) { return a->y() < b->y() || (a->y() == b->y() && a->x() < b->x()); });
    return first == m_items.end() ? contents() : (*first)->sceneRect();
}

void GraphView::fitAgain() {
    const QRectF bounds = contents();
    if (bounds.isEmpty()) return;
    resetTransform();
    const QSizeF room = viewport()->size() - QSize(2 * kFitMargin, 2 * kFitMargin);
    const double factor = std::clamp(std::min(room.width() / bounds.width(), room.height() / bounds.height()), m_fitsAll ? kLeastZoom : kReadableZoom, 1.0);
    scale(factor, factor);
    updateSceneRect();
    // along each side: all of it in the middle where it fits, else as much as there is around what is to be seen first
    const QRectF first = firstToSee();
    const auto middle = [factor](double begin, double length, double pixels, double firstBegin, double firstLength) {
        const double sight = pixels / factor;
        if (length <= sight) return begin + length / 2;
        const double wanted = firstLength <= sight ? firstBegin + firstLength / 2 : firstBegin + sight / 2;
        return std::clamp(wanted, begin + sight / 2, begin + length - sight / 2);
    };
    centerOn(middle(bounds.x(), bounds.width(), room.width(), first.x(), first.width()), middle(bounds.y(), bounds.height(), room.height(), first.y(), first.height()));
    m_isFitted = true;
    Q_EMIT zoomChanged();
}

void GraphView::lookAt(QPointF middle) {
    centerOn(middle);
    m_isFitted = false;
}

void GraphView::scrollContentsBy(int dx, int dy) {
    QGraphicsView::scrollContentsBy(dx, dy);
    Q_EMIT sightChanged();
}

void GraphView::eachBox(const std::function<void(const QRectF&, const QColor&)>& tell) const {
    for (const BoxItem* item : m_items) tell(item->sceneRect(), m_style.category(item->box()));
}

void GraphView::setSight(double zoom, QPointF middle) {
    m_sight = {zoom, middle};
    if (!m_isShown) return;
    m_sight.reset();
    setTransform(QTransform::fromScale(zoom, zoom));
    centerOn(middle);
    m_isFitted = false;
    Q_EMIT zoomChanged();
}

/// What is chosen and was seen stays in sight.
void GraphView::resizeEvent(QResizeEvent* event) {
    const auto box = m_isShown ? chosen() : std::nullopt;
    const bool wasSeen = box && QRectF(QPointF(), event->oldSize()).contains(mapFromScene(m_items[*box]->sceneRect()).boundingRect());
    QGraphicsView::resizeEvent(event);
    if (m_isFitted && m_isShown) fitAgain();
    else if (wasSeen) ensureVisible(m_items[*box], 8, 8);
    Q_EMIT resized();
}

void GraphView::zoomBy(double factor, std::optional<QPoint> around) {
    const QPoint fixed = around.value_or(viewport()->rect().center());
    const QPointF before = mapToScene(fixed);
    const double now = transform().m11(), next = std::clamp(now * factor, kLeastZoom, kMostZoom);
    scale(next / now, next / now);
    const QPoint off = mapFromScene(before) - fixed;
    horizontalScrollBar()->setValue(horizontalScrollBar()->value() + off.x());
    verticalScrollBar()->setValue(verticalScrollBar()->value() + off.y());
    m_isFitted = false;
    Q_EMIT zoomChanged();
}

int GraphView::zoomPercent() const {
    return static_cast<int>(std::lround(transform().m11() * 100));
}

// ---- choosing ----

void GraphView::setChosen(const std::set<std::size_t>& boxes, std::optional<std::size_t> wire) {
    for (const std::size_t index : m_chosen)
        if (!boxes.contains(index)) m_items[index]->setChosen(false);
    for (const std::size_t index : boxes) m_items[index]->setChosen(true);
    m_chosen = boxes;
    m_chosenWire = wire;
    m_cursor = chosen();
    if (m_wires) m_wires->setChosen(wire);
    Q_EMIT boxChosen(chosen());
}

void GraphView::choose(std::optional<std::size_t> box) {
    setChosen(box ? std::set<std::size_t>{*box} : std::set<std::size_t>{});
    if (!box || !m_isShown) return;
    ensureVisible(m_items[*box], 30, 30);
    announce(describe(*box));
}

void GraphView::chooseCells(const std::set<std::string>& names) {
    std::set<std::size_t> boxes;
    for (std::size_t i = 0; i < m_items.size(); ++i) {
        const bool isCell = m_level.boxes[i].kind == BoxKind::Cell || m_level.boxes[i].kind == BoxKind::Composite;
        if (isCell && names.contains(m_level.boxes[i].name)) boxes.insert(i);
    }
    setChosen(boxes);
}

void GraphView::chooseAll() {
    const auto all = positions();
    std::set<std::string> names;
    for (const auto& [name, position] : all) names.insert(name);
    chooseCells(names);
}

std::optional<std::size_t> GraphView::chosen() const {
    return m_chosen.size() == 1 ? std::optional(*m_chosen.begin()) : std::nullopt;
}

std::set<std::string> GraphView::chosenCells() const {
    std::set<std::string> out;
    for (const std::size_t index : m_chosen)
        if (m_level.boxes[index].kind == BoxKind::Cell || m_level.boxes[index].kind == BoxKind::Composite) out.insert(m_level.boxes[index].name);
    return out;
}

std::optional<graph::Wire> GraphView::chosenWire() const {
    if (!m_chosenWire) return std::nullopt;
    return m_level.wires[*m_chosenWire].wire;
}

std::optional<std::size_t> GraphView::boxAt(const QPoint& position) const {
    if (!m_isShown) return std::nullopt;
    const QPointF point = mapToScene(position);
    for (std::size_t i = m_items.size(); i-- > 0;)
        if (m_items[i]->sceneRect().contains(point)) return i;
    return std::nullopt;
}

std::optional<GraphView::PortRef> GraphView::portAt(const QPoint& position) const {
    const double scale = transform().m11();
    if (!m_isShown || (scale < CanvasStyle::kDetail && m_gesture != Gesture::Wire)) return std::nullopt; // from afar boxes are meant
    const QPointF point = mapToScene(position);
    const double reach = kPortReach / scale;
    for (std::size_t i = m_items.size(); i-- > 0;) {
        if (!m_items[i]->sceneRect().adjusted(-reach, -reach, reach, reach).contains(point)) continue;
        if (const auto port = m_items[i]->portNear(point - m_items[i]->pos(), reach)) return PortRef{i, port->isOutput, port->index};
    }
    return std::nullopt;
}

std::optional<std::size_t> GraphView::wireAt(const QPoint& position, const std::set<std::string>& without) const {
    if (!m_wires) return std::nullopt;
    return m_wires->near(mapToScene(position), kWireReach / transform().m11(), [&](std::size_t wire) {
        const graph::Wire& about = m_level.wires[wire].wire;
        return !without.contains(about.from.cell) && !without.contains(about.to.cell);
    });
}

void GraphView::chooseNext(int direction) {
    if (m_items.empty()) return;
    const int count = static_cast<int>(m_items.size());
    const int now = m_chosen.empty() ? -1 : static_cast<int>(*m_chosen.begin());
    const int next = now >= 0 ? (now + direction + count) % count : direction > 0 ? 0 : count - 1;
    choose(static_cast<std::size_t>(next));
}

// ---- ports and wires ----

graph::Endpoint GraphView::endpointOf(const PortRef& port) const {
    const LevelBox& box = m_level.boxes[port.box];
    if (box.kind == BoxKind::Input || box.kind == BoxKind::Output) return {"", box.name};
    return {box.name, (port.isOutput ? box.outputs : box.inputs)[port.index].name};
}

QPointF GraphView::scenePoint(const PortRef& port) const {
    return m_items[port.box]->pos() + m_items[port.box]->portAt(port.isOutput, port.index);
}

std::optional<graph::Wire> GraphView::wireBetween(const PortRef& a, const PortRef& b) const {
    if (a.isOutput == b.isOutput || a.box == b.box) return std::nullopt;
    return a.isOutput ? graph::Wire{endpointOf(a), endpointOf(b)} : graph::Wire{endpointOf(b), endpointOf(a)};
}

void GraphView::beginWire(const PortRef& from, std::optional<std::size_t> taken) {
    m_gesture = Gesture::Wire;
    m_wireFrom = from;
    m_wireTaken = taken;
    m_draft = scene()->addPath({}, QPen(m_theme.color("accent"), 2, Qt::DashLine));
    m_draft->setZValue(2);
    m_wires->setHidden(taken);
    for (std::size_t i = 0; i < m_items.size(); ++i) {
        std::vector<PortLook> looks[2];
        for (const bool isOutput : {false, true})
            for (std::size_t p = 0; p < (isOutput ? m_level.boxes[i].outputs : m_level.boxes[i].inputs).size(); ++p) {
                const auto wire = wireBetween(from, {i, isOutput, p});
                const bool isFit = wire && (!m_judge || m_judge(*wire, false).isFit);
                looks[isOutput].push_back(isFit ? PortLook::Fits : PortLook::Unfit);
            }
        m_items[i]->setPortLooks(std::move(looks[0]), std::move(looks[1]));
    }
}

void GraphView::moveWire(const QPoint& position) {
    QPointF end = mapToScene(position);
    QString reason;
    if (const auto port = portAt(position); port && port->box != m_wireFrom->box) {
        end = scenePoint(*port);
        if (const auto wire = wireBetween(*m_wireFrom, *port)) {
            if (m_judge) reason = m_judge(*wire, true).reason;
        } else {
            reason = m_wireFrom->isOutput ? tr("A wire ends at an input.") : tr("A wire begins at an output.");
        }
    }
    drawDraft(end, reason);
    if (reason.isEmpty()) QToolTip::hideText();
    else QToolTip::showText(viewport()->mapToGlobal(position + QPoint(12, 12)), reason, viewport());
}

void GraphView::drawDraft(QPointF end, const QString& reason) {
    const QPointF start = scenePoint(*m_wireFrom);
    m_draft->setPath(m_wireFrom->isOutput ? wireCurve(start, end) : wireCurve(end, start));
    QPen pen(reason.isEmpty() ? m_style.accent : m_style.bad, 2, Qt::DashLine);
    pen.setCosmetic(true);
    m_draft->setPen(pen);
}

void GraphView::endWire(const QPoint& position) {
    const PortRef from = *m_wireFrom;
    const auto taken = m_wireTaken;
    const auto target = portAt(position);
    endGesture();
    const auto old = taken ? std::optional(m_level.wires[*taken].wire) : std::nullopt;
    if (target) {
        const auto wire = wireBetween(from, *target);
        if (wire && (!old || !(*wire == *old))) Q_EMIT wireDrawn(*wire, old);
        return;
    }
    if (old) Q_EMIT wireDropped(*old);
}

void GraphView::endGesture() {
    delete m_draft;
    m_draft = nullptr;
    delete m_band;
    m_band = nullptr;
    light({});
    QToolTip::hideText();
    if (m_gesture == Gesture::Wire) {
        for (BoxItem* item : m_items) item->setPortLooks({}, {});
        if (m_wires) m_wires->setHidden({});
    }
    m_wireFrom.reset();
    m_wireTaken.reset();
    m_isByKeys = false;
    m_targets.clear();
    m_refusal.clear();
    m_gesture = Gesture::None;
    viewport()->unsetCursor();
}

std::optional<graph::Wire> GraphView::litWire() const {
    const auto lit = m_wires ? m_wires->lit() : std::nullopt;
    return lit ? std::optional(m_level.wires[*lit].wire) : std::nullopt;
}

void GraphView::light(std::optional<std::size_t> wire, bool isRefused) {
    if (m_wires) m_wires->setLit(wire, isRefused);
}

// ---- gestures ----

void GraphView::mousePressEvent(QMouseEvent* event) {
    setFocus(Qt::MouseFocusReason);
    if (m_isByKeys) endGesture();
    m_pressed = event->pos();
    m_pressedScene = mapToScene(event->pos());
    if (event->button() == Qt::MiddleButton || (event->button() == Qt::LeftButton && event->modifiers().testFlag(Qt::AltModifier))) {
        m_gesture = Gesture::Pan;
        viewport()->setCursor(Qt::ClosedHandCursor);
        return;
    }
    if (event->button() == Qt::RightButton) {
        const auto box = boxAt(event->pos());
        const auto wire = box ? std::nullopt : wireAt(event->pos());
        if (box && !m_chosen.contains(*box)) setChosen({*box});
        else if (wire) setChosen({}, wire);
        return;
    }
    if (event->button() != Qt::LeftButton) return;
    if (m_isEditable)
        if (const auto port = portAt(event->pos())) {
            std::optional<std::size_t> taken; // an input that is fed gives its wire's end to the hand
            if (!port->isOutput)
                for (std::size_t i = 0; i < m_level.wires.size(); ++i)
                    if (m_level.wires[i].to == port->box && m_level.wires[i].toPort == port->index) taken = i;
            if (taken) beginWire({m_level.wires[*taken].from, true, m_level.wires[*taken].fromPort}, taken);
            else beginWire(*port, {});
            moveWire(event->pos());
            return;
        }
    const bool adds = event->modifiers() & (Qt::ShiftModifier | Qt::ControlModifier);
    if (const auto box = boxAt(event->pos())) {
        std::set<std::size_t> next = m_chosen;
        if (adds) {
            if (!next.erase(*box)) next.insert(*box);
        } else if (!next.contains(*box)) {
            next = {*box};
        }
        setChosen(next);
        m_gesture = Gesture::Press;
        return;
    }
    if (const auto wire = wireAt(event->pos())) {
        setChosen({}, wire);
        return;
    }
    if (!adds) setChosen({});
    m_gesture = Gesture::Band;
    QColor fill = m_theme.color("accent");
    fill.setAlpha(28);
    m_band = scene()->addRect({}, QPen(m_theme.color("accent"), 0), fill);
    m_band->setZValue(3);
}

void GraphView::mouseMoveEvent(QMouseEvent* event) {
    switch (m_gesture) {
    case Gesture::Pan: {
        const QPoint by = event->pos() - m_pressed;
        horizontalScrollBar()->setValue(horizontalScrollBar()->value() - by.x());
        verticalScrollBar()->setValue(verticalScrollBar()->value() - by.y());
        m_isFitted = false;
        m_pressed = event->pos();
        return;
    }
    case Gesture::Band:
        m_band->setRect(QRectF(m_pressedScene, mapToScene(event->pos())).normalized());
        return;
    case Gesture::Press:
        if (!m_isEditable || (event->pos() - m_pressed).manhattanLength() < 5) return;
        m_gesture = Gesture::Move;
        m_before.clear();
        for (const BoxItem* item : m_items) m_before.push_back(item->pos());
        if (m_chosen.size() == 1 && !m_curves.empty()) { // other wires stay where they are, so that they can be met
            m_curves.clear();
            drawWires();
        }
        [[fallthrough]];
    case Gesture::Move:
        moveBoxes(*event);
        return;
    case Gesture::Wire:
        if (!m_isByKeys) moveWire(event->pos());
        return;
    case Gesture::None:
        viewport()->setCursor(m_isEditable && portAt(event->pos()) ? Qt::CrossCursor : Qt::ArrowCursor);
        return;
    }
}

void GraphView::moveBoxes(const QMouseEvent& event) {
    const QPointF by = mapToScene(event.pos()) - m_pressedScene;
    std::vector<QRectF> places;
    for (const std::size_t index : m_chosen) {
        const BoxKind kind = m_level.boxes[index].kind;
        if (kind == BoxKind::Input || kind == BoxKind::Output) continue; // they follow their cells
        places.push_back(m_items[index]->sceneRect());
        const QPointF wanted = m_before[index] + by;
        const bool isFree = event.modifiers().testFlag(Qt::AltModifier); // of the grid
        m_items[index]->setPos(isFree ? wanted : QPointF(snapped(wanted.x()), snapped(wanted.y())));
    }
    redrawWires(m_chosen, places);
    Q_EMIT placed();
    lookForWireUnder(event.pos());
}

/// The wire that the one dragged cell would be put on: under the pointer, or under its middle.
void GraphView::lookForWireUnder(const QPoint& position) {
    const auto cells = chosenCells();
    if (cells.size() != 1) return;
    auto wire = wireAt(position, cells);
    if (!wire)
        wire = m_wires->near(m_items[*m_chosen.begin()]->pos(), kDropReach / transform().m11(), [&](std::size_t index) {
            const LevelWire& about = m_level.wires[index];
            return about.from != *m_chosen.begin() && about.to != *m_chosen.begin();
        });
    if (wire == m_wires->lit()) return;
    m_refusal = wire && m_insertJudge ? m_insertJudge(*cells.begin(), m_level.wires[*wire].wire).reason : QString();
    light(wire, !m_refusal.isEmpty());
    if (m_refusal.isEmpty()) QToolTip::hideText();
    else QToolTip::showText(viewport()->mapToGlobal(position + QPoint(12, 12)), m_refusal, viewport(), {}, 60'000);
}

void GraphView::mouseReleaseEvent(QMouseEvent* event) {
    switch (m_gesture) {
    case Gesture::Band: {
        const QRectF band = m_band->rect();
        std::set<std::size_t> next = m_chosen;
        for (std::size_t i = 0; i < m_items.size(); ++i)
            if (band.intersects(m_items[i]->sceneRect())) next.insert(i);
        const bool isWide = band.width() > 3 || band.height() > 3;
        endGesture();
        if (isWide) setChosen(next);
        return;
    }
    case Gesture::Move: {
        const auto wire = litWire();
        const auto cells = chosenCells();
        const QString refusal = m_refusal;
        endGesture();
        if (wire && cells.size() == 1 && refusal.isEmpty()) Q_EMIT cellDroppedOnWire(fromUtf8(*cells.begin()), *wire, positions());
        else Q_EMIT moved(positions());
        if (!refusal.isEmpty()) Q_EMIT refused(refusal);
        return;
    }
    case Gesture::Press: { // a click among several chosen ones means this one
        endGesture();
        const bool adds = event->modifiers() & (Qt::ShiftModifier | Qt::ControlModifier);
        if (const auto box = boxAt(event->pos()); box && !adds && m_chosen.size() > 1) setChosen({*box});
        return;
    }
    case Gesture::Wire:
        if (!m_isByKeys) endWire(event->pos());
        return;
    case Gesture::Pan:
        endGesture();
        return;
    case Gesture::None:
        return;
    }
}

void GraphView::mouseDoubleClickEvent(QMouseEvent* event) {
    if (event->button() != Qt::LeftButton) return;
    if (const auto box = boxAt(event->pos())) Q_EMIT stepInRequested(*box);
    else if (m_isEditable && !wireAt(event->pos())) Q_EMIT searchRequested(mapToScene(event->pos()));
}

void GraphView::contextMenuEvent(QContextMenuEvent* event) {
    if (m_isEditable) Q_EMIT menuRequested(event->globalPos());
}

void GraphView::wheelEvent(QWheelEvent* event) {
    if (event->modifiers() & Qt::ShiftModifier) {
        horizontalScrollBar()->setValue(horizontalScrollBar()->value() - event->angleDelta().y() - event->angleDelta().x());
    } else if (event->angleDelta().y() != 0) {
        zoomBy(std::pow(1.0015, event->angleDelta().y()), event->position().toPoint());
    }
    event->accept();
}

void GraphView::nudge(QPointF by) {
    const auto cells = chosenCells();
    if (cells.empty() || !m_isEditable) return;
    for (const std::size_t index : m_chosen)
        if (cells.contains(m_level.boxes[index].name)) m_items[index]->setPos(m_items[index]->pos() + by);
    Q_EMIT moved(positions());
}

// ---- a cell type dragged here ----

void GraphView::dragEnterEvent(QDragEnterEvent* event) {
    if (m_isEditable && event->mimeData()->hasFormat(QLatin1String(kCellMime))) event->acceptProposedAction();
    else event->ignore();
}

void GraphView::dragMoveEvent(QDragMoveEvent* event) {
    light(wireAt(event->position().toPoint()));
    event->acceptProposedAction();
}

void GraphView::dragLeaveEvent(QDragLeaveEvent*) {
    light({});
}

void GraphView::dropEvent(QDropEvent* event) {
    const auto wire = litWire();
    light({});
    event->acceptProposedAction();
    const QPointF at = mapToScene(event->position().toPoint());
    Q_EMIT typeDropped(QString::fromUtf8(event->mimeData()->data(QLatin1String(kCellMime))), {snapped(at.x()), snapped(at.y())}, wire);
}

// ---- drawing ----

bool GraphView::viewportEvent(QEvent* event) {
    if (event->type() == QEvent::ToolTip && m_gesture == Gesture::None) {
        const auto* help = static_cast<QHelpEvent*>(event);
        if (const auto ref = portAt(help->pos())) {
            const LevelPort& port = (ref->isOutput ? m_level.boxes[ref->box].outputs : m_level.boxes[ref->box].inputs)[ref->index];
            QString text = fromUtf8(port.name.empty() ? m_level.boxes[ref->box].name : port.name);
            if (port.shape) text += QStringLiteral("  ") + fromUtf8(graph::toString(*port.shape));
            text += QStringLiteral("  ") + (port.dtype.empty() ? tr("not a port of this cell") : fromUtf8(port.dtype));
            if (port.isOptional && !port.dtype.empty()) text += QStringLiteral("  ") + tr("optional");
            QToolTip::showText(help->globalPos(), text, viewport());
            return true;
        }
        const auto box = boxAt(help->pos());
        if (box && !m_items[*box]->failure().isEmpty()) {
            QToolTip::showText(help->globalPos(), m_items[*box]->failure(), viewport());
            return true;
        }
        if (const auto wire = box ? std::nullopt : wireAt(help->pos()); wire && *wire < m_notes.size() && !m_notes[*wire].first.isEmpty()) {
            QToolTip::showText(help->globalPos(), m_notes[*wire].first + QLatin1Char('\n') + m_notes[*wire].second, viewport()); // also of one that has no room
            return true;
        }
    }
    return QGraphicsView::viewportEvent(event);
}

void GraphView::drawBackground(QPainter* painter, const QRectF& rect) {
    painter->setRenderHint(QPainter::Antialiasing, false);
    painter->fillRect(rect, m_style.window);
    if (transform().m11() < 0.5) return;
    constexpr double gap = 24;
    QPen pen(m_style.border, devicePixelRatioF());
    pen.setCosmetic(true);
    painter->setPen(pen);
    QList<QPointF> dots;
    for (double x = std::floor(rect.left() / gap) * gap; x < rect.right(); x += gap) {
        for (double y = std::floor(rect.top() / gap) * gap; y < rect.bottom(); y += gap) dots.append({x, y});
    }
    painter->drawPoints(dots.constData(), static_cast<int>(dots.size()));
}

void GraphView::drawForeground(QPainter* painter, const QRectF&) {
    if (!m_items.empty() || !m_isEditable || !m_level.graph) return;
    painter->save();
    painter->resetTransform();
    painter->setPen(m_style.muted);
    painter->drawText(viewport()->rect().adjusted(24, 24, -24, -24), Qt::AlignCenter | Qt::TextWordWrap,
                      tr("Nothing here yet.\n\nCtrl+K inserts an input or a cell; the next one follows the one that is chosen.\nOr drag from the list on the left, or paste nn.Cell or nn.Module classes."));
    painter->restore();
}

} // namespace celloom::ui
