// The targets of LoRA by ticking: quick choices, the tree of cells, and what the choice as a whole costs. Writes lora.targets.
#pragma once

#include "ui/common/model_analysis.h"
#include "ui/common/texts.h"
#include "ui/train/lora_targets.h"

#include <QWidget>

#include <vector>

class QLabel;
class QPushButton;
class QToolButton;
class QTreeView;

namespace celloom::ui {

class RecipeDocument;
class TargetTreeModel;

class LoraPanel : public QWidget {
    Q_OBJECT
public:
    LoraPanel(RecipeDocument& document, ModelAnalyser& analyser, QWidget* parent = nullptr);

    /// What is wrong with the "lora" section for this model; its place is the field's key. Empty when nothing is.
    [[nodiscard]] Error error() const { return m_choice.error.value_or(Error{}); }
    [[nodiscard]] const LoraChoice& choice() const { return m_choice; }

Q_SIGNALS:
    void changed();
    void regexRequested(); // the field for a regular expression should be shown

protected:
    void changeEvent(QEvent* event) override;

private:
    QWidget* buildQuickRow();
    void buildTree();
    void keepOneWay(const QString& edited);
    void refresh();
    void refreshTotal();
    void choose(const std::vector<bool>& ticked);
    void unfoldFew();

    RecipeDocument& m_document;
    ModelAnalyser& m_analyser;
    Texts m_texts;
    ModelAnalysisPtr m_analysis;
    LoraChoice m_choice;
    TargetTreeModel* m_model;
    QTreeView* m_tree;
    std::vector<QToolButton*> m_quick; // in the order of QuickTargets
    QToolButton* m_regex;
    QLabel* m_total;
    QLabel* m_note;
};

} // namespace celloom::ui
