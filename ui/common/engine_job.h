// One verb of celloom-engine run for the window: a process that answers once or line by line, can be cancelled, and blocks nothing.
// For work that is no run: a look at the data, a merge. Runs go through EngineClient.
#pragma once

#include "models/base/result.h"

#include <QByteArray>
#include <QElapsedTimer>
#include <QObject>
#include <QProcess>
#include <QString>
#include <QStringList>
#include <QTemporaryDir>

#include <memory>

namespace celloom::ui {

class EngineJob : public QObject {
    Q_OBJECT
public:
    explicit EngineJob(QString program, QObject* parent = nullptr);
    /// Ends the process if it still works.
    ~EngineJob() override;

    /// Starts the verb with --json; a job that still works is ended first, unheard.
    void start(const QStringList& arguments);
    void cancel();
    /// For verbs that answer on standard output also when they refuse what they were given: finished() comes then too.
    void setAnswersWhenRefusing(bool isSo) { m_answersWhenRefusing = isSo; }
    /// For verbs that answer line by line: each comes as line() when it is whole, and finished() brings nothing more.
    void setStreams(bool isSo) { m_streams = isSo; }
    [[nodiscard]] bool isRunning() const { return m_process != nullptr; }
    [[nodiscard]] double seconds() const { return static_cast<double>(m_since.elapsed()) / 1000; }

Q_SIGNALS:
    void line(const QByteArray& line);
    void finished(const QByteArray& output); // what it wrote to standard output: one JSON object
    void failed(const celloom::Error& error);
    void cancelled();

private:
    void readLines();
    void onFinished(int exitCode, QProcess::ExitStatus status);
    void letGo();

    QString m_program;
    QProcess* m_process = nullptr;
    std::unique_ptr<QTemporaryDir> m_scratch; // its temporary files, gone with it even when it is killed
    QElapsedTimer m_since;
    bool m_isCancelled = false, m_answersWhenRefusing = false, m_streams = false;
};

/// What a verb with --json says on standard error when it fails; the last such line counts. `otherwise` where there is none.
Error errorOfVerb(const QByteArray& standardError, const QString& otherwise);

} // namespace celloom::ui
