#include "ui/editor/cost_tab.h"

#include "models/base/text.h"
#include "ui/common/format.h"
#include "ui/common/theme.h"
#include "ui/common/widgets.h"
#include "ui/editor/cost_tree.h"
#include "ui/shell/services.h"

#include <QEvent>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QPainter>
#include <QScrollBar>
#include <QSettings>
#include <QSortFilterProxyModel>
#include <QStyledItemDelegate>
#include <QToolButton>
#include <QTreeView>
#include <QVBoxLayout>

#include <algorithm>
#include <cmath>

namespace celloom::ui {

namespace {

const QString kFoldKey = QStringLiteral("model/cost/folded");
constexpr int kNameWidth = 240, kTypeWidth = 150, kNumberWidth = 124, kBarHeight = 3;

/// A number over a bar: its share of the whole model.
class ShareDelegate : public QStyledItemDelegate {
public:
    ShareDelegate(Theme& theme, QObject* parent) : QStyledItemDelegate(parent), m_theme(theme) {}

    void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override {
        QStyledItemDelegate::paint(painter, option, index);
        const QVariant share = index.data(CostTreeModel::ShareRole);
        if (!share.isValid()) return;
        const QRect track(option.rect.left() + 8, option.rect.bottom() - kBarHeight, option.rect.width() - 14, kBarHeight);
        painter->fillRect(track, m_theme.color("track"));
        const int width = static_cast<int>(std::lround(share.toDouble() * track.width()));
        painter->fillRect(QRect(track.left(), track.top(), width, kBarHeight), m_theme.color("primary"));
    }

    QSize sizeHint(const QStyleOptionViewItem& option, const QModelIndex& index) const override {
        return QStyledItemDelegate::sizeHint(option, index) + QSize(0, kBarHeight);
    }

private:
    Theme& m_theme;
};

} // namespace

CostTab::CostTab(Services& services, QWidget* parent)
    : QWidget(parent), m_services(services), m_model(new CostTreeModel(this)), m_sorted(new QSortFilterProxyModel(this)), m_view(new QTreeView(this)), m_tools(new QWidget(this)),
      m_isFolded(services.settings.value(kFoldKey, true).toBool()) {
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(8, 0, 10, 4);
    layout->setSpacing(2);
    m_sorted->setSourceModel(m_model);
    m_sorted->setSortRole(CostTreeModel::SortRole);
    m_view->setModel(m_sorted);
    m_view->setItemDelegate(new ShareDelegate(services.theme, m_view));
    m_view->setSortingEnabled(true);
    m_view->setUniformRowHeights(true);
    m_view->sortByColumn(-1, Qt::DescendingOrder); // as the model runs
    QHeaderView* header = m_view->header();
    header->setStretchLastSection(false);
    header->setSectionResizeMode(CostTreeModel::Name, QHeaderView::Stretch);
    header->setMinimumSectionSize(60);
    m_view->setColumnWidth(CostTreeModel::Name, kNameWidth);
    m_view->setColumnWidth(CostTreeModel::Type, kTypeWidth);
    for (int column = CostTreeModel::Parameters; column < CostTreeModel::ColumnCount; ++column) m_view->setColumnWidth(column, kNumberWidth);
    m_view->setAllColumnsShowFocus(true);
    m_view->setObjectName(QStringLiteral("cost tree"));
    m_view->setProperty("role", QStringLiteral("dense"));
    layout->addWidget(m_view, 1);
    layout->addStretch();
    auto* row = new QHBoxLayout(m_tools);
    row->setContentsMargins(0, 0, 0, 0);
    row->setSpacing(10);
    m_total = new ElidedLabel(Qt::ElideRight, m_tools);
    setRole(m_total, "small");
    m_total->setObjectName(QStringLiteral("cost total"));
    m_total->setAlignment(Qt::AlignRight | Qt::AlignVCenter);
    row->addWidget(m_total, 1);
    m_fold = new QToolButton(m_tools);
    m_fold->setProperty("role", QStringLiteral("chip"));
    m_fold->setCheckable(true);
    m_fold->setChecked(m_isFolded);
    m_fold->setFocusPolicy(Qt::StrongFocus);
    m_fold->setObjectName(QStringLiteral("cost:fold"));
    row->addWidget(m_fold);
    setFocusProxy(m_view);
    connect(m_fold, &QToolButton::toggled, this, [this](bool isOn) {
        m_isFolded = isOn;
        m_services.settings.setValue(kFoldKey, isOn);
        refresh();
    });
    connect(m_view->selectionModel(), &QItemSelectionModel::currentRowChanged, this, [this](const QModelIndex& current) {
        if (m_isChoosing || !current.isValid()) return;
        m_chosen = toUtf8(current.data(CostTreeModel::PathRole).toString());
        Q_EMIT cellChosen(m_chosen);
    });
    m_texts.add([this] { retranslate(); });
}

void CostTab::retranslate() {
    m_view->setAccessibleName(tr("Costs of the model"));
    m_fold->setText(tr("Fold repeats"));
    m_fold->setToolTip(tr("One row for all instances of a repeated cell"));
    m_model->retranslate();
    refresh();
}

void CostTab::setAnalysis(const ModelAnalysisPtr& analysis) {
    m_analysis = analysis;
    refresh();
}

void CostTab::setInFront(bool isInFront) {
    m_isInFront = isInFront;
    refresh();
}

void CostTab::refresh() {
    if (!m_isInFront) return;
    const bool isCounted = m_analysis && !m_analysis->openError && !m_analysis->costs.empty();
    const bool isEmpty = !m_analysis || m_analysis->openError;
    if (isEmpty || (isCounted && (m_analysis != m_shown || m_isFolded != m_wasFolded))) {
        std::vector<QString> open; // what is unfolded stays so
        std::vector<QModelIndex> waiting{QModelIndex()};
        for (std::size_t i = 0; i < waiting.size(); ++i)
            for (int row = 0; row < m_sorted->rowCount(waiting[i]); ++row)
                if (const QModelIndex child = m_sorted->index(row, 0, waiting[i]); m_view->isExpanded(child)) {
                    open.push_back(child.data(CostTreeModel::PathRole).toString());
                    waiting.push_back(child);
                }
        m_isChoosing = true;
        m_shown = isEmpty ? nullptr : m_analysis;
        m_wasFolded = m_isFolded;
        m_model->setAnalysis(m_shown, m_isFolded);
        for (const QString& path : open) m_view->expand(m_sorted->mapFromSource(m_model->indexOf(toUtf8(path))));
        m_isChoosing = false;
        showChosen();
    }
    fitRows();
    if (!m_shown) {
        m_total->setText({});
        return;
    }
    const CostTreeModel::Sums& all = m_model->total();
    QString text = (m_shown->hasTokens() ? tr("Together %1 parameters, %2 FLOPs a token, activations %3, weights %4, for batch %5 × sequence %6")
                                         : tr("Together %1 parameters, %2 FLOPs a row, activations %3, weights %4, for batch %5"))
                       .arg(Format::shortCount(all.parameters), Format::shortCount(all.flops), Format::bytes(all.activations), Format::bytes(all.weights))
                       .arg(m_shown->batch);
    if (m_shown->hasTokens()) text = text.arg(m_shown->sequence);
    if (!m_analysis->expansion.ok()) text += QStringLiteral(" · ") + tr("as it was before the problems");
    m_total->setText(text);
}

/// As high as whole rows are.
void CostTab::fitRows() {
    const QModelIndex first = m_sorted->index(0, 0);
    if (!first.isValid()) return;
    const int row = m_view->visualRect(first).height(), around = m_view->header()->height() + 2 * m_view->frameWidth() + (m_view->horizontalScrollBar()->isVisible() ? m_view->horizontalScrollBar()->height() : 0);
    const int room = contentsRect().height() - layout()->contentsMargins().top() - layout()->contentsMargins().bottom();
    if (row > 0) m_view->setMaximumHeight(around + std::max(1, (room - around) / row) * row);
}

void CostTab::resizeEvent(QResizeEvent* event) {
    QWidget::resizeEvent(event);
    fitRows();
}

void CostTab::setChosen(const std::string& path) {
    if (path == m_chosen) return;
    std::int64_t number = 0; // of an instance: the canvas shows the repeated cell for it
    if (m_chosen.starts_with(path + ".") && readNumber(std::string_view(m_chosen).substr(path.size() + 1), number)) return;
    m_chosen = path;
    if (m_isInFront) showChosen();
}

void CostTab::showChosen() {
    m_isChoosing = true;
    const QModelIndex found = m_chosen.empty() ? QModelIndex() : m_sorted->mapFromSource(m_model->indexOf(m_chosen));
    if (found.isValid()) {
        m_view->setCurrentIndex(found);
        m_view->scrollTo(found);
    } else {
        m_view->selectionModel()->clear();
    }
    m_isChoosing = false;
}

void CostTab::changeEvent(QEvent* event) {
    QWidget::changeEvent(event);
    if (event->type() == QEvent::LanguageChange) m_texts.refresh();
}

} // namespace celloom::ui
