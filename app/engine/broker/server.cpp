#include "app/engine/broker/server.h"

#include "app/engine/broker/line_connection.h"
#include "app/engine/broker/records.h"
#include "app/engine/broker/runs.h"
#include "app/engine/broker/try_session.h"
#include "models/protocol/broker_lock.h"
#include "models/protocol/sockets.h"

#include <asio/io_context.hpp>
#include <asio/local/stream_protocol.hpp>
#include <asio/post.hpp>
#include <asio/signal_set.hpp>
#include <asio/steady_timer.hpp>

#include <csignal>
#include <cstdio>
#include <deque>
#include <list>
#include <memory>
#include <unistd.h>

namespace celloom::app {
using protocol::Message;
using Acceptor = asio::local::stream_protocol::acceptor;

namespace {

constexpr std::size_t kMaxEventBytes = 16u << 20; // of past events kept for those who re-attach
constexpr std::size_t kMaxUnsentBytes = 2u << 20; // of a session; past it, events are left out until it has read all
constexpr std::size_t kMaxUnsentTryBytes = 256u << 10; // of a chat's events; past it, its child is not read
constexpr std::size_t kMaxSessions = 256;
constexpr auto kAcceptAgainAfter = std::chrono::milliseconds(100);

struct Session {
    std::shared_ptr<LineConnection> connection;
    bool saidHello = false;
    bool isSubscribed = false;
    std::shared_ptr<TrySession> tried; // its chat, if it has one
    bool isLeftOut = false; // too slow: gets no events until what was sent before is read, then {"type": "dropped"}
};

struct PastEvent {
    std::int64_t sequence = 0;
    std::string line;
};

std::string textOf(const Message& message, const char* key) {
    const auto found = message.find(key);
    return found != message.end() && found->is_string() ? found->get<std::string>() : std::string();
}

/// Numbers begin at the time in microseconds, so that those of a later broker are above those of an earlier one.
std::int64_t firstSequence() {
    return std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

class Server {
public:
    Server(const ServeOptions& options, store::Workspace workspace, int listener)
        : m_options(options), m_workspace(workspace), m_acceptor(m_loop, asio::local::stream_protocol(), listener),
          m_signals(m_loop, SIGINT, SIGTERM), m_acceptAgain(m_loop), m_idle(m_loop),
          m_runs(m_loop, std::move(workspace), options.program, options.parallel, [this](Message event) { emit(std::move(event)); }) {}

    void run() {
        m_runs.begin();
        accept();
        m_signals.async_wait([this](const asio::error_code& code, int) {
            if (!code) m_loop.stop();
        });
        lookIdle();
        m_loop.run();
    }

private:
    using SessionPtr = std::shared_ptr<Session>;

    void accept() {
        m_acceptor.async_accept([this](const asio::error_code& code, LineConnection::Socket socket) {
            if (code == asio::error::operation_aborted) return;
            if (!code && m_sessions.size() < kMaxSessions) welcome(std::move(socket));
            if (!code) return accept();
            m_acceptAgain.expires_after(kAcceptAgainAfter); // no descriptor is left: there may be one later
            m_acceptAgain.async_wait([this](const asio::error_code& cancelled) {
                if (!cancelled) accept();
            });
        });
    }

    void welcome(LineConnection::Socket socket) {
        const auto session = std::make_shared<Session>();
        session->connection = std::make_shared<LineConnection>(std::move(socket));
        m_sessions.push_back(session);
        const std::weak_ptr<Session> weak = session; // the connection must not keep its session
        session->connection->start({[this, weak](const Result<Message>& message) {
                                        if (const auto owner = weak.lock()) onMessage(owner, message);
                                    },
                                    [this, weak] {
                                        if (const auto owner = weak.lock()) onDrained(owner);
                                    },
                                    [this, weak] {
                                        if (const auto owner = weak.lock()) closeTry(owner);
                                        m_sessions.remove(weak.lock());
                                        m_lastUse = std::chrono::steady_clock::now();
                                    }});
    }

    // --- events

    void emit(Message event) {
        event["seq"] = ++m_sequence;
        m_past.push_back({m_sequence, protocol::toLine(event)});
        m_pastBytes += m_past.back().line.size();
        for (const SessionPtr& session : m_sessions)
            if (session->isSubscribed) sendEvent(session, m_past.back().line);
        while (m_pastBytes > kMaxEventBytes && m_past.size() > 1) {
            m_pastBytes -= m_past.front().line.size();
            m_past.pop_front();
        }
    }

    void sendEvent(const SessionPtr& session, const std::string& line) {
        if (session->connection->unsentBytes() > kMaxUnsentBytes) session->isLeftOut = true;
        if (!session->isLeftOut) session->connection->send(line);
    }

    void onDrained(const SessionPtr& session) {
        if (session->tried) session->tried->setReading(true);
        if (!std::exchange(session->isLeftOut, false)) return;
        session->connection->send(protocol::toLine({{"type", "dropped"}, {"seq", m_sequence}}));
    }

    /// Events between `after` and the oldest that is kept are no longer known.
    [[nodiscard]] bool isMissed(std::int64_t after) const {
        return after > m_sequence || after < (m_past.empty() ? m_sequence : m_past.front().sequence - 1);
    }

    // --- commands

    static void reply(const SessionPtr& session, const Message& id, const Result<Message>& answer) {
        Message message{{"type", "reply"}, {"id", id}, {"ok", answer.has_value()}};
        if (answer)
            message.update(*answer);
        else
            message["error"] = toJson(answer.error());
        session->connection->send(protocol::toLine(message));
    }

    void onMessage(const SessionPtr& session, const Result<Message>& message) {
        if (!message) return reply(session, nullptr, tl::unexpected(message.error()));
        const Message id = message->value("id", Message());
        const std::string type = message->at("type");
        if (!session->saidHello && type != "hello")
            return reply(session, id, fail("say hello first.", R"(Send {"type": "hello", "version": 1, "id": 1}.)"));
        if (type == "control") {
            const std::weak_ptr<Session> weak = session; // the client may have gone before the child answers
            return m_runs.control(textOf(*message, "run"), textOf(*message, "action"), message->value("value", Message()),
                                  [weak, id](const Status& status) {
                                      if (const auto owner = weak.lock())
                                          reply(owner, id, status ? Result<Message>(Message::object()) : tl::unexpected(status.error()));
                                  });
        }
        if (type == "subscribe") return subscribe(session, id, *message);
        reply(session, id, answer(session, type, *message));
        if (type == "shutdown") asio::post(m_loop, [this] { m_loop.stop(); });
    }

    void subscribe(const SessionPtr& session, const Message& id, const Message& message) {
        const auto after = message.find("after");
        if (after != message.end() && !after->is_number_integer()) return reply(session, id, fail("\"after\" must be a whole number."));
        const std::int64_t last = after != message.end() ? after->get<std::int64_t>() : m_sequence;
        const bool hasMissed = isMissed(last);
        reply(session, id, Message{{"sequence", m_sequence}, {"missed", hasMissed}});
        session->isSubscribed = true;
        for (const PastEvent& event : m_past)
            if (!hasMissed && event.sequence > last) sendEvent(session, event.line);
    }

    Result<Message> answer(const SessionPtr& session, const std::string& type, const Message& message) {
        if (type == "hello") {
            const auto version = message.find("version");
            if (version == message.end() || *version != protocol::kVersion)
                return fail("this broker speaks protocol " + std::to_string(protocol::kVersion) + ".",
                            "Window, command line and engine must be of the same release.");
            session->saidHello = true;
            return Message{
                {"version", protocol::kVersion}, {"workspace", m_workspace.path.string()}, {"pid", ::getpid()}, {"sequence", m_sequence}};
        }
        if (type == "submit") {
            const auto recipe = message.find("recipe");
            if (recipe == message.end() || !recipe->is_object()) return fail("submit needs a \"recipe\" object.");
            return named(m_runs.submit(recipe->dump(-1, ' ', false, Message::error_handler_t::replace), textOf(message, "name"),
                                       textOf(message, "parent")));
        }
        if (type == "resume") return named(m_runs.resume(textOf(message, "run"), message.value("changes", Message())));
        if (type == "list") {
            CELLOOM_TRY(records, m_runs.list());
            Message runs = Message::array();
            for (const store::RunRecord& record : records) runs.push_back(toJson(record));
            return Message{{"runs", std::move(runs)}};
        }
        if (type == "delete") {
            CELLOOM_TRY_STATUS(m_runs.remove(textOf(message, "run")));
            return Message::object();
        }
        if (type == "try_open") return openTry(session);
        if (type == "try_send") return sendTry(session, message);
        if (type == "try_close") {
            closeTry(session);
            return Message::object();
        }
        if (type == "shutdown") return Message::object();
        return fail("\"" + type + "\" is no command.",
                    "Commands: hello, submit, resume, control, list, delete, subscribe, try_open, try_send, try_close, shutdown.");
    }

    // --- chats: a child for the client that asks, which ends with it

    Result<Message> openTry(const SessionPtr& session) {
        if (session->tried) return fail("this client has a chat already.", "Close it with try_close first.");
        const std::string device = m_runs.devices().spare();
        const std::weak_ptr<Session> weak = session;
        CELLOOM_TRY(started, TrySession::start(m_loop,
                                               {m_options.program, m_workspace.path, device == "cpu" ? "cpu" : "auto",
                                                m_runs.devices().environment(device)},
                                               {[weak](Message event) {
                                                    if (const auto owner = weak.lock()) sendTryEvent(owner, std::move(event));
                                                },
                                                [weak] {
                                                    if (const auto owner = weak.lock()) owner->tried.reset();
                                                }}));
        session->tried = started;
        return Message{{"pid", started->pid()}, {"device", device}};
    }

    /// A client that does not read is not written to: its child waits, and no token of the text is lost.
    static void sendTryEvent(const SessionPtr& session, Message event) {
        session->connection->send(protocol::toLine({{"type", "try"}, {"event", std::move(event)}}));
        if (session->tried && session->connection->unsentBytes() > kMaxUnsentTryBytes) session->tried->setReading(false);
    }

    static Result<Message> sendTry(const SessionPtr& session, const Message& message) {
        if (!session->tried) return fail("this client has no chat.", "Open one with try_open first.");
        const auto request = message.find("request");
        if (request == message.end() || !request->is_object()) return fail("try_send needs a \"request\" object.");
        CELLOOM_TRY_STATUS(session->tried->send(*request));
        return Message::object();
    }

    static void closeTry(const SessionPtr& session) {
        if (const auto tried = std::exchange(session->tried, nullptr)) tried->close();
    }

    static Result<Message> named(const Result<std::string>& run) {
        if (!run) return tl::unexpected(run.error());
        return Message{{"run", *run}};
    }

    // --- the end

    void lookIdle() {
        if (m_options.idle.count() == 0) return;
        const auto now = std::chrono::steady_clock::now();
        if (!m_sessions.empty() || !m_runs.isIdle()) m_lastUse = now;
        if (now - m_lastUse >= m_options.idle) return m_loop.stop();
        m_idle.expires_after(std::min<std::chrono::milliseconds>(m_options.idle, std::chrono::seconds(1)));
        m_idle.async_wait([this](const asio::error_code& code) {
            if (!code) lookIdle();
        });
    }

    asio::io_context m_loop{1};
    const ServeOptions m_options;
    const store::Workspace m_workspace;
    Acceptor m_acceptor;
    asio::signal_set m_signals;
    asio::steady_timer m_acceptAgain, m_idle;
    std::list<SessionPtr> m_sessions;
    std::deque<PastEvent> m_past;
    std::size_t m_pastBytes = 0;
    std::int64_t m_sequence = firstSequence();
    std::chrono::steady_clock::time_point m_lastUse = std::chrono::steady_clock::now();
    Runs m_runs; // last: it uses the loop and emits into the sessions
};

} // namespace

Status serve(const ServeOptions& options) {
    ::signal(SIGPIPE, SIG_IGN);
    ::signal(SIGHUP, SIG_IGN); // the terminal that started it may close
    CELLOOM_TRY(workspace, store::Workspace::open(options.workspace));
    CELLOOM_TRY(lock, protocol::BrokerLock::take(workspace));
    CELLOOM_TRY(folder, protocol::socketFolder(workspace));
    const std::filesystem::path path = folder / "broker.sock";
    CELLOOM_TRY(listener, protocol::listenOn(path));
    CELLOOM_TRY_STATUS(lock.announce(path.string()));
    if (options.readyDescriptor >= 0) {
        if (::write(options.readyDescriptor, "ready\n", 6) != 6) std::fprintf(stderr, "whoever started this broker has gone\n");
        ::close(options.readyDescriptor);
    }
    Server(options, workspace, listener).run();
    ::unlink(path.c_str());
    return {};
}

} // namespace celloom::app
