// The canvas by keys: everything that the mouse can do there, and what is told of it to those who do not see it.
#include "ui/editor/graph_view.h"

#include "ui/common/format.h"
#include "ui/common/widgets.h"

#include <QFocusEvent>
#include <QKeyEvent>
#include <QScrollBar>
#include <QToolTip>

#include <algorithm>
#include <cmath>

namespace celloom::ui {

namespace {

constexpr double kGrid = 8;   // of a step of a box
constexpr int kPanStep = 60;  // pixels
constexpr std::size_t kListed = 9; // ports at once, while a wire looks for its end
constexpr double kAside = 2;  // what lies aside counts as this much farther away

QPointF directionOf(int key) {
    switch (key) {
    case Qt::Key_Left: return {-1, 0};
    case Qt::Key_Right: return {1, 0};
    case Qt::Key_Up: return {0, -1};
    default: return {0, 1};
    }
}

/// How well a point lies in a direction; below 0 where it does not.
double farAway(QPointF off, QPointF direction) {
    const double along = QPointF::dotProduct(off, direction), aside = std::abs(off.x() * direction.y() - off.y() * direction.x());
    return along <= 1 || aside > 3 * along ? -1 : along + kAside * aside;
}

} // namespace

// ---- choosing ----

void GraphView::chooseTowards(int key, bool adds) {
    if (m_items.empty() || !m_isShown) return;
    if (m_chosen.empty()) {
        choose(0);
        return;
    }
    const std::size_t from = m_cursor && m_chosen.contains(*m_cursor) ? *m_cursor : *m_chosen.begin();
    std::optional<std::size_t> best;
    double nearest = 0;
    for (std::size_t i = 0; i < m_items.size(); ++i) {
        const double distance = i == from ? -1 : farAway(m_items[i]->pos() - m_items[from]->pos(), directionOf(key));
        if (distance < 0 || (best && distance >= nearest)) continue;
        best = i;
        nearest = distance;
    }
    if (!best) return;
    std::set<std::size_t> next = adds ? m_chosen : std::set<std::size_t>{};
    next.insert(*best);
    setChosen(next);
    m_cursor = best;
    ensureVisible(m_items[*best], 30, 30);
    announce(describe(*best));
}

/// The wires of the chosen box, one after the other; of a wire that is chosen, those at its source.
void GraphView::chooseNextWire() {
    const auto box = m_cursor ? m_cursor : chosen();
    if (!box) return;
    std::vector<std::size_t> wires;
    for (std::size_t i = 0; i < m_level.wires.size(); ++i)
        if (m_level.wires[i].from == *box || m_level.wires[i].to == *box) wires.push_back(i);
    if (wires.empty()) return;
    const auto now = m_chosenWire ? std::find(wires.begin(), wires.end(), *m_chosenWire) : wires.end();
    const std::size_t next = now == wires.end() || now + 1 == wires.end() ? wires.front() : *(now + 1);
    const std::size_t kept = *box;
    setChosen({}, next);
    m_cursor = kept;
    const graph::Wire& wire = m_level.wires[next].wire;
    announce(tr("Wire from %1 to %2").arg(endText(wire.from), endText(wire.to)));
}

// ---- a wire from port to port ----

QString GraphView::endText(const graph::Endpoint& end) const {
    return fromUtf8(end.cell.empty() ? end.port : end.cell + "." + end.port);
}

void GraphView::beginWireByKeys(bool fromInput) {
    const auto box = chosen();
    if (!box || !m_isEditable || !m_isShown) return;
    const auto count = (fromInput ? m_level.boxes[*box].inputs : m_level.boxes[*box].outputs).size();
    if (count == 0) {
        announce(fromInput ? tr("The box has no input.") : tr("The box has no output."), *box);
        return;
    }
    std::size_t port = 0; // the same key again: the next port
    if (m_gesture == Gesture::Wire && m_wireFrom->box == *box && m_wireFrom->isOutput == !fromInput) port = (m_wireFrom->index + 1) % count;
    endGesture();
    m_isByKeys = true;
    beginWire({*box, !fromInput, port}, {});
    m_targets.clear();
    const QPointF start = scenePoint(*m_wireFrom);
    std::vector<std::pair<double, Target>> found;
    for (std::size_t i = 0; i < m_items.size(); ++i)
        for (std::size_t p = 0; p < (fromInput ? m_level.boxes[i].outputs : m_level.boxes[i].inputs).size(); ++p) {
            const PortRef target{i, fromInput, p};
            const auto wire = wireBetween(*m_wireFrom, target);
            if (!wire) continue;
            const QPointF off = scenePoint(target) - start;
            found.emplace_back(std::hypot(off.x(), off.y()), Target{target, !m_judge || m_judge(*wire, false).isFit, {}});
        }
    std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return std::pair(!a.second.isFit, a.first) < std::pair(!b.second.isFit, b.first); });
    for (const auto& [distance, target] : found) m_targets.push_back(target);
    if (m_targets.empty()) {
        endGesture();
        announce(tr("There is no port for a wire of %1.").arg(endText(endpointOf({*box, !fromInput, port}))), *box);
        return;
    }
    m_target = 0;
    showTarget();
}

/// Why a port does not take the wire; empty where it does, or could while more is to be wired.
const QString& GraphView::reasonOf(Target& target) {
    if (!target.reason) {
        target.reason = m_judge ? m_judge(*wireBetween(*m_wireFrom, target.port), true).reason : QString();
        if (!target.isFit && target.reason->isEmpty()) target.reason = tr("The kinds of numbers or the shapes do not fit.");
    }
    return *target.reason;
}

/// The ports around the one that is chosen; those that do not fit are dimmed and say why.
QString GraphView::targetList() {
    const std::size_t first = m_target < kListed / 2 ? 0 : std::min(m_target - kListed / 2, m_targets.size() > kListed ? m_targets.size() - kListed : 0);
    QString rows;
    for (std::size_t i = first; i < std::min(m_targets.size(), first + kListed); ++i) {
        Target& target = m_targets[i];
        QString row = endText(endpointOf(target.port)).toHtmlEscaped();
        if (!target.isFit) row = QStringLiteral("<span style='color:%1'>%2 – %3</span>").arg(m_style.muted.name(), row, reasonOf(target).toHtmlEscaped());
        rows += QStringLiteral("<div>%1</div>").arg(i == m_target ? QStringLiteral("<b>▸ %1</b>").arg(row) : row);
    }
    return rows;
}

void GraphView::showTarget() {
    Target& target = m_targets[m_target];
    const auto wire = wireBetween(*m_wireFrom, target.port);
    const QString& reason = reasonOf(target);
    ensureVisible(m_items[target.port.box], 30, 30);
    drawDraft(scenePoint(target.port), reason);
    QString text = tr("Wire from %1 to %2, %3 of %4").arg(endText(wire->from), endText(wire->to)).arg(m_target + 1).arg(m_targets.size());
    if (!target.isFit) text += QStringLiteral(". ") + tr("Does not fit: %1").arg(reason);
    else if (!reason.isEmpty()) text += QStringLiteral(". ") + reason;
    else if (std::any_of(m_level.wires.begin(), m_level.wires.end(), [&](const LevelWire& old) { return old.wire.to == wire->to; })) text += QStringLiteral(". ") + tr("It replaces the wire there.");
    const QString help = tr("Arrows or Tab: another port. Enter: take it. Escape: no wire.");
    announce(text + QLatin1Char('\n') + help, target.port.box,
             QStringLiteral("<div>%1</div><hr>%2<hr><div>%3</div>").arg(text.toHtmlEscaped(), targetList(), help.toHtmlEscaped()));
}

bool GraphView::wireKey(const QKeyEvent* event) {
    if (m_gesture != Gesture::Wire || !m_isByKeys) return false;
    const std::size_t count = m_targets.size();
    switch (event->key()) {
    case Qt::Key_Tab:
    case Qt::Key_Down:
    case Qt::Key_Right:
        m_target = (m_target + 1) % count;
        showTarget();
        return true;
    case Qt::Key_Backtab:
    case Qt::Key_Up:
    case Qt::Key_Left:
        m_target = (m_target + count - 1) % count;
        showTarget();
        return true;
    case Qt::Key_Return:
    case Qt::Key_Enter: {
        if (!m_targets[m_target].isFit) return true; // it says why
        const auto wire = wireBetween(*m_wireFrom, m_targets[m_target].port);
        endGesture();
        Q_EMIT wireDrawn(*wire, std::nullopt);
        return true;
    }
    default:
        return false;
    }
}

// ---- telling ----

QString GraphView::describe(std::size_t index) const {
    const LevelBox& box = m_level.boxes[index];
    QStringList parts{fromUtf8(box.name), box.kind == BoxKind::Input ? tr("input") : box.kind == BoxKind::Output ? tr("output") : fromUtf8(box.type)};
    if (!box.shape.empty()) parts.append(fromUtf8(box.shape));
    QStringList fed, feeds;
    for (const LevelWire& wire : m_level.wires) {
        if (wire.to == index) fed.append(fromUtf8(m_level.boxes[wire.from].name));
        if (wire.from == index) feeds.append(fromUtf8(m_level.boxes[wire.to].name));
    }
    if (!fed.isEmpty()) parts.append(tr("fed by %1").arg(fed.join(QStringLiteral(", "))));
    if (!feeds.isEmpty()) parts.append(tr("feeds %1").arg(feeds.join(QStringLiteral(", "))));
    if (!m_items[index]->failure().isEmpty()) parts.append(m_items[index]->failure());
    return parts.join(QStringLiteral(", "));
}

/// A screen reader reads the description when it changes; what concerns a wire is shown, too.
void GraphView::announce(const QString& text, std::optional<std::size_t> beside, const QString& shown) {
    setAccessibleDescription(text);
    if (beside) QToolTip::showText(viewport()->mapToGlobal(mapFromScene(m_items[*beside]->sceneRect().bottomLeft()) + QPoint(0, 8)), shown.isEmpty() ? text : shown, viewport(), {}, 60'000);
}

void GraphView::focusInEvent(QFocusEvent* event) {
    QGraphicsView::focusInEvent(event);
    const bool isByKeys = event->reason() == Qt::TabFocusReason || event->reason() == Qt::BacktabFocusReason || event->reason() == Qt::ShortcutFocusReason;
    setLook(this, "keys", isByKeys);
}

void GraphView::focusOutEvent(QFocusEvent* event) {
    QGraphicsView::focusOutEvent(event);
    setLook(this, "keys", false);
    if (m_isByKeys && event->reason() != Qt::PopupFocusReason) endGesture();
}

/// Tab leaves the canvas, unless a wire looks for its end.
bool GraphView::event(QEvent* event) {
    if (event->type() == QEvent::KeyPress && wireKey(static_cast<QKeyEvent*>(event))) return true;
    return QGraphicsView::event(event);
}

void GraphView::keyPressEvent(QKeyEvent* event) {
    const bool isArrow = event->key() == Qt::Key_Left || event->key() == Qt::Key_Right || event->key() == Qt::Key_Up || event->key() == Qt::Key_Down;
    if (isArrow) {
        const QPointF direction = directionOf(event->key());
        if (event->modifiers().testFlag(Qt::ControlModifier)) nudge(direction * kGrid);
        else if (event->modifiers().testFlag(Qt::AltModifier)) lookAt(middle() + direction * kPanStep / transform().m11());
        else chooseTowards(event->key(), event->modifiers().testFlag(Qt::ShiftModifier));
        return;
    }
    switch (event->key()) {
    case Qt::Key_PageDown:
    case Qt::Key_PageUp:
        chooseNext(event->key() == Qt::Key_PageDown ? 1 : -1);
        return;
    case Qt::Key_Home:
    case Qt::Key_End:
        if (!m_items.empty()) choose(event->key() == Qt::Key_Home ? 0 : m_items.size() - 1);
        return;
    case Qt::Key_W:
        if (event->modifiers() & (Qt::ControlModifier | Qt::AltModifier)) break;
        beginWireByKeys(event->modifiers().testFlag(Qt::ShiftModifier));
        return;
    case Qt::Key_E:
        if (event->modifiers() != Qt::NoModifier) break;
        chooseNextWire();
        return;
    case Qt::Key_Return:
    case Qt::Key_Enter:
        if (const auto box = chosen()) Q_EMIT stepInRequested(*box);
        return;
    case Qt::Key_Escape:
        escape();
        return;
    case Qt::Key_Backspace:
        if (m_chosen.empty() && !m_chosenWire) {
            Q_EMIT stepOutRequested();
            return;
        }
        break;
    case Qt::Key_Plus:
    case Qt::Key_Equal:
        zoomBy(1.2);
        return;
    case Qt::Key_Minus:
        zoomBy(1 / 1.2);
        return;
    case Qt::Key_0:
    case Qt::Key_ParenRight: // with Shift on most keyboards
        if (event->modifiers().testFlag(Qt::ShiftModifier)) fitAll();
        else fit();
        return;
    default:
        break;
    }
    QGraphicsView::keyPressEvent(event);
}

/// Calls off what is under way, else steps out.
void GraphView::escape() {
    if (m_gesture == Gesture::None) {
        Q_EMIT stepOutRequested();
        return;
    }
    if (m_gesture == Gesture::Move)
        for (std::size_t i = 0; i < m_items.size(); ++i) m_items[i]->setPos(m_before[i]);
    endGesture();
    drawWires();
}

} // namespace celloom::ui
