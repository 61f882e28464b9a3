// The panel under the canvas with what is known of the model: its problems, its code, its costs; each linked with the canvas.
#pragma once

#include "models/graph/fixes.h"
#include "ui/common/background.h"
#include "ui/common/model_analysis.h"
#include "ui/editor/bottom_panel.h"
#include "ui/editor/code_tab.h"
#include "ui/editor/cost_tab.h"
#include "ui/editor/model_level.h"
#include "ui/editor/problems_tab.h"

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace celloom::ui {

class Insight : public BottomPanel {
    Q_OBJECT
public:
    explicit Insight(Services& services, QWidget* parent = nullptr);
    ~Insight() override;

    /// Null, or one that could not be opened: the tabs are empty.
    void setAnalysis(const ModelAnalysisPtr& analysis);
    /// What the canvas shows, and the one box that is chosen.
    void setPlace(const ModelLevel& level, const LevelPath& path, std::optional<std::size_t> box);
    void setEditable(bool isEditable);

    /// Mends the problem that is chosen, or one of the cell that is.
    void mend();
    void goToNextProblem(int direction);
    /// Python classes from the clipboard.
    void pasteCode(const QString& source);

Q_SIGNALS:
    /// Show this level with this box chosen; empty: none. The keyboard stays where it is unless one jumps.
    void placeRequested(const celloom::ui::LevelPath& level, const std::string& box, bool isJump);
    void fieldRequested(const QString& key); // of the recipe
    void fixRefused(const celloom::Error& error);
    void importReady(const celloom::ui::ImportedCode& code, celloom::ui::CodeTab::Target target);

protected:
    void changeEvent(QEvent* event) override;

private:
    void refreshProblems();
    void findFixes();
    void checkMemory();
    [[nodiscard]] ProblemRow ruleRow(const Error& error);
    [[nodiscard]] std::vector<ProblemRow> warningsOfRules();
    void removeRules(const std::function<bool(std::size_t, const std::string&)>& isMeant);
    [[nodiscard]] std::vector<Remedy> remediesOf(const std::vector<graph::Fix>& fixes);
    void jump(const std::string& path);
    void choosePath(const std::string& path, bool isJump);
    void chooseCell(const std::string& graphName, const std::string& cell);

    Services& m_services;
    ProblemsTab* m_problems;
    CodeTab* m_code;
    CostTab* m_cost;
    ModelAnalysisPtr m_analysis;
    std::string m_graph, m_box, m_boxPath;
    LevelPath m_path;
    std::vector<graph::Problem> m_shown; // of the rows, in their order
    DocumentPtr m_fixedDocument;         // for which fixes were looked for
    std::shared_ptr<std::atomic<bool>> m_isGivenUp;
    std::optional<ProblemRow> m_memory; // the run needs more than there is
    bool m_isEditable = false;
    Texts m_texts;
    Background m_background;
};

/// What a button says that carries the fix out: "Wire norm.out to lm_head.x".
QString titleOf(const graph::Fix& fix);

/// A way from the main graph to a composite, by the first cells of its type; nothing where no cell uses it.
std::optional<LevelPath> pathToGraph(const graph::Document& document, const std::string& graphName);

} // namespace celloom::ui
