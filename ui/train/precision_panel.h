// What will compute in which type: the counts, a warning where this machine is slow at it, and a foldable list of the model's cells.
#pragma once

#include "ui/common/model_analysis.h"
#include "ui/common/texts.h"

#include <QWidget>

class QLabel;
class QTreeWidget;

namespace celloom::ui {

class RecipeDocument;

class PrecisionPanel : public QWidget {
    Q_OBJECT
public:
    PrecisionPanel(RecipeDocument& document, ModelAnalyser& analyser, QWidget* parent = nullptr);

    /// In place of this machine's, for tests.
    void setSupport(const HalfSupport& support);

protected:
    void changeEvent(QEvent* event) override;

private:
    void refresh();
    void fillTree(const ModelAnalysis& analysis);
    [[nodiscard]] QString countsText(const ModelAnalysis& analysis) const;
    [[nodiscard]] QString warningText(const ModelAnalysis& analysis) const;
    static QString reasonText(recipe::CellPrecision::Reason reason);

    RecipeDocument& m_document;
    ModelAnalyser& m_analyser;
    Texts m_texts;
    HalfSupport m_support = processorHalfSupport();
    QLabel* m_counts;
    QLabel* m_warning;
    QTreeWidget* m_tree;
};

} // namespace celloom::ui
