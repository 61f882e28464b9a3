// The top card of the Live page: state, progress, time left, and the buttons that control the run.
#pragma once

#include "models/store/index.h"
#include "models/store/run_store.h"
#include "ui/common/run_actions.h"
#include "ui/common/texts.h"
#include "ui/common/widgets.h"

#include <QFrame>

class QLabel;
class QProgressBar;
class QPushButton;

namespace celloom::ui {

struct RunProgress;

class RunHeader : public QFrame {
    Q_OBJECT
public:
    explicit RunHeader(QWidget* parent = nullptr);

    void clear();
    void setProgress(const store::Progress& progress);
    /// Between two reads of the database, from the engine.
    void setProgress(const RunProgress& progress);
    /// What the index says: it alone knows that a run was interrupted.
    void setRecord(const store::RunRecord& record);
    /// The recipe's: a run that makes no steps saves nothing, and counts batches or prompts.
    void setKind(const std::string& kind);
    void setError(const QString& text);
    [[nodiscard]] store::RunState state() const;
    /// A command is under way: its button waits.
    void setBusy(bool isBusy);

Q_SIGNALS:
    void actionRequested(const QString& action); // "pause", "continue", "save", "stop"
    void resumeRequested();
    void tryRequested();
    void runActionRequested(celloom::ui::RunAction action, const QString& folder);
    void stateChanged(celloom::store::RunState state);

protected:
    void changeEvent(QEvent* event) override;

private:
    void refresh();
    [[nodiscard]] QString facts() const;
    [[nodiscard]] QString stageText() const;
    [[nodiscard]] bool isTraining() const { return m_kind != "evaluate" && m_kind != "predict"; }

    Texts m_texts;
    QLabel* m_state;
    ElidedLabel* m_facts;
    QLabel* m_reason; // why the run ended before its end
    QProgressBar* m_bar;
    QPushButton* m_pause;
    QPushButton* m_save;
    QPushButton* m_stop;
    QPushButton* m_resume;
    QPushButton* m_try;
    RunActions* m_actions;
    store::Progress m_progress;
    bool m_hasProgress = false, m_hasRecord = false, m_isBusy = false;
    store::RunRecord m_record;
    store::RunState m_said = store::RunState::Queued; // by stateChanged
    QString m_error;
    std::string m_kind;
};

} // namespace celloom::ui
