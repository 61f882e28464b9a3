// Where a model's parameters, FLOPs and memory sit: a tree that sorts, linked with the canvas.
#pragma once

#include "ui/common/model_analysis.h"
#include "ui/common/texts.h"

#include <QWidget>

#include <string>

class QSortFilterProxyModel;
class QToolButton;
class QTreeView;

namespace celloom::ui {

class CostTreeModel;
class ElidedLabel;
struct Services;

class CostTab : public QWidget {
    Q_OBJECT
public:
    explicit CostTab(Services& services, QWidget* parent = nullptr);
    /// The sum and its buttons, to stand in the row of tabs.
    [[nodiscard]] QWidget* tools() const { return m_tools; }

    /// One without costs (an outline, a model with errors) leaves what was counted last, marked as such.
    void setAnalysis(const ModelAnalysisPtr& analysis);
    void setInFront(bool isInFront);
    /// What is chosen on the canvas; empty: nothing.
    void setChosen(const std::string& path);

Q_SIGNALS:
    void cellChosen(const std::string& path);

protected:
    void changeEvent(QEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;

private:
    void fitRows();
    void refresh();
    void showChosen();
    void retranslate();

    Services& m_services;
    CostTreeModel* m_model;
    QSortFilterProxyModel* m_sorted;
    QTreeView* m_view;
    QWidget* m_tools;
    QToolButton* m_fold;
    ElidedLabel* m_total;
    ModelAnalysisPtr m_analysis, m_shown;
    std::string m_chosen;
    bool m_isInFront = false, m_isChoosing = false, m_isFolded = true, m_wasFolded = true;
    Texts m_texts;
};

} // namespace celloom::ui
