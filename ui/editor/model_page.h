// The Model page: the graph of the recipe's model: build it, step into composites, inspect, see what is wrong.
#pragma once

#include "models/graph/comparison.h"
#include "models/library/update.h"
#include "ui/common/background.h"
#include "ui/editor/model_level.h"
#include "ui/editor/property_rows.h"
#include "ui/editor/graph_view.h"
#include "ui/editor/wire_judge.h"
#include "ui/editor/model_document.h"
#include "ui/editor/recovery.h"
#include "ui/shell/notice.h"
#include "ui/shell/page.h"

#include <QPointer>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

class QAction;
class QFrame;
class QHBoxLayout;
class QLabel;
class QMenu;
class QShortcut;
class QSpinBox;
class QStackedWidget;
class QTimer;
class QToolButton;
class QUndoStack;

namespace celloom::ui {

class DocumentTabs;
class Arranger;
class EmptyState;
class Inspector;
class Insight;
class Minimap;
class ComparePanel;
class MyCells;
class Palette;
class Probe;
class WeightsBar;
struct ModelChoice;
struct PortKind;
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
    /// Whether a run of the recipe would not see the model as it is on show: it has to be saved first.
    [[nodiscard]] bool needsSaving() const;
    /// For the next start: which models are open, besides the recipe's.
    void keepTabs();
    /// Whether a window before this one left unsaved models, which are offered here.
    [[nodiscard]] bool hasLeftOver() const { return !m_left.empty(); }
    /// The recipe, where it has unsaved edits too; an empty name: it has none.
    struct UnsavedRecipe {
        QString name;
        std::function<void(const std::function<void()>& then)> save;
        std::function<void()> discard;
    };
    /// Before the window closes: lists all that has unsaved edits and asks. `then` is called unless the user cancels.
    void leaveAll(const std::function<void()>& then, const UnsavedRecipe& recipe = {});

Q_SIGNALS:
    void fieldRequested(const QString& key); // of the recipe
    void tuneRequested(); // the recipe has become one that tunes the model

protected:
    void changeEvent(QEvent* event) override;
    void showEvent(QShowEvent* event) override;

private:
    QWidget* buildToolRow();
    void buildActions();
    [[nodiscard]] std::vector<QUndoStack*> undoStacks();

    // documents (model_page_documents.cpp)
    void connectDocuments();
    /// The recipe names another model, or trains again: the tab of that model comes to the front, or it is opened.
    void followRecipe();
    [[nodiscard]] bool isOfRecipe(const ModelDocument& model) const;
    /// The recipe names the model in front, with the part of the recipe that goes with it.
    void bringToRecipe();
    /// False where an empty model stands for it, which has an analysis of its own.
    bool takeModel(const ModelAnalysisPtr& analysis);
    void beginAnew(ModelDocument& model);
    /// A tab for a model that came with the recipe: an untouched one that came so before gives way.
    ModelDocument& implicitTab();
    void activate(ModelDocument& model);
    void showCurrent();
    void changeNotice();
    void keepPlace();
    void restorePlace();
    [[nodiscard]] ModelPlace placeNow() const;
    void stepTabs(int by);
    void closeTab(int index);
    /// Asks what to begin from.
    void newModel();
    void takeChoice(const ModelChoice& choice);
    /// The line about weights follows the model in front.
    void refreshWeights();
    void bringBack();
    void reopenTabs();
    void remember(const QString& path);
    void finishSaving(ModelDocument& model, const QString& path, const std::function<void()>& then);
    void write(ModelDocument& model, const QString& path, const std::function<void()>& then);
    void checkFile();
    void readAgain(ModelDocument& model);
    void takeChanged(ModelDocument& model, graph::Document document);
    void askToSaveOver(ModelDocument& model, const std::function<void()>& then);
    void saveModel(ModelDocument& model, const std::function<void()>& then);
    void saveModelAs(ModelDocument& model, const std::function<void()>& then);
    void saveAll(std::vector<QPointer<ModelDocument>> models, const std::function<void()>& then);
    void showDocument();
    void refreshActions();

    // My cells (model_page_library.cpp)
    void connectMyCells();
    void compareCopies();
    [[nodiscard]] const library::CopyStatus* newerThan(const std::string& composite) const;
    void offerUpdates();
    void updateCopy(const std::string& composite);
    void updateCopies(const std::vector<std::string>& composites, bool replacesEdited);
    [[nodiscard]] std::string chosenComposite() const;
    [[nodiscard]] bool canSaveCell() const;
    void saveCell();
    void linkCopy(ModelDocument& model, const std::string& composite, const graph::Origin& origin, const QString& note);
    void removeMine(const QString& name);

    // comparing (model_page_compare.cpp)
    void connectCompare();
    void fillCompareMenu(QMenu* menu);
    void compareWithFile(const QString& source, const QString& name);
    void compareWith(const DocumentPtr& other, const QString& name);
    void endComparison();
    void refreshComparison();
    void markComparison();
    void showFinding(const graph::Finding& finding);

    void savePicture();

    // gestures (model_page_edits.cpp)
    void connectGestures();
    /// One change of the level on show; what is refused is said. Positions of all cells become the document's own with the first one.
    bool edit(const QString& name, const GraphEdit& change, int gesture = 0);
    void insertPort(const PortKind& kind);
    void insert(const QString& type, std::optional<QPointF> at, std::optional<graph::Wire> onWire);
    /// The document's type for what the palette calls `type`: one of the library is copied in.
    Result<std::string> bringIn(graph::Document& document, const QString& type) const;
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
    [[nodiscard]] GraphView::Verdict judge(const graph::Wire& wire, bool isThorough);
    QWidget* buildTrail();
    QWidget* buildCanvas();
    void connectInsight();
    [[nodiscard]] QPointF freePlace() const;
    void fillRecent();
    void chooseFolder();
    void chooseFile();
    void finishOpening(const QString& path, Result<graph::Document> document);
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
    Arranger* m_arranger = nullptr;
    Minimap* m_minimap = nullptr;
    Probe* m_probe = nullptr;
    QToolButton* m_probeButton = nullptr;
    ModelAnalysisPtr m_analysis;
    LevelPath m_path;
    ModelLevel m_level;
    std::unique_ptr<WireJudge> m_judge; // of the level, once it is asked
    DocumentTabs* m_tabs;
    bool m_isFollowing = false;          // the page itself changes the recipe
    std::optional<ModelPlace> m_goTo;    // where to look once the level is placed
    std::vector<Recovery::Left> m_left;  // what a crash left, until it is brought back
    QToolButton* m_open;
    QMenu* m_openMenu;
    Notice* m_notice;                             // of the model in front
    QString m_noticeOf;                           // its recovery name
    std::map<QString, Notice::Words> m_notices;   // of the others, by theirs
    WeightsBar* m_weights;
    Notice* m_leftNotice; // stays while one works
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
    Palette* m_palette;
    ComparePanel* m_compare;
    QShortcut* m_endComparison = nullptr;
    struct Compared { // with what, and which tab
        DocumentPtr document;
        QString name;
        QPointer<ModelDocument> model;
    };
    Compared m_comparedWith;
    std::vector<graph::Finding> m_findings;
    MyCells* m_myCells;
    DocumentPtr m_compared;                     // what the libraries were asked about last
    std::vector<library::CopyStatus> m_copies; // and what they said
    QAction *m_undo = nullptr, *m_redo = nullptr, *m_save = nullptr, *m_saveAs = nullptr, *m_cut = nullptr, *m_copy = nullptr, *m_paste = nullptr,
            *m_duplicate = nullptr, *m_delete = nullptr, *m_group = nullptr, *m_ungroup = nullptr, *m_rename = nullptr, *m_arrange = nullptr,
            *m_selectAll = nullptr, *m_new = nullptr, *m_close = nullptr, *m_saveCell = nullptr, *m_picture = nullptr, *m_alignRow = nullptr, *m_alignColumn = nullptr, *m_find = nullptr, *m_fitAll = nullptr;
    QTimer* m_analysisTimer;
    bool m_fitNext = true;
    std::optional<QPointF> m_insertAt; // where the next cell from the palette goes
    Background m_background;
};

} // namespace celloom::ui
