#include "ui/history/history_page.h"

#include "ui/common/engine_client.h"
#include "ui/common/format.h"
#include "ui/common/run_texts.h"
#include "ui/common/theme.h"
#include "ui/common/widgets.h"
#include "ui/history/runs_model.h"
#include "ui/history/runs_view.h"
#include "ui/shell/services.h"

#include <QComboBox>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QLineEdit>
#include <QMessageBox>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QSettings>
#include <QShortcut>
#include <QStackedWidget>
#include <QTableView>
#include <QTimer>
#include <QVBoxLayout>

#include <cmath>
#include <utility>

namespace celloom::ui {

namespace {

constexpr int kSaveMs = 700; // after the last key
const QString kHeaderState = QStringLiteral("history/columns-2");

/// A run that has ended goes on from its last checkpoint; one that is complete, with more steps.
bool canResume(const store::RunRecord& run) {
    return run.state == store::RunState::Finished ? run.hasCheckpoint : store::isOver(run.state);
}

} // namespace

HistoryPage::HistoryPage(Services& services, QWidget* parent)
    : Page(parent), m_services(services), m_model(new RunsModel(this)), m_filter(new RunsFilter(this)) {
    m_filter->setSourceModel(m_model);
    m_saveTimer = new QTimer(this);
    m_saveTimer->setSingleShot(true);
    m_saveTimer->setInterval(kSaveMs);
    connect(m_saveTimer, &QTimer::timeout, this, &HistoryPage::saveTexts);
    auto* layout = new QHBoxLayout(this);
    layout->setContentsMargins(14, 14, 14, 14);
    layout->setSpacing(12);
    auto* card = new Card(this);
    card->body()->addWidget(buildToolRow());
    card->body()->addWidget(buildTable(), 1);
    layout->addWidget(card, 1);
    layout->addWidget(buildDetail());
    connect(&services.store, &RunStore::runsLoaded, this, [this](const RunListPtr& runs) {
        m_model->setRuns(runs);
        m_stack->setCurrentIndex(runs->empty() ? 1 : 0);
        if (!m_table->currentIndex().isValid() && m_filter->rowCount() > 0) m_table->selectRow(0);
        refreshCount();
        refreshDetail();
    });
    connect(&services.engine, &EngineClient::progressed, this, [this](const RunProgress& progress) {
        m_model->setProgress(progress.run, progress.step, progress.totalSteps, progress.elapsedSeconds);
    });
    texts.add([this] {
        m_search->setPlaceholderText(tr("Search names, models, tags, notes…"));
        m_search->setAccessibleName(tr("Search runs"));
        m_states->setAccessibleName(tr("Show runs in this state"));
        m_empty->setTexts(tr("No runs yet"), tr("Each run, its curves, samples and checkpoints appear here and stay."));
        fillStates();
        m_model->retranslate();
        refreshCount();
        refreshDetail();
    });
}

QWidget* HistoryPage::buildToolRow() {
    auto* row = new QWidget(this);
    auto* layout = new QHBoxLayout(row);
    layout->setContentsMargins(0, 0, 0, 0);
    m_search = new QLineEdit(row);
    m_search->setClearButtonEnabled(true);
    m_search->setMaximumWidth(360);
    m_states = new QComboBox(row);
    m_count = makeLabel("muted", row);
    layout->addWidget(m_search, 2);
    layout->addWidget(m_states);
    layout->addStretch(1);
    layout->addWidget(m_count);
    connect(m_search, &QLineEdit::textChanged, this, [this](const QString& words) {
        m_filter->setWords(words);
        refreshCount();
    });
    connect(m_states, &QComboBox::currentIndexChanged, this, [this](int index) {
        using enum store::RunState;
        static const std::vector<std::set<store::RunState>> sets = {
            {}, {Queued, Preparing, Running, Paused, Stopping}, {Finished}, {Stopped, Interrupted}, {Failed}};
        m_filter->setStates(sets.at(static_cast<std::size_t>(std::max(0, index))));
        refreshCount();
    });
    auto* find = new QShortcut(QKeySequence::Find, this);
    connect(find, &QShortcut::activated, this, [this] { m_search->setFocus(Qt::ShortcutFocusReason); });
    return row;
}

void HistoryPage::fillStates() {
    const QSignalBlocker blocker(m_states);
    const int kept = std::max(0, m_states->currentIndex());
    m_states->clear();
    m_states->addItems({tr("All states"), tr("Going on"), tr("Finished"), tr("Stopped or interrupted"), tr("Failed")});
    m_states->setCurrentIndex(kept);
}

QWidget* HistoryPage::buildTable() {
    m_stack = new QStackedWidget(this);
    m_table = makeRunsView(m_services.theme, m_stack);
    m_table->setModel(m_filter);
    m_table->setSortingEnabled(true);
    m_table->sortByColumn(RunsModel::Number, Qt::DescendingOrder);
    m_table->horizontalHeader()->setSectionsMovable(true);
    if (!m_table->horizontalHeader()->restoreState(m_services.settings.value(kHeaderState).toByteArray())) setRunsViewWidths(*m_table);
    m_empty = new EmptyState(m_stack);
    m_stack->addWidget(m_table);
    m_stack->addWidget(m_empty);
    m_stack->setCurrentIndex(1);
    connect(m_table->selectionModel(), &QItemSelectionModel::currentRowChanged, this, &HistoryPage::refreshDetail);
    connect(m_table, &QTableView::activated, this,
            [this](const QModelIndex& index) { Q_EMIT runChosen(index.data(RunsModel::FolderRole).toString()); });
    const auto keep = [this] { m_services.settings.setValue(kHeaderState, m_table->horizontalHeader()->saveState()); };
    connect(m_table->horizontalHeader(), &QHeaderView::sectionResized, this, keep);
    connect(m_table->horizontalHeader(), &QHeaderView::sectionMoved, this, keep);
    connect(m_table->horizontalHeader(), &QHeaderView::sortIndicatorChanged, this, keep);
    return m_stack;
}

QWidget* HistoryPage::buildDetail() {
    auto* card = new Card(this);
    m_detail = card;
    card->setFixedWidth(264);
    m_name = makeLabel("title", card);
    m_name->setWordWrap(true);
    m_state = new QLabel(card);
    m_state->setWordWrap(true);
    m_facts = makeLabel("muted", card);
    m_facts->setWordWrap(true);
    m_facts->setTextInteractionFlags(Qt::TextSelectableByMouse);
    auto* tagsLabel = makeLabel("small", card);
    m_tags = new QLineEdit(card);
    auto* noteLabel = makeLabel("small", card);
    m_note = new QPlainTextEdit(card);
    m_note->setTabChangesFocus(true);
    for (QWidget* widget : std::initializer_list<QWidget*>{m_name, m_state, m_facts, tagsLabel, m_tags, noteLabel})
        card->body()->addWidget(widget);
    card->body()->addWidget(m_note, 1);
    connect(m_tags, &QLineEdit::textEdited, this, [this] {
        m_hasChangedTags = true;
        m_saveTimer->start();
    });
    connect(m_note, &QPlainTextEdit::textChanged, this, [this] {
        m_hasChangedNote = true;
        m_saveTimer->start();
    });
    texts.add([this, tagsLabel, noteLabel] {
        tagsLabel->setText(tr("Tags"));
        noteLabel->setText(tr("Notes"));
        m_tags->setAccessibleName(tr("Tags"));
        m_note->setAccessibleName(tr("Notes"));
    });
    buildActions(card);
    return card;
}

void HistoryPage::buildActions(QWidget* panel) {
    auto* body = static_cast<Card*>(panel)->body();
    m_open = new QPushButton(panel);
    m_resume = new QPushButton(panel);
    m_clone = new QPushButton(panel);
    m_try = new QPushButton(panel);
    m_delete = new QPushButton(panel);
    m_actions = new RunActions(QBoxLayout::TopToBottom, panel);
    for (QWidget* widget : std::initializer_list<QWidget*>{m_open, m_try, m_resume, m_clone, m_actions, m_delete}) body->addWidget(widget);
    connect(m_actions, &RunActions::requested, this, &HistoryPage::actionRequested);
    connect(m_open, &QPushButton::clicked, this, [this] {
        if (chosen()) Q_EMIT runChosen(fromUtf8(chosen()->folder));
    });
    connect(m_resume, &QPushButton::clicked, this, [this] {
        if (chosen()) Q_EMIT resumeRequested(fromUtf8(chosen()->folder));
    });
    connect(m_clone, &QPushButton::clicked, this, [this] {
        if (chosen()) Q_EMIT cloneRequested(fromUtf8(chosen()->folder));
    });
    connect(m_try, &QPushButton::clicked, this, [this] {
        if (chosen()) Q_EMIT tryRequested(fromUtf8(chosen()->folder));
    });
    connect(m_delete, &QPushButton::clicked, this, &HistoryPage::askDelete);
    texts.add([this] {
        m_open->setText(tr("Open in Live"));
        m_try->setText(tr("Try"));
        m_try->setToolTip(tr("Write text with its newest checkpoint"));
        m_resume->setText(tr("Resume…")); // until a run is chosen
        m_resume->setToolTip(tr("Go on from the last checkpoint, with the same settings or others"));
        m_clone->setText(tr("Copy its recipe to Train"));
        m_delete->setText(tr("Delete…"));
    });
}

const store::RunRecord* HistoryPage::chosen() const {
    const QModelIndex index = m_table->currentIndex();
    return index.isValid() ? m_model->find(index.data(RunsModel::FolderRole).toString()) : nullptr;
}

void HistoryPage::refreshCount() {
    const int shown = m_filter->rowCount(), all = m_model->rowCount();
    m_count->setText(shown == all ? tr("Runs: %1").arg(all) : tr("Runs: %1 of %2").arg(shown).arg(all));
}

void HistoryPage::refreshDetail() {
    const store::RunRecord* run = chosen();
    m_detail->setVisible(run != nullptr);
    if (!run) return;
    m_name->setText(QStringLiteral("%1 · %2").arg(run->number).arg(fromUtf8(run->name)));
    setLook(m_state, "state", QString::fromLatin1(Format::stateLook(run->state)));
    m_state->setText(RunTexts::outcome(*run));
    QStringList facts;
    facts.append(tr("Created %1").arg(Format::dateAndTime(run->created)));
    if (run->ended > 0) facts.append(tr("Ended %1").arg(Format::dateAndTime(run->ended)));
    facts.append((run->trains() ? tr("Trained for %1") : tr("Took %1")).arg(Format::duration(run->elapsedSeconds)));
    if (!run->parent.empty()) facts.append(tr("From %1").arg(fromUtf8(run->parent)));
    facts.append(pathText(m_services.store.workspace().runs() / run->folder));
    m_facts->setText(facts.join(QLatin1Char('\n')));
    m_resume->setText(!run->trains() ? tr("Resume") : run->state == store::RunState::Finished ? tr("Train on…") : tr("Resume…"));
    m_resume->setVisible(canResume(*run));
    m_try->setVisible(run->hasCheckpoint);
    m_actions->setRun(run);
    m_delete->setVisible(store::isOver(run->state));
    if (m_shown == fromUtf8(run->folder) && (m_hasChangedTags || m_hasChangedNote)) return; // someone is typing
    saveTexts();
    m_shown = fromUtf8(run->folder);
    m_shownNumber = run->number;
    if (m_tags->text() != fromUtf8(run->tags)) m_tags->setText(fromUtf8(run->tags));
    if (m_note->toPlainText() != fromUtf8(run->note)) {
        const QSignalBlocker blocker(m_note);
        m_note->setPlainText(fromUtf8(run->note));
    }
}

void HistoryPage::saveTexts() {
    m_saveTimer->stop();
    if (std::exchange(m_hasChangedTags, false)) m_services.store.setTags(m_shownNumber, m_tags->text());
    if (std::exchange(m_hasChangedNote, false)) m_services.store.setNote(m_shownNumber, m_note->toPlainText());
}

void HistoryPage::askDelete() {
    const store::RunRecord* run = chosen();
    if (!run) return;
    auto* box =
        new QMessageBox(QMessageBox::Warning, tr("Delete run"),
                        tr("Delete run %1 (%2) with its curves, samples and checkpoints?").arg(run->number).arg(fromUtf8(run->name)),
                        QMessageBox::NoButton, window());
    box->setIconPixmap(m_services.theme.icon(QStringLiteral("warning"), "warning").pixmap(32, 32));
    box->setInformativeText(tr("This cannot be undone."));
    box->setAttribute(Qt::WA_DeleteOnClose);
    QPushButton* yes = box->addButton(tr("Delete"), QMessageBox::DestructiveRole);
    QPushButton* no = box->addButton(tr("Keep"), QMessageBox::RejectRole);
    box->setDefaultButton(no);
    box->setEscapeButton(no);
    connect(box, &QMessageBox::buttonClicked, this, [this, box, yes, folder = fromUtf8(run->folder)](QAbstractButton* pressed) {
        if (pressed != yes) return;
        m_services.engine.remove(folder, [this](const Status& status) {
            if (!status) Q_EMIT failed(Format::error(status.error()));
            m_services.store.refreshRuns();
        });
        box->close();
    });
    box->open();
}

} // namespace celloom::ui
