// One line of the form: the field's label, a control for its kind, its unit, help, and what is wrong with it.
#pragma once

#include "models/recipe/recipe.h"

#include <QWidget>

class QLabel;
class QToolButton;

namespace celloom::ui {

class Language;
class RecipeDocument;
class Theme;

/// A field's words in the language shown.
QString fieldLabel(const recipe::Field& field, bool isChinese);
QString fieldHelp(const recipe::Field& field, bool isChinese);
QString fieldUnit(const recipe::Field& field, bool isChinese);

class FieldRow : public QWidget {
    Q_OBJECT
public:
    FieldRow(const recipe::Field& field, RecipeDocument& document, Theme& theme, Language& language, QWidget* parent = nullptr);

    [[nodiscard]] const recipe::Field& field() const { return m_field; }
    /// The control that takes the keyboard.
    [[nodiscard]] QWidget* editor() const { return m_editor; }
    /// Shows the document's value again, unless the change came from here.
    void refresh();
    void setProblem(const QString& text, bool isError);
    [[nodiscard]] QString problem() const;
    /// "1 to 4096", "at least 0"; empty for what has no range.
    [[nodiscard]] static QString rangeOf(const recipe::Field& field);

Q_SIGNALS:
    void helpRequested(const celloom::recipe::Field* field);

protected:
    void changeEvent(QEvent* event) override;
    bool eventFilter(QObject* watched, QEvent* event) override;

private:
    void buildEditor();
    QWidget* buildLine();
    QWidget* buildChoice(bool isFree);
    QWidget* buildFlag();
    QWidget* buildList();
    void addPathButton(bool isList);
    void choosePath(bool isFolder, bool isList);
    void retranslate();
    void refreshMark();
    void commitText(const QString& text);
    void commitList(const QString& text);

    const recipe::Field& m_field;
    QString m_key;
    RecipeDocument& m_document;
    Theme& m_theme;
    Language& m_language;
    QLabel* m_label;
    QWidget* m_editor = nullptr;
    QToolButton* m_path = nullptr;
    QLabel* m_unit;
    QToolButton* m_help;
    QLabel* m_problem;
    bool m_isCommitting = false;
};

} // namespace celloom::ui
