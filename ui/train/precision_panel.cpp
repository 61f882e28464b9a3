#include "ui/train/precision_panel.h"

#include "ui/common/format.h"
#include "ui/common/recipe_document.h"
#include "ui/common/widgets.h"

#include <QEvent>
#include <QHeaderView>
#include <QTreeWidget>
#include <QVBoxLayout>

#include <filesystem>
#include <map>

namespace celloom::ui {

namespace {

constexpr int kTreeHeight = 200;
enum Column { Cells, Type, Computes, Gives, Reason, ColumnCount };

QString textOf(recipe::FloatType type) { return QString::fromLatin1(recipe::nameOf(type)); }

/// Whether a run on `device` computes on the processor, as far as a window without LibTorch can tell.
bool usesProcessor(const std::string& device) {
    std::error_code code;
    return device == "cpu" || (device == "auto" && !std::filesystem::exists("/proc/driver/nvidia/version", code));
}

} // namespace

PrecisionPanel::PrecisionPanel(RecipeDocument& document, ModelAnalyser& analyser, QWidget* parent)
    : QWidget(parent), m_document(document), m_analyser(analyser) {
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 4, 0, 6);
    layout->setSpacing(6);
    m_counts = makeLabel("title", this);
    m_counts->setObjectName(QStringLiteral("precisionCounts"));
    m_counts->setWordWrap(true);
    m_warning = makeLabel("warning", this);
    m_warning->setObjectName(QStringLiteral("precisionWarning"));
    m_warning->setWordWrap(true);
    m_tree = new QTreeWidget(this);
    m_tree->setObjectName(QStringLiteral("precisionTree"));
    m_tree->setProperty("role", QStringLiteral("boxed"));
    m_tree->setColumnCount(ColumnCount);
    m_tree->setFixedHeight(kTreeHeight);
    m_tree->setUniformRowHeights(true);
    m_tree->setAllColumnsShowFocus(true);
    m_tree->setTabKeyNavigation(false);
    m_tree->setEditTriggers(QAbstractItemView::NoEditTriggers);
    QHeaderView* header = m_tree->header();
    header->setStretchLastSection(false);
    header->setSectionsClickable(false);
    header->setSectionResizeMode(Cells, QHeaderView::Stretch);
    for (int column = 1; column < ColumnCount; ++column) header->setSectionResizeMode(column, QHeaderView::ResizeToContents);
    layout->addWidget(m_counts);
    layout->addWidget(m_warning);
    layout->addWidget(m_tree);
    connect(&analyser, &ModelAnalyser::ready, this, &PrecisionPanel::refresh);
    m_texts.add([this] {
        m_tree->setHeaderLabels({tr("Cells"), tr("Type"), tr("Computes in"), tr("Gives"), tr("Because of")});
        m_tree->setAccessibleName(tr("Types that the cells compute in"));
        refresh();
    });
}

void PrecisionPanel::setSupport(const HalfSupport& support) {
    m_support = support;
    refresh();
}

void PrecisionPanel::refresh() {
    const ModelAnalysisPtr analysis = m_analyser.latest();
    const bool isKnown = analysis && !analysis->precisionRows.empty();
    const bool isMixed = isKnown && std::any_of(analysis->precisionRows.begin(), analysis->precisionRows.end(), [](const recipe::PrecisionRow& row) {
        return row.precision.compute != recipe::FloatType::Float32;
    });
    setVisible(isMixed);
    if (!isMixed) return;
    m_counts->setText(countsText(*analysis));
    const QString warning = warningText(*analysis);
    m_warning->setText(warning);
    m_warning->setVisible(!warning.isEmpty());
    fillTree(*analysis);
}

QString PrecisionPanel::countsText(const ModelAnalysis& analysis) const {
    std::map<recipe::FloatType, std::int64_t> counts;
    for (const recipe::PrecisionRow& row : analysis.precisionRows) counts[row.precision.compute] += row.count;
    QStringList parts;
    for (const auto& [type, count] : counts) parts.append(tr("%n cell(s) in %1", "", static_cast<int>(count)).arg(textOf(type)));
    return parts.join(tr(", "));
}

QString PrecisionPanel::warningText(const ModelAnalysis& analysis) const {
    if (!usesProcessor(m_document.recipe().text("device"))) return {};
    QStringList lines;
    for (const recipe::FloatType type : recipe::slowTypes(analysis.precision, m_support))
        lines.append(tr("This processor has no instructions for %1: it saves memory here, but no time.").arg(textOf(type)));
    return lines.join(QLatin1Char('\n'));
}

QString PrecisionPanel::reasonText(recipe::CellPrecision::Reason reason) {
    switch (reason) {
    case recipe::CellPrecision::Reason::Allowed:
        return tr("list: in half");
    case recipe::CellPrecision::Reason::Denied:
        return tr("list: float32");
    case recipe::CellPrecision::Reason::Rule:
        return tr("rule");
    case recipe::CellPrecision::Reason::Level:
        break;
    }
    return tr("level");
}

/// One group for each type that is computed in; those that are folded stay so.
void PrecisionPanel::fillTree(const ModelAnalysis& analysis) {
    std::map<QString, bool> wasOpen;
    for (int i = 0; i < m_tree->topLevelItemCount(); ++i) {
        const QTreeWidgetItem* group = m_tree->topLevelItem(i);
        wasOpen[group->data(Cells, Qt::UserRole).toString()] = group->isExpanded();
    }
    m_tree->clear();
    std::map<recipe::FloatType, QTreeWidgetItem*> groups;
    std::map<recipe::FloatType, std::int64_t> counts;
    for (const recipe::PrecisionRow& row : analysis.precisionRows) {
        QTreeWidgetItem*& group = groups[row.precision.compute];
        if (!group) {
            group = new QTreeWidgetItem(m_tree);
            group->setData(Cells, Qt::UserRole, textOf(row.precision.compute));
            group->setFirstColumnSpanned(true);
        }
        counts[row.precision.compute] += row.count;
        auto* item = new QTreeWidgetItem(group);
        item->setText(Cells, fromUtf8(row.name));
        item->setToolTip(Cells, fromUtf8(row.name));
        item->setText(Type, fromUtf8(row.type));
        item->setText(Computes, textOf(row.precision.compute));
        item->setText(Gives, textOf(row.precision.wire));
        item->setText(Reason, reasonText(row.precision.reason));
    }
    for (const auto& [type, group] : groups) {
        group->setText(Cells, tr("%1: %n cell(s)", "", static_cast<int>(counts[type])).arg(textOf(type)));
        const auto before = wasOpen.find(textOf(type));
        group->setExpanded(before == wasOpen.end() || before->second);
    }
}

void PrecisionPanel::changeEvent(QEvent* event) {
    QWidget::changeEvent(event);
    if (event->type() == QEvent::LanguageChange) m_texts.refresh();
}

} // namespace celloom::ui
