#include "ui/common/engine_client.h"

#include "models/protocol/protocol.h"
#include "ui/common/format.h"

#include <QElapsedTimer>
#include <QFileInfo>
#include <QLocalSocket>
#include <QProcess>
#include <QTimer>

#include <nlohmann/json.hpp>

#include <map>
#include <utility>

namespace celloom::ui {

using protocol::Message;

namespace {

constexpr int kLongestPauseMs = 2000;

/// Fields of other programs' messages: a missing or wrong one reads as the fallback, since an event must never stop the window.
template <class T> T field(const Message& message, const char* name, T fallback) {
    const auto found = message.find(name);
    if (found == message.end()) return fallback;
    if constexpr (std::is_same_v<T, std::string>) {
        return found->is_string() ? found->template get<std::string>() : fallback;
    } else {
        return found->is_number() ? found->template get<T>() : fallback;
    }
}

QString textField(const Message& message, const char* name) {
    return fromUtf8(field<std::string>(message, name, {}));
}

Error errorOf(const Message& reply) {
    const auto found = reply.find("error");
    if (found == reply.end() || !found->is_object()) return {"The engine refused without a reason.", {}, {}};
    return {field<std::string>(*found, "message", "The engine refused without a reason."), field<std::string>(*found, "hint", {}),
            field<std::string>(*found, "place", {})};
}

} // namespace

struct EngineClient::Private {
    Private(EngineClient* client, EngineOptions given) : q(client), options(std::move(given)) {}

    EngineClient* q;
    EngineOptions options;
    QLocalSocket socket;
    QTimer retry;
    protocol::LineReader reader;
    State state = State::Connecting;
    QString detail;
    int pauseMs = 0;
    QElapsedTimer sinceStart; // invalid: no broker was started by us
    std::int64_t nextId = 1, sequence = 0, brokerPid = 0;
    bool wasConnected = false;
    std::map<std::int64_t, std::function<void(const Result<Message>&)>> waiting;

    void setState(State next, const QString& text) {
        if (state == next && detail == text) return;
        state = next;
        detail = text;
        Q_EMIT q->stateChanged();
    }

    void connectNow() {
        if (socket.state() != QLocalSocket::UnconnectedState) return;
        socket.connectToServer(options.socket);
    }

    void retryLater() {
        pauseMs = std::min(kLongestPauseMs, std::max(options.retryMs, pauseMs * 2));
        retry.start(pauseMs);
    }

    void onFailed() {
        if (socket.state() == QLocalSocket::ConnectedState || socket.error() == QLocalSocket::PeerClosedError) return;
        if (!sinceStart.isValid()) {
            startEngine();
        } else if (sinceStart.elapsed() > options.giveUpAfterMs) {
            setState(State::Unavailable,
                     EngineClient::tr("The engine was started but does not answer. Its messages are in %1.").arg(options.logFile));
            sinceStart.invalidate(); // the next failure starts it once more
        }
        retryLater();
    }

    void startEngine() {
        if (options.program.isEmpty()) {
            setState(State::Connecting, EngineClient::tr("Waiting for an engine."));
            return;
        }
        if (!QFileInfo(options.program).isExecutable()) {
            setState(State::Unavailable,
                     EngineClient::tr("celloom-engine was not found at %1. Build or install it beside the window's program.")
                         .arg(options.program));
            return;
        }
        QProcess process;
        process.setProgram(options.program);
        process.setArguments(options.arguments);
        process.setStandardInputFile(QProcess::nullDevice());
        process.setStandardOutputFile(QProcess::nullDevice());
        process.setStandardErrorFile(options.logFile, QIODevice::Append);
        if (!process.startDetached()) {
            setState(State::Unavailable, EngineClient::tr("The engine could not be started: %1").arg(process.errorString()));
            return;
        }
        sinceStart.start();
        pauseMs = 0;
        if (state != State::Unavailable) setState(State::Starting, EngineClient::tr("The engine is being started."));
    }

    void onConnected() {
        reader = {};
        pauseMs = 0;
        request({{"type", "hello"}, {"version", protocol::kVersion}, {"client", "celloom"}}, [this](const Result<Message>& reply) {
            if (!reply) {
                setState(State::Unavailable, Format::error(reply.error()));
                socket.disconnectFromServer();
                return;
            }
            const auto pid = field<std::int64_t>(*reply, "pid", 0);
            const bool isNewBroker = pid != brokerPid;
            if (isNewBroker) sequence = field<std::int64_t>(*reply, "sequence", 0); // its numbers are its own
            brokerPid = pid;
            subscribe(isNewBroker);
        });
    }

    void subscribe(bool isNewBroker) {
        request({{"type", "subscribe"}, {"after", sequence}}, [this, isNewBroker](const Result<Message>& reply) {
            if (!reply) {
                setState(State::Unavailable, Format::error(reply.error()));
                socket.disconnectFromServer();
                return;
            }
            const auto missed = reply->find("missed");
            const bool hasMissed = isNewBroker || (missed != reply->end() && missed->is_boolean() && missed->get<bool>());
            if (hasMissed) sequence = field<std::int64_t>(*reply, "sequence", sequence);
            sinceStart.invalidate();
            wasConnected = true;
            setState(State::Connected, EngineClient::tr("Connected to the engine (process %1).").arg(brokerPid));
            if (hasMissed) Q_EMIT q->resyncNeeded();
        });
    }

    void onDisconnected() {
        const auto dropped = std::exchange(waiting, {});
        for (const auto& [id, reply] : dropped)
            reply(fail(toUtf8(EngineClient::tr("The engine went away before it answered.")),
                       toUtf8(EngineClient::tr("It is being reconnected; try again in a moment."))));
        if (state == State::Connected) setState(State::Connecting, EngineClient::tr("The engine went away; runs go on. Reconnecting."));
        retryLater();
    }

    void request(Message message, std::function<void(const Result<Message>&)> reply) {
        if (socket.state() != QLocalSocket::ConnectedState) {
            reply(fail(toUtf8(EngineClient::tr("The engine is not connected.")), toUtf8(detail)));
            return;
        }
        const std::int64_t id = nextId++;
        message["id"] = id;
        waiting[id] = std::move(reply);
        const std::string line = protocol::toLine(message);
        socket.write(line.data(), static_cast<qint64>(line.size()));
    }

    void onReadyRead() {
        const QByteArray bytes = socket.readAll();
        for (const auto& message : reader.feed({bytes.constData(), static_cast<std::size_t>(bytes.size())})) {
            if (!message) {
                // A line that is no message: what it said is lost, the databases have it.
                Q_EMIT q->resyncNeeded();
                continue;
            }
            onMessage(*message);
        }
    }

    void onMessage(const Message& message) {
        const std::string type = field<std::string>(message, "type", {});
        if (type == "reply") {
            const auto found = waiting.find(field<std::int64_t>(message, "id", -1));
            if (found == waiting.end()) return;
            const auto reply = std::move(found->second);
            waiting.erase(found);
            const auto ok = message.find("ok");
            const bool isOk = ok != message.end() && ok->is_boolean() && ok->get<bool>();
            reply(isOk ? Result<Message>(message) : Result<Message>(tl::unexpected(errorOf(message))));
            return;
        }
        sequence = std::max(sequence, field<std::int64_t>(message, "seq", 0));
        if (type == "run") {
            const auto record = message.find("record");
            QString folder = textField(message, "run");
            if (record != message.end() && record->is_object()) folder = textField(*record, "folder");
            Q_EMIT q->runChanged(folder);
        } else if (type == "progress") {
            Q_EMIT q->progressed({textField(message, "run"), textField(message, "stage"), field<std::int64_t>(message, "step", 0),
                                  field<std::int64_t>(message, "total_steps", 0), field<std::int64_t>(message, "rows", 0),
                                  field<double>(message, "remaining_s", -1), field<double>(message, "elapsed_s", 0)});
        } else if (type == "message") {
            Q_EMIT q->messageArrived({textField(message, "run"), textField(message, "level"), textField(message, "kind"),
                                      textField(message, "message"), textField(message, "hint"), field<std::int64_t>(message, "step", 0)});
        } else if (type == "try") {
            const auto event = message.find("event");
            if (event != message.end() && event->is_object() && !field<std::string>(*event, "type", {}).empty()) Q_EMIT q->tryHappened(*event);
        } else if (type == "dropped") {
            Q_EMIT q->resyncNeeded();
        }
    }
};

EngineClient::EngineClient(EngineOptions options, QObject* parent) : QObject(parent), m(new Private(this, std::move(options))) {
    m->detail = tr("Looking for the engine.");
    m->retry.setSingleShot(true);
    connect(&m->retry, &QTimer::timeout, this, [this] { m->connectNow(); });
    connect(&m->socket, &QLocalSocket::connected, this, [this] { m->onConnected(); });
    connect(&m->socket, &QLocalSocket::readyRead, this, [this] { m->onReadyRead(); });
    connect(&m->socket, &QLocalSocket::disconnected, this, [this] { m->onDisconnected(); });
    // Queued: an address with nobody behind it fails inside connectToServer().
    connect(
        &m->socket, &QLocalSocket::errorOccurred, this, [this] { m->onFailed(); }, Qt::QueuedConnection);
}

EngineClient::~EngineClient() {
    m->socket.disconnect(this);
    m->waiting.clear();
    m->socket.abort();
}

void EngineClient::start() {
    m->connectNow();
}

EngineClient::State EngineClient::state() const {
    return m->state;
}

QString EngineClient::detail() const {
    return m->detail;
}

namespace {

Result<QString> runOf(const Result<Message>& reply) {
    if (!reply) return tl::unexpected(reply.error());
    return textField(*reply, "run");
}

std::function<void(const Result<Message>&)> statusOf(EngineClient::Reply reply) {
    return [reply = std::move(reply)](const Result<Message>& answer) {
        reply(answer ? Status{} : Status(tl::unexpected(answer.error())));
    };
}

} // namespace

void EngineClient::submit(const QByteArray& recipeJson, const QString& name, RunReply reply) {
    Message recipe = Message::parse(recipeJson.constData(), recipeJson.constData() + recipeJson.size(), nullptr, false);
    CELLOOM_CHECK(recipe.is_object()); // it comes from Recipe::toJson
    m->request({{"type", "submit"}, {"recipe", std::move(recipe)}, {"name", toUtf8(name)}},
               [reply = std::move(reply)](const Result<Message>& answer) { reply(runOf(answer)); });
}

void EngineClient::resume(const QString& run, const std::map<std::string, std::string>& changes, RunReply reply) {
    m->request({{"type", "resume"}, {"run", toUtf8(run)}, {"changes", Message(changes)}},
               [reply = std::move(reply)](const Result<Message>& answer) { reply(runOf(answer)); });
}

void EngineClient::control(const QString& run, const QString& action, std::optional<double> value, Reply reply) {
    Message message{{"type", "control"}, {"run", toUtf8(run)}, {"action", toUtf8(action)}};
    if (value) message["value"] = *value;
    m->request(std::move(message), statusOf(std::move(reply)));
}

void EngineClient::remove(const QString& run, Reply reply) {
    m->request({{"type", "delete"}, {"run", toUtf8(run)}}, statusOf(std::move(reply)));
}

void EngineClient::openTry(Reply reply) {
    m->request({{"type", "try_open"}}, statusOf(std::move(reply)));
}

void EngineClient::sendTry(const Message& request, Reply reply) {
    m->request({{"type", "try_send"}, {"request", request}}, statusOf(std::move(reply)));
}

void EngineClient::closeTry() {
    m->request({{"type", "try_close"}}, [](const Result<Message>&) {}); // where there is no engine, there is no chat either
}

} // namespace celloom::ui
