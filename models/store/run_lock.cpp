#include "models/store/run_lock.h"

#include "models/base/file_lock.h"
#include "models/base/files.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

namespace celloom::store {
namespace fs = std::filesystem;
namespace {

constexpr int kReadAgain = 3;
constexpr std::size_t kRecordBytes = 512; // fixed, written in place: needs no new space on the disk

template <class T> void put(nlohmann::json& json, const char* key, const std::optional<T>& value) {
    if (value) json[key] = *value;
}

std::optional<int> number(const nlohmann::json& json, const char* key) {
    const auto found = json.find(key);
    return found != json.end() && found->is_number_integer() ? std::optional<int>(found->get<int>()) : std::nullopt;
}

Result<nlohmann::json> readObject(const fs::path& path) {
    CELLOOM_TRY(text, readFile(path, 1 << 16));
    nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
    if (!json.is_object()) return fail("holds no JSON object.", "The file is damaged; remove it.", path.string());
    return json;
}

std::string textOf(const nlohmann::json& json, const char* key) {
    const auto found = json.find(key);
    return found != json.end() && found->is_string() ? found->get<std::string>() : std::string();
}

double timeOf(const nlohmann::json& json) {
    const auto found = json.find("time");
    return found != json.end() && found->is_number() ? found->get<double>() : 0;
}

} // namespace

fs::path lockFile(const RunFolder& folder) {
    return folder.path / "child.lock";
}

Result<RunLock> RunLock::take(const RunFolder& folder) {
    const fs::path path = lockFile(folder);
    RunLock lock(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
    if (lock.m_descriptor < 0)
        return fail(std::string("cannot be opened: ") + std::strerror(errno) + ".", "The workspace must be writable.", path.string());
    if (!lockWholeFile(lock.m_descriptor)) {
        if (errno != EAGAIN && errno != EACCES)
            return fail(std::string("cannot be locked: ") + std::strerror(errno) + ".", {}, path.string());
        return fail("run " + folder.name() + " is being worked on by another process.",
                    "Stop it first: celloom-engine stop " + std::to_string(folder.number()));
    }
    return lock;
}

RunLock& RunLock::operator=(RunLock&& other) noexcept {
    std::swap(m_descriptor, other.m_descriptor);
    return *this;
}

RunLock::~RunLock() {
    if (m_descriptor >= 0) ::close(m_descriptor);
}

Status RunLock::write(const RunProcess& process) {
    nlohmann::json json{
        {"supervisor", process.supervisor}, {"child", process.child}, {"socket", process.socket}, {"device", process.device}};
    put(json, "code", process.code);
    put(json, "signal", process.signal);
    if (process.ended > 0) json["time"] = process.ended;
    std::string record = json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    CELLOOM_CHECK(record.size() < kRecordBytes); // the longest part, the socket's path, has at most 108 bytes
    record.resize(kRecordBytes - 1, ' ');
    record += '\n';
    const ssize_t done = ::pwrite(m_descriptor, record.data(), record.size(), 0);
    if (done != static_cast<ssize_t>(record.size()))
        return fail(std::string("child.lock cannot be written: ") + (done < 0 ? std::strerror(errno) : "the disk is full") + ".");
    return {};
}

bool isHeld(const RunFolder& folder) {
    return isFileLocked(lockFile(folder));
}

Result<std::optional<RunProcess>> readProcess(const RunFolder& folder) {
    std::error_code code;
    const auto size = fs::file_size(lockFile(folder), code);
    if (code || size == 0) return std::optional<RunProcess>(); // not there, or just being made
    Result<nlohmann::json> read = readObject(lockFile(folder));
    for (int again = 0; !read && again < kReadAgain; ++again)
        read = readObject(lockFile(folder)); // it is written in place, perhaps just now
    CELLOOM_TRY(json, read);
    RunProcess process;
    process.supervisor = number(json, "supervisor").value_or(0);
    process.child = number(json, "child").value_or(0);
    process.socket = textOf(json, "socket");
    process.device = textOf(json, "device");
    process.code = number(json, "code");
    process.signal = number(json, "signal");
    process.ended = timeOf(json);
    return std::optional<RunProcess>(process);
}

Result<std::optional<RunExit>> readExit(const RunFolder& folder) {
    if (std::error_code code; fs::exists(folder.exit(), code)) {
        CELLOOM_TRY(json, readObject(folder.exit()));
        return std::optional<RunExit>(RunExit{number(json, "code"), number(json, "signal"), timeOf(json)});
    }
    CELLOOM_TRY(process, readProcess(folder));
    if (!process || (!process->code && !process->signal)) return std::optional<RunExit>();
    return std::optional<RunExit>(RunExit{process->code, process->signal, process->ended});
}

Status writeExit(const RunFolder& folder, const RunExit& exit) {
    nlohmann::json json{{"time", exit.time}};
    put(json, "code", exit.code);
    put(json, "signal", exit.signal);
    return writeFileAtomically(folder.exit(), json.dump() + "\n");
}

} // namespace celloom::store
