// The Train page: the recipe's form, and beside it the help, the learning rate's curve and the same run as a command and as JSON.
#pragma once

#include "models/recipe/estimate.h"
#include "models/recipe/recipe.h"
#include "ui/shell/page.h"

#include <functional>
#include <vector>

class QAction;
class QLabel;
class QPlainTextEdit;
class QPushButton;
class QScrollArea;
class QTimer;
class QToolButton;
class QUndoStack;

namespace celloom::ui {

class Card;
class LoraPanel;
class Plot;
class PreviewRowWidget;
class RecipeForm;
class ScriptPanel;
struct Services;

class TrainPage : public Page {
    Q_OBJECT
public:
    explicit TrainPage(Services& services, QWidget* parent = nullptr);
    [[nodiscard]] QString context() const override;

    void showProblems();
    void focusField(const QString& key);
    [[nodiscard]] QString problemText(const recipe::Problem& problem) const;
    /// To the recipe's file; asks for one where there is none. `then` is called once it is saved.
    void save(const std::function<void()>& then = {});

protected:
    void resizeEvent(QResizeEvent* event) override;

Q_SIGNALS:
    void openRequested();
    void modelRequested();
    void failed(const QString& text);

private:
    void buildUndo();
    void stepBack(bool isRedo);
    void refreshUndo();
    [[nodiscard]] std::vector<QUndoStack*> undoStacks();
    QWidget* buildSections();
    QWidget* buildSide();
    QWidget* buildHelp();
    QWidget* buildRate();
    QWidget* buildText();
    void saveAs(const std::function<void()>& then = {});
    [[nodiscard]] bool isExample() const;
    void saveTo(const QString& path, const std::function<void()>& then = {});
    void showHelp(const recipe::Field* field);
    void showKind();
    void refreshRate();
    void refreshText();
    void refreshSections();
    [[nodiscard]] QString estimateText(const recipe::Estimate& estimate) const;
    static QString phaseText(recipe::MemoryPhase phase);
    void refreshModel();
    void refreshModelProblems();

    Services& m_services;
    RecipeForm* m_form;
    LoraPanel* m_lora;
    ScriptPanel* m_scripts;
    PreviewRowWidget* m_preview;
    QWidget* m_side;
    QAction* m_undo;
    QAction* m_redo;
    QScrollArea* m_scroll;
    std::vector<std::pair<QString, QPushButton*>> m_sectionButtons;
    const recipe::Field* m_helpField = nullptr;
    Card* m_helpCard;
    QLabel* m_help;
    QPushButton* m_reset;
    Card* m_rateCard;
    Plot* m_rate;
    QLabel* m_rateNote;
    std::vector<double> m_rateX, m_rateY;
    Card* m_textCard;
    QPlainTextEdit* m_text;
    QToolButton* m_showCommand;
    QToolButton* m_showJson;
    QLabel* m_model;
    QTimer* m_refresh;
};

} // namespace celloom::ui
