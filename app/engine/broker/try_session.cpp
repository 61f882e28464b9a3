#include "app/engine/broker/try_session.h"

#include <asio/buffer.hpp>
#include <asio/write.hpp>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <linux/close_range.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

namespace celloom::app {
using protocol::Message;

namespace {

constexpr std::size_t kMaxUnsentBytes = 16u << 20; // of requests
constexpr std::size_t kTailBytes = 8u << 10;
constexpr int kNiceness = 10;

struct Pipe {
    int read = -1, write = -1;
    Pipe() = default;
    Pipe(const Pipe&) = delete;
    Pipe& operator=(const Pipe&) = delete;
    ~Pipe() {
        if (read >= 0) ::close(read);
        if (write >= 0) ::close(write);
    }
    bool open() {
        int ends[2];
        if (::pipe2(ends, O_CLOEXEC) != 0) return false;
        read = ends[0];
        write = ends[1];
        return true;
    }
};

/// The kernel kills this process before a training run when memory runs out.
void volunteerWhenMemoryRunsOut() {
    const int file = ::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (file < 0) return; // no such kernel: then all are equal
    if (::write(file, "700", 3) != 3) std::fputs("the chat cannot be made the first to go when memory runs out\n", stderr);
    ::close(file);
}

/// Runs in the child's process, between fork and exec.
[[noreturn]] void becomeChild(const TryCommand& command, const Pipe& requests, const Pipe& events, const Pipe& messages) {
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE}) ::signal(signal, SIG_DFL);
    sigset_t none;
    sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    ::setpgid(0, 0);
    // Only the standard streams stay open: the broker's lock and sockets must end with the broker.
    if (::dup2(requests.read, 0) < 0 || ::dup2(events.write, 1) < 0 || ::dup2(messages.write, 2) < 0 ||
        ::syscall(SYS_close_range, 3, ~0u, 0) != 0)
        ::_exit(protocol::Failure);
    volunteerWhenMemoryRunsOut();
    errno = 0;
    if (::nice(kNiceness) == -1 && errno != 0) std::fprintf(stderr, "the chat cannot be made nicer: %s\n", std::strerror(errno));
    ::setenv("OMP_WAIT_POLICY", "passive", 0); // see supervisor.cpp
    for (const std::string& entry : command.environment) {
        const std::size_t equals = entry.find('=');
        ::setenv(entry.substr(0, equals).c_str(), entry.substr(equals + 1).c_str(), 1);
    }
    ::execl(command.program.c_str(), command.program.c_str(), "--workspace", command.workspace.c_str(), "try-child", "--device",
            command.device.c_str(), nullptr);
    std::fprintf(stderr, "%s cannot be started: %s\n", command.program.c_str(), std::strerror(errno));
    ::_exit(protocol::Failure);
}

/// What became of the child, for people.
Message endedEvent(int code, int signal, const std::string& tail) {
    Message event{{"type", "ended"}, {"code", code}, {"signal", signal}, {"message", ""}, {"hint", ""}, {"log_tail", tail}};
    if (signal == SIGKILL) {
        event["message"] = "the chat was killed (signal 9).";
        event["hint"] = "Perhaps memory ran out: close other columns, or choose a smaller model. Runs are not affected.";
    } else if (signal != 0) {
        event["message"] = "the chat crashed (signal " + std::to_string(signal) + ").";
        event["hint"] = "Runs are not affected. Sending again starts it anew.";
    } else if (code != protocol::Ok) {
        event["message"] = "the chat ended with exit code " + std::to_string(code) + ".";
        event["hint"] = "Runs are not affected. Sending again starts it anew.";
    }
    return event;
}

} // namespace

Result<std::shared_ptr<TrySession>> TrySession::start(asio::io_context& loop, const TryCommand& command, Handlers handlers) {
    Pipe requests, events, messages;
    const pid_t pid = requests.open() && events.open() && messages.open() ? ::fork() : -1;
    if (pid == 0) becomeChild(command, requests, events, messages);
    if (pid < 0) return fail(std::string("no process can be started: ") + std::strerror(errno) + ".");
    const int pidfd = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
    if (pidfd < 0) {
        const int reason = errno;
        ::kill(pid, SIGKILL);
        ::waitpid(pid, nullptr, 0);
        return fail(std::string("the chat's process cannot be watched: ") + std::strerror(reason) + ".");
    }
    const std::shared_ptr<TrySession> session(new TrySession(loop, pid, pidfd, std::exchange(requests.write, -1),
                                                             std::exchange(events.read, -1), std::exchange(messages.read, -1)));
    session->m_handlers = std::move(handlers);
    session->begin();
    return session;
}

TrySession::TrySession(asio::io_context& loop, std::int64_t pid, int pidfd, int requests, int events, int messages)
    : m_pid(pid), m_process(loop, pidfd), m_requests(loop, requests), m_events(loop, events), m_messages(loop, messages) {}

/// Only where the loop has ended: while it runs, its handlers keep the session until the child is reaped.
TrySession::~TrySession() {
    if (m_isReaped) return;
    ::kill(static_cast<pid_t>(m_pid), SIGKILL); // not reaped, so the number is still its
    ::waitpid(static_cast<pid_t>(m_pid), nullptr, 0);
}

void TrySession::begin() {
    watch();
    readEvents();
    readMessages();
}

void TrySession::readEvents() {
    if (m_isReading || !m_wantsEvents || !m_events.is_open()) return;
    m_isReading = true;
    m_events.async_read_some(asio::buffer(m_block), [self = shared_from_this()](const asio::error_code& code, std::size_t size) {
        self->m_isReading = false;
        if (code) {
            self->m_hasAllEvents = true;
            return self->endWhenAllIsRead();
        }
        for (const auto& message : self->m_lines.feed({self->m_block.data(), size})) {
            const auto onEvent = self->m_handlers.onEvent; // a copy: the handler may close the session
            if (onEvent && message) onEvent(*message);
        }
        self->readEvents();
    });
}

void TrySession::readMessages() {
    m_messages.async_read_some(asio::buffer(m_messageBlock), [self = shared_from_this()](const asio::error_code& code, std::size_t size) {
        if (code) {
            self->m_hasAllMessages = true;
            return self->endWhenAllIsRead();
        }
        self->m_tail.append(self->m_messageBlock.data(), size);
        if (self->m_tail.size() > 2 * kTailBytes) self->m_tail.erase(0, self->m_tail.size() - kTailBytes);
        self->readMessages();
    });
}

void TrySession::watch() {
    m_process.async_wait(Descriptor::wait_read, [self = shared_from_this()](const asio::error_code& code) {
        if (code) return;
        int status = 0;
        if (::waitpid(static_cast<pid_t>(self->m_pid), &status, WNOHANG) <= 0) return self->watch();
        self->m_isReaped = true;
        self->m_signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
        self->m_code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
        self->endWhenAllIsRead();
    });
}

void TrySession::endWhenAllIsRead() {
    if (!m_isReaped || !m_hasAllEvents || !m_hasAllMessages) return;
    if (m_tail.size() > kTailBytes) m_tail.erase(0, m_tail.size() - kTailBytes);
    const Handlers handlers = std::exchange(m_handlers, {});
    if (handlers.onEvent) handlers.onEvent(endedEvent(m_code, m_signal, m_tail));
    if (handlers.onEnded) handlers.onEnded();
}

Status TrySession::send(const Message& request) {
    const std::string line = protocol::toLine(request);
    if (m_writing.size() + m_waiting.size() + line.size() > kMaxUnsentBytes)
        return fail("the chat does not take requests fast enough.", "Wait until it has answered, or close it.");
    m_waiting += line;
    if (m_writing.empty()) write();
    return {};
}

void TrySession::write() {
    m_writing.swap(m_waiting);
    asio::async_write(m_requests, asio::buffer(m_writing), [self = shared_from_this()](const asio::error_code& code, std::size_t) {
        self->m_writing.clear();
        if (code) return self->m_waiting.clear(); // it has ended, which watch() tells
        if (!self->m_waiting.empty()) self->write();
    });
}

void TrySession::setReading(bool isReading) {
    m_wantsEvents = isReading;
    if (isReading) readEvents();
}

void TrySession::close() {
    m_handlers = {};
    if (!m_isReaped) ::kill(static_cast<pid_t>(m_pid), SIGKILL);
    asio::error_code ignored; // the process ends in any case; watch() reaps it
    m_requests.close(ignored);
    m_events.close(ignored);
    m_messages.close(ignored);
}

} // namespace celloom::app
