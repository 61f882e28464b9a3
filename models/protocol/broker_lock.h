// broker.lock in the workspace: one broker a workspace. Held by an open-file-description lock, which ends with the process however it
// ends; the file says where that broker listens.
#pragma once

#include "models/base/result.h"
#include "models/store/run_folder.h"

#include <string>

namespace celloom::protocol {

class BrokerLock {
public:
    /// Nothing to take: another broker lives (isTaken() tells that from an error).
    static Result<BrokerLock> take(const store::Workspace& workspace);
    BrokerLock(BrokerLock&& other) noexcept : m_descriptor(other.m_descriptor) { other.m_descriptor = -1; }
    BrokerLock& operator=(BrokerLock&&) = delete;
    ~BrokerLock();

    /// Says where this broker listens.
    Status announce(const std::string& socket);
    [[nodiscard]] int descriptor() const { return m_descriptor; }

private:
    explicit BrokerLock(int descriptor) : m_descriptor(descriptor) {}
    int m_descriptor = -1;
};

/// The socket of the broker that holds the lock; empty where none does, or where it has not announced itself yet.
std::string livingBrokerSocket(const store::Workspace& workspace);
bool isBrokerAlive(const store::Workspace& workspace);

} // namespace celloom::protocol
