#include "ui/editor/code_tab.h"

#include "models/base/files.h"
#include "ui/common/format.h"
#include "ui/common/messages.h"
#include "ui/common/theme.h"
#include "ui/common/widgets.h"
#include "ui/editor/open_models.h"
#include "ui/shell/services.h"
#include "ui/train/script_editor.h"

#include <QApplication>
#include <QClipboard>
#include <QEvent>
#include <QFileDialog>
#include <QHBoxLayout>
#include <QKeyEvent>
#include <QPushButton>
#include <QScrollBar>
#include <QSettings>
#include <QTextBlock>
#include <QTimer>
#include <QToolButton>
#include <QVBoxLayout>

#include <algorithm>

namespace celloom::ui {

namespace {

constexpr int kSettleMs = 60;
const QString kDialectKey = QStringLiteral("model/code/dialect");

} // namespace

CodeTab::CodeTab(Services& services, QWidget* parent) : QWidget(parent), m_services(services), m_model(&services.model.current()), m_importer(services.engineProgram, this) {
    if (auto dialect = code::dialectNamed(toUtf8(services.settings.value(kDialectKey).toString()))) m_dialect = *dialect;
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(8, 0, 10, 8);
    layout->setSpacing(4);
    m_editor = new ScriptEditor(services.theme, this);
    m_editor->setObjectName(QStringLiteral("model code"));
    m_note = makeLabel("muted", this);
    m_note->setObjectName(QStringLiteral("code note"));
    m_note->setWordWrap(true);
    m_note->hide();
    m_timer = new QTimer(this);
    m_timer->setSingleShot(true);
    m_timer->setInterval(kSettleMs);
    connect(m_timer, &QTimer::timeout, this, &CodeTab::write);
    buildTools();
    layout->addWidget(m_note);
    layout->addWidget(m_editor, 1);
    setFocusProxy(m_editor);
    connect(m_editor, &QPlainTextEdit::cursorPositionChanged, this, &CodeTab::followCursor);
    connect(&m_importer, &CodeImporter::imported, this, [this](const ImportedCode& code) {
        endEditing();
        Q_EMIT importReady(code, m_target);
        QStringList notes;
        for (const QString& note : code.notes) notes.append(said(note));
        if (!notes.isEmpty()) say(notes.join(QLatin1Char(' ')), false);
    });
    connect(&m_importer, &CodeImporter::refused, this, &CodeTab::onRefused);
    connect(&m_importer, &CodeImporter::failed, this, [this](const Error& error) {
        say(Format::error(error), true);
        Q_EMIT attentionWanted();
    });
    connect(&m_importer, &CodeImporter::ended, this, &CodeTab::refresh);
    endEditing();
}

void CodeTab::buildTools() {
    m_tools = new QWidget(this);
    QWidget* bar = m_tools;
    auto* row = new QHBoxLayout(bar);
    row->setContentsMargins(0, 0, 0, 0);
    row->setSpacing(4);
    const auto dialect = [&](code::Dialect which, const QString& name) {
        auto* button = new QToolButton(bar);
        button->setProperty("role", QStringLiteral("chip"));
        button->setCheckable(true);
        button->setText(name);
        button->setObjectName(QStringLiteral("code:") + QLatin1String(code::toString(which)));
        button->setFocusPolicy(Qt::StrongFocus);
        row->addWidget(button);
        connect(button, &QToolButton::clicked, this, [this, which] {
            m_dialect = which;
            m_services.settings.setValue(kDialectKey, QString::fromLatin1(code::toString(which)));
            refresh();
            write();
        });
        return button;
    };
    m_mindSpore = dialect(code::Dialect::MindSpore, QStringLiteral("MindSpore"));
    m_pyTorch = dialect(code::Dialect::PyTorch, QStringLiteral("PyTorch"));
    row->addSpacing(8);
    const auto quiet = [&] {
        auto* button = makeQuietButton(bar);
        button->setToolButtonStyle(Qt::ToolButtonTextBesideIcon);
        row->addWidget(button);
        return button;
    };
    m_edit = quiet();
    m_edit->setObjectName(QStringLiteral("code:edit"));
    m_copy = quiet();
    m_save = quiet();
    m_replace = new QPushButton(bar);
    m_replace->setProperty("role", QStringLiteral("primary"));
    m_insert = new QPushButton(bar);
    m_insert->setObjectName(QStringLiteral("code:insert"));
    m_cancel = new QPushButton(bar);
    for (QPushButton* button : {m_replace, m_insert, m_cancel}) row->addWidget(button);
    connect(m_edit, &QToolButton::clicked, this, [this] { beginEditing(m_editor->toPlainText()); });
    connect(m_copy, &QToolButton::clicked, this, [this] { QApplication::clipboard()->setText(m_editor->toPlainText()); });
    connect(m_save, &QToolButton::clicked, this, &CodeTab::saveAs);
    connect(m_replace, &QPushButton::clicked, this, [this] { read(Target::Model); });
    connect(m_insert, &QPushButton::clicked, this, [this] { read(Target::Cell); });
    connect(m_cancel, &QPushButton::clicked, this, [this] {
        if (m_importer.isRunning()) m_importer.cancel();
        else endEditing();
    });
    const auto setIcons = [this] {
        m_copy->setIcon(m_services.theme.icon(QStringLiteral("copy")));
        m_save->setIcon(m_services.theme.icon(QStringLiteral("save")));
    };
    setIcons();
    connect(&m_services.theme, &Theme::changed, this, setIcons);
    m_texts.add([this] {
        m_mindSpore->setToolTip(tr("The model in MindSpore's words"));
        m_pyTorch->setToolTip(tr("The model in PyTorch's words"));
        m_edit->setText(tr("Edit as code"));
        m_edit->setToolTip(tr("Change the text, or paste nn.Cell or nn.Module classes, and read them back into the model"));
        m_copy->setText(tr("Copy"));
        m_copy->setToolTip(tr("Copy the whole text"));
        m_save->setText(tr("Save…"));
        m_save->setToolTip(tr("Save the text as a .py file"));
        m_replace->setText(tr("Replace the model"));
        m_replace->setToolTip(tr("The classes become the whole model, as one step (Ctrl+Return)"));
        m_insert->setText(tr("Insert as a cell"));
        m_insert->setToolTip(tr("The classes become composites, with a cell of the last one in the graph on show (Ctrl+Shift+Return)"));
        m_editor->setAccessibleName(tr("Model as code"));
        refresh();
    });
}

// ---- the model's code ----

void CodeTab::setDocument(const DocumentPtr& document) {
    if (document == m_document) return;
    m_document = document;
    if (m_isInFront) m_timer->start();
}

void CodeTab::changeModel() {
    if (m_importer.isRunning()) m_importer.cancel(); // what is being read was meant for the one before
    if (m_model) m_model->codeDraft = m_isEditing ? m_editor->toPlainText() : QString();
    ++m_number;
    m_written.reset();
    m_document.reset();
    m_model = &m_services.model.current();
    if (m_isEditing) endEditing();
    show(code::Code{});
    if (const QString draft = std::exchange(m_model->codeDraft, {}); !draft.isNull()) beginEditing(draft, false);
}

void CodeTab::setInFront(bool isInFront) {
    m_isInFront = isInFront;
    if (isInFront) write();
}

void CodeTab::setEditable(bool isEditable) {
    m_isEditable = isEditable;
    refresh();
}

void CodeTab::write() {
    m_timer->stop();
    if (m_isEditing || (m_written == m_document && m_writtenIn == m_dialect)) return;
    const int number = ++m_number;
    m_written = m_document;
    m_writtenIn = m_dialect;
    if (!m_document) {
        show(code::Code{});
        return;
    }
    m_background.run([document = m_document, dialect = m_dialect] { return code::write(*document, dialect); },
                     [this, number](const Result<code::Code>& written) {
                         if (number == m_number && !m_isEditing) show(written);
                     });
}

/// The cursor and what one looks at stay where they were.
void CodeTab::show(const Result<code::Code>& written) {
    m_isWritable = written.has_value();
    if (!written) {
        say(tr("There is no code of the model while it has this problem: %1").arg(Format::error(written.error())), true);
        refresh();
        return; // the last one that was whole stays
    }
    say({}, false);
    m_code = *written;
    const QString text = fromUtf8(m_code.text);
    if (text != m_editor->toPlainText()) {
        m_isFilling = true;
        const int line = m_editor->textCursor().blockNumber(), top = m_editor->verticalScrollBar()->value();
        m_editor->setPlainText(text);
        m_editor->setTextCursor(QTextCursor(m_editor->document()->findBlockByNumber(std::min(line, m_editor->blockCount() - 1))));
        m_editor->verticalScrollBar()->setValue(top);
        m_isFilling = false;
    }
    light();
    refresh();
}

void CodeTab::setChosen(const std::string& graphName, const std::string& cell) {
    if (graphName == m_graph && cell == m_cell) return;
    m_graph = graphName;
    m_cell = cell;
    light();
}

/// The chosen cell's lines; the first of them comes into view unless one is reading there.
void CodeTab::light() {
    if (m_isEditing) return;
    std::vector<std::pair<int, int>> lines;
    if (!m_cell.empty())
        for (const code::CellLines& one : m_code.lines)
            if (one.composite == m_graph && one.cell == m_cell) lines.emplace_back(one.first, one.last);
    m_editor->setLit(lines);
    if (lines.empty() || m_editor->hasFocus()) return;
    m_isFilling = true;
    m_editor->setTextCursor(QTextCursor(m_editor->document()->findBlockByNumber(lines.front().first - 1)));
    m_editor->centerCursor();
    m_isFilling = false;
}

/// The cell whose line one goes to is chosen on the canvas.
void CodeTab::followCursor() {
    if (m_isFilling || m_isEditing || !m_editor->hasFocus()) return;
    const int line = m_editor->textCursor().blockNumber() + 1;
    for (const code::CellLines& one : m_code.lines) {
        if (one.cell.empty() || line < one.first || line > one.last) continue;
        if (one.composite == m_graph && one.cell == m_cell) return;
        Q_EMIT cellChosen(one.composite, one.cell);
        return;
    }
}

void CodeTab::saveAs() {
    auto* dialog = new QFileDialog(window(), tr("Save the code"));
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    dialog->setAcceptMode(QFileDialog::AcceptSave);
    dialog->setNameFilters({tr("Python (*.py)")});
    dialog->setDefaultSuffix(QStringLiteral("py"));
    dialog->selectFile((m_code.mainClass.empty() ? QStringLiteral("model") : fromUtf8(m_code.mainClass)) + QStringLiteral(".py"));
    connect(dialog, &QFileDialog::fileSelected, this, [this, text = toUtf8(m_editor->toPlainText())](const QString& path) {
        if (const Status status = writeFileAtomically(toPath(path), text); !status) say(Format::error(status.error()), true);
        else say(tr("Saved as %1").arg(path), false);
    });
    dialog->open();
}

// ---- reading code ----

void CodeTab::beginEditing(const QString& text, bool takesKeyboard) {
    m_isEditing = true;
    ++m_number; // what is being written now comes too late
    m_written.reset();
    m_editor->setLit({});
    if (text != m_editor->toPlainText()) m_editor->setPlainText(text);
    m_editor->setReadOnly(false);
    m_editor->setTabChangesFocus(false);
    say(tr("Change the text or paste classes, then choose what they become. Escape leaves the text, Cancel gives it up."), false);
    refresh();
    if (takesKeyboard) m_editor->setFocus();
}

void CodeTab::endEditing() {
    m_isEditing = false;
    m_editor->setMarks({});
    m_editor->setReadOnly(true);
    m_editor->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
    m_editor->setTabChangesFocus(true);
    say({}, false);
    refresh();
    if (m_isInFront) write();
}

void CodeTab::bringIn(const QString& source, Target target) {
    if (m_isEditing) { // its text is not lost for this
        m_editor->insertPlainText(source);
        Q_EMIT attentionWanted();
        return;
    }
    beginEditing(source);
    read(target);
}

void CodeTab::read(Target target) {
    if (!m_isEditing || !m_isEditable) return;
    m_target = target;
    m_editor->setMarks({});
    say(tr("Reading the classes…"), false);
    m_importer.read(m_editor->toPlainText());
    refresh();
}

void CodeTab::onRefused(const CodeProblem& problem) {
    const QString text = said(Error{toUtf8(problem.message), toUtf8(problem.hint), {}});
    m_editor->setMarks({{problem.line, problem.column, problem.length, text, true}});
    say(problem.line > 0 ? tr("Line %1, column %2: %3").arg(problem.line).arg(problem.column).arg(text) : text, true);
    Q_EMIT attentionWanted();
    m_editor->goTo(std::max(1, problem.line), std::max(1, problem.column));
}

void CodeTab::say(const QString& text, bool isError) {
    setRole(m_note, isError ? "problem" : "muted");
    m_note->setText(text);
    m_note->setVisible(!text.isEmpty());
}

void CodeTab::refresh() {
    const bool isReading = m_importer.isRunning();
    m_mindSpore->setChecked(m_dialect == code::Dialect::MindSpore);
    m_pyTorch->setChecked(m_dialect == code::Dialect::PyTorch);
    for (QWidget* widget : std::initializer_list<QWidget*>{m_mindSpore, m_pyTorch, m_edit, m_copy, m_save}) widget->setVisible(!m_isEditing);
    for (QPushButton* button : {m_replace, m_insert, m_cancel}) button->setVisible(m_isEditing);
    m_edit->setEnabled(m_isEditable);
    m_copy->setEnabled(m_isWritable && !m_code.text.empty());
    m_save->setEnabled(m_isWritable && !m_code.text.empty());
    m_replace->setEnabled(!isReading);
    m_insert->setEnabled(!isReading);
    m_cancel->setText(isReading ? tr("Stop") : tr("Cancel"));
    m_cancel->setToolTip(isReading ? tr("Stop reading") : tr("Give the text up; the model stays as it is"));
}

void CodeTab::keyPressEvent(QKeyEvent* event) {
    const bool isReturn = event->key() == Qt::Key_Return || event->key() == Qt::Key_Enter;
    if (m_isEditing && isReturn && event->modifiers().testFlag(Qt::ControlModifier))
        read(event->modifiers().testFlag(Qt::ShiftModifier) ? Target::Cell : Target::Model);
    else
        QWidget::keyPressEvent(event);
}

void CodeTab::changeEvent(QEvent* event) {
    QWidget::changeEvent(event);
    if (event->type() == QEvent::LanguageChange) m_texts.refresh();
}

} // namespace celloom::ui
