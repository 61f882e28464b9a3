#include "models/protocol/broker_lock.h"

#include "models/base/file_lock.h"
#include "models/base/files.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

namespace celloom::protocol {
namespace {

std::filesystem::path lockFile(const store::Workspace& workspace) {
    return workspace.path / "broker.lock";
}

} // namespace

Result<BrokerLock> BrokerLock::take(const store::Workspace& workspace) {
    const auto path = lockFile(workspace);
    BrokerLock lock(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
    if (lock.m_descriptor < 0)
        return fail(std::string("cannot be opened: ") + std::strerror(errno) + ".", "The workspace must be writable.", path.string());
    if (!lockWholeFile(lock.m_descriptor))
        return fail("another broker serves this workspace already.", {}, workspace.path.string());
    return lock;
}

BrokerLock::~BrokerLock() {
    if (m_descriptor >= 0) ::close(m_descriptor);
}

Status BrokerLock::announce(const std::string& socket) {
    const std::string text =
        nlohmann::json{{"pid", ::getpid()}, {"socket", socket}}.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
    if (::ftruncate(m_descriptor, 0) != 0 || ::pwrite(m_descriptor, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size()))
        return fail(std::string("broker.lock cannot be written: ") + std::strerror(errno) + ".", "Is the disk full?");
    return {};
}

bool isBrokerAlive(const store::Workspace& workspace) {
    return isFileLocked(lockFile(workspace));
}

std::string livingBrokerSocket(const store::Workspace& workspace) {
    if (!isBrokerAlive(workspace)) return {};
    const auto text = readFile(lockFile(workspace), 1 << 16);
    const auto json = text ? nlohmann::json::parse(*text, nullptr, false) : nlohmann::json();
    if (!json.is_object() || !json.contains("socket") || !json["socket"].is_string()) return {};
    return json["socket"].get<std::string>();
}

} // namespace celloom::protocol
