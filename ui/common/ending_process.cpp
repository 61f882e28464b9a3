#include "ui/common/ending_process.h"

#include <QProcess>

namespace celloom::ui {

namespace {
constexpr int kMostWaitMs = 1500; // killed: as good as gone
}

void letEnd(QProcess* process, QObject* holder) {
    if (QObject* owner = process->parent()) process->disconnect(owner);
    process->setParent(holder);
    QObject::connect(process, &QProcess::finished, process, &QObject::deleteLater);
    QObject::connect(process, &QProcess::errorOccurred, process, [process](QProcess::ProcessError error) {
        if (error == QProcess::FailedToStart) process->deleteLater();
    });
    QObject::connect(holder, &QObject::destroyed, process, [process] {
        process->disconnect();
        process->waitForFinished(kMostWaitMs);
    });
    process->kill();
    if (process->state() == QProcess::NotRunning) process->deleteLater();
}

} // namespace celloom::ui
