#include "app/engine/broker/line_connection.h"

#include <asio/buffer.hpp>
#include <asio/write.hpp>

#include <utility>

namespace celloom::app {
namespace {
constexpr std::size_t kPauseReadingAt = 8u << 20; // who does not listen is not heard either
}

void LineConnection::start(Handlers handlers) {
    m_handlers = std::move(handlers);
    read();
}

void LineConnection::read() {
    if (m_isReading || !m_socket.is_open() || unsentBytes() > kPauseReadingAt) return;
    m_isReading = true;
    m_socket.async_read_some(asio::buffer(m_block), [self = shared_from_this()](const asio::error_code& code, std::size_t size) {
        self->m_isReading = false;
        if (code) return self->fail();
        const auto onMessage = self->m_handlers.onMessage; // a copy: the handler may close the connection
        for (const auto& message : self->m_lines.feed({self->m_block.data(), size}))
            if (onMessage && self->m_socket.is_open()) onMessage(message);
        self->read();
    });
}

void LineConnection::send(const std::string& line) {
    if (!m_socket.is_open()) return;
    m_waiting += line;
    if (m_writing.empty()) write();
}

void LineConnection::write() {
    m_writing.swap(m_waiting);
    asio::async_write(m_socket, asio::buffer(m_writing), [self = shared_from_this()](const asio::error_code& code, std::size_t) {
        if (code) return self->fail();
        self->m_writing.clear();
        if (!self->m_waiting.empty()) return self->write();
        if (const auto onDrained = self->m_handlers.onDrained) onDrained();
        self->read();
    });
}

void LineConnection::fail() {
    const auto closed = std::exchange(m_handlers, {}).onClosed;
    close();
    if (closed) closed();
}

void LineConnection::close() {
    m_handlers = {};
    asio::error_code ignored; // closing is all that is left to do
    m_socket.close(ignored);
}

} // namespace celloom::app
