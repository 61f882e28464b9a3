// celloom-engine without LibTorch: the same broker and verbs, and a child that only pretends to train. The recipe's name says what
// the child does: "BEHAVIOUR", "BEHAVIOUR-STEPS" or "BEHAVIOUR-STEPS-MILLISECONDS", a step taking that long (10, and longer where brokers
// and verbs are slow to start).
//   ok       trains to the end            crash    dies of SIGSEGV in the middle      hang    never ends a step, answers nothing
//   garbage  its socket sends no JSON     split    its socket sends lines in pieces   flood   100 MB of messages and of log
//   nan      its loss becomes NaN         fail     says an error, ends with code 1    full    says that the disk is full, ends with code 7
#include "app/engine/verbs.h"
#include "models/base/kill_points.h"
#include "models/protocol/child_link.h"
#include "models/protocol/sockets.h"
#include "models/store/index.h"
#include "models/store/run_store.h"

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <sstream>
#include <string>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

using namespace celloom;
using namespace std::chrono_literals;

namespace {

struct Behaviour {
    std::string kind;
    int steps = 10;
    int stepMs = 10 * CELLOOM_TEST_TIME_FACTOR;
};

Behaviour behaviourOf(const std::string& name) {
    Behaviour behaviour;
    std::istringstream parts(name);
    std::string part;
    std::getline(parts, behaviour.kind, '-');
    if (std::getline(parts, part, '-')) behaviour.steps = std::stoi(part);
    if (std::getline(parts, part, '-')) behaviour.stepMs = std::stoi(part);
    return behaviour;
}

class FakeRun {
public:
    FakeRun(Behaviour behaviour, store::RunWriter& writer, protocol::ChildLink& link)
        : m_behaviour(std::move(behaviour)), m_writer(writer), m_link(link) {}

    int train(std::int64_t done) {
        m_progress.totalSteps = m_behaviour.steps;
        m_progress.step = done;
        if (done > 0 && !m_writer.supersedeAfter(done)) return protocol::Failure;
        say("info", done > 0 ? "resumed" : "started", done > 0 ? "resumed at step " + std::to_string(done) : "started");
        while (m_progress.step < m_behaviour.steps) {
            if (!obey()) return end(store::RunState::Stopped, protocol::Interrupted);
            step();
            killPoint("step");
        }
        return end(store::RunState::Finished, protocol::Ok);
    }

private:
    void step() {
        std::this_thread::sleep_for(std::chrono::milliseconds(m_behaviour.stepMs));
        const std::int64_t step = ++m_progress.step;
        const bool isMiddle = step == m_behaviour.steps / 2;
        const bool isNan = m_behaviour.kind == "nan" && step >= m_behaviour.steps / 2;
        m_writer.metric(step, 0, "train/loss", isNan ? std::numeric_limits<double>::quiet_NaN() : 10.0 / static_cast<double>(step));
        tell(store::RunState::Running);
        if (m_behaviour.kind == "crash" && isMiddle) {
            std::fprintf(stderr, "about to crash at step %lld\n", static_cast<long long>(step));
            ::signal(SIGSEGV, SIG_DFL);
            std::raise(SIGSEGV);
        }
        if (m_behaviour.kind == "hang" && isMiddle)
            while (true) std::this_thread::sleep_for(1h);
        if (m_behaviour.kind == "flood") flood(step);
    }

    /// 100 MB over all steps, as messages to the broker and as text for the log.
    void flood(std::int64_t step) {
        const std::string kilobyte(1000, 'x');
        for (int i = 0; i < 100000 / m_behaviour.steps; ++i) {
            m_link.message(step, "info", "noise", kilobyte);
            std::puts(kilobyte.c_str());
        }
    }

    void tell(store::RunState state) {
        m_progress.state = state;
        m_progress.stage = "training";
        m_writer.progress(m_progress);
        m_link.progress(m_progress, m_writer.lastMetricId());
    }

    void say(const std::string& level, const std::string& kind, const std::string& text) {
        m_writer.event(m_progress.step, level, kind, text);
        m_link.message(m_progress.step, level, kind, text);
    }

    /// The kind of event that the real engine says it with.
    static std::string eventOf(protocol::Action action) {
        switch (action) {
        case protocol::Action::Pause: return "paused";
        case protocol::Action::Continue: return "continued";
        case protocol::Action::Save: return "checkpoint";
        default: return protocol::toString(action);
        }
    }

    /// False: stop.
    bool obey() {
        bool isPaused = false;
        do {
            for (const protocol::Command& command : m_link.take()) {
                say("info", eventOf(command.action), "got " + protocol::toString(command.action));
                if (command.action == protocol::Action::Stop) return false;
                if (command.action == protocol::Action::Pause) isPaused = true;
                if (command.action == protocol::Action::Continue) isPaused = false;
            }
            if (isPaused) {
                tell(store::RunState::Paused);
                m_link.waitForCommand(1h);
            }
        } while (isPaused);
        return true;
    }

    int end(store::RunState state, int code) {
        if (m_behaviour.kind == "fail") {
            say("error", "failed", "the fake engine was told to fail");
            state = store::RunState::Failed;
            code = protocol::Failure;
        } else if (m_behaviour.kind == "full") {
            say("error", "failed", "the disk is full");
            state = store::RunState::Failed;
            code = protocol::DiskFull;
        }
        tell(state);
        return m_writer.flush() ? code : protocol::Failure;
    }

    const Behaviour m_behaviour;
    store::RunWriter& m_writer;
    protocol::ChildLink& m_link;
    store::Progress m_progress;
};

/// A child whose socket speaks badly: what a broker must survive. Ends with code 0.
int speakBadly(const store::Workspace& workspace, const store::RunFolder& folder, const std::string& kind) {
    const auto listener = protocol::listenOn(protocol::childSocket(workspace, folder.number()));
    if (!listener) return protocol::Failure;
    int client = -1;
    while (client < 0) {
        client = ::accept(*listener, nullptr, nullptr);
        std::this_thread::sleep_for(5ms);
    }
    const auto send = [&](const std::string& bytes) {
        for (std::size_t done = 0; done < bytes.size();) {
            const ssize_t sent = ::send(client, bytes.data() + done, bytes.size() - done, MSG_NOSIGNAL);
            if (sent <= 0) return;
            done += static_cast<std::size_t>(sent);
        }
    };
    const std::string good =
        protocol::toLine({{"type", "message"}, {"level", "info"}, {"kind", "said"}, {"message", "整行"}, {"hint", ""}, {"step", 1}});
    if (kind == "garbage") {
        send("\xff\xfe\x00 no json\n[1, 2]\n{\"type\": 7}\n{\"type\": \"progress\", \"state\": 3, \"step\": \"many\"}\n{\"type\": "
             "\"reply\", \"id\": {}}\n" +
             std::string(100000, '{') + "\n");
        send(std::string(9u << 20, 'x') + "\n"); // longer than a line may be
        send(good);
    } else {
        for (const char byte : good) {
            send(std::string(1, byte));
            std::this_thread::sleep_for(1ms);
        }
    }
    ::shutdown(client, SHUT_WR);
    char byte = 0; // until the broker has read all and closes
    while (::recv(client, &byte, 1, 0) > 0) {
    }
    return protocol::Ok;
}

int child(const std::string& path) {
    const store::RunFolder folder{path};
    const auto workspace = store::Workspace::openForReading(folder.path.parent_path().parent_path());
    const auto about = store::readAbout(folder);
    if (!workspace || !about) return protocol::BadInput;
    const Behaviour behaviour = behaviourOf(about->name);
    std::fprintf(stderr, "fake engine: %s, %d steps\n", behaviour.kind.c_str(), behaviour.steps);
    if (behaviour.kind == "garbage" || behaviour.kind == "split") return speakBadly(*workspace, folder, behaviour.kind);
    std::int64_t done = 0;
    if (const auto reader = store::RunReader::open(folder.database()))
        if (const auto progress = (*reader)->progress()) done = progress->step;
    auto writer = store::RunWriter::open(folder.database());
    auto link = protocol::ChildLink::open(*workspace, folder);
    if (!writer || !link) {
        std::fprintf(stderr, "%s\n", (writer ? link.error() : writer.error()).text().c_str());
        return protocol::Failure;
    }
    return FakeRun(behaviour, **writer, **link).train(done);
}

} // namespace

int main(int argc, char** argv) {
    CLI::App app{"celloom-engine without LibTorch, for tests", "fake_engine"};
    app::Invocation invocation;
    invocation.workspace = "workspace";
    app.add_flag("--json", invocation.isJson);
    app.add_option("--workspace", invocation.workspace);
    app.require_subcommand(1);
    app.fallthrough();
    app::addRunVerbs(app, invocation);
    std::string folder;
    CLI::App* childVerb = app.add_subcommand("child");
    childVerb->add_option("RUNFOLDER", folder)->required();
    childVerb->callback([&] { invocation.exitCode = child(folder); });
    CLI11_PARSE(app, argc, argv);
    return invocation.exitCode;
}
