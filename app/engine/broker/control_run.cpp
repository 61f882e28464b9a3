#include "app/engine/broker/control_run.h"

#include "app/engine/broker/client.h"
#include "app/engine/broker/interrupt.h"
#include "app/engine/broker/records.h"
#include "models/base/text.h"
#include "models/store/index.h"

#include <chrono>
#include <cmath>
#include <cstdio>
#include <memory>
#include <thread>
#include <vector>

namespace celloom::app {
using namespace std::chrono_literals;
using protocol::Message;

namespace {

constexpr auto kLookEvery = 100ms;
constexpr int kRowsAtATime = 1000;

/// Kinds of events that say what became of an action.
bool answers(const store::EventRow& event, const std::string& action) {
    if (event.kind == "not_possible") {
        const Message data = Message::parse(event.data, nullptr, false);
        return data.is_object() && data.value("action", "") == action;
    }
    static const std::vector<std::pair<std::string, std::string>> kinds{{"pause", "paused"},        {"continue", "continued"},
                                                                         {"save", "checkpoint"},     {"save", "saved_already"},
                                                                         {"evaluate", "evaluation"}, {"sample", "sampled"},
                                                                         {"set_lr", "learning_rate"}};
    for (const auto& [asked, kind] : kinds)
        if (asked == action && kind == event.kind) return true;
    return false;
}

/// What a run says from now on. Its database is there only once its child has begun.
class Ear {
public:
    explicit Ear(store::RunFolder folder) : m_folder(std::move(folder)) {
        while (nextEvent()) {
        }
        static_cast<void>(newSamples());
    }

    std::optional<store::EventRow> nextEvent() {
        if (m_waiting.empty() && open())
            if (auto rows = m_reader->eventsAfter(m_lastEvent, kRowsAtATime)) m_waiting.assign(rows->rbegin(), rows->rend());
        if (m_waiting.empty()) return {};
        store::EventRow event = std::move(m_waiting.back());
        m_waiting.pop_back();
        m_lastEvent = event.id;
        return event;
    }

    std::vector<store::SampleRow> newSamples() {
        std::vector<store::SampleRow> out;
        while (open()) {
            const auto rows = m_reader->samplesAfter(m_lastSample, kRowsAtATime);
            if (!rows || rows->empty()) break;
            m_lastSample = rows->back().id;
            out.insert(out.end(), rows->begin(), rows->end());
        }
        return out;
    }

private:
    bool open() {
        if (m_reader) return true;
        if (auto reader = store::RunReader::open(m_folder.database())) m_reader = std::move(*reader);
        return m_reader != nullptr;
    }

    store::RunFolder m_folder;
    std::unique_ptr<store::RunReader> m_reader;
    std::vector<store::EventRow> m_waiting; // newest first
    std::int64_t m_lastEvent = 0, m_lastSample = 0;
};

Error notRunning(const store::RunRecord& record) {
    return {"run " + record.folder + " is not running: it is " + store::toString(record.state) + ".",
            "Only a run that is going on can be told something; celloom-engine resume " + std::to_string(record.number) + " goes on with it.",
            {}};
}

void print(const Message& message) { std::fputs(protocol::toLine(message).c_str(), stdout); }

void tell(const ControlRequest& request, const store::RunFolder& folder, const store::EventRow& event, const std::vector<store::SampleRow>& samples,
          Invocation& invocation) {
    if (event.level != "info") return invocation.fail({event.message, event.hint, {}}, protocol::BadInput);
    if (!invocation.isJson) {
        std::printf("%s\n", event.message.c_str());
        for (const store::SampleRow& sample : samples) std::printf("%s | %s\n", sample.prompt.c_str(), sample.text.c_str());
        return;
    }
    Message json{{"run", folder.name()}, {"action", request.action}, {"event", toJson(event)}};
    for (const store::SampleRow& sample : samples) json["samples"].push_back({{"prompt", sample.prompt}, {"text", sample.text}});
    print(json);
}

/// The first event that says what became of it; nothing where the run ended without one, or the user pressed Ctrl+C.
std::optional<store::EventRow> waitForAnswer(const ControlRequest& request, const store::RunFolder& folder, Ear& ear) {
    while (InterruptCounter::count() == 0) {
        const auto record = store::readRecord(folder); // before its events: what it said last is then among them
        while (const auto event = ear.nextEvent())
            if (answers(*event, request.action)) return event;
        if (!record || store::isOver(record->state)) return {};
        std::this_thread::sleep_for(kLookEvery);
    }
    return {};
}

} // namespace

void controlRun(const ControlRequest& request, Invocation& invocation) {
    const auto workspace = store::Workspace::open(invocation.workspace);
    if (!workspace) return invocation.fail(workspace.error());
    const auto folder = workspace->findRun(request.run);
    if (!folder) return invocation.fail(folder.error(), protocol::BadInput);
    const auto record = store::readRecord(*folder);
    if (!record) return invocation.fail(record.error());
    if (store::isOver(record->state)) return invocation.fail(notRunning(*record), protocol::BadInput);
    const InterruptCounter counter; // Ctrl+C means no longer to wait
    auto client = BrokerClient::connect(*workspace);
    if (!client) return invocation.fail(client.error());
    Ear ear(*folder);
    Message command{{"type", "control"}, {"run", folder->name()}, {"action", request.action}};
    if (request.value) command["value"] = *request.value;
    if (const auto answer = (*client)->request(command); !answer) return invocation.fail(answer.error(), protocol::BadInput);
    if (!request.waits) {
        if (invocation.isJson) print({{"run", folder->name()}, {"action", request.action}});
        return;
    }
    if (record->state == store::RunState::Preparing) std::fputs("The run is preparing; it obeys after its first step.\n", stderr);
    const auto event = waitForAnswer(request, *folder, ear);
    if (event) return tell(request, *folder, *event, request.action == "sample" ? ear.newSamples() : std::vector<store::SampleRow>(), invocation);
    if (InterruptCounter::count() > 0)
        return invocation.fail({"no longer waiting: the run obeys between two steps, and says so in its events.", {}, {}}, protocol::Interrupted);
    invocation.fail({"run " + folder->name() + " ended before it could obey.", {}, {}});
}

Result<double> readRate(const std::string& text) {
    double rate = 0;
    if (readNumber(text, rate) && std::isfinite(rate) && rate > 0) return rate;
    return fail("is " + inQuotes(text, 40) + ", which is no learning rate.", "Give a finite number above 0, such as 1e-4.", "RATE");
}

} // namespace celloom::app
