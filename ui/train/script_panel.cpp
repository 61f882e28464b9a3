#include "ui/train/script_panel.h"

#include "models/base/files.h"
#include "models/base/text.h"
#include "ui/common/format.h"
#include "ui/common/messages.h"
#include "ui/common/recipe_document.h"
#include "ui/common/theme.h"
#include "ui/common/widgets.h"
#include "ui/train/script_editor.h"

#include <QEvent>
#include <QFileDialog>
#include <QFormLayout>
#include <QHBoxLayout>
#include <QLineEdit>
#include <QMenu>
#include <QPushButton>
#include <QSignalBlocker>
#include <QTabBar>
#include <QTimer>
#include <QToolButton>
#include <QVBoxLayout>

#include <algorithm>

namespace celloom::ui {

namespace {

const QString kKey = QStringLiteral("callbacks.scripts");
constexpr int kEditorHeight = 268;
constexpr int kPauseMs = 500;
constexpr std::size_t kMostBytes = 64 << 10; // of a file that is opened

const char* const kRate = R"(class CustomLRScheduler(Callback):
    def step_end(self, run_context):
        cb_params = run_context.original_args()
        step = cb_params.cur_step_num
        new_lr = initial_lr * (0.9 ** (step // 1000))
        cb_params.optimizer.learning_rate = new_lr
)";
const char* const kSchedule = R"(def halve(lr, cur_step_num):
    if cur_step_num % every_steps == 0:
        lr = lr * 0.5
    return lr
)";
const char* const kStopWhen = R"(class StopWhenGood(Callback):
    def __init__(self, target=1.5):
        super().__init__()
        self.target = target

    def on_eval_end(self, run_context):
        cb_params = run_context.original_args()
        loss = cb_params.eval_results["eval_loss"]
        if loss < self.target:
            print("eval_loss", loss, "is below", self.target)
            run_context.request_stop()
)";
const char* const kMetric = R"(class NextTokenAccuracy(Metric):
    def __init__(self):
        super().__init__()
        self.clear()

    def clear(self):
        self.correct = 0
        self.total = 0

    def update(self, predictions, labels):
        best = predictions.argmax(-1)
        self.correct += int((best == labels).sum())
        self.total += labels.numel()

    def eval(self):
        return self.correct / self.total
)";

/// What is typed into a field: a number, true or false, or a text.
graph::ParamValue valueOf(const QString& text) {
    const std::string plain = toUtf8(text.trimmed());
    std::int64_t whole = 0;
    double number = 0;
    if (plain == "true" || plain == "True") return true;
    if (plain == "false" || plain == "False") return false;
    if (readNumber(plain, whole)) return whole;
    if (readNumber(plain, number)) return number;
    return toUtf8(text);
}

QString valueText(const graph::ParamValue& value) {
    if (const auto* whole = std::get_if<std::int64_t>(&value)) return QString::number(*whole);
    if (const auto* yes = std::get_if<bool>(&value)) return *yes ? QStringLiteral("True") : QStringLiteral("False");
    if (const auto* number = std::get_if<double>(&value)) {
        const QString text = fromUtf8(numberText(*number));
        return text.contains(QLatin1Char('.')) || text.contains(QLatin1Char('e')) ? text : text + QStringLiteral(".0");
    }
    return fromUtf8(std::get<std::string>(value));
}

} // namespace

ScriptPanel::ScriptPanel(RecipeDocument& document, QString engineProgram, Theme& theme, QWidget* parent)
    : QWidget(parent), m_document(document), m_theme(theme), m_checker(std::move(engineProgram), this) {
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 8, 0, 6);
    layout->setSpacing(6);
    layout->addWidget(buildHead());
    m_empty = makeLabel("small", this);
    m_empty->setWordWrap(true);
    layout->addWidget(m_empty);
    m_body = new QWidget(this);
    auto* body = new QVBoxLayout(m_body);
    body->setContentsMargins(0, 0, 0, 0);
    body->setSpacing(6);
    m_tabs = new QTabBar(m_body);
    m_tabs->setExpanding(false);
    m_tabs->setMovable(true);
    m_tabs->setDrawBase(false);
    m_tabs->setElideMode(Qt::ElideRight);
    m_tabs->setObjectName(QStringLiteral("scriptTabs"));
    body->addWidget(m_tabs);
    body->addWidget(buildNames());
    m_editor = new ScriptEditor(theme, m_body);
    m_editor->setFixedHeight(kEditorHeight);
    m_editor->setObjectName(QStringLiteral("scriptEditor"));
    m_editor->installEventFilter(this);
    body->addWidget(m_editor);
    m_status = makeLabel("small", m_body);
    m_status->setWordWrap(true);
    m_findingRow = new QWidget(m_body);
    auto* finding = new QHBoxLayout(m_findingRow);
    finding->setContentsMargins(0, 0, 0, 0);
    m_finding = makeLabel("problem", m_findingRow);
    m_finding->setWordWrap(true);
    m_finding->setTextInteractionFlags(Qt::TextSelectableByMouse);
    m_finding->setObjectName(QStringLiteral("scriptFinding"));
    m_goTo = new QPushButton(m_findingRow);
    m_goTo->setProperty("role", QStringLiteral("link"));
    finding->addWidget(m_finding, 1);
    finding->addWidget(m_goTo, 0, Qt::AlignTop);
    body->addWidget(m_findingRow);
    body->addWidget(m_status);
    m_values = new QWidget(m_body);
    m_valueRows = new QFormLayout(m_values);
    m_valueRows->setContentsMargins(0, 2, 0, 0);
    m_valueRows->setHorizontalSpacing(12);
    m_valueRows->setFieldGrowthPolicy(QFormLayout::FieldsStayAtSizeHint);
    body->addWidget(m_values);
    layout->addWidget(m_body);
    m_listProblem = makeLabel("problem", this);
    m_listProblem->setWordWrap(true);
    m_listProblem->hide();
    layout->addWidget(m_listProblem);
    setFocusProxy(m_add);

    m_pause = new QTimer(this);
    m_pause->setSingleShot(true);
    m_pause->setInterval(kPauseMs);
    connect(m_pause, &QTimer::timeout, this, &ScriptPanel::checkAll);
    connect(m_tabs, &QTabBar::currentChanged, this, [this] { showCurrent(); });
    connect(m_tabs, &QTabBar::tabMoved, this, [this](int from, int to) {
        recipe::TypedScript moved = std::move(m_scripts[static_cast<std::size_t>(from)]);
        m_scripts.erase(m_scripts.begin() + from);
        m_scripts.insert(m_scripts.begin() + to, std::move(moved));
        commit();
        showCurrent();
    });
    connect(m_editor, &QPlainTextEdit::textChanged, this, &ScriptPanel::commitCode);
    connect(m_goTo, &QPushButton::clicked, this, [this] {
        for (const ScriptEditor::Mark& mark : m_editor->marks()) return m_editor->goTo(std::max(1, mark.line), mark.column);
    });
    connect(&m_checker, &ScriptChecker::checked, this, [this] {
        refreshFindings();
        Q_EMIT checked();
    });
    connect(&document, &RecipeDocument::valueChanged, this, [this](const QString& key) {
        if (key == kKey && !m_isCommitting) load();
    });
    connect(&document, &RecipeDocument::replaced, this, &ScriptPanel::load);
    m_texts.add([this] {
        m_editor->setAccessibleName(tr("Source of the callback or metric"));
        m_editor->setToolTip(tr("Tab indents, Shift+Tab goes back; Escape leaves the editor."));
        m_editor->setPlaceholderText(tr("class MyCallback(Callback): …"));
        m_tabs->setAccessibleName(tr("Your callbacks and metrics"));
        m_goTo->setText(tr("Go to"));
        m_goTo->setToolTip(tr("Go to the place in the source"));
        m_empty->setText(tr("None. Add one from a template or from a .py file: a class like MindSpore's Callback or Metric, or a schedule of the learning rate."));
        refreshFindings();
    });
    load();
}

QWidget* ScriptPanel::buildHead() {
    auto* head = new QWidget(this);
    auto* layout = new QHBoxLayout(head);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->setSpacing(6);
    m_title = makeLabel("title", head);
    m_help = makeQuietButton(head);
    m_help->setFocusPolicy(Qt::NoFocus);
    m_add = new QToolButton(head);
    m_add->setProperty("role", QStringLiteral("button"));
    m_add->setPopupMode(QToolButton::InstantPopup);
    m_add->setToolButtonStyle(Qt::ToolButtonTextBesideIcon);
    m_add->setFocusPolicy(Qt::StrongFocus);
    m_add->setObjectName(QStringLiteral("scriptAdd"));
    layout->addWidget(m_title);
    layout->addWidget(m_help);
    layout->addStretch(1);
    layout->addWidget(m_add);
    buildMenu();
    connect(m_help, &QToolButton::clicked, this, &ScriptPanel::helpRequested);
    const auto setIcons = [this] {
        m_help->setIcon(m_theme.icon(QStringLiteral("help")));
        m_add->setIcon(m_theme.icon(QStringLiteral("plus")));
    };
    setIcons();
    connect(&m_theme, &Theme::changed, head, setIcons);
    m_texts.add([this] {
        m_title->setText(tr("Your own callbacks and metrics"));
        m_help->setAccessibleName(tr("Help on %1").arg(m_title->text()));
        m_add->setText(tr("Add"));
        m_add->setToolTip(tr("Add a callback, a schedule or a metric"));
    });
    return head;
}

void ScriptPanel::buildMenu() {
    auto* menu = new QMenu(m_add);
    m_add->setMenu(menu);
    const auto templates = {Template::Rate, Template::Schedule, Template::StopWhen, Template::Metric};
    for (const Template which : templates) connect(menu->addAction(QString()), &QAction::triggered, this, [this, which] { addTemplate(which); });
    menu->addSeparator();
    QAction* open = menu->addAction(QString());
    connect(open, &QAction::triggered, this, &ScriptPanel::openFile);
    m_texts.add([menu, open] {
        const QStringList words{tr("Callback that sets the learning rate"), tr("Schedule of the learning rate"), tr("Callback that stops the run"), tr("Metric")};
        for (int i = 0; i < words.size(); ++i) menu->actions().at(i)->setText(words[i]);
        open->setText(tr("From a .py file…"));
    });
}

QWidget* ScriptPanel::buildNames() {
    auto* row = new QWidget(m_body);
    auto* layout = new QHBoxLayout(row);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->setSpacing(6);
    auto* label = makeLabel("muted", row);
    m_name = new QLineEdit(row);
    m_name->setMaximumWidth(240);
    m_name->setMaxLength(48);
    m_name->setObjectName(QStringLiteral("scriptName"));
    label->setBuddy(m_name);
    m_left = makeQuietButton(row);
    m_right = makeQuietButton(row);
    m_remove = makeQuietButton(row);
    for (QToolButton* button : {m_left, m_right, m_remove}) button->setFocusPolicy(Qt::StrongFocus);
    layout->addWidget(label);
    layout->addWidget(m_name, 1);
    layout->addStretch(1);
    layout->addWidget(m_left);
    layout->addWidget(m_right);
    layout->addWidget(m_remove);
    connect(m_name, &QLineEdit::textEdited, this, &ScriptPanel::rename);
    connect(m_left, &QToolButton::clicked, this, [this] { moveCurrent(-1); });
    connect(m_right, &QToolButton::clicked, this, [this] { moveCurrent(1); });
    connect(m_remove, &QToolButton::clicked, this, &ScriptPanel::removeCurrent);
    const auto setIcons = [this] { m_remove->setIcon(m_theme.icon(QStringLiteral("trash"))); };
    setIcons();
    connect(&m_theme, &Theme::changed, row, setIcons);
    m_texts.add([this, label] {
        label->setText(tr("Name"));
        m_name->setAccessibleName(tr("Name of the script"));
        m_name->setToolTip(tr("Shown in events; a metric is measured as eval/name"));
        m_left->setText(tr("Earlier"));
        m_left->setToolTip(tr("Is called before the one on its left"));
        m_right->setText(tr("Later"));
        m_right->setToolTip(tr("Is called after the one on its right"));
        m_remove->setText(tr("Remove"));
        m_remove->setToolTip(tr("Remove this script"));
        m_remove->setAccessibleName(m_remove->toolTip());
    });
    return row;
}

// ---- what the user does ----

void ScriptPanel::addTemplate(Template which) {
    switch (which) {
    case Template::Rate:
        return add({"CustomLRScheduler", kRate, {}, {{"initial_lr", m_document.recipe().real("optimizer.lr")}}});
    case Template::Schedule:
        return add({"halve", kSchedule, {}, {{"every_steps", std::int64_t(1000)}}});
    case Template::StopWhen:
        return add({"StopWhenGood", kStopWhen, {}, {}});
    case Template::Metric:
        return add({"next_token_accuracy", kMetric, {}, {}});
    }
}

void ScriptPanel::openFile() {
    auto* dialog = new QFileDialog(window(), tr("Open a Python file"), QString(), tr("Python (*.py);;All files (*)"));
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    dialog->setFileMode(QFileDialog::ExistingFile);
    connect(dialog, &QFileDialog::fileSelected, this, [this](const QString& file) {
        const auto code = readFile(toPath(file), kMostBytes);
        if (!code) return showListProblem(Format::error(code.error()));
        if (!isUtf8(*code)) return showListProblem(tr("%1 is not valid UTF-8 text.").arg(file));
        if (code->empty()) return showListProblem(tr("%1 is empty.").arg(file));
        add({toPath(file).stem().string(), *code, {}, {}});
    });
    dialog->open();
}

QString ScriptPanel::freeName(const QString& wanted) const {
    const auto isTaken = [this](const QString& name) {
        return std::any_of(m_scripts.begin(), m_scripts.end(), [&](const recipe::TypedScript& one) { return fromUtf8(one.shownName()) == name; });
    };
    QString name = wanted;
    for (int i = 2; isTaken(name); ++i) name = wanted + QStringLiteral("_%1").arg(i);
    return name;
}

void ScriptPanel::add(recipe::TypedScript script) {
    script.name = toUtf8(freeName(fromUtf8(script.shownName())));
    m_scripts.push_back(std::move(script));
    commit();
    refreshTabs();
    select(static_cast<int>(m_scripts.size()) - 1);
    m_editor->setFocus(Qt::OtherFocusReason);
    checkAll();
}

void ScriptPanel::removeCurrent() {
    const int at = current();
    if (at < 0) return;
    m_scripts.erase(m_scripts.begin() + at);
    commit();
    refreshTabs();
    showCurrent();
    if (m_scripts.empty()) m_add->setFocus(Qt::OtherFocusReason);
    checkAll();
}

void ScriptPanel::moveCurrent(int by) {
    const int at = current(), to = at + by;
    if (at < 0 || to < 0 || to >= static_cast<int>(m_scripts.size())) return;
    m_tabs->moveTab(at, to); // tabMoved does the rest
}

void ScriptPanel::rename(const QString& name) {
    recipe::TypedScript* one = script();
    if (!one) return;
    one->name = toUtf8(name.trimmed());
    commit();
    refreshTabs();
    m_pause->start();
}

void ScriptPanel::commitCode() {
    recipe::TypedScript* one = script();
    if (!one || m_isShowing) return;
    one->code = toUtf8(m_editor->toPlainText());
    one->path.clear();
    m_editor->setMarks({}); // they were of another text
    commit();
    m_pause->start();
}

void ScriptPanel::commitValue(const QString& name, const QString& text) {
    recipe::TypedScript* one = script();
    if (!one) return;
    if (text.trimmed().isEmpty()) one->values.erase(toUtf8(name));
    else one->values[toUtf8(name)] = valueOf(text);
    commit();
    m_pause->start();
}

void ScriptPanel::commit() {
    std::vector<std::string> items;
    for (const recipe::TypedScript& one : m_scripts) items.push_back(recipe::toText(one));
    m_isCommitting = true;
    m_document.setValue(kKey, items, RecipeDocument::Gesture::Typing);
    m_isCommitting = false;
}

// ---- what is shown ----

int ScriptPanel::current() const { return m_tabs->currentIndex(); }

recipe::TypedScript* ScriptPanel::script() {
    const int at = current();
    return at >= 0 && at < static_cast<int>(m_scripts.size()) ? &m_scripts[static_cast<std::size_t>(at)] : nullptr;
}

void ScriptPanel::select(int index) {
    if (index < 0 || index >= m_tabs->count()) return;
    if (index == current()) showCurrent();
    else m_tabs->setCurrentIndex(index);
}

void ScriptPanel::load() {
    m_scripts.clear();
    if (auto scripts = recipe::typedScripts(m_document.recipe().list(toUtf8(kKey)))) m_scripts = std::move(*scripts);
    refreshTabs();
    showCurrent();
    checkAll();
}

/// The tabs follow the scripts; showing another script is the caller's.
void ScriptPanel::refreshTabs() {
    const QSignalBlocker blocker(m_tabs);
    while (m_tabs->count() > static_cast<int>(m_scripts.size())) m_tabs->removeTab(m_tabs->count() - 1);
    while (m_tabs->count() < static_cast<int>(m_scripts.size())) m_tabs->addTab(QString());
    for (int i = 0; i < m_tabs->count(); ++i) {
        const recipe::TypedScript& one = m_scripts[static_cast<std::size_t>(i)];
        const ScriptCheck* check = one.path.empty() ? m_checker.known(one) : nullptr;
        m_tabs->setTabText(i, fromUtf8(one.shownName()));
        m_tabs->setTabIcon(i, check && check->error ? m_theme.icon(QStringLiteral("warning"), "bad") : QIcon());
        m_tabs->setTabToolTip(i, check && check->error ? described(*check->error) : QString());
    }
    m_body->setVisible(!m_scripts.empty());
    m_empty->setVisible(m_scripts.empty());
    refreshButtons();
}

void ScriptPanel::refreshButtons() {
    const int at = current();
    const bool isOne = m_scripts.size() == 1;
    m_left->setVisible(!isOne);
    m_right->setVisible(!isOne);
    m_left->setEnabled(at > 0);
    m_right->setEnabled(at >= 0 && at + 1 < m_tabs->count());
}

void ScriptPanel::showCurrent() {
    const recipe::TypedScript* one = script();
    m_isShowing = true;
    m_name->setText(one ? fromUtf8(one->shownName()) : QString());
    const QString code = one ? fromUtf8(one->code) : QString();
    m_editor->setReadOnly(one && !one->path.empty());
    if (m_editor->toPlainText() != code) m_editor->setPlainText(code);
    m_editor->setMarks({});
    m_isShowing = false;
    refreshButtons();
    refreshFindings();
}

void ScriptPanel::checkAll() {
    for (const recipe::TypedScript& one : m_scripts)
        if (one.path.empty() && !one.code.empty()) m_checker.check(one);
    if (const recipe::TypedScript* one = script(); one && one->path.empty() && !one->code.empty()) m_checker.check(*one); // first of all
    refreshFindings();
    Q_EMIT checked();
}

QString ScriptPanel::described(const ScriptNote& note) {
    const QString text = said(Error{toUtf8(note.message), toUtf8(note.hint), {}});
    return note.line > 0 ? tr("Line %1, column %2: %3").arg(note.line).arg(note.column).arg(text) : text;
}

void ScriptPanel::refreshFindings() {
    refreshTabs();
    const recipe::TypedScript* one = script();
    const bool isFile = one && !one->path.empty();
    const ScriptCheck* check = one && !isFile ? m_checker.known(*one) : nullptr;
    std::vector<ScriptEditor::Mark> marks;
    const auto mark = [&marks](const ScriptNote& note, bool isError) { marks.push_back({note.line, note.column, note.length, described(note), isError}); };
    if (check && check->error) mark(*check->error, true);
    if (check)
        for (const ScriptNote& warning : check->warnings) mark(warning, false);
    m_findingRow->setVisible(!marks.empty());
    m_finding->setText(marks.empty() ? QString() : marks.front().text);
    if (!marks.empty()) setRole(m_finding, marks.front().isError ? "problem" : "warning");
    m_goTo->setVisible(!marks.empty() && marks.front().line > 0);
    m_editor->setAccessibleDescription(m_finding->text());
    m_editor->setMarks(std::move(marks));
    QString status;
    if (isFile) status = tr("Read from %1 when the run is submitted.").arg(fromUtf8(one->path));
    else if (!m_checker.failure().isEmpty()) status = tr("Not checked: %1").arg(m_checker.failure());
    else if (one && !check) status = one->code.empty() ? QString() : tr("Checking…");
    else if (check && !check->error)
        status = check->kind == QLatin1String("metric")     ? tr("Metric %1, measured in each evaluation as eval/%2.").arg(check->definition, fromUtf8(one->shownName()))
                 : check->kind == QLatin1String("schedule") ? tr("Schedule %1, asked after each step.").arg(check->definition)
                                                            : tr("Callback %1: %2.").arg(check->definition, check->methods.join(QStringLiteral(", ")));
    m_status->setText(status);
    m_status->setVisible(!status.isEmpty());
    if (check || !one || isFile) refreshFields(check);
}

/// A field for each name that the source leaves open. They stay while the names do, so that typing is not disturbed.
void ScriptPanel::refreshFields(const ScriptCheck* check) {
    const std::vector<ScriptField> fields = check ? check->fields : std::vector<ScriptField>();
    const recipe::TypedScript* one = script();
    const bool isSame = std::equal(fields.begin(), fields.end(), m_shownFields.begin(), m_shownFields.end(),
                                   [](const ScriptField& a, const ScriptField& b) { return a.name == b.name; });
    m_shownFields = fields;
    m_values->setVisible(!fields.empty());
    if (!isSame) {
        while (m_valueRows->rowCount() > 0) m_valueRows->removeRow(0);
        for (const ScriptField& field : fields) {
            auto* edit = new QLineEdit(m_values);
            edit->setObjectName(QStringLiteral("scriptValue.") + field.name);
            edit->setFixedWidth(160);
            m_valueRows->addRow(field.name, edit);
            connect(edit, &QLineEdit::textEdited, this, [this, name = field.name](const QString& text) { commitValue(name, text); });
        }
    }
    for (const ScriptField& field : fields) {
        auto* edit = m_values->findChild<QLineEdit*>(QStringLiteral("scriptValue.") + field.name);
        const auto given = one ? one->values.find(toUtf8(field.name)) : decltype(one->values.end()){};
        const bool isGiven = one && given != one->values.end();
        if (!edit->hasFocus()) edit->setText(isGiven ? valueText(given->second) : QString());
        edit->setPlaceholderText(field.value && !isGiven ? valueText(*field.value) : tr("needs a value"));
        edit->setAccessibleName(tr("Value of %1").arg(field.name));
        setLook(edit, "invalid", !field.value && !isGiven);
    }
}

QString ScriptPanel::problem() const {
    QStringList lines;
    for (const recipe::TypedScript& one : m_scripts) {
        const ScriptCheck* check = one.path.empty() ? m_checker.known(one) : nullptr;
        if (check && check->error) lines.append(fromUtf8(one.shownName()) + QStringLiteral(": ") + described(*check->error));
    }
    return lines.join(QLatin1Char('\n'));
}

void ScriptPanel::showListProblem(const QString& text) {
    m_listProblem->setText(text);
    m_listProblem->setVisible(!text.isEmpty());
}

bool ScriptPanel::eventFilter(QObject* watched, QEvent* event) {
    if (event->type() == QEvent::FocusIn) Q_EMIT helpRequested();
    return QWidget::eventFilter(watched, event);
}

void ScriptPanel::changeEvent(QEvent* event) {
    QWidget::changeEvent(event);
    if (event->type() == QEvent::LanguageChange) m_texts.refresh();
}

} // namespace celloom::ui
