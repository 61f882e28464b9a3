// The broker's end of one Try chat: starts `try-child` for a client, relays lines over its pipes, and tells how it ended. The child has no
// lease of a device and no place in the queue; it runs niced, and is the first to go when memory runs out. Nothing here waits.
#pragma once

#include "models/protocol/protocol.h"

#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace celloom::app {

struct TryCommand {
    std::filesystem::path program; // started as: program --workspace W try-child --device D
    std::filesystem::path workspace;
    std::string device;                   // "auto" or "cpu"
    std::vector<std::string> environment; // "NAME=value", on top of our own
};

class TrySession : public std::enable_shared_from_this<TrySession> {
public:
    struct Handlers {
        std::function<void(protocol::Message)> onEvent; // of the child; {"type": "ended", …} is the last
        std::function<void()> onEnded;                  // once, after that; nothing is called after it
    };

    /// The calling process must have one thread only.
    static Result<std::shared_ptr<TrySession>> start(asio::io_context& loop, const TryCommand& command, Handlers handlers);
    ~TrySession();

    /// Fails where the child does not read: nothing piles up here.
    Status send(const protocol::Message& request);
    /// While its client is slow the child is not read, and so writes no further.
    void setReading(bool isReading);
    /// Kills the child. No handler is called any more.
    void close();
    [[nodiscard]] std::int64_t pid() const { return m_pid; }

private:
    using Descriptor = asio::posix::stream_descriptor;

    TrySession(asio::io_context& loop, std::int64_t pid, int pidfd, int requests, int events, int messages);
    void begin();
    void readEvents();
    void readMessages();
    void write();
    void watch();
    void endWhenAllIsRead();

    std::int64_t m_pid;
    Descriptor m_process, m_requests, m_events, m_messages; // a pidfd; the child's stdin, stdout and stderr
    Handlers m_handlers;
    protocol::LineReader m_lines;
    std::array<char, 1 << 16> m_block{};
    std::array<char, 1 << 12> m_messageBlock{};
    std::string m_writing, m_waiting; // the first is with the system now
    std::string m_tail;               // of what the child said on stderr
    bool m_wantsEvents = true, m_isReading = false, m_hasAllEvents = false, m_hasAllMessages = false, m_isReaped = false;
    int m_code = 0, m_signal = 0;
};

} // namespace celloom::app
