// The Model page: the graph of the recipe's model: build it, step into composites, inspect, see what is wrong.
#pragma once

#include "ui/editor/graph_layout.h"
#include "ui/editor/model_level.h"
#include "ui/editor/property_rows.h"
#include "ui/editor/graph_view.h"
#include "ui/shell/page.h"

#include <optional>

class QAction;
class QComboBox;
class QFrame;
class QHBoxLayout;
class QLabel;
class QMenu;
class QSpinBox;
class QStackedWidget;
class QTimer;
class QToolButton;

namespace celloom::ui {

class EmptyState;
class Inspector;
class Insight;
class Notice;
class Palette;
struct Services;

class ModelPage : public Page {
    Q_OBJECT
public:
    explicit ModelPage(Services& services, QWidget* parent = nullptr);
    [[nodiscard]] QString context() const override;

    /// Makes the model at `path` (a folder, a config.json, a .cells.json) the recipe's, once it is known that it opens; else says why not
    /// and changes nothing.
    void open(const QString& path);
    /// Whether open() would look at such a path: a folder, or one of the files.
    [[nodiscard]] static bool canOpen(const QString& path);

    /// Asks for the analysis of the recipe with the model as it is edited.
    void requestAnalysis();
    /// Saves the model; asks where, if it has no file yet. `then` is called once it is saved, and not when the user thinks better of it.
    void save(const std::function<void()>& then = {});
    void saveAs(const std::function<void()>& then = {});
    /// Before something takes the model's place: asks whether to save unsaved edits. `then` is called unless the user cancels.
    void leaveModel(const std::function<void()>& then);

Q_SIGNALS:
    void tuneRequested(); // the recipe has become one that tunes the model

protected:
    void resizeEvent(QResizeEvent* event) override;
    void showEvent(QShowEvent* event) override;

private:
    QWidget* buildToolRow();
    void buildActions();
    void takeModel(const ModelAnalysisPtr& analysis);
    void offerRecovered();
    void finishSaving(const QString& path, const std::function<void()>& then);
    void showDocument();
    void refreshActions();

    // gestures (model_page_edits.cpp)
    void connectGestures();
    /// One change of the level on show; what is refused is said. Positions of all cells become the document's own with the first one.
    bool edit(const QString& name, const GraphEdit& change, int gesture = 0);
    void insert(const QString& type, std::optional<QPointF> at, std::optional<graph::Wire> onWire);
    /// The document's type for what the palette calls `type`: one of the library is copied in.
    static Result<std::string> bringIn(graph::Document& document, const std::string& type);
    void removeChosen();
    void copyChosen(bool andRemove);
    void paste();
    void duplicate();
    void group();
    void ungroup();
    void rename();
    void arrange();
    void align(bool isVertical);
    void showMenu(const QPoint& position);
    [[nodiscard]] GraphView::Verdict judge(const graph::Wire& wire, bool isThorough) const;
    QWidget* buildTrail();
    QWidget* buildCanvas();
    void connectInsight();
    void fillPresets();
    void fillRecent();
    void chooseFolder();
    void chooseFile();
    void finishOpening(const QString& path, const std::optional<Error>& error);
    void onAnalysis(const ModelAnalysisPtr& analysis);
    void showAnalysis(const ModelAnalysisPtr& analysis);
    void showLevel();
    void markProblems();
    /// Another level, with a box of it chosen; the keyboard goes to the canvas where one jumps.
    void showPlace(const LevelPath& path, const std::string& box, bool isJump);
    void rebuildTrail();
    void goTo(LevelPath path);
    void stepIn(std::size_t box);
    void stepOut();

    Services& m_services;
    GraphLayouter* m_layouter;
    ModelAnalysisPtr m_analysis;
    LevelPath m_path;
    ModelLevel m_level;
    QComboBox* m_preset;
    QToolButton* m_open;
    QMenu* m_openMenu;
    Notice* m_notice;
    int m_openings = 0; // only the newest one counts
    QHBoxLayout* m_trail;
    QFrame* m_trailRow;
    QWidget* m_trailHolder;
    QLabel* m_instanceLabel;
    QSpinBox* m_instance;
    QLabel* m_zoom;
    QStackedWidget* m_stack;
    EmptyState* m_message;
    GraphView* m_view = nullptr;
    Inspector* m_inspector;
    Insight* m_insight;
    QWidget* m_arranging;
    QTimer* m_arrangingTimer;
    Palette* m_palette;
    QAction *m_undo = nullptr, *m_redo = nullptr, *m_save = nullptr, *m_saveAs = nullptr, *m_cut = nullptr, *m_copy = nullptr, *m_paste = nullptr,
            *m_duplicate = nullptr, *m_delete = nullptr, *m_group = nullptr, *m_ungroup = nullptr, *m_rename = nullptr, *m_arrange = nullptr,
            *m_selectAll = nullptr, *m_alignRow = nullptr, *m_alignColumn = nullptr, *m_find = nullptr;
    QTimer* m_analysisTimer;
    std::string m_shownPrefix, m_shownGraph; // the level on show
    bool m_fitNext = true, m_hasOffered = false, m_isArranging = false;
    std::optional<QPointF> m_insertAt; // where the next cell from the palette goes
    DocumentPtr m_kept; // unsaved edits to come back once their model is open
    bool m_isFitted = false; // the user has not zoomed since the level was placed
};

} // namespace celloom::ui
