// The user's own callbacks and metrics in the form: one tab a script, its source, what the engine says about it, and a field for each name that
// the source leaves open. Writes callbacks.scripts.
#pragma once

#include "models/recipe/typed_script.h"
#include "ui/common/texts.h"
#include "ui/train/script_check.h"

#include <QWidget>

#include <vector>

class QFormLayout;
class QLabel;
class QLineEdit;
class QPushButton;
class QTabBar;
class QTimer;
class QToolButton;

namespace celloom::ui {

class RecipeDocument;
class ScriptEditor;
class Theme;

class ScriptPanel : public QWidget {
    Q_OBJECT
public:
    ScriptPanel(RecipeDocument& document, QString engineProgram, Theme& theme, QWidget* parent = nullptr);

    /// What the engine found wrong, script by script; empty where nothing is, or nothing is known yet.
    [[nodiscard]] QString problem() const;
    /// What the recipe itself finds wrong with the list, said below it.
    void showListProblem(const QString& text);
    [[nodiscard]] ScriptEditor* editor() const { return m_editor; }
    [[nodiscard]] int current() const;
    void select(int index);
    /// A new script from a template, shown and ready to be typed in.
    enum class Template { Rate, Schedule, StopWhen, Metric };
    void addTemplate(Template which);

Q_SIGNALS:
    void checked();       // problem() may be another
    void helpRequested(); // the field's help should be shown

protected:
    void changeEvent(QEvent* event) override;
    bool eventFilter(QObject* watched, QEvent* event) override;

private:
    QWidget* buildHead();
    QWidget* buildNames();
    void buildMenu();
    void openFile();
    void add(recipe::TypedScript script);
    void removeCurrent();
    void moveCurrent(int by);
    void rename(const QString& name);
    void commitCode();
    void commitValue(const QString& name, const QString& text);
    void commit();
    void load();
    void showCurrent();
    void checkAll();
    void refreshFindings();
    void refreshFields(const ScriptCheck* check);
    void refreshTabs();
    void refreshButtons();
    [[nodiscard]] QString freeName(const QString& wanted) const;
    [[nodiscard]] recipe::TypedScript* script();
    [[nodiscard]] static QString described(const ScriptNote& note);

    RecipeDocument& m_document;
    Theme& m_theme;
    Texts m_texts;
    ScriptChecker m_checker;
    std::vector<recipe::TypedScript> m_scripts; // as they are typed; the recipe takes them over when it can
    QLabel* m_title;
    QToolButton* m_help;
    QToolButton* m_add;
    QTabBar* m_tabs;
    QWidget* m_body; // of the script at hand
    QLineEdit* m_name;
    QToolButton *m_left, *m_right, *m_remove;
    ScriptEditor* m_editor;
    QLabel* m_status;
    QWidget* m_findingRow;
    QLabel* m_finding;    // the error, and
    QPushButton* m_goTo;  // the way to its place
    QWidget* m_values;
    QFormLayout* m_valueRows;
    QLabel* m_listProblem;
    QLabel* m_empty;
    QTimer* m_pause; // in typing
    std::vector<ScriptField> m_shownFields;
    bool m_isCommitting = false, m_isShowing = false;
};

} // namespace celloom::ui
