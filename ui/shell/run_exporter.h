// Takes finished work out of a run: merges its adapter into a model, copies the adapter, exports the model. Asks where to, works in the
// background, and is a line under the top bar while it does.
#pragma once

#include "models/store/run_folder.h"
#include "ui/common/engine_job.h"
#include "ui/common/folder_copy.h"
#include "ui/common/run_actions.h"
#include "ui/common/texts.h"

#include <QFrame>

class QLabel;
class QProgressBar;
class QPushButton;
class QTimer;

namespace celloom::ui {

struct Services;

class RunExporter : public QFrame {
    Q_OBJECT
public:
    explicit RunExporter(Services& services, QWidget* parent = nullptr);

    /// Merge, ExportAdapter or ExportModel; opens a dialog.
    void ask(RunAction action, const QString& run);
    [[nodiscard]] bool isRunning() const { return m_job.isRunning() || m_copy.isRunning(); }

Q_SIGNALS:
    void done(const QString& text, const QString& folder); // what was made, and where
    void failed(const QString& text);

protected:
    void changeEvent(QEvent* event) override;

private:
    struct Work {
        RunAction action = RunAction::Merge;
        QString run, target, type, format; // of the weights; of a model's files
    };
    void begin(const Work& work);
    void finish(const QByteArray& answer);
    void refresh();
    [[nodiscard]] QString doneText(const QByteArray& answer) const;

    Services& m_services;
    Texts m_texts;
    EngineJob m_job;
    FolderCopy m_copy;
    Work m_work;
    QLabel* m_text;
    QProgressBar* m_bar;
    QPushButton* m_cancel;
    QTimer* m_clock;
};

} // namespace celloom::ui
