// The recipe as a form: one card a section, one row a field, all of it made from recipe::sections() and recipe::fields().
#pragma once

#include "models/recipe/recipe.h"
#include "ui/common/texts.h"

#include <QWidget>

#include <map>
#include <vector>

class QToolButton;
class QVBoxLayout;

namespace celloom::ui {

class Card;
class FieldRow;
class KindSwitch;
class Language;
class RecipeDocument;
class Theme;

class RecipeForm : public QWidget {
    Q_OBJECT
public:
    RecipeForm(RecipeDocument& document, Theme& theme, Language& language, QWidget* parent = nullptr);

    [[nodiscard]] FieldRow* row(const QString& key) const; // null for an unknown key
    [[nodiscard]] QWidget* sectionCard(const QString& section) const;
    /// Puts a widget under a field's row, into the card of its section.
    void insertBelow(const QString& key, QWidget* widget);
    /// Puts a widget in the place of a field's row: the row is hidden, and the keyboard goes to the widget.
    void standIn(const QString& key, QWidget* widget);
    /// Puts a widget at the end of a section's card.
    void appendTo(const QString& section, QWidget* widget);
    /// What is wrong for the model at hand, by field; stays at the rows until the next call.
    struct ModelProblem {
        QString text;
        bool isError = true; // otherwise a warning
        bool operator==(const ModelProblem&) const = default;
    };
    void setModelProblems(std::map<QString, ModelProblem> problems);
    /// Unfolds what hides the field and gives it the keyboard.
    void focusField(const QString& key);
    /// What is wrong at each field; cross-field problems among them.
    void refreshProblems();
    /// Errors in a section, for the list of sections.
    [[nodiscard]] int errorsIn(const QString& section) const;
    [[nodiscard]] QString problemText(const recipe::Problem& problem) const;

Q_SIGNALS:
    void helpRequested(const celloom::recipe::Field* field);
    void problemsChanged();

protected:
    void changeEvent(QEvent* event) override;

private:
    struct Section {
        const recipe::Section* about = nullptr;
        Card* card = nullptr;
        QToolButton* more = nullptr; // unfolds the advanced fields; null where there are none
        bool isUnfolded = false;
        std::vector<FieldRow*> rows;
    };
    void buildSection(const recipe::Section& about, QVBoxLayout* layout);
    void refreshVisible();
    void setUnfolded(Section& section, bool isUnfolded);
    void retranslate();

    RecipeDocument& m_document;
    Theme& m_theme;
    Language& m_language;
    KindSwitch* m_kind; // in place of the row of "kind"
    std::vector<Section> m_sections;
    std::map<QString, FieldRow*> m_rows;
    std::map<QString, QWidget*> m_standIns;
    std::map<QString, int> m_errors; // by section
    std::map<QString, ModelProblem> m_modelProblems;
};

} // namespace celloom::ui
