#include "ui/history/runs_view.h"

#include "ui/common/format.h"
#include "ui/common/theme.h"
#include "ui/history/runs_model.h"

#include <QHeaderView>
#include <QStyledItemDelegate>
#include <QTableView>

namespace celloom::ui {

namespace {

/// Draws a run's state in its colour.
class StateDelegate : public QStyledItemDelegate {
public:
    StateDelegate(Theme& theme, QObject* parent) : QStyledItemDelegate(parent), m_theme(theme) {}

protected:
    void initStyleOption(QStyleOptionViewItem* option, const QModelIndex& index) const override {
        QStyledItemDelegate::initStyleOption(option, index);
        option->state &= ~QStyle::State_HasFocus; // the row shows the focus
        const auto state = static_cast<store::RunState>(index.data(RunsModel::StateRole).toInt());
        const QString look = QString::fromLatin1(Format::stateLook(state));
        const char* color = look == QLatin1String("good")      ? "good"
                            : look == QLatin1String("busy")    ? "accent"
                            : look == QLatin1String("warning") ? "warning"
                            : look == QLatin1String("bad")     ? "bad"
                                                               : "muted";
        option->palette.setColor(QPalette::Text, m_theme.color(color));
        option->palette.setColor(QPalette::HighlightedText, m_theme.color(color));
    }

private:
    Theme& m_theme;
};

class PlainDelegate : public QStyledItemDelegate {
public:
    using QStyledItemDelegate::QStyledItemDelegate;

protected:
    void initStyleOption(QStyleOptionViewItem* option, const QModelIndex& index) const override {
        QStyledItemDelegate::initStyleOption(option, index);
        option->state &= ~QStyle::State_HasFocus;
    }
};

} // namespace

QTableView* makeRunsView(Theme& theme, QWidget* parent) {
    auto* view = new QTableView(parent);
    view->setShowGrid(false);
    view->setSelectionBehavior(QAbstractItemView::SelectRows);
    view->setSelectionMode(QAbstractItemView::SingleSelection);
    view->setEditTriggers(QAbstractItemView::NoEditTriggers);
    view->setTabKeyNavigation(false);
    view->setWordWrap(false);
    view->setItemDelegate(new PlainDelegate(view));
    view->setItemDelegateForColumn(RunsModel::State, new StateDelegate(theme, view));
    view->setHorizontalScrollMode(QAbstractItemView::ScrollPerPixel);
    view->verticalHeader()->hide();
    view->verticalHeader()->setDefaultSectionSize(28);
    view->horizontalHeader()->setHighlightSections(false);
    return view;
}

void setRunsViewWidths(QTableView& view) {
    static constexpr int widths[RunsModel::kColumns] = {50, 132, 76, 92, 92, 78, 62, 56, 78, 72, 56, 90, 130, 50};
    for (int column = 0; column < RunsModel::kColumns; ++column) view.setColumnWidth(column, widths[column]);
}

} // namespace celloom::ui
