// One Unix socket that carries one JSON object a line, both ways, in the broker's event loop. Sending never waits.
#pragma once

#include "models/protocol/protocol.h"

#include <asio/io_context.hpp>
#include <asio/local/stream_protocol.hpp>

#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>

namespace celloom::app {

class LineConnection : public std::enable_shared_from_this<LineConnection> {
public:
    using Socket = asio::local::stream_protocol::socket;
    struct Handlers {
        std::function<void(const Result<protocol::Message>&)> onMessage;
        std::function<void()> onDrained; // all that was sent is with the system
        std::function<void()> onClosed;  // once; nothing is called after it
    };

    explicit LineConnection(Socket socket) : m_socket(std::move(socket)) {}
    void start(Handlers handlers);
    void send(const std::string& line);
    [[nodiscard]] std::size_t unsentBytes() const { return m_writing.size() + m_waiting.size(); }
    /// Ends without onClosed.
    void close();

private:
    void read();
    void write();
    void fail();

    Socket m_socket;
    Handlers m_handlers;
    protocol::LineReader m_lines;
    std::array<char, 1 << 16> m_block{};
    std::string m_writing, m_waiting; // the first is with the system now
    bool m_isReading = false;
};

} // namespace celloom::app
