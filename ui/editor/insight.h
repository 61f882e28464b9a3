// The panel under the canvas with what is known of the model: its problems, its code, its costs; each linked with the canvas.
#pragma once

#include "ui/common/model_analysis.h"
#include "ui/editor/bottom_panel.h"
#include "ui/editor/code_tab.h"
#include "ui/editor/model_level.h"

#include <optional>
#include <string>

namespace celloom::ui {

class ProblemsTab;

class Insight : public BottomPanel {
    Q_OBJECT
public:
    explicit Insight(Services& services, QWidget* parent = nullptr);

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
    void importReady(const celloom::ui::ImportedCode& code, celloom::ui::CodeTab::Target target);

private:
    void refreshProblems();
    void jump(const std::string& path);
    void chooseCell(const std::string& graphName, const std::string& cell);

    Services& m_services;
    ProblemsTab* m_problems;
    CodeTab* m_code;
    ModelAnalysisPtr m_analysis;
    std::string m_graph, m_box, m_boxPath;
    LevelPath m_path;
    bool m_isEditable = false;
    Texts m_texts;
};

/// A way from the main graph to a composite, by the first cells of its type; nothing where no cell uses it.
std::optional<LevelPath> pathToGraph(const graph::Document& document, const std::string& graphName);

} // namespace celloom::ui
