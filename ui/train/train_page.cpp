#include "ui/train/train_page.h"

#include "models/base/machine_memory.h"
#include "models/recipe/checks.h"
#include "models/recipe/schedule.h"
#include "ui/common/format.h"
#include "ui/common/messages.h"
#include "ui/common/model_analysis.h"
#include "ui/common/plot.h"
#include "ui/common/recipe_document.h"
#include "ui/common/run_store.h"
#include "ui/common/theme.h"
#include "ui/common/undo_order.h"
#include "ui/common/widgets.h"
#include "ui/shell/language.h"
#include "ui/shell/services.h"
#include "ui/train/batch_preview.h"
#include "ui/train/field_row.h"
#include "ui/train/lora_panel.h"
#include "ui/train/precision_panel.h"
#include "ui/train/recipe_form.h"
#include "ui/train/script_panel.h"

#include <QAction>
#include <QApplication>
#include <QButtonGroup>
#include <QClipboard>
#include <QFileDialog>
#include <QFileInfo>
#include <QGuiApplication>
#include <QHBoxLayout>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QScrollArea>
#include <QScrollBar>
#include <QTimer>
#include <QToolButton>
#include <QVBoxLayout>

#include <algorithm>

namespace celloom::ui {

namespace {

constexpr int kSideWidth = 372, kNarrowSideWidth = 316, kNarrow = 1180; // below this width of the page the form needs the room
constexpr std::int64_t kPreviewSteps = 1000;                            // drawn when the recipe does not say how many steps there are
constexpr int kCurvePoints = 2000;
constexpr int kTextHeight = 64;

/// Takes what the others beside the recipe leave, and asks for no more.
class ShortText : public QPlainTextEdit {
public:
    using QPlainTextEdit::QPlainTextEdit;
    QSize sizeHint() const override { return {kNarrowSideWidth, kTextHeight}; }
};

/// An error at "precision.deny[1]" belongs to the field "precision.deny".
Error listOf(Error error) {
    error.place.resize(std::min(error.place.find('['), error.place.size()));
    return error;
}

QString sectionLabel(const recipe::Section& section, bool isChinese) {
    return fromUtf8(isChinese && !section.labelZh.empty() ? section.labelZh : section.label);
}

} // namespace

TrainPage::TrainPage(Services& services, QWidget* parent) : Page(parent), m_services(services) {
    auto* layout = new QHBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->setSpacing(0);
    m_form = new RecipeForm(services.recipe, services.theme, services.language);
    m_form->setMaximumWidth(820);
    m_lora = new LoraPanel(services.recipe, services.analyser);
    m_form->insertBelow(QStringLiteral("lora.targets"), m_lora);
    m_scripts = new ScriptPanel(services.recipe, services.engineProgram, services.theme);
    m_form->standIn(QStringLiteral("callbacks.scripts"), m_scripts);
    m_form->appendTo(QStringLiteral("precision"), new PrecisionPanel(services.recipe, services.analyser));
    m_preview = new PreviewRowWidget(services.recipe, services.engineProgram, services.theme);
    m_form->appendTo(QStringLiteral("data"), m_preview);
    auto* holder = new QWidget;
    auto* holderLayout = new QHBoxLayout(holder);
    holderLayout->setContentsMargins(14, 14, 14, 14);
    holderLayout->addWidget(m_form, 100);
    holderLayout->addStretch(1);
    m_scroll = new QScrollArea(this);
    m_scroll->setProperty("role", QStringLiteral("page"));
    m_scroll->setWidgetResizable(true);
    m_scroll->setFocusPolicy(Qt::NoFocus);
    m_scroll->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    m_scroll->setWidget(holder);
    buildUndo();
    layout->addWidget(buildSections());
    layout->addWidget(m_scroll, 1);
    layout->addWidget(buildSide());

    m_refresh = new QTimer(this); // typing redraws once, not at each key
    m_refresh->setSingleShot(true);
    m_refresh->setInterval(60);
    connect(m_refresh, &QTimer::timeout, this, [this] {
        refreshRate();
        refreshText();
    });
    const auto refreshSoon = [this] { m_refresh->start(); };
    const auto refreshKind = [this](const QString& key) {
        if (key == QLatin1String("kind")) showKind();
    };
    connect(&services.recipe, &RecipeDocument::valueChanged, this, refreshKind);
    connect(&services.recipe, &RecipeDocument::replaced, this, &TrainPage::showKind);
    connect(&services.recipe, &RecipeDocument::valueChanged, this, refreshSoon);
    connect(&services.recipe, &RecipeDocument::valueChanged, this, [this](const QString& key) {
        if (key == QLatin1String("callbacks.scripts")) refreshModelProblems();
    });
    connect(&services.recipe, &RecipeDocument::replaced, this, refreshSoon);
    connect(&services.recipe, &RecipeDocument::titleChanged, this, &Page::contextChanged);
    connect(&services.analyser, &ModelAnalyser::ready, this, &TrainPage::refreshModel);
    connect(m_form, &RecipeForm::helpRequested, this, &TrainPage::showHelp);
    connect(m_form, &RecipeForm::problemsChanged, this, &TrainPage::refreshSections);
    connect(m_scripts, &ScriptPanel::checked, this, &TrainPage::refreshModelProblems);
    connect(m_scripts, &ScriptPanel::helpRequested, this, [this] { showHelp(recipe::findField("callbacks.scripts")); });
    connect(m_lora, &LoraPanel::changed, this, &TrainPage::refreshModelProblems);
    connect(m_preview, &PreviewRowWidget::fieldRequested, this, &TrainPage::focusField);
    connect(m_lora, &LoraPanel::regexRequested, this, [this] { focusField(QStringLiteral("lora.target_regex")); });
    texts.add([this] {
        showHelp(m_helpField);
        refreshRate();
        refreshText();
        refreshSections();
        refreshModel();
    });
    showKind();
}

/// Runs that do not train have no first batch, no rate, and none of the sections about learning.
void TrainPage::showKind() {
    const bool isTraining = recipe::trains(m_services.recipe.recipe());
    m_preview->setVisible(isTraining);
    m_rateCard->setVisible(isTraining);
    refreshSections();
}

void TrainPage::resizeEvent(QResizeEvent* event) {
    Page::resizeEvent(event);
    m_side->setFixedWidth(width() < kNarrow ? kNarrowSideWidth : kSideWidth);
}

QString TrainPage::context() const {
    return m_services.recipe.filePath();
}

void TrainPage::buildUndo() {
    RecipeDocument& recipe = m_services.recipe;
    const auto add = [this](const QList<QKeySequence>& keys, bool isRedo) {
        auto* action = new QAction(this);
        action->setShortcuts(keys);
        action->setShortcutContext(Qt::WidgetWithChildrenShortcut);
        addAction(action);
        connect(action, &QAction::triggered, this, [this, isRedo] { stepBack(isRedo); });
        return action;
    };
    m_undo = add({QKeySequence(QKeySequence::Undo)}, false);
    m_redo = add({QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_Z), QKeySequence(Qt::CTRL | Qt::Key_Y)}, true);
    const auto setIcons = [this] {
        m_undo->setIcon(m_services.theme.icon(QStringLiteral("undo")));
        m_redo->setIcon(m_services.theme.icon(QStringLiteral("redo")));
    };
    setIcons();
    connect(&m_services.theme, &Theme::changed, this, setIcons);
    for (const QUndoStack* stack : undoStacks()) connect(stack, &QUndoStack::indexChanged, this, &TrainPage::refreshUndo);
    connect(qApp, &QApplication::focusChanged, this, [&recipe] { recipe.endTyping(); });
    texts.add([this] { refreshUndo(); });
}

std::vector<QUndoStack*> TrainPage::undoStacks() {
    return {&m_services.recipe.rulesStack(), &m_services.recipe.fieldsStack()};
}

void TrainPage::stepBack(bool isRedo) {
    QUndoStack* stack = isRedo ? nextToRedo(undoStacks()) : nextToUndo(undoStacks());
    if (!stack) return;
    const QString key = isRedo ? stack->redoText() : stack->undoText();
    if (isRedo) stack->redo();
    else stack->undo();
    if (const FieldRow* row = m_form->row(key); row && row->editor() != QApplication::focusWidget()) focusField(key); // one sees what went back
}

void TrainPage::refreshUndo() {
    const QUndoStack *undone = nextToUndo(undoStacks()), *redone = nextToRedo(undoStacks());
    const auto show = [this](QAction* action, bool isPossible, const QString& what, const QString& key) {
        const recipe::Field* field = recipe::findField(toUtf8(key));
        action->setEnabled(isPossible);
        action->setText(field ? what + QStringLiteral(": ") + fieldLabel(*field, m_services.language.isChinese()) : what);
        action->setToolTip(action->text() + QStringLiteral(" (%1)").arg(action->shortcut().toString(QKeySequence::NativeText)));
    };
    show(m_undo, undone, tr("Undo"), undone ? undone->undoText() : QString());
    show(m_redo, redone, tr("Redo"), redone ? redone->redoText() : QString());
}

QWidget* TrainPage::buildSections() {
    auto* panel = new QFrame(this);
    panel->setProperty("role", QStringLiteral("sidebar"));
    panel->setFixedWidth(128);
    auto* layout = new QVBoxLayout(panel);
    layout->setContentsMargins(8, 12, 8, 12);
    layout->setSpacing(2);
    for (const recipe::Section& section : recipe::sections()) {
        QWidget* card = m_form->sectionCard(fromUtf8(section.key));
        if (!card) continue;
        auto* button = new QPushButton(panel);
        button->setProperty("role", QStringLiteral("section"));
        connect(button, &QPushButton::clicked, this,
                [this, card] { m_scroll->verticalScrollBar()->setValue(card->mapTo(m_scroll->widget(), QPoint()).y() - 14); });
        layout->addWidget(button);
        m_sectionButtons.emplace_back(fromUtf8(section.key), button);
    }
    layout->addStretch(1);
    auto* steps = new QHBoxLayout;
    for (QAction* action : {m_undo, m_redo}) {
        QToolButton* button = makeQuietButton(panel);
        button->setDefaultAction(action);
        steps->addWidget(button);
    }
    steps->addStretch(1);
    layout->addLayout(steps);
    auto* open = new QPushButton(panel);
    auto* save = new QPushButton(panel);
    auto* saveAs = new QPushButton(panel);
    for (QPushButton* button : {open, save, saveAs}) layout->addWidget(button);
    connect(open, &QPushButton::clicked, this, &TrainPage::openRequested);
    connect(save, &QPushButton::clicked, this, [this] { this->save(); });
    connect(saveAs, &QPushButton::clicked, this, [this] { this->saveAs(); });
    texts.add([open, save, saveAs] {
        open->setText(tr("Open…"));
        open->setToolTip(tr("Open a recipe (Ctrl+O)"));
        save->setText(tr("Save"));
        save->setToolTip(tr("Save the recipe (Ctrl+S)"));
        saveAs->setText(tr("Save as…"));
    });
    return panel;
}

QWidget* TrainPage::buildSide() {
    auto* panel = new QWidget;
    auto* layout = new QVBoxLayout(panel);
    layout->setContentsMargins(8, 14, 14, 14);
    layout->setSpacing(12);
    layout->addWidget(buildHelp());
    layout->addWidget(buildRate());
    layout->addWidget(buildText(), 1);
    auto* scroll = new QScrollArea(this); // where a notice or long texts leave too little height
    scroll->setProperty("role", QStringLiteral("page"));
    scroll->setWidgetResizable(true);
    scroll->setFocusPolicy(Qt::NoFocus);
    scroll->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    scroll->setWidget(panel);
    scroll->setFixedWidth(kSideWidth);
    m_side = scroll;
    return scroll;
}

QWidget* TrainPage::buildHelp() {
    m_helpCard = new Card(this);
    m_help = makeLabel("help", m_helpCard);
    m_help->setWordWrap(true);
    m_help->setTextFormat(Qt::PlainText);
    m_help->setMinimumHeight(64);
    m_help->setAlignment(Qt::AlignTop | Qt::AlignLeft);
    m_reset = new QPushButton(m_helpCard);
    m_reset->setProperty("role", QStringLiteral("link"));
    m_helpCard->titleRow()->addWidget(m_reset);
    connect(m_reset, &QPushButton::clicked, this, [this] {
        if (!m_helpField) return;
        m_services.recipe.reset(fromUtf8(m_helpField->key));
        showHelp(m_helpField);
    });
    m_helpCard->body()->addWidget(m_help);
    return m_helpCard;
}

QWidget* TrainPage::buildRate() {
    m_rateCard = new Card(this);
    m_rateNote = makeLabel("small", m_rateCard);
    m_rateNote->setWordWrap(true);
    m_rate = new Plot(m_services.theme, {{"blue", 1.8}}, m_rateCard);
    m_rate->setFixedHeight(150);
    m_rate->setFloor(0);
    m_rate->setFormats(QStringLiteral("%g"), QStringLiteral("auto"));
    m_rate->setData(0, {&m_rateX, &m_rateY});
    m_rateCard->body()->addWidget(m_rate);
    m_rateCard->body()->addWidget(m_rateNote);
    texts.add([this] {
        m_rateCard->setTitle(tr("Learning rate over the run"));
        m_rate->setXTitle(tr("step"));
        m_rate->setAccessibleName(tr("Learning rate over the run"));
    });
    return m_rateCard;
}

QWidget* TrainPage::buildText() {
    m_textCard = new Card(this);
    m_model = makeLabel("small", m_textCard);
    m_model->setWordWrap(true);
    m_text = new ShortText(m_textCard);
    m_text->setProperty("role", QStringLiteral("mono"));
    m_text->setReadOnly(true);
    m_text->setMinimumHeight(kTextHeight);
    m_text->setTabChangesFocus(true);
    m_text->setWordWrapMode(QTextOption::WrapAnywhere);
    m_showCommand = makeQuietButton(m_textCard);
    m_showJson = makeQuietButton(m_textCard);
    auto* group = new QButtonGroup(m_textCard);
    for (QToolButton* button : {m_showCommand, m_showJson}) {
        button->setCheckable(true);
        group->addButton(button);
        m_textCard->titleRow()->addWidget(button);
        connect(button, &QToolButton::clicked, this, &TrainPage::refreshText);
    }
    m_showCommand->setChecked(true);
    QToolButton* copy = makeQuietButton(m_textCard);
    m_textCard->titleRow()->addWidget(copy);
    connect(copy, &QToolButton::clicked, this, [this] { QGuiApplication::clipboard()->setText(m_text->toPlainText()); });
    const auto setIcon = [this, copy] { copy->setIcon(m_services.theme.icon(QStringLiteral("copy"))); };
    setIcon();
    connect(&m_services.theme, &Theme::changed, copy, setIcon);
    m_textCard->body()->addWidget(m_text, 1);
    m_textCard->body()->addWidget(m_model);
    texts.add([this, copy] {
        m_textCard->setTitle(tr("The same run as"));
        m_showCommand->setText(tr("Command"));
        m_showJson->setText(QStringLiteral("JSON"));
        copy->setToolTip(tr("Copy"));
        copy->setAccessibleName(tr("Copy the text"));
        m_text->setAccessibleName(tr("The run as text"));
    });
    return m_textCard;
}

void TrainPage::showHelp(const recipe::Field* field) {
    m_helpField = field;
    m_reset->setVisible(field && !m_services.recipe.recipe().isDefault(field->key));
    m_reset->setText(tr("Reset"));
    if (!field) {
        m_helpCard->setTitle(tr("Help"));
        m_help->setText(tr("Choose a field: what it means, its range and its default are shown here. Fields that differ from their default "
                           "have a bold label."));
        return;
    }
    const bool isChinese = m_services.language.isChinese();
    m_helpCard->setTitle(fieldLabel(*field, isChinese));
    QStringList lines{fieldHelp(*field, isChinese)};
    const QString range = FieldRow::rangeOf(*field);
    if (!range.isEmpty()) lines.append(tr("Range: %1").arg(range) + QLatin1Char(' ') + fieldUnit(*field, isChinese));
    const recipe::Recipe fresh;
    const QString standard = fromUtf8(fresh.toText(field->key));
    lines.append(tr("Default: %1").arg(standard.isEmpty() ? tr("empty") : standard));
    lines.append(tr("In the file: %1").arg(fromUtf8(field->key)));
    m_help->setText(lines.join(QLatin1Char('\n')));
}

void TrainPage::refreshRate() {
    const recipe::Recipe& recipe = m_services.recipe.recipe();
    const std::int64_t given = recipe.integer("train.max_steps");
    const std::int64_t steps = given > 0 ? given : kPreviewSteps;
    const auto schedule = recipe::scheduleOf(recipe, steps);
    m_rateX.clear();
    m_rateY.clear();
    if (!schedule) {
        m_rateNote->setText(Format::error(schedule.error()));
    } else {
        const std::int64_t stride = std::max<std::int64_t>(1, steps / kCurvePoints);
        for (std::int64_t step = 0; step < steps; step += stride) {
            m_rateX.push_back(static_cast<double>(step));
            m_rateY.push_back(schedule->rateAt(step));
        }
        const QString ends =
            tr("First step %1, peak %2, last step %3.")
                .arg(Format::rate(schedule->rateAt(0)), Format::rate(schedule->peak), Format::rate(schedule->rateAt(steps - 1)));
        m_rateNote->setText(
            given > 0 ? ends
                      : followedBy(ends, tr("Drawn for %1 steps; the run's own number follows from the data and the epochs.").arg(Format::count(steps))));
    }
    m_rate->redraw();
}

void TrainPage::refreshText() {
    const recipe::Recipe& recipe = m_services.recipe.recipe();
    if (m_showJson->isChecked()) {
        m_text->setPlainText(fromUtf8(recipe.toJson()));
        return;
    }
    const QString path = m_services.recipe.filePath();
    const bool isSaved = !path.isEmpty() && !m_services.recipe.isModified();
    const auto quoted = [](QString text) {
        static const QString plain = QStringLiteral("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./");
        const bool isPlain = std::all_of(text.begin(), text.end(), [](QChar c) { return plain.contains(c); });
        return isPlain && !text.isEmpty() ? text
                                          : QLatin1Char('\'') + text.replace(QLatin1Char('\''), QLatin1String("'\\''")) + QLatin1Char('\'');
    };
    QString text = QStringLiteral("celloom-engine run ");
    text += quoted(path.isEmpty() ? m_services.recipe.name() + QStringLiteral(".json") : path);
    text += QStringLiteral(" \\\n  --workspace ") + quoted(pathText(m_services.store.workspace().path));
    if (!isSaved) text += QStringLiteral("\n\n# ") + tr("Save the recipe first: the command reads the file.");
    m_text->setPlainText(text);
}

void TrainPage::refreshSections() {
    const bool isChinese = m_services.language.isChinese();
    for (const auto& [key, button] : m_sectionButtons) {
        for (const recipe::Section& section : recipe::sections()) {
            if (fromUtf8(section.key) != key) continue;
            button->setVisible(!m_form->sectionCard(key)->isHidden());
            const int errors = m_form->errorsIn(key);
            button->setText(sectionLabel(section, isChinese) + (errors > 0 ? QStringLiteral("  (%1)").arg(errors) : QString()));
            button->setAccessibleName(tr("Go to the section %1").arg(sectionLabel(section, isChinese)));
        }
    }
}

void TrainPage::refreshModel() {
    const ModelAnalysisPtr analysis = m_services.analyser.latest();
    if (!analysis) return;
    refreshModelProblems();
    if (analysis->openError || !analysis->expansion.ok()) {
        m_model->setText({});
        return;
    }
    std::int64_t frozen = 0, lora = 0;
    const auto& model = analysis->expansion.model;
    for (std::size_t i = 0; i < analysis->treatment.cells.size(); ++i) {
        const recipe::Treatment& treatment = analysis->treatment.cells[i];
        frozen += treatment.frozen && !treatment.lora && !model.cells[i].weights.empty() ? 1 : 0;
        lora += treatment.lora ? 1 : 0;
    }
    QString text = tr("%1: %2 parameters in %3 cells")
                       .arg(fromUtf8(model.name), Format::shortCount(static_cast<double>(model.parameterCount())),
                            Format::count(static_cast<std::int64_t>(model.cells.size())));
    if (frozen > 0) text += QStringLiteral(" · ") + tr("%1 frozen").arg(Format::count(frozen));
    if (lora > 0) text += QStringLiteral(" · ") + tr("%1 with LoRA").arg(Format::count(lora));
    if (analysis->estimate) text += QLatin1Char('\n') + estimateText(*analysis->estimate);
    m_model->setText(text);
}

/// What the model at hand makes wrong, at the field that is meant.
void TrainPage::refreshModelProblems() {
    const bool isTraining = recipe::trains(m_services.recipe.recipe());
    const char* ofModel = isTraining ? "model.source" : "model.weights"; // the field that names the network
    std::map<QString, RecipeForm::ModelProblem> problems;
    const auto add = [&](const Error& error, const char* otherwise) {
        const bool isField = recipe::findField(error.place) != nullptr;
        const QString key = isField ? fromUtf8(error.place) : QString::fromLatin1(otherwise);
        problems[key].text = Format::error(isField ? Error{error.message, error.hint, {}} : error);
    };
    if (const ModelAnalysisPtr analysis = m_services.analyser.latest()) {
        if (analysis->openError)
            add(*analysis->openError, ofModel);
        else if (!analysis->expansion.ok())
            add(analysis->expansion.firstError(), ofModel);
        else if (isTraining && m_lora->choice().error)
            add(*m_lora->choice().error, "lora.targets");
        else if (analysis->ruleError && !analysis->ruleError->place.starts_with("lora.")) // of those the panel knows first
            add(*analysis->ruleError, "rules");
        if (analysis->precisionError) add(listOf(*analysis->precisionError), "precision.deny");
        const bool isOpen = !analysis->openError && analysis->expansion.ok();
        if (const std::int64_t longest = isOpen ? recipe::exceededPositions(analysis->expansion.model, analysis->sequence) : 0; longest > 0)
            problems[QStringLiteral("train.sequence_length")] = {
                tr("Longer than the model's max_positions, %1. Shorten the sequences; for a model that begins empty, set "
                   "max_positions=%2 in the overrides instead.")
                    .arg(Format::count(longest))
                    .arg(analysis->sequence),
                false};
    }
    if (const QString wrong = m_scripts->problem(); !wrong.isEmpty()) problems[QStringLiteral("callbacks.scripts")].text = wrong;
    m_form->setModelProblems(std::move(problems));
    const Error ofList = m_services.recipe.pendingError(QStringLiteral("callbacks.scripts"));
    m_scripts->showListProblem(ofList.message.empty() ? QString() : Format::error({ofList.message, ofList.hint, {}}));
}

QString TrainPage::phaseText(recipe::MemoryPhase phase) {
    switch (phase) {
    case recipe::MemoryPhase::Forward:
        return tr("in the forward pass");
    case recipe::MemoryPhase::Backward:
        return tr("in the backward pass");
    case recipe::MemoryPhase::Update:
        return tr("in the optimizer's update");
    case recipe::MemoryPhase::Evaluation:
        break;
    }
    return tr("in an evaluation");
}

QString TrainPage::estimateText(const recipe::Estimate& estimate) const {
    const auto bytes = [](std::int64_t count) { return Format::bytes(static_cast<double>(count)); };
    const recipe::MemoryParts& peak = estimate.peak;
    QString memory =
        tr("At most %1 of memory for tensors, %2: weights %3, gradients %4, optimizer %5, activations %6.")
            .arg(bytes(estimate.peakBytes), phaseText(estimate.peakPhase), bytes(peak.weights), bytes(peak.gradients), bytes(peak.optimizer),
                 bytes(peak.activations));
    if (const std::int64_t free = machineMemory().available; free > 0 && m_services.recipe.recipe().text("device") != "cuda") {
        memory += QLatin1Char('\n') + (estimate.peakBytes <= free ? tr("This machine has %1 of memory free.").arg(bytes(free))
                                                                  : tr("More than this machine has: %1 of memory is free.").arg(bytes(free)));
    }
    memory += QLatin1Char('\n') + tr("Work of a step: %1FLOP in %2 tokens.")
                                      .arg(Format::shortCount(estimate.flopsPerStep), Format::count(estimate.tokensPerStep));
    const QString disk = tr("On disk %1 a checkpoint, %n of them kept.", "", static_cast<int>(estimate.keptCheckpoints))
                             .arg(bytes(estimate.checkpointBytes));
    return memory + QLatin1Char('\n') + disk;
}

void TrainPage::showProblems() {
    m_form->refreshProblems();
    refreshModel();
}

void TrainPage::focusField(const QString& key) {
    m_form->focusField(key);
    if (FieldRow* row = m_form->row(key)) QTimer::singleShot(0, row, [this, row] { m_scroll->ensureWidgetVisible(row, 0, 80); });
}

QString TrainPage::problemText(const recipe::Problem& problem) const {
    const recipe::Field* field = recipe::findField(problem.key);
    const QString text = m_form->problemText(problem);
    return field ? fieldLabel(*field, m_services.language.isChinese()) + QStringLiteral(": ") + text : text;
}

/// The examples stay as they came.
bool TrainPage::isExample() const {
    const QString examples = QFileInfo(m_services.recipesFolder).canonicalFilePath();
    return !examples.isEmpty() && QFileInfo(m_services.recipe.filePath()).canonicalFilePath().startsWith(examples + QLatin1Char('/'));
}

void TrainPage::save(const std::function<void()>& then) {
    if (m_services.recipe.filePath().isEmpty() || isExample()) {
        saveAs(then);
    } else {
        saveTo(m_services.recipe.filePath(), then);
    }
}

void TrainPage::saveAs(const std::function<void()>& then) {
    auto* dialog = new QFileDialog(window(), tr("Save recipe"));
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    dialog->setAcceptMode(QFileDialog::AcceptSave);
    dialog->setDefaultSuffix(QStringLiteral("json"));
    dialog->setNameFilters({tr("Recipes (*.json)")});
    const QString path = m_services.recipe.filePath();
    dialog->setDirectory(path.isEmpty() || isExample() ? pathText(m_services.store.workspace().path) : QFileInfo(path).absolutePath());
    dialog->selectFile(m_services.recipe.name() + QStringLiteral(".json"));
    connect(dialog, &QFileDialog::fileSelected, this, [this, then](const QString& path) { saveTo(path, then); });
    dialog->open();
}

void TrainPage::saveTo(const QString& path, const std::function<void()>& then) {
    if (m_services.recipe.hasPending()) {
        Q_EMIT failed(tr("Some fields hold no valid value yet; the file would not have them. Correct the marked fields first."));
        return;
    }
    if (Status status = m_services.recipe.save(path); !status) {
        Q_EMIT failed(Format::error(status.error()));
        return;
    }
    refreshText();
    if (then) then();
}

} // namespace celloom::ui
