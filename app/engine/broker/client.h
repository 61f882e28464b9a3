// The command line's end of the line to the broker: finds it or starts it, asks and waits for the answer. Blocking, with time limits.
#pragma once

#include "models/protocol/protocol.h"

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>

namespace celloom::app {

class BrokerClient {
public:
    /// Connects and says hello. Where no broker lives, starts this program's own "serve" as a process that outlives us.
    static Result<std::unique_ptr<BrokerClient>> connect(const store::Workspace& workspace);
    ~BrokerClient();
    BrokerClient(const BrokerClient&) = delete;
    BrokerClient& operator=(const BrokerClient&) = delete;

    /// Events that come in between are kept for nextEvent(). Fails with what the broker answered, or when it is gone or silent.
    Result<protocol::Message> request(protocol::Message message, std::chrono::milliseconds timeout = std::chrono::seconds(30));
    /// Nothing: the time is over, or a signal came. Fails when the broker is gone.
    Result<std::optional<protocol::Message>> nextEvent(std::chrono::milliseconds timeout);

private:
    explicit BrokerClient(int descriptor) : m_descriptor(descriptor) {}
    static Result<std::unique_ptr<BrokerClient>> attach(const store::Workspace& workspace);
    /// Reads what there is, waiting at most so long. False: nothing came.
    Result<bool> receive(std::chrono::milliseconds timeout);
    Status send(const std::string& line);

    int m_descriptor;
    protocol::LineReader m_lines;
    std::deque<protocol::Message> m_events, m_replies;
    std::int64_t m_nextId = 1;
};

/// Starts "serve" as a process of its own session, and waits until it listens. Its messages go to broker.log in the workspace.
Status startBroker(const store::Workspace& workspace);

/// Path of the running program.
Result<std::filesystem::path> ownProgram();

/// Copies bytes between the standard streams and the broker until either ends: `serve --stdio`, over ssh.
Status relayStandardStreams(const store::Workspace& workspace);

} // namespace celloom::app
