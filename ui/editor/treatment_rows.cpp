#include "ui/editor/treatment_rows.h"

#include "models/recipe/lora.h"
#include "ui/common/format.h"
#include "ui/common/messages.h"
#include "ui/common/recipe_document.h"
#include "ui/common/theme.h"
#include "ui/common/widgets.h"
#include "ui/editor/property_rows.h"

#include <QComboBox>
#include <QHBoxLayout>
#include <QLineEdit>
#include <QPushButton>
#include <QScrollArea>
#include <QTimer>
#include <QToolButton>
#include <QVBoxLayout>

#include <algorithm>

namespace celloom::ui {

namespace {

const QString kRules = QStringLiteral("rules");

/// What a rule can give, as it is written in one.
struct Choice {
    const char* name;
    const char* words;
    const char* value; // what stands behind at first; null: nothing does
};
constexpr Choice kChoices[] = {
    {QT_TRANSLATE_NOOP("celloom::ui::TreatmentRows", "Freeze"), "freeze", nullptr},
    {QT_TRANSLATE_NOOP("celloom::ui::TreatmentRows", "Train"), "train", nullptr},
    {QT_TRANSLATE_NOOP("celloom::ui::TreatmentRows", "LoRA adapter"), "lora ", "r=8 alpha=16"},
    {QT_TRANSLATE_NOOP("celloom::ui::TreatmentRows", "Compute in float32"), "dtype=float32", nullptr},
    {QT_TRANSLATE_NOOP("celloom::ui::TreatmentRows", "Compute in bfloat16"), "dtype=bfloat16", nullptr},
    {QT_TRANSLATE_NOOP("celloom::ui::TreatmentRows", "Compute in float16"), "dtype=float16", nullptr},
    {QT_TRANSLATE_NOOP("celloom::ui::TreatmentRows", "Recompute"), "recompute", nullptr},
    {QT_TRANSLATE_NOOP("celloom::ui::TreatmentRows", "Do not recompute"), "recompute=false", nullptr},
    {QT_TRANSLATE_NOOP("celloom::ui::TreatmentRows", "Learning rate ×"), "lr_scale=", "0.1"},
    {QT_TRANSLATE_NOOP("celloom::ui::TreatmentRows", "Weight decay"), "weight_decay=", "0"},
    {QT_TRANSLATE_NOOP("celloom::ui::TreatmentRows", "Train the bias"), "train_bias", nullptr},
    {QT_TRANSLATE_NOOP("celloom::ui::TreatmentRows", "Learn whole, in the adapter's file"), "save", nullptr},
    {QT_TRANSLATE_NOOP("celloom::ui::TreatmentRows", "Pipeline stage"), "stage=", "0"},
};

QLabel* makeProblem(QWidget* holder) {
    auto* problem = makeLabel("problem", holder);
    problem->setWordWrap(true);
    problem->hide();
    return problem;
}

QComboBox* makeChoice(const char* name, const QString& said, QWidget* holder) {
    auto* box = new QComboBox(holder);
    box->setObjectName(QLatin1String(name));
    box->setAccessibleName(said);
    box->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
    box->setMinimumContentsLength(6);
    letWheelPass(box);
    return box;
}

/// From the event loop: what shows the change is built anew by it.
void commit(QWidget* holder, RecipeDocument& recipe, const std::vector<std::string>& rules) {
    QMetaObject::invokeMethod(holder, [&recipe, rules] { recipe.setValue(kRules, rules); }, Qt::QueuedConnection);
}

} // namespace

Status checkRules(const recipe::Recipe& recipe, const graph::ExpandedModel& model, const std::vector<std::string>& rules) {
    recipe::Recipe trial = recipe;
    CELLOOM_TRY_STATUS(trial.set("rules", rules));
    return recipe::treatmentOf(trial, model).map([](const recipe::TreatmentTable&) {});
}

void TreatmentRows::addSources(const std::vector<std::size_t>& cells) {
    const recipe::Recipe& recipe = m_recipe.recipe();
    const auto& table = m_analysis->treatment.cells;
    const auto add = [this](const QString& text) {
        auto* label = makeLabel("small", m_holder);
        label->setText(text);
        label->setWordWrap(true);
        m_rows->addWidget(label);
    };
    const auto any = [&](const auto& holds) { return std::any_of(cells.begin(), cells.end(), [&](std::size_t cell) { return cell < table.size() && holds(table[cell]); }); };
    if (recipe::usesLora(recipe) && any([](const recipe::Treatment& one) { return one.lora || one.frozen; }))
        add(tr("By the recipe's LoRA section everything is frozen but the adapters that it names; rules come after it."));
    if (recipe.flag("train.recompute") && any([](const recipe::Treatment& one) { return one.recompute; })) add(tr("Recomputed by train.recompute; rules come after it."));
}

void TreatmentRows::addRules(const std::vector<std::size_t>& cells) {
    const auto rules = m_recipe.recipe().rules();
    if (!rules) return; // among the problems
    const auto& texts = m_recipe.recipe().list("rules");
    for (const recipe::RuleBearing& bearing : recipe::bearingsOn(m_analysis->expansion.model, *rules, cells)) addRule(bearing, texts[bearing.rule]);
}

/// A rule as text, to be changed in place; how many cells it reaches; a button that removes it.
void TreatmentRows::addRule(const recipe::RuleBearing& bearing, const std::string& text) {
    auto* row = new QHBoxLayout;
    row->setSpacing(4);
    auto* line = new QLineEdit(fromUtf8(text), m_holder);
    line->setObjectName(QStringLiteral("rule:%1").arg(bearing.rule));
    line->setAccessibleName(tr("Rule %1").arg(bearing.rule + 1));
    line->setToolTip(fromUtf8(text));
    line->setCursorPosition(0);
    auto* remove = makeQuietButton(m_holder);
    remove->setIcon(m_theme.icon(QStringLiteral("close")));
    remove->setObjectName(QStringLiteral("remove rule:%1").arg(bearing.rule));
    remove->setToolTip(tr("Remove this rule from the recipe"));
    remove->setAccessibleName(tr("Remove rule %1").arg(bearing.rule + 1));
    row->addWidget(line, 1);
    row->addWidget(remove);
    m_rows->addLayout(row);
    auto* note = makeLabel("small", m_holder);
    QString reach = tr("Rule %1 reaches %n cell(s)", "", static_cast<int>(bearing.cells)).arg(bearing.rule + 1);
    if (bearing.isOverridden) reach += QStringLiteral(" · ") + tr("overridden here by a later one");
    note->setText(reach);
    m_rows->addWidget(note);
    QLabel* problem = makeProblem(m_holder);
    m_rows->addWidget(problem);
    letEscapeRestore(line, fromUtf8(text), [problem] { problem->hide(); });
    const std::size_t at = bearing.rule;
    QObject::connect(line, &QLineEdit::editingFinished, m_holder, [=, holder = m_holder, analysis = m_analysis, &recipe = m_recipe] {
        if (toUtf8(line->text()) == text) return;
        std::vector<std::string> rules = recipe.recipe().list("rules");
        if (at >= rules.size()) return;
        rules[at] = toUtf8(line->text().trimmed());
        const Status status = checkRules(recipe.recipe(), analysis->expansion.model, rules);
        setLook(line, "invalid", !status.has_value());
        line->setModified(!status.has_value());
        problem->setVisible(!status.has_value());
        if (status) commit(holder, recipe, rules);
        else problem->setText(said(status.error()));
    });
    QObject::connect(remove, &QToolButton::clicked, m_holder, [=, holder = m_holder, &recipe = m_recipe] {
        std::vector<std::string> rules = recipe.recipe().list("rules");
        if (at < rules.size()) rules.erase(rules.begin() + static_cast<std::ptrdiff_t>(at));
        commit(holder, recipe, rules);
    });
}

void TreatmentRows::addNewRule(const std::string& path, const std::vector<std::size_t>& cells) {
    const graph::ExpandedModel& model = m_analysis->expansion.model;
    const std::string alone = recipe::patternFor(model, path, recipe::Reach::Instance), repeats = recipe::patternFor(model, path, recipe::Reach::AllRepeats);
    const bool takesLora = std::any_of(cells.begin(), cells.end(), [&](std::size_t cell) { return recipe::takesAdapter(model.cells[cell]); });

    auto* open = new QPushButton(tr("New rule…"), m_holder);
    open->setObjectName(QStringLiteral("new rule"));
    open->setToolTip(tr("Freeze it, give it an adapter, another precision or rate: as a rule of the recipe"));
    auto* form = new QWidget(m_holder);
    form->setObjectName(QLatin1String(kForm));
    auto* layout = new QVBoxLayout(form);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->setSpacing(5);
    QComboBox* what = makeChoice("rule what", tr("What the rule gives"), form);
    for (int i = 0; i < static_cast<int>(std::size(kChoices)); ++i) // the index is the item's data
        if (takesLora || QLatin1String(kChoices[i].words) != QLatin1String("lora ")) what->addItem(tr(kChoices[i].name), i);
    auto* value = new QLineEdit(form);
    value->setObjectName(QStringLiteral("rule value"));
    value->setAccessibleName(tr("Value"));
    auto* first = new QHBoxLayout;
    first->addWidget(what, 3);
    first->addWidget(value, 2);
    QComboBox* reach = makeChoice("rule reach", tr("For which cells"), form);
    if (repeats != alone) reach->addItem(tr("In all repeats"), fromUtf8(repeats));
    reach->addItem(path.empty() ? tr("The whole model") : tr("This one alone"), fromUtf8(alone));
    reach->addItem(tr("A pattern"));
    auto* pattern = new QLineEdit(form);
    pattern->setObjectName(QStringLiteral("rule pattern"));
    pattern->setAccessibleName(tr("Pattern of paths"));
    pattern->setToolTip(tr("* stands for one name, ** for any number of them, {3..5} for a range, {a,b} for either"));
    auto* count = makeLabel("small", form);
    count->setObjectName(QStringLiteral("rule count"));
    QLabel* problem = makeProblem(form);
    auto* add = new QPushButton(tr("Add the rule"), form);
    add->setObjectName(QStringLiteral("add rule"));
    layout->addLayout(first);
    layout->addWidget(reach);
    layout->addWidget(pattern);
    layout->addWidget(count);
    layout->addWidget(problem);
    layout->addWidget(add);
    form->hide();
    m_rows->addWidget(open);
    m_rows->addWidget(form);

    const auto ruleOf = [what, value, pattern]() -> Result<recipe::Rule> {
        const Choice& choice = kChoices[what->currentData().toInt()];
        return recipe::parseRule(toUtf8(pattern->text().trimmed()) + ": " + choice.words + (choice.value ? toUtf8(value->text().trimmed()) : std::string()));
    };
    const auto refresh = [=, analysis = m_analysis] {
        const auto rule = ruleOf();
        const auto reached = rule ? recipe::cellsOf(analysis->expansion.model, *rule) : Result<std::vector<std::size_t>>(tl::unexpected(rule.error()));
        problem->setVisible(!reached.has_value());
        if (!reached) problem->setText(said(reached.error()));
        count->setText(reached ? tr("matches %n cell(s)", "", static_cast<int>(reached->size())) : QString());
        add->setEnabled(reached && !reached->empty());
    };
    const auto showValue = [=] {
        const char* standard = kChoices[what->currentData().toInt()].value;
        value->setVisible(standard != nullptr);
        value->setText(QString::fromLatin1(standard ? standard : ""));
        refresh();
    };
    const auto showPattern = [=] {
        const QString chosen = reach->currentData().toString();
        if (!chosen.isEmpty()) pattern->setText(chosen);
        refresh();
        if (!chosen.isEmpty()) return;
        pattern->setFocus();
        pattern->selectAll();
    };
    QObject::connect(open, &QPushButton::clicked, form, [=] {
        form->show();
        open->hide();
        what->setFocus();
        QTimer::singleShot(0, add, [add] { // laid out then
            for (QWidget* above = add->parentWidget(); above; above = above->parentWidget())
                if (auto* scroll = qobject_cast<QScrollArea*>(above)) scroll->ensureWidgetVisible(add);
        });
    });
    QObject::connect(what, &QComboBox::currentIndexChanged, form, showValue);
    QObject::connect(reach, &QComboBox::activated, form, showPattern);
    QObject::connect(value, &QLineEdit::textEdited, form, refresh);
    QObject::connect(pattern, &QLineEdit::textEdited, form, [=] {
        reach->setCurrentIndex(reach->count() - 1);
        refresh();
    });
    QObject::connect(add, &QPushButton::clicked, form, [=, holder = m_holder, analysis = m_analysis, &recipe = m_recipe] {
        const auto rule = ruleOf();
        auto rules = rule ? recipe::withRule(recipe.recipe().list("rules"), *rule) : Result<std::vector<std::string>>(tl::unexpected(rule.error()));
        Status status = rules ? checkRules(recipe.recipe(), analysis->expansion.model, *rules) : Status(tl::unexpected(rules.error()));
        problem->setVisible(!status.has_value());
        if (status) {
            form->hide(); // it is built anew with what follows
            commit(holder, recipe, *rules);
        } else {
            problem->setText(said(status.error()));
        }
    });
    for (QLineEdit* line : {value, pattern}) QObject::connect(line, &QLineEdit::returnPressed, add, &QPushButton::click);
    showPattern();
    showValue();
}

} // namespace celloom::ui
