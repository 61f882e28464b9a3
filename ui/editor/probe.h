// Sends one batch through the model as it is edited, in an engine process of its own, and shows on the canvas and in the inspector what was found:
// progress, numbers on wires, the cell where it failed. Each tab has a probe of its own, which goes on while another is in front. Changes nothing.
#pragma once

#include "ui/common/model_analysis.h"
#include "ui/common/texts.h"
#include "ui/editor/model_level.h"
#include "ui/editor/probe_report.h"

#include <QObject>
#include <QString>

#include <map>
#include <memory>
#include <optional>

class QAction;
class QFrame;
class QLabel;
class QProgressBar;
class QPushButton;
class QToolButton;

namespace celloom::ui {

class GraphView;
class ModelDocument;
class ProbePanel;
struct Services;

class Probe : public QObject {
    Q_OBJECT
public:
    Probe(Services& services, GraphView* view, Texts& texts);
    ~Probe() override;

    /// One line about the probe of the model in front, hidden where there is none. Stands under the canvas; the caller places it.
    [[nodiscard]] QWidget* bar() const;
    [[nodiscard]] QAction* action() const { return m_action; } // begins a probe of the model in front, or ends the one under way
    [[nodiscard]] ProbePanel* panel() const { return m_panel; }
    [[nodiscard]] bool isRunning() const; // of the model in front
    /// What the canvas shows now; `level` must be of `analysis` and outlive the next call. Null: nothing.
    void setPlace(const ModelAnalysisPtr& analysis, const ModelLevel* level, const LevelPath& path, std::optional<std::size_t> box);
    void setChosen(std::optional<std::size_t> box);

Q_SIGNALS:
    /// Show this level with this box chosen.
    void placeRequested(const celloom::ui::LevelPath& level, const std::string& box, bool isJump);

private:
    struct Session; // what belongs to one model

    void buildBar(Texts& texts);
    [[nodiscard]] Session* inFront() const; // null: the model in front was not probed
    Session& begin();
    void start();
    void cancel();
    void refuse(Session& session, const Error& error);
    void take(Session& session, const QByteArray& line);
    void finish(Session& session);
    void fail(Session& session, const Error& error);
    void onChanged(Session& session);
    void forget();
    void show();
    void showNumbers();
    void showOnCanvas();
    void showChosen();
    void goToFailure();
    [[nodiscard]] bool isStale(const Session& session) const; // the model has changed since
    [[nodiscard]] static QString summary(const Session& session);

    Services& m_services;
    GraphView* m_view;
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

    std::map<const ModelDocument*, std::unique_ptr<Session>> m_sessions; // each gone with its model
};

} // namespace celloom::ui
