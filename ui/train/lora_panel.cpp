#include "ui/train/lora_panel.h"

#include "ui/common/format.h"
#include "ui/common/recipe_document.h"
#include "ui/common/widgets.h"
#include "ui/train/target_tree.h"

#include <QEvent>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QToolButton>
#include <QTreeView>
#include <QVBoxLayout>

#include <algorithm>

namespace celloom::ui {

namespace {

constexpr int kTreeHeight = 300;
constexpr int kMostUnfolded = 24; // lines that the tree shows by itself
const QString kTargets = QStringLiteral("lora.targets");
const QString kRegex = QStringLiteral("lora.target_regex");

} // namespace

LoraPanel::LoraPanel(RecipeDocument& document, ModelAnalyser& analyser, QWidget* parent)
    : QWidget(parent), m_document(document), m_analyser(analyser), m_model(new TargetTreeModel(this)) {
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 4, 0, 6);
    layout->setSpacing(6);
    layout->addWidget(buildQuickRow());
    buildTree();
    layout->addWidget(m_tree);
    m_total = makeLabel("title", this);
    m_total->setWordWrap(true);
    m_note = makeLabel("small", this);
    m_note->setWordWrap(true);
    layout->addWidget(m_total);
    layout->addWidget(m_note);
    connect(m_model, &TargetTreeModel::tickRequested, this, &LoraPanel::choose);
    connect(&document, &RecipeDocument::valueChanged, this, [this](const QString& key) {
        keepOneWay(key);
        if (key.startsWith(QLatin1String("lora.")) || key.startsWith(QLatin1String("optimizer.")) || key == QLatin1String("kind") || key == QLatin1String("rules")) refresh();
    });
    connect(&document, &RecipeDocument::replaced, this, &LoraPanel::refresh);
    connect(&analyser, &ModelAnalyser::ready, this, &LoraPanel::refresh);
    m_texts.add([this] {
        m_model->retranslate();
        m_tree->setAccessibleName(tr("Cells that can get an adapter"));
        refreshTotal();
    });
    refresh();
}

QWidget* LoraPanel::buildQuickRow() {
    auto* row = new QWidget(this);
    auto* layout = new QHBoxLayout(row);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->setSpacing(6);
    for (const QuickTargets which : {QuickTargets::QueryAndValue, QuickTargets::Attention, QuickTargets::AllLinear}) {
        auto* button = new QToolButton(row);
        button->setProperty("role", QStringLiteral("chip"));
        button->setFocusPolicy(Qt::StrongFocus);
        button->setCheckable(true);
        connect(button, &QToolButton::clicked, this, [this, which] {
            if (m_analysis) choose(quickTargets(m_analysis->expansion.model, m_choice.possible, which));
            refreshTotal(); // what is chosen already stays pressed
        });
        layout->addWidget(button);
        m_quick.push_back(button);
    }
    layout->addStretch(1);
    m_regex = new QToolButton(row);
    m_regex->setProperty("role", QStringLiteral("link"));
    m_regex->setFocusPolicy(Qt::StrongFocus);
    connect(m_regex, &QToolButton::clicked, this, &LoraPanel::regexRequested);
    layout->addWidget(m_regex);
    m_texts.add([this] {
        m_quick[0]->setText(tr("Query and value"));
        m_quick[0]->setToolTip(tr("The projections of queries and values; where they are packed into one matrix, that one"));
        m_quick[1]->setText(tr("Attention"));
        m_quick[1]->setToolTip(tr("Every Dense cell of the attention"));
        m_quick[2]->setText(tr("All linear"));
        m_quick[2]->setToolTip(tr("Every Dense cell of the model"));
        m_regex->setText(tr("Regular expression…"));
        m_regex->setToolTip(tr("Choose by a regular expression over the names in checkpoints"));
    });
    return row;
}

void LoraPanel::buildTree() {
    m_tree = new QTreeView(this);
    m_tree->setProperty("role", QStringLiteral("boxed"));
    m_tree->setObjectName(QStringLiteral("loraTree"));
    m_tree->setModel(m_model);
    m_tree->setFixedHeight(kTreeHeight);
    m_tree->setUniformRowHeights(true);
    m_tree->setAllColumnsShowFocus(true);
    m_tree->setEditTriggers(QAbstractItemView::NoEditTriggers);
    m_tree->setTabKeyNavigation(false);
    QHeaderView* header = m_tree->header();
    header->setStretchLastSection(false);
    header->setSectionResizeMode(TargetTreeModel::Name, QHeaderView::Stretch);
    for (int column = 1; column < TargetTreeModel::ColumnCount; ++column) header->setSectionResizeMode(column, QHeaderView::Fixed);
    header->resizeSection(TargetTreeModel::Adapters, 96);
    header->resizeSection(TargetTreeModel::Parameters, 116);
    header->resizeSection(TargetTreeModel::Bytes, 92);
    header->setSectionsClickable(false);
    connect(m_model, &QAbstractItemModel::modelReset, this, &LoraPanel::unfoldFew);
}

/// Folded groups open as long as the tree stays short; single layers never open by themselves.
void LoraPanel::unfoldFew() {
    std::vector<QModelIndex> level;
    for (int i = 0; i < m_model->rowCount(); ++i) level.push_back(m_model->index(i, 0));
    int shown = static_cast<int>(level.size());
    while (!level.empty()) {
        std::vector<QModelIndex> next;
        for (const QModelIndex& index : level) {
            const int count = m_model->rowCount(index);
            if (index.data(TargetTreeModel::HoldsLayersRole).toBool() || shown + count > kMostUnfolded) continue;
            m_tree->expand(index);
            shown += count;
            for (int i = 0; i < count; ++i) next.push_back(m_model->index(i, 0, index));
        }
        level = std::move(next);
    }
}

/// The list or the regular expression chooses: what is edited last replaces the other.
void LoraPanel::keepOneWay(const QString& edited) {
    const recipe::Recipe& recipe = m_document.recipe();
    if (recipe.text("lora.target_regex").empty() || recipe.isDefault("lora.targets")) return;
    if (edited == kRegex) m_document.reset(kTargets);
    if (edited == kTargets) m_document.setValue(kRegex, std::string());
}

void LoraPanel::refresh() {
    const ModelAnalysisPtr latest = m_analyser.latest();
    m_analysis = latest && !latest->openError && latest->expansion.ok() ? latest : nullptr;
    const bool isUsed = recipe::usesLora(m_document.recipe());
    m_choice = isUsed && m_analysis ? chooseLora(m_document.recipe(), m_analysis->expansion.model) : LoraChoice{};
    m_model->setAnalysis(isUsed ? m_analysis : nullptr, m_choice);
    setVisible(isUsed && m_analysis);
    refreshTotal();
    Q_EMIT changed();
}

void LoraPanel::refreshTotal() {
    if (!m_analysis || m_choice.ticked.empty()) return;
    const graph::ExpandedModel& model = m_analysis->expansion.model;
    for (std::size_t i = 0; i < m_quick.size(); ++i) {
        const std::vector<bool> meant = quickTargets(model, m_choice.possible, static_cast<QuickTargets>(i));
        const bool hasAny = std::find(meant.begin(), meant.end(), true) != meant.end();
        m_quick[i]->setEnabled(hasAny);
        m_quick[i]->setChecked(hasAny && meant == m_choice.ticked);
    }
    const recipe::ParameterCounts& counts = m_choice.counts;
    const double all = static_cast<double>(counts.base) + static_cast<double>(counts.adapters);
    if (counts.trainable == 0) {
        m_total->setText(tr("No cell is chosen."));
        m_note->setText({});
    } else {
        const auto trainable = static_cast<double>(counts.trainable);
        m_total->setText(tr("%n cell(s), %1 trainable parameters, %2 %; %3", "", counts.adaptedCells)
                             .arg(Format::count(counts.trainable), QString::number(100 * trainable / all, 'f', 2), Format::bytes(4 * trainable)));
        const int numbers = 2 + recipe::optimizerMemoryOf(m_document.recipe()).states; // weight, gradient, moments
        m_note->setText(
            tr("With gradients and the optimizer's moments %1. The base stays as it is.").arg(Format::bytes(4.0 * numbers * trainable)));
    }
    if (!m_document.recipe().text("lora.target_regex").empty())
        m_note->setText((m_note->text() + QLatin1Char(' ') + tr("Chosen by the regular expression; ticking replaces it by a list.")).trimmed());
}

void LoraPanel::choose(const std::vector<bool>& ticked) {
    if (!m_analysis || ticked == m_choice.ticked) return;
    const std::vector<std::string> targets = targetsFor(m_analysis->expansion.model, m_choice.possible, ticked);
    m_document.asOneStep([&] {
        m_document.setValue(kTargets, targets);
        m_document.setValue(kRegex, std::string());
    });
}

void LoraPanel::changeEvent(QEvent* event) {
    QWidget::changeEvent(event);
    if (event->type() == QEvent::LanguageChange) m_texts.refresh();
}

} // namespace celloom::ui
