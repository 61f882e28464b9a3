#include "ui/playground/try_page.h"

#include "ui/common/engine_client.h"
#include "ui/common/format.h"
#include "ui/common/theme.h"
#include "ui/common/widgets.h"
#include "ui/playground/sampling_panel.h"
#include "ui/shell/services.h"

#include <QComboBox>
#include <QDir>
#include <QDragEnterEvent>
#include <QFileDialog>
#include <QFileInfo>
#include <QHBoxLayout>
#include <QKeyEvent>
#include <QLineEdit>
#include <QMenu>
#include <QMimeData>
#include <QPushButton>
#include <QSaveFile>
#include <QSettings>
#include <QShortcut>
#include <QSignalBlocker>
#include <QStackedWidget>
#include <QToolButton>
#include <QVBoxLayout>

#include <algorithm>
#include <functional>

namespace celloom::ui {

namespace {

constexpr int kMostFolders = 8;
constexpr int kMostLines = 6;

/// The first local folder or model file that is dragged.
QString droppedPath(const QMimeData* data) {
    for (const QUrl& url : data->urls())
        if (const QFileInfo file(url.toLocalFile()); url.isLocalFile() && (file.isDir() || file.fileName().endsWith(QLatin1String(".cells.json"))))
            return file.absoluteFilePath();
    return {};
}

ModelEntry entryOf(const store::RunRecord& run) {
    return {QStringLiteral("%1 · %2").arg(run.number).arg(fromUtf8(run.name)), fromUtf8(run.folder)};
}

ModelEntry entryOf(const QString& folder) {
    return {QStringLiteral("%1 (%2)").arg(QFileInfo(folder).fileName(), folder), folder};
}

/// Puts the folder first.
void remember(QStringList& folders, const QString& path) {
    folders.removeAll(path);
    folders.prepend(path);
    while (folders.size() > kMostFolders) folders.removeLast();
}

void chooseFolder(QWidget* parent, const QString& title, const QStringList& before, const std::function<void(const QString&)>& take) {
    auto* dialog = new QFileDialog(parent, title);
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    dialog->setFileMode(QFileDialog::Directory);
    dialog->setOption(QFileDialog::ShowDirsOnly);
    if (!before.isEmpty()) dialog->setDirectory(QFileInfo(before.front()).absolutePath());
    QObject::connect(dialog, &QFileDialog::fileSelected, parent, take);
    dialog->open();
}

} // namespace

QuestionEdit::QuestionEdit(QWidget* parent) : QPlainTextEdit(parent) {
    setTabChangesFocus(true);
    connect(this, &QPlainTextEdit::textChanged, this, &QuestionEdit::fit);
    fit();
}

/// As high as its text, up to a few lines.
void QuestionEdit::fit() {
    const int lines = std::clamp(static_cast<int>(document()->size().height()), 2, kMostLines);
    setFixedHeight(lines * fontMetrics().lineSpacing() + 16);
}

void QuestionEdit::keyPressEvent(QKeyEvent* event) {
    const bool isEnter = event->key() == Qt::Key_Return || event->key() == Qt::Key_Enter;
    if (!isEnter || (event->modifiers() & Qt::ShiftModifier)) return QPlainTextEdit::keyPressEvent(event);
    Q_EMIT submitted();
}

TryPage::TryPage(Services& services, QWidget* parent)
    : Page(parent), m_services(services), m_playground(services.engine), m_stack(new QStackedWidget(this)) {
    setAcceptDrops(true);
    m_folders = services.settings.value(QStringLiteral("try/folders")).toStringList();
    m_adapterFolders = services.settings.value(QStringLiteral("try/adapters")).toStringList();
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->addWidget(m_stack);
    m_stack->addWidget(buildEmpty());
    m_stack->addWidget(buildContent());
    connect(&services.store, &RunStore::runsLoaded, this, &TryPage::onRuns);
    connect(&services.engine, &EngineClient::stateChanged, this, &TryPage::refresh);
    connect(&m_playground, &Playground::columnsChanged, this, &TryPage::rebuildColumns);
    for (auto changed : {&Playground::turnsChanged, &Playground::writingChanged}) connect(&m_playground, changed, this, &TryPage::refresh);
    connect(&m_playground, &Playground::columnChanged, this, &TryPage::refresh);
    connect(&m_playground, &Playground::failed, this, &TryPage::failed);
    auto* stop = new QShortcut(QKeySequence(Qt::Key_Escape), this);
    stop->setContext(Qt::WidgetWithChildrenShortcut);
    connect(stop, &QShortcut::activated, this, [this] { m_playground.stop(); });
    refresh();
}

QString TryPage::context() const {
    QStringList titles;
    for (const TryColumn& column : m_playground.columns())
        if (!column.source.isEmpty()) titles.append(Playground::titleOf(column));
    return titles.join(QStringLiteral(" · "));
}

// --- building

QWidget* TryPage::buildEmpty() {
    m_empty = new EmptyState(this);
    m_newest = new QPushButton(m_empty);
    m_newest->setProperty("role", QStringLiteral("primary"));
    m_example = new QPushButton(m_empty);
    auto* folder = new QPushButton(m_empty);
    m_empty->addButton(m_newest);
    m_empty->addButton(m_example);
    m_empty->addButton(folder);
    connect(m_newest, &QPushButton::clicked, this, [this] {
        if (const auto known = models(); !known.empty()) open(known.front().source);
    });
    connect(m_example, &QPushButton::clicked, this, &TryPage::exampleRequested);
    connect(folder, &QPushButton::clicked, this, [this] { askFolder({}); });
    const auto setIcon = [this] { m_empty->setIcon(m_services.theme.icon(QStringLiteral("try"))); };
    setIcon();
    connect(&m_services.theme, &Theme::changed, this, setIcon);
    texts.add([this, folder] {
        folder->setText(tr("Open a model folder…"));
        m_example->setText(tr("Train the example first"));
        refreshEmpty();
    });
    return m_empty;
}

void TryPage::refreshEmpty() {
    const auto known = models();
    m_newest->setVisible(!known.empty());
    m_example->setVisible(known.empty());
    if (known.empty()) {
        m_empty->setTexts(tr("There is no model to try yet"),
                          tr("Text from any model streams here: from a run once it has saved a checkpoint, or from a model folder on "
                             "disk, which may be dropped here too."));
    } else {
        m_empty->setTexts(tr("Ask a model"),
                          tr("One to four models answer the same question side by side: runs, checkpoints, or model folders, which may be "
                             "dropped here too. Training is not disturbed."));
        m_newest->setText(tr("Try %1").arg(known.front().label));
    }
}

QWidget* TryPage::buildContent() {
    auto* content = new QWidget(this);
    auto* layout = new QVBoxLayout(content);
    layout->setContentsMargins(14, 10, 14, 14);
    layout->setSpacing(10);
    layout->addWidget(buildTools());
    auto* middle = new QHBoxLayout;
    middle->setSpacing(12);
    m_columnRow = new QHBoxLayout;
    m_columnRow->setSpacing(12);
    m_sampling = new SamplingPanel(m_playground, m_services.settings, content);
    middle->addLayout(m_columnRow, 1);
    middle->addWidget(m_sampling);
    layout->addLayout(middle, 1);
    layout->addWidget(buildQuestion());
    const bool isShown = m_services.settings.value(QStringLiteral("try/showSampling"), true).toBool();
    m_sampling->setVisible(isShown);
    m_showSampling->setChecked(isShown);
    return content;
}

QWidget* TryPage::buildTools() {
    auto* tools = new QWidget(this);
    auto* row = new QHBoxLayout(tools);
    row->setContentsMargins(0, 0, 0, 0);
    row->setSpacing(6);
    m_mode = new QComboBox(tools);
    m_mode->setSizeAdjustPolicy(QComboBox::AdjustToContents);
    connect(m_mode, &QComboBox::activated, this, &TryPage::takeMode);
    connect(&m_playground, &Playground::templatesChanged, this, &TryPage::fillModes);
    m_add = makeQuietButton(tools);
    m_colours = makeQuietButton(tools);
    m_showSampling = makeQuietButton(tools);
    m_save = makeQuietButton(tools);
    m_clear = makeQuietButton(tools);
    for (QToolButton* button : {m_colours, m_showSampling}) button->setCheckable(true);
    m_save->setPopupMode(QToolButton::InstantPopup);
    auto* menu = new QMenu(m_save);
    m_save->setMenu(menu);
    QAction* markdown = menu->addAction(QString());
    QAction* json = menu->addAction(QString());
    connect(markdown, &QAction::triggered, this, [this] { save(false); });
    connect(json, &QAction::triggered, this, [this] { save(true); });
    connect(m_add, &QToolButton::clicked, this, [this] { m_playground.addColumn({}); });
    connect(m_clear, &QToolButton::clicked, this, [this] { m_playground.clear(); });
    connect(m_colours, &QToolButton::toggled, this, [this](bool isOn) {
        for (ColumnView* view : m_views) view->setColoured(isOn);
    });
    connect(m_showSampling, &QToolButton::toggled, this, [this](bool isOn) {
        m_sampling->setVisible(isOn);
        m_services.settings.setValue(QStringLiteral("try/showSampling"), isOn);
    });
    row->addWidget(m_mode);
    row->addWidget(m_add);
    row->addStretch(1);
    for (QToolButton* button : {m_colours, m_showSampling, m_save, m_clear}) row->addWidget(button);
    texts.add([this, markdown, json] {
        m_mode->setAccessibleName(tr("How the question is asked"));
        m_mode->setToolTip(tr("Free text is continued as it stands. In a chat, the questions and answers before go along, in the form "
                              "that the model was taught."));
        m_add->setText(tr("Add a column"));
        m_add->setToolTip(tr("Another model that answers the same questions"));
        m_colours->setText(tr("Colours"));
        m_colours->setToolTip(tr("Tint what the model was not sure of"));
        m_showSampling->setText(tr("Sampling"));
        m_showSampling->setToolTip(tr("How tokens are chosen"));
        m_save->setText(tr("Save ▾"));
        m_save->setAccessibleName(tr("Save the conversation"));
        markdown->setText(tr("As Markdown…"));
        json->setText(tr("As JSON, with tokens…"));
        m_clear->setText(tr("Clear"));
        m_clear->setToolTip(tr("Begin a new conversation"));
    });
    return tools;
}

QWidget* TryPage::buildQuestion() {
    auto* card = new QFrame(this);
    card->setProperty("role", QStringLiteral("card"));
    auto* column = new QVBoxLayout(card);
    column->setContentsMargins(10, 8, 10, 8);
    column->setSpacing(6);
    m_system = new QLineEdit(card);
    connect(m_system, &QLineEdit::textChanged, this, [this](const QString& text) { m_playground.system = text; });
    column->addWidget(m_system);
    auto* row = new QHBoxLayout;
    row->setSpacing(8);
    column->addLayout(row);
    m_question = new QuestionEdit(card);
    m_send = new QPushButton(card);
    m_send->setProperty("role", QStringLiteral("primary"));
    row->addWidget(m_question, 1);
    row->addWidget(m_send, 0, Qt::AlignBottom);
    connect(m_question, &QuestionEdit::submitted, this, &TryPage::submit);
    connect(m_question, &QPlainTextEdit::textChanged, this, &TryPage::refresh);
    connect(m_send, &QPushButton::clicked, this, [this] {
        if (m_playground.isWriting())
            m_playground.stop();
        else
            submit();
    });
    texts.add([this] {
        m_system->setPlaceholderText(tr("System message: how the model should behave (optional)"));
        m_system->setAccessibleName(tr("System message"));
        fillModes();
        m_question->setAccessibleName(tr("Question"));
        refresh();
    });
    return card;
}

// --- what can be chosen

std::vector<ModelEntry> TryPage::models() const {
    std::vector<ModelEntry> out;
    if (m_runs)
        for (const store::RunRecord& run : *m_runs)
            if (run.hasCheckpoint) out.push_back(entryOf(run));
    for (const QString& folder : m_folders) out.push_back(entryOf(folder));
    return out;
}

std::vector<ModelEntry> TryPage::adapters() const {
    std::vector<ModelEntry> out;
    if (m_runs)
        for (const store::RunRecord& run : *m_runs)
            if (run.hasAdapter) out.push_back(entryOf(run));
    for (const QString& folder : m_adapterFolders) out.push_back(entryOf(folder));
    return out;
}

void TryPage::onRuns(const RunListPtr& runs) {
    m_runs = runs;
    refreshChoices();
    refreshEmpty();
}

void TryPage::refreshChoices() {
    const auto known = models(), knownAdapters = adapters();
    for (ColumnView* view : m_views) {
        view->setModels(known);
        view->setAdapters(knownAdapters);
    }
}

void TryPage::open(const QString& source) {
    for (const TryColumn& column : m_playground.columns()) {
        if (!column.source.isEmpty()) continue;
        m_playground.setModel(column.name, source, {});
        return m_question->setFocus();
    }
    const auto& columns = m_playground.columns();
    const bool isThere = std::any_of(columns.begin(), columns.end(), [&](const TryColumn& column) { return column.source == source; });
    if (isThere) return m_question->setFocus();
    if (static_cast<int>(columns.size()) < Playground::kMostColumns)
        m_playground.addColumn(source);
    else
        m_playground.setModel(columns.back().name, source, {});
    m_question->setFocus();
}

void TryPage::openBesideBase(const QString& source, const QString& base) {
    const auto& columns = m_playground.columns();
    const bool isFree = std::all_of(columns.begin(), columns.end(), [](const TryColumn& column) { return column.source.isEmpty(); });
    if (isFree && !base.isEmpty()) openFolder({}, base);
    open(source);
}

void TryPage::askFolder(const QString& column) {
    chooseFolder(this, tr("Open a model folder"), m_folders, [this, column](const QString& path) { openFolder(column, path); });
}

void TryPage::askAdapter(const QString& column) {
    chooseFolder(this, tr("Open an adapter folder"), m_adapterFolders, [this, column](const QString& path) { openAdapter(column, path); });
}

/// Into this column; an empty name: wherever there is room.
void TryPage::openFolder(const QString& column, const QString& path) {
    remember(m_folders, path);
    m_services.settings.setValue(QStringLiteral("try/folders"), m_folders);
    if (m_playground.column(column))
        m_playground.setModel(column, path, {});
    else
        open(path);
    refreshChoices();
}

void TryPage::openAdapter(const QString& column, const QString& path) {
    const TryColumn* known = m_playground.column(column);
    if (!known) return;
    remember(m_adapterFolders, path);
    m_services.settings.setValue(QStringLiteral("try/adapters"), m_adapterFolders);
    m_playground.setModel(column, QString(known->source), {path});
    refreshChoices();
}

/// Runs may have saved their first checkpoint meanwhile.
void TryPage::showEvent(QShowEvent* event) {
    Page::showEvent(event);
    m_services.store.refreshRuns();
}

void TryPage::dragEnterEvent(QDragEnterEvent* event) {
    if (!droppedPath(event->mimeData()).isEmpty()) event->acceptProposedAction();
}

void TryPage::dropEvent(QDropEvent* event) {
    const QString path = droppedPath(event->mimeData());
    if (path.isEmpty()) return;
    event->acceptProposedAction();
    for (ColumnView* view : m_views)
        if (view->geometry().contains(view->parentWidget()->mapFrom(this, event->position().toPoint()))) {
            const TryColumn* column = m_playground.column(view->column());
            const bool isOntoAModel = column && !column->source.isEmpty() && QFileInfo::exists(path + QStringLiteral("/adapter_config.json"));
            return isOntoAModel ? openAdapter(view->column(), path) : openFolder(view->column(), path);
        }
    openFolder({}, path);
}

// --- free text or chat

void TryPage::fillModes() {
    const QSignalBlocker blocker(m_mode);
    m_mode->clear();
    m_mode->addItem(tr("Free text"));
    m_mode->addItem(tr("Chat, each model's template"), QString());
    for (const ChatTemplateName& known : m_playground.templates()) m_mode->addItem(tr("Chat, %1").arg(known.label), known.name);
    const int named = m_playground.chatTemplate.isEmpty() ? 1 : std::max(1, m_mode->findData(m_playground.chatTemplate));
    m_mode->setCurrentIndex(m_playground.isChat ? named : 0);
    takeMode();
}

void TryPage::takeMode() {
    const int index = m_mode->currentIndex();
    m_playground.isChat = index > 0;
    if (index > 0) m_playground.chatTemplate = m_mode->itemData(index).toString();
    m_system->setVisible(m_playground.isChat);
    m_question->setPlaceholderText(m_playground.isChat
                                       ? tr("A question to all models. Enter sends, Shift+Enter begins a line, Esc stops.")
                                       : tr("A text that the models continue. Enter sends, Shift+Enter begins a line, Esc stops."));
}

// --- the conversation

void TryPage::rebuildColumns() {
    const auto& columns = m_playground.columns();
    std::erase_if(m_views, [&](ColumnView* view) {
        if (m_playground.column(view->column())) return false;
        m_columnRow->removeWidget(view);
        view->hide();
        view->deleteLater();
        return true;
    });
    for (const TryColumn& column : columns) {
        const auto has = [&](const ColumnView* view) { return view->column() == column.name; };
        if (std::any_of(m_views.begin(), m_views.end(), has)) continue;
        auto* view = new ColumnView(m_playground, column.name, m_services.theme, this);
        view->setModels(models());
        view->setColoured(m_colours->isChecked());
        view->setAdapters(adapters());
        connect(view, &ColumnView::folderRequested, this, &TryPage::askFolder);
        connect(view, &ColumnView::adapterRequested, this, &TryPage::askAdapter);
        connect(view, &ColumnView::regenerateRequested, this, [this] { m_playground.regenerate(); });
        m_columnRow->addWidget(view, 1);
        m_views.push_back(view);
    }
    refresh();
}

void TryPage::refresh() {
    m_stack->setCurrentIndex(m_playground.columns().empty() ? 0 : 1);
    const bool isWriting = m_playground.isWriting();
    const bool isConnected = m_services.engine.state() == EngineClient::State::Connected;
    m_add->setEnabled(static_cast<int>(m_playground.columns().size()) < Playground::kMostColumns);
    m_save->setEnabled(!m_playground.turns().empty());
    m_clear->setEnabled(!m_playground.turns().empty());
    m_send->setText(isWriting ? tr("Stop") : tr("Send"));
    m_send->setEnabled(isWriting || (isConnected && m_playground.canSend() && !m_question->document()->isEmpty()));
    m_send->setToolTip(isConnected ? QString() : m_services.engine.detail());
    Q_EMIT contextChanged();
}

void TryPage::submit() {
    if (!m_send->isEnabled() || m_playground.isWriting()) return;
    const QString question = m_question->toPlainText();
    m_question->clear();
    m_playground.send(question);
}

void TryPage::save(bool isJson) {
    auto* dialog = new QFileDialog(this, tr("Save the conversation"));
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    dialog->setAcceptMode(QFileDialog::AcceptSave);
    dialog->setDefaultSuffix(isJson ? QStringLiteral("json") : QStringLiteral("md"));
    dialog->setNameFilters({isJson ? tr("JSON (*.json)") : tr("Markdown (*.md)")});
    connect(dialog, &QFileDialog::fileSelected, this, [this, isJson](const QString& path) {
        const QByteArray text = isJson ? m_playground.toJson() : m_playground.toMarkdown().toUtf8();
        QSaveFile file(path);
        if (!file.open(QIODevice::WriteOnly) || file.write(text) != text.size() || !file.commit())
            Q_EMIT failed(tr("%1 cannot be written: %2").arg(path, file.errorString()));
    });
    dialog->open();
}

} // namespace celloom::ui
