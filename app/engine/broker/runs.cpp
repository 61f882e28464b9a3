#include "app/engine/broker/runs.h"

#include "app/engine/broker/records.h"
#include "app/engine/broker/supervisor.h"
#include "models/base/files.h"
#include "models/protocol/child_link.h"
#include "models/protocol/sockets.h"
#include "models/recipe/checks.h"
#include "models/recipe/recipe.h"
#include "models/store/resume_plan.h"
#include "models/store/run_lock.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace celloom::app {
namespace fs = std::filesystem;
using namespace std::chrono_literals;
using protocol::Message;
using store::RunFolder;
using store::RunRecord;
using store::RunState;

namespace {

constexpr auto kTickEvery = 1s;
constexpr auto kAnswerWithin = 20s; // of a child; it answers from a thread of its own, whatever the run is doing
constexpr auto kConnectEvery = 100ms;
constexpr auto kLookAgainAfter = 500ms;
constexpr int kTailLines = 20;
constexpr std::size_t kMaxUnsentBytes = 1 << 20; // commands to a child that does not read
constexpr const char* kDeletedPrefix = ".deleted-";

double now() {
    return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

/// The recipe as it goes into a run's folder, or the first problem that forbids to run it.
Result<recipe::Recipe> checked(recipe::Recipe recipe) {
    for (const recipe::Problem& problem : recipe.validate())
        if (problem.severity == recipe::Problem::Severity::Error) return fail(problem.message, problem.hint, problem.key);
    CELLOOM_TRY_STATUS(recipe::checkModel(recipe));
    return recipe.withAbsolutePaths().withScriptsRead();
}

Status apply(recipe::Recipe& recipe, const Message& changes) {
    if (!changes.is_object()) return fail("\"changes\" must be an object of recipe fields.");
    for (const auto& [key, value] : changes.items())
        CELLOOM_TRY_STATUS(recipe.setFromText(key, value.is_string() ? value.get<std::string>() : value.dump()));
    return {};
}

/// The run's recipe with the changes on top, whole and checked; without changes as it stands.
Result<recipe::Recipe> changedRecipe(const RunFolder& folder, const Message& changes) {
    CELLOOM_TRY(recipe, recipe::Recipe::load(folder.recipe()));
    if (changes.is_null() || changes.empty()) return recipe;
    CELLOOM_TRY_STATUS(apply(recipe, changes));
    return checked(std::move(recipe));
}

/// A run that begins again with a changed recipe trains its tokenizer again too.
Status forgetTokenizer(const RunFolder& folder) {
    std::error_code code;
    fs::remove(folder.tokenizer(), code);
    if (code) return fail("cannot be removed: " + code.message() + ".", {}, folder.tokenizer().string());
    return {};
}

/// What the recipe asks for; a recipe that cannot be read is refused by the child, which computes on the processor until then.
std::string deviceOf(const RunFolder& folder) {
    const auto recipe = recipe::Recipe::load(folder.recipe());
    return recipe ? recipe->text("device") : "cpu";
}

/// Moves a damaged index out of the way, so that a new one can be built. Nothing is deleted: it holds notes.
void setAside(const fs::path& index) {
    const std::string suffix = ".damaged-" + std::to_string(static_cast<long long>(now()));
    std::error_code code;
    for (const char* part : {"", "-wal", "-shm"})
        if (const fs::path from = index.string() + part; fs::exists(from, code)) fs::rename(from, index.string() + suffix + part, code);
    std::fprintf(stderr, "celloom.db was damaged; it is kept as %s%s and built again from the runs.\n", index.filename().c_str(),
                 suffix.c_str());
}

} // namespace

struct Runs::ActiveRun {
    struct Command {
        Message message;
        Reply reply;
        std::chrono::steady_clock::time_point deadline;
    };
    ActiveRun(asio::io_context& loop, RunFolder where, std::string lease)
        : folder(std::move(where)), device(std::move(lease)), process(loop), timer(loop), connecting(loop) {}

    const RunFolder folder;
    const std::string device;
    std::int64_t ownSupervisor = 0;         // a process of ours to reap; 0: adopted
    asio::posix::stream_descriptor process; // a pidfd, readable when that process has ended
    asio::steady_timer timer, connecting;
    std::shared_ptr<LineConnection> channel;
    std::vector<Command> waiting;         // until the child listens
    std::map<std::int64_t, Command> sent; // until it answers
    bool isOver = false;
};

Runs::Runs(asio::io_context& loop, store::Workspace workspace, fs::path program, int parallel, Emit emit)
    : m_loop(loop), m_workspace(std::move(workspace)), m_program(std::move(program)), m_emit(std::move(emit)),
      m_devices(parallel, visibleGpus()), m_ticker(loop) {}

Runs::~Runs() {
    for (const auto& [number, run] : m_active)
        if (run->channel) run->channel->close();
}

// --- the workspace as it is found

void Runs::begin() {
    std::map<int, RunRecord> known;
    if (const Status status = openIndex(); status)
        if (const auto records = m_index->runs())
            for (const RunRecord& record : *records) known[record.number] = record;
    for (const RunFolder& folder : m_workspace.allRuns()) {
        const auto entry = known.find(folder.number());
        const auto about = store::readAbout(folder);
        const bool isQueued = about && about->isQueued;
        const bool isSettled =
            !isQueued && entry != known.end() && store::isOver(entry->second.state) && entry->second.folder == folder.name();
        if (entry != known.end()) m_lastStates[folder.number()] = entry->second.state;
        known.erase(folder.number());
        if (store::isHeld(folder)) {
            const auto process = store::readProcess(folder);
            const std::string device = process && *process && !(*process)->device.empty() ? (*process)->device : "cpu";
            m_devices.hold(device);
            follow(folder, device, 0);
            continue;
        }
        if (isSettled) continue;
        refresh(folder, true);
        if (isQueued)
            m_queue.push_back(folder);
        else
            announceEnd(folder);
    }
    removeLeftovers();
    for (const auto& [number, record] : known) // folders that somebody removed
        if (const Status status = m_index->remove(number); !status) std::fprintf(stderr, "%s\n", status.error().text().c_str());
    schedule();
    tick();
}

/// What a deletion that was cut short has left: nobody sees it, but it takes its space.
void Runs::removeLeftovers() {
    std::vector<fs::path> doomed;
    std::error_code code;
    for (fs::directory_iterator entry(m_workspace.runs(), code), end; !code && entry != end; entry.increment(code))
        if (entry->path().filename().string().starts_with(kDeletedPrefix)) doomed.push_back(entry->path());
    for (const fs::path& path : doomed)
        if (fs::remove_all(path, code); code) std::fprintf(stderr, "%s cannot be deleted: %s\n", path.c_str(), code.message().c_str());
}

Status Runs::openIndex() {
    auto index = store::Index::open(m_workspace);
    if (!index && index.error().message == store::kDamagedMessage) {
        setAside(m_workspace.index());
        index = store::Index::open(m_workspace);
    }
    if (!index) return tl::unexpected(index.error());
    m_index = std::move(*index);
    return {};
}

/// Answers for a child that does not.
void Runs::giveUpOnCommands(ActiveRun& run) {
    const auto time = std::chrono::steady_clock::now();
    std::vector<Reply> late;
    for (auto entry = run.sent.begin(); entry != run.sent.end();) {
        if (entry->second.deadline > time) {
            ++entry;
            continue;
        }
        late.push_back(std::move(entry->second.reply));
        entry = run.sent.erase(entry);
    }
    for (auto& command : run.waiting)
        if (command.deadline <= time) late.push_back(std::exchange(command.reply, {}));
    std::erase_if(run.waiting, [](const ActiveRun::Command& command) { return !command.reply; });
    for (const Reply& reply : late)
        reply(fail("run " + run.folder.name() + " does not answer.",
                   "It may be stopped or stuck; celloom-engine stop --kill ends it at once."));
}

void Runs::tick() {
    for (const auto& [number, run] : m_active) {
        refresh(run->folder, false);
        giveUpOnCommands(*run);
    }
    if (m_index || openIndex()) {
        for (const auto& [number, record] : std::exchange(m_unwritten, {})) writeIndex(record);
    }
    m_queue.insert(m_queue.end(), m_delayed.begin(), m_delayed.end());
    m_delayed.clear();
    schedule();
    m_ticker.expires_after(kTickEvery);
    m_ticker.async_wait([this](const asio::error_code& code) {
        if (!code) tick();
    });
}

// --- what the index and the clients know

void Runs::writeIndex(const RunRecord& record) {
    const Status status = m_index ? m_index->upsert(record) : fail("celloom.db cannot be opened.");
    if (status) {
        m_lastIndexError.clear();
        return;
    }
    m_unwritten[record.number] = record;
    if (std::exchange(m_lastIndexError, status.error().message) != status.error().message)
        std::fprintf(stderr, "%s\n", status.error().text().c_str());
}

/// Reads the run's folder, writes the index, and tells the clients when the state has changed (always, where it is news).
void Runs::refresh(const RunFolder& folder, bool isNews) {
    const auto record = store::readRecord(folder);
    if (!record) {
        std::fprintf(stderr, "%s\n", record.error().text().c_str());
        return;
    }
    writeIndex(*record);
    const auto last = m_lastStates.find(record->number);
    if (!isNews && last != m_lastStates.end() && last->second == record->state) return;
    m_lastStates[record->number] = record->state;
    Message event{{"type", "run"}, {"run", record->folder}, {"record", toJson(*record)}};
    if (record->state == RunState::Interrupted || record->state == RunState::Failed) event["log_tail"] = tail(folder.log(), kTailLines);
    m_emit(std::move(event));
}

void Runs::announceEnd(const RunFolder& folder) {
    const auto record = store::readRecord(folder);
    if (!record || (record->state != RunState::Interrupted && record->state != RunState::Failed)) return;
    const std::string hint = record->state == RunState::Interrupted
                                 ? "It can be resumed from its last checkpoint." +
                                       std::string(record->outcome.ends_with("(signal 9)") ? " If nobody ended it, memory may have run out: dmesg tells." : "")
                                 : "Its log tells more: celloom-engine show " + std::to_string(record->number);
    m_emit({{"type", "message"},
            {"run", record->folder},
            {"level", "error"},
            {"kind", store::toString(record->state)},
            {"message", record->outcome},
            {"hint", hint},
            {"step", record->step}});
}

Result<std::vector<RunRecord>> Runs::list() {
    std::vector<RunRecord> records;
    if (m_index) {
        CELLOOM_TRY(indexed, m_index->runs());
        records = std::move(indexed);
        for (RunRecord& record : records)
            if (const auto newer = m_unwritten.find(record.number); newer != m_unwritten.end()) record = newer->second;
        return records;
    }
    for (const RunFolder& folder : m_workspace.allRuns()) {
        CELLOOM_TRY(record, store::readRecord(folder));
        records.insert(records.begin(), std::move(record));
    }
    return records;
}

// --- commands

Result<std::string> Runs::submit(const std::string& text, const std::string& name, const std::string& parent) {
    CELLOOM_TRY(given, recipe::Recipe::fromJson(text, "recipe"));
    CELLOOM_TRY(recipe, checked(std::move(given)));
    std::string shown = name.empty() ? recipe.text("name") : name;
    if (shown.empty()) shown = fs::path(recipe.text(recipe::trains(recipe) ? "model.source" : "model.weights")).stem().string();
    CELLOOM_TRY(folder, m_workspace.createRun(shown));
    Status status = writeFileAtomically(folder.recipe(), recipe.toJson(false));
    if (status) status = store::writeAbout(folder, {shown, now(), parent, true});
    if (!status) {
        std::error_code ignored; // the first error is the one to tell
        fs::remove_all(folder.path, ignored);
        return tl::unexpected(status.error());
    }
    m_queue.push_back(folder);
    refresh(folder, true);
    schedule();
    return folder.name();
}

Result<std::string> Runs::resume(const std::string& run, const Message& changes) {
    CELLOOM_TRY(folder, m_workspace.findRun(run));
    CELLOOM_TRY(record, store::readRecord(folder));
    if (!store::isOver(record.state))
        return fail("run " + record.folder + " is " + store::toString(record.state) + "; only a run that is over can be resumed.");
    // Refused here, before anything is written: a refusal of the child would leave the run failed, and its recipe changed.
    CELLOOM_TRY(good, changedRecipe(folder, changes));
    CELLOOM_TRY(plan, store::planResume(folder, good));
    if (plan.effect.isComplete())
        return fail("run " + folder.name() + " is complete: all " + std::to_string(plan.effect.step) + " steps are done.",
                    "To train on, give it more: celloom-engine resume " + std::to_string(folder.number()) + " " + recipe::moreSteps(plan.effect, good));
    if (!changes.is_null() && !changes.empty()) {
        if (plan.checkpoint.empty()) CELLOOM_TRY_STATUS(forgetTokenizer(folder));
        CELLOOM_TRY_STATUS(writeFileAtomically(folder.recipe(), good.toJson(false)));
    }
    CELLOOM_TRY_STATUS(store::writeAbout(folder, {record.name, record.created, record.parent, true}));
    m_queue.push_back(folder);
    refresh(folder, true);
    schedule();
    return folder.name();
}

void Runs::control(const std::string& text, const std::string& action, const Message& value, Reply reply) {
    const auto folder = m_workspace.findRun(text);
    if (!folder) return reply(tl::unexpected(folder.error()));
    const bool isKill = action == "kill";
    if (!isKill)
        if (const auto known = protocol::actionFromString(action); !known) return reply(tl::unexpected(known.error()));
    const auto queued = std::find_if(m_queue.begin(), m_queue.end(), [&](const RunFolder& run) { return run.path == folder->path; });
    if (queued != m_queue.end()) {
        if (action != "stop" && !isKill)
            return reply(fail("run " + folder->name() + " waits in the queue.", "It can be stopped; other actions need it to run."));
        Status status = store::writeExit(*folder, {protocol::Interrupted, {}, now()});
        const auto about = store::readAbout(*folder);
        if (status && about) status = store::writeAbout(*folder, {about->name, about->created, about->parent, false});
        if (status) m_queue.erase(queued);
        refresh(*folder, true);
        return reply(status);
    }
    const auto active = m_active.find(folder->number());
    if (active == m_active.end()) {
        const auto record = store::readRecord(*folder);
        return reply(fail("run " + folder->name() + " is not running" + (record ? ": it is " + store::toString(record->state) : "") + "."));
    }
    if (isKill) return reply(killChild(*folder));
    Message command{{"type", "control"}, {"action", action}};
    if (!value.is_null()) command["value"] = value;
    forward(active->second, std::move(command), std::move(reply));
}

Status Runs::remove(const std::string& text) {
    CELLOOM_TRY(folder, m_workspace.findRun(text));
    const bool isQueued = std::any_of(m_queue.begin(), m_queue.end(), [&](const RunFolder& run) { return run.path == folder.path; });
    if (isQueued || m_active.contains(folder.number()) || store::isHeld(folder))
        return fail("run " + folder.name() + " is not over.", "Stop it first.");
    // Renamed first: a removal that fails half way leaves no run that looks whole.
    const fs::path doomed = folder.path.parent_path() / (kDeletedPrefix + folder.name());
    std::error_code code;
    fs::remove_all(doomed, code);
    fs::rename(folder.path, doomed, code);
    if (code) return fail("run " + folder.name() + " cannot be deleted: " + code.message() + ".", {}, folder.path.string());
    m_unwritten.erase(folder.number());
    m_lastStates.erase(folder.number());
    if (m_index) CELLOOM_TRY_STATUS(m_index->remove(folder.number()));
    m_emit({{"type", "run"}, {"run", folder.name()}, {"deleted", true}});
    fs::remove_all(doomed, code);
    if (code)
        return fail("a part of run " + folder.name() + " cannot be deleted: " + code.message() + ".", "Remove this folder by hand.",
                    doomed.string());
    return {};
}

// --- processes

void Runs::schedule() {
    for (std::size_t i = 0; i < m_queue.size();) {
        const RunFolder folder = m_queue[i];
        const auto device = m_devices.lease(deviceOf(folder));
        if (!device) {
            ++i; // a later run may want another device
            continue;
        }
        m_queue.erase(m_queue.begin() + static_cast<std::ptrdiff_t>(i));
        startNow(folder, *device);
    }
}

void Runs::startNow(const RunFolder& folder, const std::string& device) {
    const auto start = [&]() -> Result<std::int64_t> {
        // The lock comes first: whoever looks meanwhile sees a run that waits, or one that is being worked on.
        CELLOOM_TRY(lock, store::RunLock::take(folder));
        CELLOOM_TRY(about, store::readAbout(folder));
        about.isQueued = false;
        CELLOOM_TRY_STATUS(store::writeAbout(folder, about));
        CELLOOM_TRY_STATUS(protocol::socketFolder(m_workspace));
        return startSupervised(
            {m_program, folder, protocol::childSocket(m_workspace, folder.number()).string(), device, m_devices.environment(device)},
            std::move(lock));
    };
    const auto supervisor = start();
    if (supervisor) {
        m_startErrors.erase(folder.number());
        follow(folder, device, *supervisor);
        refresh(folder, true);
        return;
    }
    m_devices.release(device);
    const Error& error = supervisor.error();
    if (std::exchange(m_startErrors[folder.number()], error.message) != error.message)
        m_emit({{"type", "message"},
                {"run", folder.name()},
                {"level", "error"},
                {"kind", "failed"},
                {"message", error.message},
                {"hint", error.hint},
                {"step", 0}});
    Status status = store::writeExit(folder, {protocol::Failure, {}, now()});
    if (const auto about = store::readAbout(folder); status && about && about->isQueued)
        status = store::writeAbout(folder, {about->name, about->created, about->parent, false});
    if (!status) m_delayed.push_back(folder); // the disk is full: it still waits, and is tried again
    refresh(folder, true);
}

void Runs::follow(const RunFolder& folder, const std::string& device, std::int64_t ownSupervisor) {
    const auto run = std::make_shared<ActiveRun>(m_loop, folder, device);
    run->ownSupervisor = ownSupervisor;
    m_active[folder.number()] = run;
    watch(run);
    if (!run->isOver) connect(run);
}

/// Waits for the end of a process that holds the run's lock: the supervisor; the child, should the supervisor have been killed.
void Runs::watch(const ActivePtr& run) {
    if (run->ownSupervisor > 0 && ::waitpid(static_cast<pid_t>(run->ownSupervisor), nullptr, WNOHANG) != 0) run->ownSupervisor = 0;
    if (!store::isHeld(run->folder)) return finish(run);
    const auto process = store::readProcess(run->folder);
    const store::RunProcess named = process && *process ? **process : store::RunProcess{};
    asio::error_code ignored; // there may be nothing to close
    run->process.close(ignored);
    for (const std::int64_t pid : {run->ownSupervisor, named.supervisor, named.child}) {
        if (pid <= 0) continue;
        const int pidfd = static_cast<int>(::syscall(SYS_pidfd_open, static_cast<pid_t>(pid), 0));
        if (pidfd < 0) continue;
        if (!holdsLock(pid, run->folder)) {
            ::close(pidfd);
            continue;
        }
        run->process.assign(pidfd, ignored);
        run->process.async_wait(asio::posix::stream_descriptor::wait_read, [this, run](const asio::error_code& code) {
            if (!code) watch(run);
        });
        return;
    }
    // Somebody holds the lock and is not one of the three, or is just ending.
    run->timer.expires_after(kLookAgainAfter);
    run->timer.async_wait([this, run](const asio::error_code& code) {
        if (!code) watch(run);
    });
}

void Runs::finish(const ActivePtr& run) {
    run->isOver = true;
    run->connecting.cancel();
    asio::error_code ignored;
    run->process.close(ignored);
    if (run->channel) run->channel->close();
    m_active.erase(run->folder.number());
    m_devices.release(run->device);
    std::error_code code;
    const auto exit = store::readExit(run->folder);
    if (exit && *exit && !fs::exists(run->folder.exit(), code)) // the disk was full: perhaps it has room now
        if (const Status status = store::writeExit(run->folder, **exit); !status)
            std::fprintf(stderr, "%s\n", status.error().text().c_str());
    refresh(run->folder, true);
    announceEnd(run->folder);
    const Status over = fail("run " + run->folder.name() + " ended before it answered.");
    for (const auto& [id, command] : std::exchange(run->sent, {})) command.reply(over);
    for (const auto& command : std::exchange(run->waiting, {})) command.reply(over);
    schedule();
}

// --- the line to a child

void Runs::connect(const ActivePtr& run) {
    if (run->isOver) return;
    const auto process = store::readProcess(run->folder);
    const auto fd =
        process && *process && !(*process)->socket.empty() ? protocol::connectTo((*process)->socket) : Result<int>(fail("no socket yet."));
    if (!fd) {
        run->connecting.expires_after(kConnectEvery);
        run->connecting.async_wait([this, run](const asio::error_code& code) {
            if (!code) connect(run);
        });
        return;
    }
    run->channel = std::make_shared<LineConnection>(LineConnection::Socket(m_loop, asio::local::stream_protocol(), *fd));
    const std::weak_ptr<ActiveRun> weak = run; // the channel must not keep its owner
    run->channel->start({[this, weak](const Result<Message>& message) {
                             if (const auto owner = weak.lock()) onChildMessage(owner, message);
                         },
                         {},
                         [this, weak] {
                             const auto owner = weak.lock();
                             if (!owner) return;
                             owner->channel.reset();
                             for (auto& [id, command] : std::exchange(owner->sent, {}))
                                 command.reply(fail("run " + owner->folder.name() + " closed the line before it answered."));
                             owner->connecting.expires_after(kConnectEvery);
                             owner->connecting.async_wait([this, owner](const asio::error_code& code) {
                                 if (!code) connect(owner);
                             });
                         }});
    for (auto& command : std::exchange(run->waiting, {})) forward(run, std::move(command.message), std::move(command.reply));
}

void Runs::forward(const ActivePtr& run, Message command, Reply reply) {
    const auto deadline = std::chrono::steady_clock::now() + kAnswerWithin;
    if (!run->channel) {
        run->waiting.push_back({std::move(command), std::move(reply), deadline});
        return;
    }
    if (run->channel->unsentBytes() > kMaxUnsentBytes) return reply(fail("run " + run->folder.name() + " does not read its commands."));
    const std::int64_t id = m_nextCommand++;
    command["id"] = id;
    const std::string line = protocol::toLine(command);
    run->sent[id] = {std::move(command), std::move(reply), deadline};
    run->channel->send(line);
}

void Runs::onChildMessage(const ActivePtr& run, const Result<Message>& message) {
    if (!message) {
        std::fprintf(stderr, "run %s: %s\n", run->folder.name().c_str(), message.error().text().c_str());
        return;
    }
    const std::string type = message->at("type");
    if (type == "reply") {
        const auto id = message->find("id");
        const auto command = id != message->end() && id->is_number_integer() ? run->sent.find(id->get<std::int64_t>()) : run->sent.end();
        if (command == run->sent.end()) return;
        const Reply reply = std::move(command->second.reply);
        run->sent.erase(command);
        if (message->value("ok", Message()) == true) return reply({});
        const Message error = message->value("error", Message::object());
        return reply(fail(error.is_object() && error.contains("message") && error["message"].is_string()
                              ? error["message"].get<std::string>()
                              : "the run refused."));
    }
    if (type != "progress" && type != "message" && type != "dropped") return;
    Message event = *message;
    event["run"] = run->folder.name(); // whatever it calls itself
    const auto state = event.find("state");
    const auto known =
        state != event.end() && state->is_string() ? store::runStateFromString(state->get<std::string>()) : Result<RunState>(fail(""));
    m_emit(std::move(event));
    if (known && m_lastStates[run->folder.number()] != *known) refresh(run->folder, false);
}

} // namespace celloom::app
