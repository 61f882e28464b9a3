// The Model page: the graph of the recipe's model, read-only: step into composites, inspect, see what is wrong.
#pragma once

#include "ui/editor/graph_layout.h"
#include "ui/editor/model_level.h"
#include "ui/shell/page.h"

#include <optional>

class QComboBox;
class QHBoxLayout;
class QLabel;
class QListWidget;
class QListWidgetItem;
class QMenu;
class QSpinBox;
class QStackedWidget;
class QTimer;
class QToolButton;

namespace celloom::ui {

class EmptyState;
class GraphView;
class Inspector;
class Notice;
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

Q_SIGNALS:
    void tuneRequested(); // the recipe has become one that tunes the model

protected:
    void resizeEvent(QResizeEvent* event) override;
    void showEvent(QShowEvent* event) override;

private:
    QWidget* buildToolRow();
    QWidget* buildCanvas();
    QWidget* buildProblems();
    void fillPresets();
    void fillRecent();
    void chooseFolder();
    void chooseFile();
    void finishOpening(const QString& path, const std::optional<Error>& error);
    void onAnalysis(const ModelAnalysisPtr& analysis);
    void showLevel();
    void showProblems();
    void showCellOf(const QListWidgetItem* problem);
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
    QWidget* m_trailHolder;
    QLabel* m_instanceLabel;
    QSpinBox* m_instance;
    QLabel* m_zoom;
    QStackedWidget* m_stack;
    EmptyState* m_message;
    GraphView* m_view;
    Inspector* m_inspector;
    QWidget* m_problemPanel;
    QLabel* m_problemTitle;
    QListWidget* m_problems;
    QWidget* m_arranging;
    QTimer* m_arrangingTimer;
    bool m_isFitted = false; // the user has not zoomed since the level was placed
};

} // namespace celloom::ui
