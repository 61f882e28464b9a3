#include "app/engine/broker/client.h"

#include "models/protocol/broker_lock.h"
#include "models/protocol/sockets.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace celloom::app {
namespace fs = std::filesystem;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using protocol::Message;

namespace {

constexpr auto kStartWithin = 20s;
constexpr const char* kNobody = "no broker answers.";
constexpr const char* kGone = "the broker is gone.";
constexpr off_t kMaxLogBytes = 1 << 20;

int millisecondsUntil(Clock::time_point end) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
    return static_cast<int>(std::clamp<long long>(left, 0, 1 << 30));
}

/// In the process that becomes the broker.
[[noreturn]] void becomeBroker(const fs::path& program, const store::Workspace& workspace, int ready, int log) {
    ::setsid();
    if (::fork() != 0) ::_exit(0); // the broker belongs to nobody, so that nobody must reap it
    const int null = ::open("/dev/null", O_RDWR);
    if (null < 0 || ::dup2(null, 0) < 0 || ::dup2(null, 1) < 0 || ::dup2(log, 2) < 0) ::_exit(protocol::Failure);
    ::fcntl(ready, F_SETFD, 0);
    ::execl(program.c_str(), program.c_str(), "--workspace", workspace.path.c_str(), "serve", "--ready-descriptor",
            std::to_string(ready).c_str(), nullptr);
    ::_exit(protocol::Failure);
}

int openLog(const store::Workspace& workspace) {
    const fs::path path = workspace.path / "broker.log";
    const int log = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (log >= 0 && ::lseek(log, 0, SEEK_END) > kMaxLogBytes && ::ftruncate(log, 0) != 0) return log; // then it stays long
    return log >= 0 ? log : ::open("/dev/null", O_WRONLY | O_CLOEXEC);
}

std::string readUntilClosed(int descriptor, Clock::time_point end) {
    std::string text;
    std::array<char, 4096> block{};
    pollfd polled{descriptor, POLLIN, 0};
    while (true) {
        const int found = ::poll(&polled, 1, millisecondsUntil(end));
        if (found < 0 && errno == EINTR) continue;
        if (found <= 0) break;
        const ssize_t got = ::read(descriptor, block.data(), block.size());
        if (got <= 0) break;
        text.append(block.data(), static_cast<std::size_t>(got));
    }
    return text;
}

} // namespace

Result<fs::path> ownProgram() {
    std::error_code code;
    fs::path path = fs::read_symlink("/proc/self/exe", code);
    if (code) return fail("this program's path is not known: " + code.message() + ".", "Is /proc mounted?");
    return path;
}

Status startBroker(const store::Workspace& workspace) {
    CELLOOM_TRY(program, ownProgram());
    std::array<int, 2> ready{};
    if (::pipe2(ready.data(), O_CLOEXEC) != 0) return fail(std::string("no pipe can be made: ") + std::strerror(errno) + ".");
    const int log = openLog(workspace);
    const pid_t pid = ::fork();
    if (pid == 0) becomeBroker(program, workspace, ready[1], log);
    ::close(ready[1]);
    ::close(log);
    if (pid > 0)
        while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
        }
    const std::string said = pid > 0 ? readUntilClosed(ready[0], Clock::now() + kStartWithin) : std::string();
    ::close(ready[0]);
    if (said == "ready\n") return {};
    if (!said.empty()) return fail("the broker did not start: " + said);
    return fail("the broker did not start.", "Its messages are in " + (workspace.path / "broker.log").string());
}

Result<std::unique_ptr<BrokerClient>> BrokerClient::attach(const store::Workspace& workspace) {
    const auto descriptor = protocol::connectTo(protocol::brokerSocket(workspace));
    if (!descriptor) return fail(kNobody, descriptor.error().text());
    std::unique_ptr<BrokerClient> client(new BrokerClient(*descriptor));
    CELLOOM_TRY(welcome, client->request({{"type", "hello"}, {"version", protocol::kVersion}, {"client", "celloom-engine"}}));
    return client;
}

Result<std::unique_ptr<BrokerClient>> BrokerClient::connect(const store::Workspace& workspace) {
    const auto end = Clock::now() + kStartWithin;
    while (true) {
        auto client = attach(workspace);
        if (client || (client.error().message != kGone && client.error().message != kNobody)) return client;
        if (protocol::isBrokerAlive(workspace)) { // it is just starting or ending
            if (Clock::now() > end) return client;
            std::this_thread::sleep_for(20ms);
            continue;
        }
        const Status started = startBroker(workspace);
        if (!started && !protocol::isBrokerAlive(workspace))
            return tl::unexpected(started.error()); // else somebody else's start was faster
        if (Clock::now() > end) return client;
    }
}

BrokerClient::~BrokerClient() {
    ::close(m_descriptor);
}

Status BrokerClient::send(const std::string& line) {
    std::string_view rest = line;
    while (!rest.empty()) {
        const ssize_t done = ::send(m_descriptor, rest.data(), rest.size(), MSG_NOSIGNAL);
        if (done > 0) {
            rest.remove_prefix(static_cast<std::size_t>(done));
        } else if (errno == EAGAIN) {
            pollfd polled{m_descriptor, POLLOUT, 0};
            if (::poll(&polled, 1, 30000) == 0) return fail("the broker does not read.");
        } else if (errno != EINTR) {
            return fail(kGone, "Runs go on; try again.");
        }
    }
    return {};
}

Result<bool> BrokerClient::receive(std::chrono::milliseconds timeout) {
    pollfd polled{m_descriptor, POLLIN, 0};
    if (::poll(&polled, 1, static_cast<int>(timeout.count())) <= 0) return false;
    std::array<char, 1 << 16> block{};
    const ssize_t got = ::recv(m_descriptor, block.data(), block.size(), MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return false;
    if (got <= 0) return fail(kGone, "Runs go on; try again.");
    for (auto& message : m_lines.feed({block.data(), static_cast<std::size_t>(got)})) {
        if (!message) return fail("the broker sent what is no message: " + message.error().text());
        (message->at("type") == "reply" ? m_replies : m_events).push_back(std::move(*message));
    }
    return true;
}

Result<Message> BrokerClient::request(Message message, std::chrono::milliseconds timeout) {
    const auto end = Clock::now() + timeout;
    const std::int64_t id = m_nextId++;
    message["id"] = id;
    CELLOOM_TRY_STATUS(send(protocol::toLine(message)));
    while (true) {
        for (; !m_replies.empty(); m_replies.pop_front()) {
            const Message reply = m_replies.front();
            if (reply.value("id", Message()) != id) continue; // of an earlier request that was given up
            m_replies.pop_front();
            if (reply.value("ok", Message()) == true) return reply;
            const Message error = reply.value("error", Message::object());
            const auto text = [&](const char* key) {
                return error.is_object() && error.contains(key) && error[key].is_string() ? error[key].get<std::string>() : std::string();
            };
            return fail(text("message"), text("hint"), text("place"));
        }
        if (Clock::now() >= end) return fail("the broker does not answer.", "It may be stopped or stuck; runs go on.");
        CELLOOM_TRY_STATUS(receive(std::chrono::milliseconds(millisecondsUntil(end))));
    }
}

Result<std::optional<Message>> BrokerClient::nextEvent(std::chrono::milliseconds timeout) {
    if (m_events.empty()) CELLOOM_TRY_STATUS(receive(timeout));
    if (m_events.empty()) return std::optional<Message>();
    std::optional<Message> event = std::move(m_events.front());
    m_events.pop_front();
    return event;
}

Status relayStandardStreams(const store::Workspace& workspace) {
    ::signal(SIGPIPE, SIG_IGN);
    { CELLOOM_TRY(client, BrokerClient::connect(workspace)); } // starts a broker where there is none
    CELLOOM_TRY(descriptor, protocol::connectTo(protocol::brokerSocket(workspace)));
    const auto copy = [](int from, int to) {
        std::array<char, 1 << 16> block{};
        const ssize_t got = ::read(from, block.data(), block.size());
        if (got < 0 && (errno == EINTR || errno == EAGAIN)) return true;
        if (got <= 0) return false;
        for (std::string_view rest(block.data(), static_cast<std::size_t>(got)); !rest.empty();) {
            const ssize_t done = ::write(to, rest.data(), rest.size());
            if (done > 0)
                rest.remove_prefix(static_cast<std::size_t>(done));
            else if (errno == EAGAIN) {
                pollfd polled{to, POLLOUT, 0};
                ::poll(&polled, 1, -1);
            } else if (errno != EINTR)
                return false;
        }
        return true;
    };
    std::array<pollfd, 2> polled{{{STDIN_FILENO, POLLIN, 0}, {descriptor, POLLIN, 0}}};
    while (true) {
        if (::poll(polled.data(), polled.size(), -1) < 0) continue; // a signal
        if (polled[0].revents && !copy(STDIN_FILENO, descriptor)) {
            polled[0].fd = -1; // the last answers are still to come
            ::shutdown(descriptor, SHUT_WR);
        }
        if (polled[1].revents && !copy(descriptor, STDOUT_FILENO)) break;
    }
    ::close(descriptor);
    return {};
}

} // namespace celloom::app
