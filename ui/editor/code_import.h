// Python classes to a document, by celloom-engine import-code: one question at a time, the newest counts.
#pragma once

#include "models/graph/document.h"
#include "ui/common/engine_job.h"

#include <QObject>
#include <QString>
#include <QStringList>
#include <QTemporaryDir>

#include <memory>
#include <optional>

namespace celloom::ui {

struct ImportedCode {
    graph::Document document;
    QString className; // that became the main graph, or the composite in it
    QStringList notes; // what was left out or assumed
};

/// A place in the source; line and column count from 1, line 0: the source as a whole.
struct CodeProblem {
    QString message, hint;
    int line = 0, column = 0, length = 1;
};

/// What `import-code --json` answered: one of the two. Fails where it is no such answer.
struct CodeAnswer {
    std::optional<ImportedCode> imported;
    std::optional<CodeProblem> problem;
};
Result<CodeAnswer> readCodeAnswer(const QByteArray& json);

/// Whether a text holds a class of cells: "class Block(nn.Cell):".
bool looksLikeCode(const QString& text);

class CodeImporter : public QObject {
    Q_OBJECT
public:
    explicit CodeImporter(QString program, QObject* parent = nullptr);
    void read(const QString& source);
    void cancel() { m_job.cancel(); }
    [[nodiscard]] bool isRunning() const { return m_job.isRunning(); }

Q_SIGNALS:
    void imported(const celloom::ui::ImportedCode& code);
    void refused(const celloom::ui::CodeProblem& problem); // by what the source says
    void failed(const celloom::Error& error);              // the engine could not answer
    void ended();                                          // after each of these, and when it was called off

private:
    EngineJob m_job;
    std::unique_ptr<QTemporaryDir> m_folder;
};

} // namespace celloom::ui
