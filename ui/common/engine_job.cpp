#include "ui/common/engine_job.h"

#include "models/base/exit_codes.h"
#include "ui/common/ending_process.h"
#include "ui/common/format.h"

#include <QCoreApplication>
#include <QFileInfo>
#include <QProcessEnvironment>
#include <QTimer>

#include <nlohmann/json.hpp>

#include <utility>

namespace celloom::ui {

namespace {

constexpr int kPatienceMs = 3000;               // between asking the process to end and ending it
constexpr qint64 kMostOutput = 64 * 1024 * 1024; // of one answer, or one line
constexpr qsizetype kTail = 400;                 // of messages that are no JSON

} // namespace

Error errorOfVerb(const QByteArray& standardError, const QString& otherwise) {
    const QList<QByteArray> lines = standardError.split('\n');
    for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
        const auto message = nlohmann::json::parse(line->begin(), line->end(), nullptr, false);
        if (!message.is_object() || !message.contains("error") || !message["error"].is_object()) continue;
        const auto& error = message["error"];
        const auto text = [&error](const char* name) {
            const auto found = error.find(name);
            return found != error.end() && found->is_string() ? found->get<std::string>() : std::string();
        };
        return {text("message"), text("hint"), text("place")};
    }
    const QString said = QString::fromUtf8(standardError.trimmed().right(kTail));
    return {toUtf8(said.isEmpty() ? otherwise : otherwise + QLatin1Char(' ') + said), {}, {}};
}

EngineJob::EngineJob(QString program, QObject* parent) : QObject(parent), m_program(std::move(program)) {}

EngineJob::~EngineJob() {
    letGo();
}

void EngineJob::letGo() {
    if (QProcess* process = std::exchange(m_process, nullptr)) letEnd(process, QCoreApplication::instance());
}

void EngineJob::start(const QStringList& arguments) {
    letGo();
    m_isCancelled = false;
    m_since.start();
    if (!QFileInfo(m_program).isExecutable()) {
        Q_EMIT failed({toUtf8(tr("celloom-engine was not found at %1.").arg(m_program)),
                       toUtf8(tr("Build or install it beside the window's program.")), {}});
        return;
    }
    m_process = new QProcess(this);
    QProcessEnvironment environment = QProcessEnvironment::systemEnvironment();
    environment.insert(QStringLiteral("OMP_WAIT_POLICY"), QStringLiteral("passive")); // as the broker's children: the machine stays usable
    m_scratch = std::make_unique<QTemporaryDir>();
    if (m_scratch->isValid()) environment.insert(QStringLiteral("TMPDIR"), m_scratch->path());
    m_process->setProcessEnvironment(environment);
    m_process->setStandardInputFile(QProcess::nullDevice());
    connect(m_process, &QProcess::finished, this, &EngineJob::onFinished);
    connect(m_process, &QProcess::errorOccurred, this, [this](QProcess::ProcessError error) {
        if (error != QProcess::FailedToStart) return;
        const Error reason{toUtf8(tr("The engine could not be started: %1").arg(m_process->errorString())), {}, {}};
        m_process->deleteLater();
        m_process = nullptr;
        Q_EMIT failed(reason);
    });
    if (m_streams) connect(m_process, &QProcess::readyReadStandardOutput, this, &EngineJob::readLines);
    m_process->start(m_program, QStringList{QStringLiteral("--json")} + arguments);
}

void EngineJob::cancel() {
    if (!m_process) return;
    m_isCancelled = true;
    m_process->terminate();
    QTimer::singleShot(kPatienceMs, m_process, &QProcess::kill);
}

void EngineJob::readLines() {
    QProcess* process = m_process;
    while (process && process == m_process && process->canReadLine()) { // whoever hears a line may start anew
        QByteArray text = process->readLine();
        text.chop(1);
        if (!m_isCancelled) Q_EMIT line(text);
    }
    if (process && process == m_process && process->bytesAvailable() > kMostOutput) process->kill(); // told of as its end
}

void EngineJob::onFinished(int exitCode, QProcess::ExitStatus status) {
    if (m_streams) {
        const QProcess* ended = m_process;
        readLines();
        if (m_process != ended) return;
    }
    QProcess* process = std::exchange(m_process, nullptr);
    process->deleteLater();
    m_scratch.reset();
    const QByteArray output = process->readAllStandardOutput(), messages = process->readAllStandardError();
    if (m_isCancelled) {
        Q_EMIT cancelled();
    } else if (status == QProcess::CrashExit) {
        Q_EMIT failed(errorOfVerb(messages, tr("The engine was killed by signal %1.").arg(exitCode)));
    } else if (exitCode != 0 && !(m_answersWhenRefusing && exitCode == protocol::BadInput && !output.isEmpty())) {
        Q_EMIT failed(errorOfVerb(messages, tr("The engine ended with code %1.").arg(exitCode)));
    } else if (output.size() > kMostOutput) {
        Q_EMIT failed({toUtf8(tr("The engine's answer is too long to show.")), {}, {}});
    } else {
        Q_EMIT finished(output);
    }
}

} // namespace celloom::ui
