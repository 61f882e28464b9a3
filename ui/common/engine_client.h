// The window's end of the line to the broker: finds it, starts it when there is none, keeps coming back, and turns lines into signals.
// Nothing here waits; every answer comes through a callback or a signal.
#pragma once

#include "models/base/result.h"
#include "models/store/run_folder.h"

#include <QObject>
#include <QString>
#include <QStringList>

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>

namespace celloom::ui {

struct EngineOptions {
    QString socket;           // where the broker listens
    QString program;          // celloom-engine; empty: do not start one
    QStringList arguments;    // "serve", "--workspace", …
    QString logFile;          // what the started broker says
    int retryMs = 100;        // first pause before trying again; doubles up to 2 s
    int giveUpAfterMs = 8000; // a broker that was started and cannot be reached for so long is said to have failed, and tried again
};

/// A run's progress as the broker tells it, at most ten times a second.
struct RunProgress {
    QString run; // folder
    QString stage;
    std::int64_t step = 0, totalSteps = 0, rows = 0;
    double remainingSeconds = -1, elapsedSeconds = 0;
};

struct RunMessage {
    QString run, level, kind, message, hint;
    std::int64_t step = 0;
};

class EngineClient : public QObject {
    Q_OBJECT
public:
    enum class State { Connecting, Starting, Connected, Unavailable };
    Q_ENUM(State)

    explicit EngineClient(EngineOptions options, QObject* parent = nullptr);
    ~EngineClient() override;

    void start();
    [[nodiscard]] State state() const;
    /// Why it is Unavailable, or who answered; one sentence.
    [[nodiscard]] QString detail() const;

    using RunReply = std::function<void(const Result<QString>&)>; // the run's folder
    using Reply = std::function<void(const Status&)>;
    void submit(const QByteArray& recipeJson, const QString& name, RunReply reply);
    /// `changes`: settings by key, as text.
    void resume(const QString& run, const std::map<std::string, std::string>& changes, RunReply reply);
    /// Actions: "pause", "continue", "stop", "save", "evaluate", "sample"; "set_lr" with a value.
    void control(const QString& run, const QString& action, std::optional<double> value, Reply reply);
    void remove(const QString& run, Reply reply);

    // A chat of this window: docs/protocol.md, "Try".
    void openTry(Reply reply);
    void sendTry(const nlohmann::json& request, Reply reply);
    void closeTry();

Q_SIGNALS:
    void stateChanged();
    void runChanged(const QString& run); // created, or its state is another: read the index
    void progressed(const celloom::ui::RunProgress& progress);
    void messageArrived(const celloom::ui::RunMessage& message);
    void tryHappened(const nlohmann::json& event); // in the chat; an object with a "type" that is a text
    void resyncNeeded(); // events were missed: read the databases again

private:
    struct Private;
    std::unique_ptr<Private> m;
};

} // namespace celloom::ui
