// The broker's runs: their queue, their devices, their processes, and the line to each living child. Knows no clients: what happens
// goes out through one callback. One thread, the event loop's.
#pragma once

#include "app/engine/broker/devices.h"
#include "app/engine/broker/line_connection.h"
#include "models/protocol/protocol.h"
#include "models/store/index.h"

#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <asio/steady_timer.hpp>

#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace celloom::app {

class Runs {
public:
    using Emit = std::function<void(protocol::Message)>; // an event without its number
    using Reply = std::function<void(const Status&)>;

    Runs(asio::io_context& loop, store::Workspace workspace, std::filesystem::path program, int parallel, Emit emit);
    ~Runs();

    /// Reads the run folders: adopts what runs, notices what ended unseen, takes up the queue.
    void begin();

    Result<std::string> submit(const std::string& recipe, const std::string& name, const std::string& parent); // gives the folder's name
    Result<std::string> resume(const std::string& run, const protocol::Message& changes);
    /// "kill" is done here; the other actions are the child's, and the reply comes when it has them.
    void control(const std::string& run, const std::string& action, const protocol::Message& value, Reply reply);
    Status remove(const std::string& run);
    Result<std::vector<store::RunRecord>> list();
    /// For a chat, which takes no lease.
    [[nodiscard]] const Devices& devices() const { return m_devices; }
    [[nodiscard]] bool isIdle() const { return m_active.empty() && m_queue.empty() && m_delayed.empty(); }

private:
    struct ActiveRun;
    using ActivePtr = std::shared_ptr<ActiveRun>;

    Result<ActivePtr> findActive(const store::RunFolder& folder);
    void schedule();
    void startNow(const store::RunFolder& folder, const std::string& device);
    void follow(const store::RunFolder& folder, const std::string& device, std::int64_t ownSupervisor);
    void watch(const ActivePtr& run);
    void finish(const ActivePtr& run);
    void connect(const ActivePtr& run);
    void onChildMessage(const ActivePtr& run, const Result<protocol::Message>& message);
    void forward(const ActivePtr& run, protocol::Message command, Reply reply);
    void giveUpOnCommands(ActiveRun& run);
    void tick();

    void refresh(const store::RunFolder& folder, bool isNews);
    void announceEnd(const store::RunFolder& folder);
    void writeIndex(const store::RunRecord& record);
    Status openIndex();
    void removeLeftovers();

    asio::io_context& m_loop;
    const store::Workspace m_workspace;
    const std::filesystem::path m_program;
    Emit m_emit;
    Devices m_devices;
    asio::steady_timer m_ticker;
    std::unique_ptr<store::Index> m_index;       // absent while it cannot be opened
    std::map<int, store::RunRecord> m_unwritten; // by number; tried again at each tick
    std::string m_lastIndexError;
    std::deque<store::RunFolder> m_queue;
    std::vector<store::RunFolder> m_delayed;     // could not be started, and could not be marked as failed either
    std::map<int, std::string> m_startErrors;    // what clients were told about those, by number
    std::map<int, ActivePtr> m_active;           // by number
    std::map<int, store::RunState> m_lastStates; // what clients were told last
    std::int64_t m_nextCommand = 1;
};

} // namespace celloom::app
