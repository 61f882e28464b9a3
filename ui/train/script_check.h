// What `celloom-engine check-script --json` says about a script (docs/file-formats.md), and asking it: one process at a time, the newest question
// first, answers kept as long as the text is the same.
#pragma once

#include "models/recipe/typed_script.h"
#include "ui/common/engine_job.h"

#include <QByteArray>
#include <QObject>
#include <QString>
#include <QStringList>
#include <QTemporaryDir>

#include <map>
#include <memory>
#include <optional>
#include <vector>

namespace celloom::ui {

struct ScriptNote {
    QString message, hint;
    int line = 0, column = 0, length = 1; // line 0: the source as a whole
};

struct ScriptField {
    QString name;
    std::optional<graph::ParamValue> value; // what the source itself says, or what was given
    int line = 0;
};

struct ScriptCheck {
    QString kind, definition; // "callback", "metric", "schedule"; the class or the function
    QStringList methods;
    std::vector<ScriptField> fields; // its free names and its constructor's parameters
    std::vector<ScriptNote> warnings;
    std::optional<ScriptNote> error;
};

/// Fails where it is no such answer.
Result<ScriptCheck> readScriptCheck(const QByteArray& json);

class ScriptChecker : public QObject {
    Q_OBJECT
public:
    explicit ScriptChecker(QString program, QObject* parent = nullptr);
    /// The answer to this text, if there is one; else it is asked for, and checked() comes.
    const ScriptCheck* check(const recipe::TypedScript& script);
    /// As check, without asking.
    [[nodiscard]] const ScriptCheck* known(const recipe::TypedScript& script) const;
    [[nodiscard]] bool isBusy() const { return m_job.isRunning(); }
    /// Why nothing can be asked; empty when it can.
    [[nodiscard]] QString failure() const { return m_failure; }

Q_SIGNALS:
    void checked();

private:
    void next();
    void take(const QByteArray& answer);

    EngineJob m_job;
    std::unique_ptr<QTemporaryDir> m_folder;
    std::map<std::string, ScriptCheck> m_answers; // by the script's text
    std::vector<std::string> m_waiting;
    std::string m_asked;
    QString m_failure;
};

} // namespace celloom::ui
