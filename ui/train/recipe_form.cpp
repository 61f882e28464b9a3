#include "ui/train/recipe_form.h"

#include "ui/common/format.h"
#include "ui/common/messages.h"
#include "ui/common/recipe_document.h"
#include "ui/common/theme.h"
#include "ui/common/widgets.h"
#include "ui/shell/language.h"
#include "ui/train/field_row.h"
#include "ui/train/kind_switch.h"

#include <QEvent>
#include <QHBoxLayout>
#include <QToolButton>
#include <QVBoxLayout>

#include <algorithm>
#include <cmath>

namespace celloom::ui {

namespace {
const QString kKind = QStringLiteral("kind"); // has a switch of its own

/// Tab goes from `before` into the widget, control by control.
void continueTabs(QWidget* before, const QWidget* widget) {
    for (QWidget* inside : widget->findChildren<QWidget*>()) {
        if (!(inside->focusPolicy() & Qt::TabFocus)) continue;
        QWidget::setTabOrder(before, inside);
        before = inside;
    }
}

} // namespace

RecipeForm::RecipeForm(RecipeDocument& document, Theme& theme, Language& language, QWidget* parent)
    : QWidget(parent), m_document(document), m_theme(theme), m_language(language) {
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->setSpacing(12);
    m_kind = new KindSwitch(document, this);
    layout->addWidget(m_kind);
    m_sections.reserve(recipe::sections().size());
    for (const recipe::Section& section : recipe::sections()) buildSection(section, layout);
    layout->addStretch(1);
    retranslate();
    refreshVisible();
    refreshProblems();
    connect(&document, &RecipeDocument::valueChanged, this, [this](const QString& key) {
        if (FieldRow* changed = row(key)) changed->refresh();
        refreshVisible();
        refreshProblems();
    });
    connect(&document, &RecipeDocument::replaced, this, [this] {
        for (const auto& [key, one] : m_rows) one->refresh();
        refreshVisible();
        refreshProblems();
    });
    connect(&theme, &Theme::changed, this, &RecipeForm::refreshVisible);
}

void RecipeForm::buildSection(const recipe::Section& about, QVBoxLayout* layout) {
    Section section;
    section.about = &about;
    section.card = new Card(this);
    bool hasAdvanced = false;
    // Advanced fields come after the others, behind one button.
    for (const bool isAdvanced : {false, true}) {
        for (const recipe::Field& field : recipe::fields()) {
            if (field.section != about.key || field.isAdvanced != isAdvanced) continue;
            if (isAdvanced && !hasAdvanced) {
                hasAdvanced = true;
                section.more = new QToolButton(section.card);
                section.more->setProperty("role", QStringLiteral("link"));
                section.more->setToolButtonStyle(Qt::ToolButtonTextBesideIcon);
                section.more->setFocusPolicy(Qt::StrongFocus);
                section.card->body()->addWidget(section.more, 0, Qt::AlignLeft);
            }
            auto* row = new FieldRow(field, m_document, m_theme, m_language, section.card);
            section.card->body()->addWidget(row);
            section.rows.push_back(row);
            m_rows[fromUtf8(field.key)] = row;
            connect(row, &FieldRow::helpRequested, this, &RecipeForm::helpRequested);
        }
    }
    if (section.rows.empty()) {
        delete section.card;
        return;
    }
    layout->addWidget(section.card);
    m_sections.push_back(section);
    if (section.more) {
        connect(section.more, &QToolButton::clicked, this,
                [this, index = m_sections.size() - 1] { setUnfolded(m_sections[index], !m_sections[index].isUnfolded); });
    }
}

FieldRow* RecipeForm::row(const QString& key) const {
    const auto found = m_rows.find(key);
    return found == m_rows.end() ? nullptr : found->second;
}

QWidget* RecipeForm::sectionCard(const QString& key) const {
    for (const Section& section : m_sections) {
        if (fromUtf8(section.about->key) == key) return section.card;
    }
    return nullptr;
}

void RecipeForm::insertBelow(const QString& key, QWidget* widget) {
    FieldRow* above = row(key);
    CELLOOM_CHECK(above);
    for (const Section& section : m_sections) {
        if (const int at = section.card->body()->indexOf(above); at >= 0) section.card->body()->insertWidget(at + 1, widget);
    }
    continueTabs(above->editor(), widget);
}

void RecipeForm::standIn(const QString& key, QWidget* widget) {
    insertBelow(key, widget);
    m_standIns[key] = widget;
    refreshVisible();
}

void RecipeForm::appendTo(const QString& key, QWidget* widget) {
    for (const Section& section : m_sections) {
        if (fromUtf8(section.about->key) != key) continue;
        section.card->body()->addWidget(widget);
        continueTabs(section.rows.back()->editor(), widget);
    }
}

void RecipeForm::setModelProblems(std::map<QString, ModelProblem> problems) {
    if (m_modelProblems == problems) return;
    m_modelProblems = std::move(problems);
    refreshProblems();
}

void RecipeForm::setUnfolded(Section& section, bool isUnfolded) {
    section.isUnfolded = isUnfolded;
    refreshVisible();
}

void RecipeForm::refreshVisible() {
    for (Section& section : m_sections) {
        int hidden = 0;
        bool hasAny = false;
        for (FieldRow* row : section.rows) {
            const bool isShown = m_document.recipe().isShown(row->field());
            const bool isFolded = row->field().isAdvanced && !section.isUnfolded;
            const auto standIn = m_standIns.find(fromUtf8(row->field().key));
            if (standIn != m_standIns.end()) standIn->second->setVisible(isShown && !isFolded);
            row->setVisible(isShown && !isFolded && row->field().key != toUtf8(kKind) && standIn == m_standIns.end());
            if (row->field().isAdvanced && isShown) ++hidden;
            hasAny = hasAny || isShown;
        }
        section.card->setVisible(hasAny);
        if (!section.more) continue;
        section.more->setVisible(hidden > 0);
        section.more->setText(section.isUnfolded ? tr("Fewer fields") : tr("%n more field(s)", "", hidden));
        section.more->setIcon(
            m_theme.icon(section.isUnfolded ? QStringLiteral("chevron-down") : QStringLiteral("chevron-right"), "accent"));
    }
}

QString RecipeForm::problemText(const recipe::Problem& problem) const {
    const recipe::Field* field = recipe::findField(problem.key);
    const QString pending = m_document.pendingText(fromUtf8(problem.key));
    const bool isNumber = field && (field->kind == recipe::FieldKind::Integer || field->kind == recipe::FieldKind::Real);
    if (isNumber && !pending.isEmpty()) {
        bool isRead = false;
        const double value = pending.toDouble(&isRead);
        const bool isWhole = field->kind == recipe::FieldKind::Integer;
        if (!isRead || (isWhole && value != std::floor(value)))
            return (isWhole ? tr("“%1” is not a whole number.") : tr("“%1” is not a number.")).arg(pending);
        return tr("%1 is outside the range: %2.").arg(pending, FieldRow::rangeOf(*field));
    }
    return said(Error{problem.message, problem.hint, {}});
}

void RecipeForm::refreshProblems() {
    std::map<QString, std::pair<QString, bool>> texts; // by key: text and whether it is an error
    m_errors.clear();
    for (const recipe::Problem& problem : m_document.problems()) {
        const bool isError = problem.severity == recipe::Problem::Severity::Error;
        auto& [text, wasError] = texts[fromUtf8(problem.key)];
        if (!text.isEmpty()) text += QLatin1Char('\n');
        text += problemText(problem);
        wasError = wasError || isError;
        if (const recipe::Field* field = recipe::findField(problem.key); field && isError) ++m_errors[fromUtf8(field->section)];
    }
    for (const auto& [key, problem] : m_modelProblems) {
        const recipe::Field* field = recipe::findField(toUtf8(key));
        if (!field || !m_document.recipe().isShown(*field)) continue;
        auto& [text, wasError] = texts[key];
        if (text.contains(problem.text)) continue; // the recipe says it itself
        text += text.isEmpty() ? problem.text : QLatin1Char('\n') + problem.text;
        wasError = wasError || problem.isError;
        if (problem.isError) ++m_errors[fromUtf8(field->section)];
    }
    for (const auto& [key, row] : m_rows) {
        const auto found = texts.find(key);
        if (found == texts.end()) {
            row->setProblem({}, false);
        } else {
            row->setProblem(found->second.first, found->second.second);
        }
    }
    Q_EMIT problemsChanged();
}

int RecipeForm::errorsIn(const QString& section) const {
    const auto found = m_errors.find(section);
    return found == m_errors.end() ? 0 : found->second;
}

void RecipeForm::focusField(const QString& key) {
    FieldRow* wanted = row(key);
    if (!wanted) return;
    for (Section& section : m_sections) {
        if (std::find(section.rows.begin(), section.rows.end(), wanted) == section.rows.end()) continue;
        if (wanted->field().isAdvanced && !section.isUnfolded) setUnfolded(section, true);
    }
    if (key == kKind) return m_kind->setFocus(Qt::OtherFocusReason);
    if (const auto standIn = m_standIns.find(key); standIn != m_standIns.end()) return standIn->second->setFocus(Qt::OtherFocusReason);
    wanted->editor()->setFocus(Qt::OtherFocusReason);
}

void RecipeForm::retranslate() {
    for (Section& section : m_sections)
        section.card->setTitle(
            fromUtf8(m_language.isChinese() && !section.about->labelZh.empty() ? section.about->labelZh : section.about->label));
    refreshVisible();
}

void RecipeForm::changeEvent(QEvent* event) {
    QWidget::changeEvent(event);
    if (event->type() != QEvent::LanguageChange) return;
    retranslate();
    refreshProblems();
}

} // namespace celloom::ui
