#include "app/engine/try_child.h"

#include <cerrno>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <mutex>
#include <thread>
#include <unistd.h>
#include <vector>

namespace celloom::app {
using protocol::Message;

namespace {

/// Requests as they come, read by a thread of its own: so the end of stdin is seen while a model is being loaded, too.
class Requests {
public:
    Requests() {
        std::thread([this] { read(); }).detach();
    }
    /// What has come; where nothing has, waits at most so long.
    std::vector<Result<Message>> take(std::chrono::seconds patience) {
        std::unique_lock lock(m_mutex);
        m_news.wait_for(lock, patience, [this] { return !m_messages.empty(); });
        return std::exchange(m_messages, {});
    }

private:
    void read() {
        protocol::LineReader lines;
        std::vector<char> block(1 << 16);
        while (true) {
            const ssize_t size = ::read(STDIN_FILENO, block.data(), block.size());
            if (size < 0 && errno == EINTR) continue;
            if (size <= 0) ::_exit(protocol::Ok); // the client has gone, and nothing of ours is worth keeping
            auto messages = lines.feed({block.data(), static_cast<std::size_t>(size)});
            const std::lock_guard lock(m_mutex);
            for (auto& message : messages) m_messages.push_back(std::move(message));
            m_news.notify_one();
        }
    }

    std::mutex m_mutex;
    std::condition_variable m_news;
    std::vector<Result<Message>> m_messages;
};

/// Waits while nobody reads: so a slow client slows its own text, and nothing piles up.
void writeLine(const Message& event) {
    const std::string line = protocol::toLine(event);
    for (std::size_t done = 0; done < line.size();) {
        const ssize_t size = ::write(STDOUT_FILENO, line.data() + done, line.size() - done);
        if (size < 0 && errno == EINTR) continue;
        if (size < 0) ::_exit(protocol::Failure);
        done += static_cast<std::size_t>(size);
    }
}

} // namespace

int runTryChild(const ChatPlace& place, std::chrono::seconds idle) {
    ::signal(SIGPIPE, SIG_IGN);
    static Requests& requests = *new Requests; // never destroyed: its thread goes on until the process ends
    ChatSession session(place, writeLine);
    while (true) {
        const bool isWriting = session.isWriting();
        const auto messages = requests.take(isWriting ? std::chrono::seconds(0) : idle);
        if (messages.empty() && !isWriting) return protocol::Ok;
        for (const auto& message : messages) {
            if (message)
                session.handle(*message);
            else
                writeLine({{"type", "error"}, {"column", ""}, {"message", message.error().message}, {"hint", message.error().hint}});
        }
        session.advance();
    }
}

} // namespace celloom::app
