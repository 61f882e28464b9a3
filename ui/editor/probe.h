// Sends one batch through the model as it is edited, in an engine process of its own, and shows on the canvas and in the inspector what was found:
// progress, numbers on wires, the cell where it failed. Changes nothing.
#pragma once

#include "ui/common/model_analysis.h"
#include "ui/common/texts.h"
#include "ui/editor/model_level.h"
#include "ui/editor/probe_report.h"

#include <QObject>
#include <QPointer>
#include <QString>

#include <memory>
#include <optional>

class QAction;
class QFrame;
class QLabel;
class QProgressBar;
class QPushButton;
class QTemporaryDir;
class QToolButton;

namespace celloom::ui {

class EngineJob;
class GraphView;
class ModelDocument;
class ProbePanel;
struct Services;

class Probe : public QObject {
    Q_OBJECT
public:
    /// `holder` lies under the view and carries the bar over it.
    Probe(Services& services, GraphView* view, QWidget* holder, Texts& texts);
    ~Probe() override;

    [[nodiscard]] QAction* action() const { return m_action; } // begins a probe, or ends the one under way
    [[nodiscard]] ProbePanel* panel() const { return m_panel; }
    [[nodiscard]] bool isRunning() const;
    /// What the canvas shows now; `level` must be of `analysis` and outlive the next call. Null: nothing.
    void setPlace(const ModelAnalysisPtr& analysis, const ModelLevel* level, const LevelPath& path, std::optional<std::size_t> box);
    void setChosen(std::optional<std::size_t> box);

Q_SIGNALS:
    /// Show this level with this box chosen.
    void placeRequested(const celloom::ui::LevelPath& level, const std::string& box, bool isJump);

private:
    enum class State { Nothing, Running, Done, Cancelled, Failed };

    void buildBar(QWidget* holder, Texts& texts);
    void start();
    void refuse(const Error& error);
    void take(const QByteArray& line);
    void finish();
    void fail(const Error& error);
    void setState(State state);
    void forget();
    void show();
    void showOnCanvas();
    void showChosen();
    void placeBar();
    void goToFailure();
    [[nodiscard]] bool isOfModel() const; // the model in front is the one that was probed
    [[nodiscard]] bool isStale() const;   // and has changed since
    [[nodiscard]] QString summary() const;

    Services& m_services;
    GraphView* m_view;
    QWidget* m_holder;
    EngineJob* m_job;
    ProbePanel* m_panel;
    QAction* m_action;
    QFrame* m_bar = nullptr;
    QLabel* m_text = nullptr;
    QProgressBar* m_progress = nullptr;
    QPushButton *m_cancel = nullptr, *m_again = nullptr, *m_jump = nullptr;
    QToolButton* m_close = nullptr;

    ModelAnalysisPtr m_analysis;
    const ModelLevel* m_level = nullptr;
    LevelPath m_path;
    std::optional<std::size_t> m_box;

    State m_state = State::Nothing;
    std::shared_ptr<ProbeReport> m_report; // complete lines only; grows while one is running
    std::optional<Error> m_error;
    std::unique_ptr<QTemporaryDir> m_folder;
    QPointer<const ModelDocument> m_model; // that was probed
    graph::Document m_probed;              // as it was, without what does not count
    bool m_hasData = false; // with what: data of the recipe or made-up ones,
    QString m_weights;      // and whose weights; empty: as a run begins
};

} // namespace celloom::ui
