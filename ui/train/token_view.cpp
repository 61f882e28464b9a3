#include "ui/train/token_view.h"

#include "ui/common/format.h"
#include "ui/common/theme.h"

#include <QHelpEvent>
#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QScrollBar>
#include <QToolTip>

#include <algorithm>

namespace celloom::ui {

namespace {

constexpr int kMargin = 14, kPad = 3, kGap = 1, kLineGap = 5, kHeadingHeight = 30, kSegmentGap = 12;

QColor withAlpha(QColor color, int alpha) {
    color.setAlpha(alpha);
    return color;
}

} // namespace

TokenView::TokenView(Theme& theme, QWidget* parent) : QAbstractScrollArea(parent), m_theme(theme) {
    setProperty("role", QStringLiteral("tokens"));
    setFocusPolicy(Qt::StrongFocus);
    setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    setVerticalScrollBarPolicy(Qt::ScrollBarAlwaysOn); // the width stays while rows are laid out
    viewport()->setMouseTracking(true);
    connect(&theme, &Theme::changed, viewport(), qOverload<>(&QWidget::update));
}

void TokenView::setRows(std::vector<PreviewRow> rows) {
    m_rows = std::move(rows);
    m_current.reset();
    arrange();
    verticalScrollBar()->setValue(0);
}

void TokenView::arrange() {
    m_boxes.clear();
    m_headings.clear();
    const int width = viewport()->width();
    int y = kMargin / 2;
    for (std::size_t row = 0; row < m_rows.size(); ++row) arrangeRow(row, y, width);
    verticalScrollBar()->setRange(0, std::max(0, y + kMargin - viewport()->height()));
    verticalScrollBar()->setPageStep(viewport()->height());
    verticalScrollBar()->setSingleStep(fontMetrics().height() + kLineGap);
    viewport()->update();
}

void TokenView::arrangeRow(std::size_t row, int& y, int width) {
    const QFontMetrics metrics = fontMetrics();
    const int height = metrics.height() + 2 * kPad;
    m_headings.push_back({QRect(kMargin, y, width - 2 * kMargin, kHeadingHeight), row});
    y += kHeadingHeight;
    int x = kMargin;
    const auto breakLine = [&] {
        x = kMargin;
        y += height + kLineGap;
    };
    const std::vector<PreviewToken>& tokens = m_rows[row].tokens;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
        Box box{{}, shownPiece(tokens[i]), {row, i}, i > 0 && tokens[i].segment != tokens[i - 1].segment};
        box.text = metrics.elidedText(box.text, Qt::ElideRight, width - 2 * kMargin - 2 * kPad);
        const int wanted = metrics.horizontalAdvance(box.text) + 2 * kPad + (tokens[i].isSpecial ? 4 : 0);
        if (box.beginsSegment) x += kSegmentGap;
        if (x + wanted > width - kMargin && x > kMargin) breakLine();
        box.rect = QRect(x, y, wanted, height);
        x += wanted + kGap;
        const bool endsLine = box.text == QStringLiteral("⏎");
        m_boxes.push_back(std::move(box));
        if (endsLine && i + 1 < tokens.size()) breakLine();
    }
    y += height + 2 * kLineGap;
}

QString TokenView::headingText(const PreviewRow& row, std::size_t index) const {
    QStringList parts{tr("Row %1").arg(index + 1), tr("%n token(s)", "", static_cast<int>(row.tokens.size())),
                      tr("%1 learned").arg(Format::count(row.learned()))};
    if (row.segments() > 1) parts.append(tr("%n document(s)", "", static_cast<int>(row.segments())));
    if (row.padding > 0) parts.append(tr("%1 of padding").arg(Format::count(row.padding)));
    return parts.join(QStringLiteral(" · "));
}

void TokenView::paintEvent(QPaintEvent* event) {
    QPainter painter(viewport());
    painter.setRenderHint(QPainter::Antialiasing);
    painter.fillRect(event->rect(), m_theme.color("field"));
    const int offset = verticalScrollBar()->value();
    painter.translate(0, -offset);
    const QRect seen = event->rect().translated(0, offset);
    QFont bold = font();
    bold.setBold(true);
    for (const Heading& heading : m_headings) {
        if (!heading.rect.intersects(seen)) continue;
        painter.setFont(bold);
        painter.setPen(m_theme.color("muted"));
        painter.drawText(heading.rect, Qt::AlignLeft | Qt::AlignVCenter, headingText(m_rows[heading.row], heading.row));
    }
    painter.setFont(font());
    const auto first = std::partition_point(m_boxes.begin(), m_boxes.end(), [&](const Box& box) { return box.rect.bottom() < seen.top(); });
    for (auto box = first; box != m_boxes.end() && box->rect.top() <= seen.bottom(); ++box) paintBox(painter, *box);
}

void TokenView::paintBox(QPainter& painter, const Box& box) const {
    const PreviewToken& token = m_rows[box.place.row].tokens[box.place.token];
    const bool isOdd = box.place.token % 2 == 1;
    const int strength = m_theme.isDark() ? 110 : 64;
    const QColor tint = token.isLearned ? withAlpha(m_theme.color(isOdd ? "teal" : "blue"), strength)
                                        : withAlpha(m_theme.color("slate"), isOdd ? strength / 2 : strength / 4);
    painter.setPen(Qt::NoPen);
    painter.setBrush(tint);
    painter.drawRoundedRect(box.rect, 3, 3);
    if (box.beginsSegment) {
        painter.setBrush(m_theme.color("orange"));
        painter.drawRect(QRect(box.rect.left() - kSegmentGap / 2 - 1, box.rect.top() - 2, 2, box.rect.height() + 4));
    }
    const bool isCurrent = m_current && *m_current == box.place;
    if (token.isSpecial || isCurrent) {
        painter.setPen(QPen(isCurrent && hasFocus() ? m_theme.color("accent") : m_theme.color(token.isSpecial ? "violet" : "borderStrong"),
                            isCurrent ? 2 : 1));
        painter.setBrush(Qt::NoBrush);
        painter.drawRoundedRect(QRectF(box.rect).adjusted(0.5, 0.5, -0.5, -0.5), 3, 3);
    }
    painter.setPen(m_theme.color(token.isSpecial ? "violet" : token.isLearned ? "text" : "muted"));
    painter.drawText(box.rect, Qt::AlignCenter, box.text);
}

QString TokenView::describe(const Place& place) const {
    const PreviewRow& row = m_rows[place.row];
    const PreviewToken& token = row.tokens[place.token];
    QStringList parts{tr("“%1”, token %2").arg(token.piece, Format::count(token.id)),
                      tr("row %1, position %2").arg(place.row + 1).arg(token.position)};
    if (row.segments() > 1) {
        std::int64_t document = 1;
        for (std::size_t i = 1; i <= place.token; ++i) document += row.tokens[i].segment != row.tokens[i - 1].segment ? 1 : 0;
        parts.append(tr("document %1").arg(document));
    }
    parts.append(token.isLearned ? tr("learned: its label counts") : tr("not learned"));
    if (token.isSpecial) parts.append(tr("a mark, not text"));
    return parts.join(QStringLiteral(" · "));
}

QRect TokenView::rectOf(const Place& place) const {
    const std::size_t index = boxIndex(place);
    return index < m_boxes.size() ? m_boxes[index].rect.translated(0, -verticalScrollBar()->value()) : QRect();
}

const TokenView::Box* TokenView::boxAt(const QPoint& inViewport) const {
    const QPoint point = inViewport + QPoint(0, verticalScrollBar()->value());
    const auto first = std::partition_point(m_boxes.begin(), m_boxes.end(), [&](const Box& box) { return box.rect.bottom() < point.y(); });
    for (auto box = first; box != m_boxes.end() && box->rect.top() <= point.y(); ++box)
        if (box->rect.contains(point)) return &*box;
    return nullptr;
}

std::size_t TokenView::boxIndex(const Place& place) const {
    const auto found = std::find_if(m_boxes.begin(), m_boxes.end(), [&](const Box& box) { return box.place == place; });
    return static_cast<std::size_t>(found - m_boxes.begin());
}

void TokenView::setCurrent(std::size_t box) {
    if (box >= m_boxes.size()) return;
    m_current = m_boxes[box].place;
    const QRect rect = m_boxes[box].rect;
    QScrollBar* bar = verticalScrollBar();
    if (rect.top() - kHeadingHeight < bar->value()) bar->setValue(rect.top() - kHeadingHeight);
    if (rect.bottom() + kLineGap > bar->value() + viewport()->height()) bar->setValue(rect.bottom() + kLineGap - viewport()->height());
    viewport()->update();
    Q_EMIT described(describe(*m_current));
}

void TokenView::moveBy(int step) {
    if (m_boxes.empty()) return;
    if (!m_current) return setCurrent(0);
    const auto now = static_cast<std::ptrdiff_t>(boxIndex(*m_current));
    setCurrent(static_cast<std::size_t>(std::clamp<std::ptrdiff_t>(now + step, 0, std::ssize(m_boxes) - 1)));
}

/// To the token above or below, the nearest by its middle.
void TokenView::moveVertically(int direction) {
    if (m_boxes.empty()) return;
    if (!m_current) return setCurrent(0);
    const std::size_t now = boxIndex(*m_current);
    const QRect from = m_boxes[now].rect;
    std::optional<std::size_t> best;
    int line = 0;
    for (auto i = static_cast<std::ptrdiff_t>(now) + direction; i >= 0 && i < std::ssize(m_boxes); i += direction) {
        const QRect rect = m_boxes[static_cast<std::size_t>(i)].rect;
        if (rect.top() == from.top()) continue;
        if (!best) line = rect.top();
        if (rect.top() != line) break;
        const auto distance = [&](const QRect& one) { return std::abs(one.center().x() - from.center().x()); };
        if (!best || distance(rect) < distance(m_boxes[*best].rect)) best = static_cast<std::size_t>(i);
    }
    if (best) setCurrent(*best);
}

void TokenView::keyPressEvent(QKeyEvent* event) {
    switch (event->key()) {
    case Qt::Key_Right:
        moveBy(1);
        return;
    case Qt::Key_Left:
        moveBy(-1);
        return;
    case Qt::Key_Down:
        moveVertically(1);
        return;
    case Qt::Key_Up:
        moveVertically(-1);
        return;
    case Qt::Key_Home:
        setCurrent(0);
        return;
    case Qt::Key_End:
        if (!m_boxes.empty()) setCurrent(m_boxes.size() - 1);
        return;
    default:
        QAbstractScrollArea::keyPressEvent(event);
    }
}

void TokenView::mouseMoveEvent(QMouseEvent* event) {
    if (const Box* box = boxAt(event->pos()))
        Q_EMIT described(describe(box->place));
    else
        Q_EMIT described(m_current ? describe(*m_current) : QString());
}

void TokenView::mousePressEvent(QMouseEvent* event) {
    if (const Box* box = boxAt(event->pos())) setCurrent(static_cast<std::size_t>(box - m_boxes.data()));
}

void TokenView::focusInEvent(QFocusEvent* event) {
    QAbstractScrollArea::focusInEvent(event);
    viewport()->update();
}

bool TokenView::viewportEvent(QEvent* event) {
    if (event->type() == QEvent::ToolTip) {
        const auto* help = static_cast<QHelpEvent*>(event);
        const Box* box = boxAt(help->pos());
        if (box)
            QToolTip::showText(help->globalPos(), describe(box->place), viewport(), box->rect.translated(0, -verticalScrollBar()->value()));
        else
            QToolTip::hideText();
        return true;
    }
    return QAbstractScrollArea::viewportEvent(event);
}

void TokenView::resizeEvent(QResizeEvent* event) {
    QAbstractScrollArea::resizeEvent(event);
    arrange();
}

void TokenView::changeEvent(QEvent* event) {
    QAbstractScrollArea::changeEvent(event);
    if (event->type() == QEvent::FontChange || event->type() == QEvent::StyleChange || event->type() == QEvent::LanguageChange) arrange();
}

} // namespace celloom::ui
