#include "ui/editor/problems_tab.h"

#include "ui/common/format.h"
#include "ui/common/theme.h"
#include "ui/common/widgets.h"
#include "ui/shell/services.h"

#include <QEvent>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QKeyEvent>
#include <QMenu>
#include <QPainter>
#include <QStackedLayout>
#include <QStyledItemDelegate>
#include <QToolButton>
#include <QTreeWidget>

#include <algorithm>

namespace celloom::ui {

namespace {

enum Column { Text, Place, Mend };
constexpr int kHintRole = Qt::UserRole, kRowRole = Qt::UserRole + 1;
constexpr int kRowHeight = 40, kPlaceWidth = 190, kMendWidth = 250, kMargin = 8;

/// Message and hint in two lines; the place as a link.
class ProblemDelegate : public QStyledItemDelegate {
public:
    ProblemDelegate(Theme& theme, QObject* parent) : QStyledItemDelegate(parent), m_theme(theme) {}

    QSize sizeHint(const QStyleOptionViewItem& option, const QModelIndex&) const override { return {0, std::max(kRowHeight, option.fontMetrics.height() * 2 + 6)}; }

    void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override {
        painter->save();
        if (option.state & QStyle::State_Selected) painter->fillRect(option.rect, m_theme.color("accentSoft"));
        QRect area = option.rect.adjusted(kMargin, 2, -kMargin, -2);
        const QFontMetrics metrics = option.fontMetrics;
        if (index.column() == Text) {
            const QRect icon(area.left(), area.top() + (area.height() - 16) / 2, 16, 16);
            index.data(Qt::DecorationRole).value<QIcon>().paint(painter, icon);
            area.setLeft(icon.right() + kMargin);
            const QString hint = index.data(kHintRole).toString();
            const QRect first = hint.isEmpty() ? area : QRect(area.left(), area.top(), area.width(), area.height() / 2);
            painter->setPen(m_theme.color("text"));
            painter->drawText(first, Qt::AlignVCenter, metrics.elidedText(index.data().toString(), Qt::ElideRight, first.width()));
            if (!hint.isEmpty()) {
                const QRect second(area.left(), first.bottom(), area.width(), area.height() - first.height());
                painter->setPen(m_theme.color("muted"));
                painter->drawText(second, Qt::AlignVCenter, metrics.elidedText(hint, Qt::ElideRight, second.width()));
            }
        } else if (index.column() == Place) {
            painter->setPen(m_theme.color("accent"));
            painter->drawText(area, Qt::AlignVCenter | Qt::AlignRight, metrics.elidedText(index.data().toString(), Qt::ElideMiddle, area.width()));
        }
        painter->restore();
    }

private:
    Theme& m_theme;
};

} // namespace

ProblemsTab::ProblemsTab(Services& services, QWidget* parent) : QWidget(parent), m_services(services) {
    auto* stack = new QStackedLayout(this);
    m_empty = new EmptyState(this);
    m_list = new QTreeWidget(this);
    m_list->setHeaderHidden(true);
    m_list->setRootIsDecorated(false);
    m_list->setColumnCount(3);
    m_list->setUniformRowHeights(true);
    m_list->setItemDelegate(new ProblemDelegate(services.theme, m_list));
    m_list->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    m_list->setVerticalScrollMode(QAbstractItemView::ScrollPerPixel);
    m_list->header()->setStretchLastSection(false);
    m_list->header()->setMinimumSectionSize(10);
    m_list->header()->setSectionResizeMode(Text, QHeaderView::Stretch);
    m_list->header()->setSectionResizeMode(Place, QHeaderView::Fixed);
    m_list->header()->setSectionResizeMode(Mend, QHeaderView::Fixed);
    m_list->header()->resizeSection(Place, kPlaceWidth);
    m_list->header()->resizeSection(Mend, kMendWidth);
    m_list->installEventFilter(this);
    connect(m_list, &QTreeWidget::itemClicked, this, [this](QTreeWidgetItem* item) { jump(item); });
    stack->addWidget(m_empty);
    stack->addWidget(m_list);
    setFocusProxy(m_list);
    connect(&services.theme, &Theme::changed, this, [this] {
        for (std::size_t i = 0; i < m_rows.size(); ++i) fillRow(i);
    });
    m_texts.add([this] {
        m_empty->setTexts(tr("No problems found"), tr("What is wrong with the model is listed here while you build it."));
        m_list->setAccessibleName(tr("Problems of the model"));
    });
}

void ProblemsTab::setRows(std::vector<ProblemRow> rows) {
    if (m_offers) m_offers->close(); // what it offers was found for the rows before
    const auto isSame = [](const ProblemRow& a, const ProblemRow& b) { return a.path == b.path && a.message == b.message; };
    std::optional<ProblemRow> chosen;
    if (const auto* item = m_list->currentItem()) chosen = m_rows[static_cast<std::size_t>(item->data(Text, kRowRole).toInt())];
    const bool hadFocus = m_list->hasFocus();
    m_rows = std::move(rows);
    m_list->clear();
    for (std::size_t i = 0; i < m_rows.size(); ++i) {
        auto* item = new QTreeWidgetItem(m_list);
        item->setData(Text, kRowRole, static_cast<int>(i));
        fillRow(i);
        if (chosen && isSame(*chosen, m_rows[i])) m_list->setCurrentItem(item);
    }
    static_cast<QStackedLayout*>(layout())->setCurrentIndex(m_rows.empty() ? 0 : 1);
    if (hadFocus && !m_rows.empty()) m_list->setFocus();
    if (!m_list->currentItem() && hadFocus && !m_rows.empty()) m_list->setCurrentItem(m_list->topLevelItem(0));
}

void ProblemsTab::setRemedies(std::size_t row, std::vector<Remedy> remedies) {
    if (row >= m_rows.size()) return;
    m_rows[row].remedies = std::move(remedies);
    fillRow(row);
}

void ProblemsTab::fillRow(std::size_t row) {
    const ProblemRow& about = m_rows[row];
    QTreeWidgetItem* item = m_list->topLevelItem(static_cast<int>(row));
    item->setIcon(Text, m_services.theme.icon(QStringLiteral("warning"), about.isError ? "bad" : "warning"));
    item->setText(Text, about.message);
    item->setData(Text, kHintRole, about.hint);
    item->setToolTip(Text, about.hint.isEmpty() ? about.message : about.message + QLatin1Char('\n') + about.hint);
    item->setText(Place, about.place);
    item->setToolTip(Place, about.place);
    QString said = (about.isError ? tr("Error: %1") : tr("Warning: %1")).arg(about.message + QLatin1Char(' ') + about.hint);
    if (!about.remedies.empty()) said += QLatin1Char(' ') + tr("Ctrl+. does: %1").arg(about.remedies.front().title);
    item->setData(Text, Qt::AccessibleTextRole, said);
    if (about.remedies.empty()) {
        m_list->removeItemWidget(item, Mend);
        return;
    }
    // The button does the best of them, the small one beside it shows the others. Ctrl+. is the keyboard's way to both.
    auto* holder = new QWidget(m_list);
    auto* layout = new QHBoxLayout(holder);
    layout->setContentsMargins(0, 0, kMargin, 0);
    layout->setSpacing(0);
    layout->addStretch(1);
    const bool hasMore = about.remedies.size() > 1;
    const QString title = about.remedies.front().title;
    const auto addButton = [&](const QString& name, const QString& text, const QString& said, const QString& tip, const std::function<void()>& run) {
        auto* button = new QToolButton(holder);
        button->setProperty("role", QStringLiteral("link"));
        button->setObjectName(name);
        button->setFocusPolicy(Qt::NoFocus);
        button->setText(text);
        button->setAccessibleName(said);
        button->setToolTip(tip);
        connect(button, &QToolButton::clicked, this, run, Qt::QueuedConnection); // the row may be gone then
        layout->addWidget(button);
    };
    addButton(QStringLiteral("mend:%1").arg(row), fontMetrics().elidedText(title, Qt::ElideRight, kMendWidth - 54), title, tr("%1 (Ctrl+.)").arg(title), [this, row] {
        if (row < m_rows.size() && !m_rows[row].remedies.empty()) std::vector<Remedy>(m_rows[row].remedies).front().run();
    });
    if (hasMore) addButton(QStringLiteral("more:%1").arg(row), QStringLiteral("▾"), tr("Something else that mends it"), tr("Something else that mends it"), [this, row] { mendRow(row); });
    m_list->setItemWidget(item, Mend, holder);
}

void ProblemsTab::jump(const QTreeWidgetItem* item) {
    if (!item) return;
    const ProblemRow row = m_rows[static_cast<std::size_t>(item->data(Text, kRowRole).toInt())];
    if (row.field.isEmpty()) Q_EMIT jumpRequested(row.path);
    else Q_EMIT fieldRequested(row.field);
}

/// One remedy is carried out, several are offered.
void ProblemsTab::mendRow(std::size_t row) {
    if (row >= m_rows.size() || m_rows[row].remedies.empty()) return;
    const std::vector<Remedy> remedies = m_rows[row].remedies; // running one makes the rows anew
    if (remedies.size() == 1) {
        remedies.front().run();
        return;
    }
    if (m_offers) m_offers->close();
    auto* menu = new QMenu(this);
    m_offers = menu;
    menu->setAttribute(Qt::WA_DeleteOnClose);
    for (const Remedy& remedy : remedies) {
        QString text = remedy.title;
        connect(menu->addAction(text.replace(QLatin1Char('&'), QLatin1String("&&"))), &QAction::triggered, this, [run = remedy.run] { run(); });
    }
    menu->setActiveAction(menu->actions().front());
    QTreeWidgetItem* item = m_list->topLevelItem(static_cast<int>(row));
    const QWidget* button = m_list->itemWidget(item, Mend);
    const QWidget* under = button && isVisible() ? button : static_cast<QWidget*>(this);
    menu->popup(under->mapToGlobal(button ? QPoint(0, button->height()) : QPoint(0, 0)));
}

void ProblemsTab::mend(const std::string& path) {
    if (const auto* item = m_list->currentItem(); item && m_list->hasFocus()) {
        mendRow(static_cast<std::size_t>(item->data(Text, kRowRole).toInt()));
        return;
    }
    const auto find = [this](const auto& isWanted) {
        for (std::size_t i = 0; i < m_rows.size(); ++i)
            if (!m_rows[i].remedies.empty() && isWanted(m_rows[i])) return std::optional(i);
        return std::optional<std::size_t>();
    };
    auto row = path.empty() ? std::nullopt : find([&](const ProblemRow& one) { return one.path == path || one.path.starts_with(path + "."); });
    if (!row) row = find([](const ProblemRow&) { return true; });
    if (row) mendRow(*row);
}

void ProblemsTab::goToNext(int direction) {
    const int count = m_list->topLevelItemCount();
    if (count == 0) return;
    const int at = m_list->currentItem() ? m_list->indexOfTopLevelItem(m_list->currentItem()) : direction > 0 ? -1 : count;
    m_list->setCurrentItem(m_list->topLevelItem((at + direction + count) % count));
    jump(m_list->currentItem());
}

bool ProblemsTab::eventFilter(QObject* watched, QEvent* event) {
    if (watched == m_list && event->type() == QEvent::KeyPress) {
        const auto* key = static_cast<QKeyEvent*>(event);
        if (key->key() == Qt::Key_Return || key->key() == Qt::Key_Enter) {
            if (key->modifiers() == Qt::AltModifier) mend({});
            else jump(m_list->currentItem());
            return true;
        }
    }
    if (watched == m_list && event->type() == QEvent::FocusIn && !m_list->currentItem() && m_list->topLevelItemCount() > 0)
        m_list->setCurrentItem(m_list->topLevelItem(0)); // so that one sees where one is
    return false;
}

void ProblemsTab::changeEvent(QEvent* event) {
    QWidget::changeEvent(event);
    if (event->type() != QEvent::LanguageChange) return;
    m_texts.refresh();
    for (std::size_t i = 0; i < m_rows.size(); ++i) fillRow(i);
}

} // namespace celloom::ui
