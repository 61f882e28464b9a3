#include "models/protocol/child_link.h"

#include "models/protocol/protocol.h"
#include "models/protocol/sockets.h"
#include "models/store/run_lock.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <deque>
#include <fcntl.h>
#include <mutex>
#include <optional>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

namespace celloom::protocol {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kProgressEvery = std::chrono::milliseconds(100);
constexpr auto kFarewell = std::chrono::milliseconds(500);
constexpr std::size_t kMaxUnsentBytes = 4u << 20; // of one reader; past it, events are left out until it has read all
constexpr std::size_t kMaxReaders = 16;
constexpr std::size_t kMaxCommands = 1000; // not yet taken by the run
constexpr std::array<const char*, 7> kActionNames{"pause", "continue", "stop", "save", "evaluate", "sample", "set_lr"};

/// The lock's descriptor as the supervisor passed it on, or a lock taken now by a child that was started by hand.
Result<store::RunLock> ownLock(const store::RunFolder& folder, const std::string& socket) {
    if (const char* text = std::getenv("CELLOOM_RUN_LOCK")) {
        int fd = -1;
        const std::string_view digits = text;
        const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), fd);
        if (code != std::errc() || end != digits.data() + digits.size() || ::fcntl(fd, F_SETFD, FD_CLOEXEC) != 0)
            return fail("CELLOOM_RUN_LOCK is no open descriptor.", "Only the broker sets it; unset it to start a child by hand.");
        ::unsetenv("CELLOOM_RUN_LOCK"); // not for the child's own children
        return store::RunLock::inherited(fd);
    }
    CELLOOM_TRY(lock, store::RunLock::take(folder));
    store::RunProcess process;
    process.child = ::getpid();
    process.socket = socket;
    CELLOOM_TRY_STATUS(lock.write(process));
    return lock;
}

struct Reader {
    int fd = -1;
    LineReader lines;
    std::string unsent;
    bool isLeftOut = false; // too slow; is told {"type": "dropped"} when it has caught up
    bool isGone = false;
};

class SocketLink final : public ChildLink {
public:
    SocketLink(store::RunLock lock, std::string run, std::filesystem::path socket, int listener, int wake)
        : m_lock(std::move(lock)), m_run(std::move(run)), m_socket(std::move(socket)), m_listener(listener), m_wake(wake) {
        sigset_t all, before; // signals are for the run's own threads
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        m_thread = std::thread([this] { loop(); });
        pthread_sigmask(SIG_SETMASK, &before, nullptr);
    }

    ~SocketLink() override {
        m_isEnding = true;
        wake();
        m_thread.join();
        for (Reader& reader : m_readers) ::close(reader.fd);
        ::unlink(m_socket.c_str());
        ::close(m_listener);
        ::close(m_wake);
    }

    std::vector<Command> take() override {
        const std::lock_guard guard(m_mutex);
        return std::exchange(m_commands, {});
    }

    bool waitForCommand(std::chrono::milliseconds atMost) override {
        std::unique_lock guard(m_mutex);
        return m_arrived.wait_for(guard, atMost, [this] { return !m_commands.empty(); });
    }

    void progress(const store::Progress& progress, std::int64_t rows) override {
        Message message{{"type", "progress"},
                        {"run", m_run},
                        {"state", store::toString(progress.state)},
                        {"stage", progress.stage},
                        {"step", progress.step},
                        {"total_steps", progress.totalSteps},
                        {"epoch", progress.epoch},
                        {"total_epochs", progress.totalEpochs},
                        {"elapsed_s", progress.elapsedSeconds},
                        {"remaining_s", progress.remainingSeconds},
                        {"rows", rows}};
        {
            const std::lock_guard guard(m_mutex);
            m_progress = std::move(message);
        }
        wake();
    }

    void message(std::int64_t step, const std::string& level, const std::string& kind, const std::string& text,
                 const std::string& hint) override {
        Message message{{"type", "message"}, {"run", m_run}, {"level", level}, {"kind", kind},
                        {"message", text},   {"hint", hint}, {"step", step}};
        {
            const std::lock_guard guard(m_mutex);
            m_messages.push_back(std::move(message));
        }
        wake();
    }

private:
    void wake() const {
        const std::uint64_t one = 1;
        // EAGAIN would mean that the counter is full: then the thread is awake anyway.
        if (::write(m_wake, &one, sizeof one) < 0) return;
    }

    void loop() {
        std::optional<Clock::time_point> end;
        while (true) {
            if (m_isEnding && !end) end = Clock::now() + kFarewell;
            const bool isProgressWaiting = gather(end.has_value());
            send();
            if (end && (Clock::now() >= *end || nothingUnsent())) return;
            wait(isProgressWaiting || end ? 20 : -1);
        }
    }

    /// Moves what the run said to the readers. True while a progress waits for its turn.
    bool gather(bool isLast) {
        const std::lock_guard guard(m_mutex);
        for (const Message& message : m_messages) queue(toLine(message));
        m_messages.clear();
        if (m_progress && (isLast || Clock::now() - m_lastProgress >= kProgressEvery)) {
            m_lastProgressLine = toLine(*m_progress);
            queue(m_lastProgressLine);
            m_progress.reset();
            m_lastProgress = Clock::now();
        }
        return m_progress.has_value();
    }

    void queue(const std::string& line) {
        for (Reader& reader : m_readers) {
            if (reader.unsent.size() + line.size() > kMaxUnsentBytes) reader.isLeftOut = true;
            if (!reader.isLeftOut) reader.unsent += line;
        }
    }

    void send() {
        for (Reader& reader : m_readers) {
            while (!reader.isGone && !reader.unsent.empty()) {
                const ssize_t done = ::send(reader.fd, reader.unsent.data(), reader.unsent.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
                if (done < 0 && errno == EINTR) continue;
                if (done < 0) {
                    if (errno != EAGAIN) reader.isGone = true;
                    break;
                }
                reader.unsent.erase(0, static_cast<std::size_t>(done));
                if (reader.unsent.empty() && std::exchange(reader.isLeftOut, false))
                    reader.unsent = toLine({{"type", "dropped"}, {"run", m_run}});
            }
        }
        std::erase_if(m_readers, [](const Reader& reader) {
            if (reader.isGone) ::close(reader.fd);
            return reader.isGone;
        });
    }

    [[nodiscard]] bool nothingUnsent() const {
        return std::all_of(m_readers.begin(), m_readers.end(), [](const Reader& reader) { return reader.unsent.empty(); });
    }

    void wait(int timeoutMs) {
        std::vector<pollfd> polled{{m_wake, POLLIN, 0}, {m_listener, static_cast<short>(m_readers.size() < kMaxReaders ? POLLIN : 0), 0}};
        for (const Reader& reader : m_readers)
            polled.push_back({reader.fd, static_cast<short>(POLLIN | (reader.unsent.empty() ? 0 : POLLOUT)), 0});
        if (::poll(polled.data(), polled.size(), timeoutMs) <= 0) return;
        if (polled[0].revents) {
            std::uint64_t count = 0;
            if (::read(m_wake, &count, sizeof count) < 0) return;
        }
        for (std::size_t i = 0; i < m_readers.size(); ++i)
            if (polled[i + 2].revents & (POLLIN | POLLHUP | POLLERR)) receive(m_readers[i]);
        if (polled[1].revents) welcome();
    }

    void welcome() {
        const int fd = ::accept4(m_listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0) return; // the caller has gone already
        m_readers.push_back({fd, {}, m_lastProgressLine});
    }

    void receive(Reader& reader) {
        std::array<char, 1 << 14> block{};
        const ssize_t got = ::recv(reader.fd, block.data(), block.size(), MSG_DONTWAIT);
        if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) reader.isGone = true;
        if (got <= 0) return;
        for (const auto& message : reader.lines.feed({block.data(), static_cast<std::size_t>(got)})) {
            if (!message) continue; // no JSON: there is nobody to answer to
            const Status status = accept(*message);
            Message reply{{"type", "reply"}, {"id", message->value("id", Message())}, {"ok", status.has_value()}};
            if (!status)
                reply["error"] = {{"message", status.error().message}, {"hint", status.error().hint}, {"place", status.error().place}};
            reader.unsent += toLine(reply);
        }
        if (reader.unsent.size() > 2 * kMaxUnsentBytes) reader.isGone = true; // asks and never listens
    }

    Status accept(const Message& message) {
        const auto action = message.find("action");
        if (message["type"] != "control" || action == message.end() || !action->is_string())
            return fail("a run understands \"control\" with an \"action\" only.");
        CELLOOM_TRY(known, actionFromString(action->get<std::string>()));
        Command command{known, 0};
        if (known == Action::SetLearningRate) {
            const auto value = message.find("value");
            if (value == message.end() || !value->is_number() || !std::isfinite(value->get<double>()) || value->get<double>() <= 0)
                return fail("set_lr needs a \"value\" above 0.");
            command.value = value->get<double>();
        }
        const std::lock_guard guard(m_mutex);
        if (m_commands.size() >= kMaxCommands) return fail("the run has " + std::to_string(kMaxCommands) + " commands waiting already.");
        m_commands.push_back(command);
        m_arrived.notify_all();
        return {};
    }

    store::RunLock m_lock; // held until the process ends
    const std::string m_run;
    const std::filesystem::path m_socket;
    const int m_listener, m_wake;
    std::atomic<bool> m_isEnding{false};

    std::mutex m_mutex; // of what the run and the thread share:
    std::condition_variable m_arrived;
    std::vector<Command> m_commands;
    std::vector<Message> m_messages;
    std::optional<Message> m_progress;

    // of the thread alone:
    std::vector<Reader> m_readers;
    Clock::time_point m_lastProgress{};
    std::string m_lastProgressLine; // told to each new reader
    std::thread m_thread;
};

} // namespace

std::string toString(Action action) {
    return kActionNames.at(static_cast<std::size_t>(action));
}

Result<Action> actionFromString(const std::string& text) {
    const auto found = std::find(kActionNames.begin(), kActionNames.end(), text);
    if (found == kActionNames.end())
        return fail("\"" + text + "\" is no action.", "Actions: pause, continue, stop, save, evaluate, sample, set_lr.");
    return static_cast<Action>(found - kActionNames.begin());
}

Result<std::unique_ptr<ChildLink>> ChildLink::open(const store::Workspace& workspace, const store::RunFolder& folder) {
    CELLOOM_TRY_STATUS(socketFolder(workspace));
    const std::filesystem::path path = childSocket(workspace, folder.number());
    CELLOOM_TRY(lock, ownLock(folder, path.string()));
    const int wake = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (wake < 0) return fail("the system has no descriptor left.");
    const Result<int> listener = listenOn(path);
    if (!listener) {
        ::close(wake);
        return tl::unexpected(listener.error());
    }
    return std::make_unique<SocketLink>(std::move(lock), folder.name(), path, *listener, wake);
}

} // namespace celloom::protocol
