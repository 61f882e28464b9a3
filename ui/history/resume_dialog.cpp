#include "ui/history/resume_dialog.h"

#include "models/store/index.h"
#include "models/store/resume_plan.h"
#include "ui/common/format.h"
#include "ui/common/run_texts.h"
#include "ui/common/widgets.h"

#include <QCheckBox>
#include <QComboBox>
#include <QDialogButtonBox>
#include <QGridLayout>
#include <QLineEdit>
#include <QPushButton>
#include <QVBoxLayout>

#include <cmath>

namespace celloom::ui {

namespace {

/// What people change when they go on; the command line takes every other field that may change.
constexpr const char* kOffered[] = {"optimizer.lr",           "schedule.type",        "schedule.min_lr",     "train.max_minutes",
                                    "evaluate.every_steps",   "sample.every_steps",   "checkpoint.every_steps", "checkpoint.keep_max"};

} // namespace

ResumeDialog::ResumeDialog(const store::RunFolder& folder, bool isChinese, std::function<void(const Changes&)> resume, QWidget* parent)
    : QDialog(parent), m_folder(folder), m_isChinese(isChinese), m_resume(std::move(resume)), m_standing(makeLabel("value", this)),
      m_reason(makeLabel("muted", this)), m_effect(makeLabel("value", this)), m_problem(makeLabel("problem", this)), m_go(nullptr) {
    setAttribute(Qt::WA_DeleteOnClose);
    setObjectName(QStringLiteral("resumeDialog"));
    setWindowTitle(tr("Resume run %1").arg(folder.number()));
    setMinimumWidth(560);
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(18, 16, 18, 16);
    layout->setSpacing(12);
    for (QLabel* label : {m_standing, m_reason, m_effect, m_problem}) label->setWordWrap(true);
    layout->addWidget(m_standing);
    layout->addWidget(m_reason);
    auto* grid = new QGridLayout;
    grid->setHorizontalSpacing(12);
    grid->setVerticalSpacing(8);
    grid->setColumnStretch(1, 1);
    grid->setColumnStretch(3, 1);
    layout->addLayout(grid);
    layout->addWidget(m_effect);
    layout->addWidget(m_problem);
    layout->addStretch(1);
    auto* buttons = new QDialogButtonBox(this);
    m_go = buttons->addButton(tr("Resume"), QDialogButtonBox::AcceptRole);
    m_go->setDefault(true);
    m_go->setProperty("role", QStringLiteral("primary"));
    buttons->addButton(tr("Cancel"), QDialogButtonBox::RejectRole);
    layout->addWidget(buttons);
    connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
    connect(buttons, &QDialogButtonBox::accepted, this, [this] {
        m_resume(changes());
        accept();
    });

    if (const auto record = store::readRecord(folder); record && (record->state == store::RunState::Failed || record->state == store::RunState::Interrupted))
        m_reason->setText(RunTexts::outcome(*record));
    m_reason->setVisible(!m_reason->text().isEmpty());
    auto recipe = recipe::Recipe::load(folder.recipe());
    if (!recipe) {
        m_problem->setText(Format::error(recipe.error()));
        m_go->setEnabled(false);
        return;
    }
    m_recipe = std::move(*recipe);
    addRow(grid, *recipe::findField(m_recipe.integer("train.max_steps") > 0 ? "train.max_steps" : "train.epochs"));
    for (const char* key : kOffered)
        if (const recipe::Field* field = recipe::findField(key); field && m_recipe.isShown(*field)) addRow(grid, *field);
    refresh();
}

ResumeDialog::~ResumeDialog() = default;

QString ResumeDialog::labelOf(const std::string& key) const {
    const recipe::Field* field = recipe::findField(key);
    if (!field) return fromUtf8(key);
    return fromUtf8(m_isChinese && !field->labelZh.empty() ? field->labelZh : field->label);
}

void ResumeDialog::addRow(QGridLayout* grid, const recipe::Field& field) {
    const int index = static_cast<int>(m_rows.size());
    auto* label = new QLabel(labelOf(field.key), this);
    label->setToolTip(fromUtf8(m_isChinese && !field.helpZh.empty() ? field.helpZh : field.help));
    const QString now = fromUtf8(m_recipe.toText(field.key));
    QWidget* editor = nullptr;
    if (field.kind == recipe::FieldKind::Choice) {
        auto* box = new QComboBox(this);
        for (const std::string& choice : field.choices) box->addItem(fromUtf8(choice));
        box->setCurrentText(now);
        connect(box, &QComboBox::currentTextChanged, this, &ResumeDialog::refresh);
        editor = box;
    } else {
        auto* line = new QLineEdit(now, this);
        line->setPlaceholderText(now);
        connect(line, &QLineEdit::textChanged, this, &ResumeDialog::refresh);
        editor = line;
    }
    editor->setObjectName(fromUtf8(field.key));
    editor->setAccessibleName(label->text());
    editor->setToolTip(label->toolTip());
    label->setBuddy(editor);
    grid->addWidget(label, index / 2, 2 * (index % 2));
    grid->addWidget(editor, index / 2, 2 * (index % 2) + 1);
    m_rows.push_back({field.key, m_recipe.toText(field.key), editor});
}

QString ResumeDialog::textOf(const QWidget* editor) {
    if (const auto* box = qobject_cast<const QComboBox*>(editor)) return box->currentText();
    return static_cast<const QLineEdit*>(editor)->text().trimmed();
}

ResumeDialog::Changes ResumeDialog::changes() const {
    Changes out;
    for (const Row& row : m_rows) {
        const std::string text = toUtf8(textOf(row.editor));
        recipe::Recipe changed = m_recipe;
        const bool isSame = changed.setFromText(row.key, text) && changed.toText(row.key) == row.before; // "1e-3" is 0.001
        if (!text.empty() && !isSame) out[row.key] = text;
    }
    return out;
}

QString ResumeDialog::standing(const std::string& checkpoint, const recipe::ResumeEffect& effect) const {
    if (checkpoint.empty()) return tr("No checkpoint was saved: the run begins again.");
    if (effect.isComplete())
        return tr("The run is complete: all %n step(s) are done. Give it more to train on.", "", static_cast<int>(effect.step));
    if (effect.total <= 0) return tr("Goes on from %1 with step %2.").arg(fromUtf8(checkpoint), Format::count(effect.step + 1));
    return tr("Goes on from %1 with step %2 of %3.").arg(fromUtf8(checkpoint), Format::count(effect.step + 1), Format::count(effect.total));
}

/// As recipe::sentencesOf, in the language shown.
QStringList ResumeDialog::sentences(const recipe::ResumeEffect& effect) const {
    QStringList lines;
    for (const recipe::SettingChange& change : effect.changes)
        lines.append(tr("%1: %2 → %3").arg(labelOf(change.key), fromUtf8(change.before), fromUtf8(change.now)));
    const QString next = Format::count(effect.step + 1);
    if (effect.total != effect.totalBefore && effect.total > 0 && !effect.changes.empty())
        lines.append(tr("The schedule is laid out over all %1 steps.").arg(Format::count(effect.total)));
    if (effect.keepsFixedRate)
        lines.append(tr("The rate stays at %1, which was set while the run went on; another rate or schedule ends that.").arg(Format::rate(*effect.fixedRate)));
    else if (effect.fixedRate)
        lines.append(tr("The rate of %1 that was set while the run went on ends: the schedule is in force again.").arg(Format::rate(*effect.fixedRate)));
    if (!effect.keepsFixedRate && !effect.changes.empty() && std::isfinite(effect.rate) && !effect.isComplete())
        lines.append(tr("Step %1 has the learning rate %2.").arg(next, Format::rate(effect.rate)));
    if (effect.restartsLossScale) lines.append(tr("The loss scale begins anew."));
    if (!effect.changes.empty()) lines.prepend(tr("From step %1 on:").arg(next));
    return lines;
}

void ResumeDialog::refresh() {
    recipe::Recipe now = m_recipe;
    Status status;
    for (const auto& [key, text] : changes())
        if (status) status = now.setFromText(key, text);
    for (const recipe::Problem& problem : now.validate())
        if (status && problem.severity == recipe::Problem::Severity::Error) status = fail(problem.message, problem.hint, problem.key);
    const auto plan = status ? store::planResume(m_folder, now) : Result<store::ResumePlan>(tl::unexpected(status.error()));
    m_problem->setText(plan ? QString() : Format::error(plan.error()));
    m_problem->setVisible(!plan);
    m_go->setEnabled(plan && !plan->effect.isComplete());
    m_effect->setVisible(plan.has_value());
    if (!plan) return;
    m_standing->setText(standing(plan->checkpoint, plan->effect));
    m_effect->setText(sentences(plan->effect).join(QLatin1Char('\n')));
    m_effect->setVisible(!m_effect->text().isEmpty());
}

} // namespace celloom::ui
