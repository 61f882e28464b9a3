#include "app/engine/broker/follow.h"

#include "app/engine/broker/records.h"
#include "models/base/text.h"
#include "models/store/index.h"
#include "models/store/run_lock.h"
#include "models/store/run_store.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <unistd.h>

namespace celloom::app {
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using protocol::Message;

namespace {

constexpr auto kPlainLineEvery = 10s; // where stderr is no terminal
constexpr int kRowsAtATime = 5000;

std::string clockText(double seconds) {
    if (!(seconds >= 0)) return "?";
    const auto whole = static_cast<long long>(seconds);
    std::array<char, 40> text{};
    if (whole >= 3600)
        std::snprintf(text.data(), text.size(), "%lld:%02lld:%02lld", whole / 3600, whole / 60 % 60, whole % 60);
    else
        std::snprintf(text.data(), text.size(), "%lld:%02lld", whole / 60, whole % 60);
    return text.data();
}

/// Prints to stderr. A terminal has one line that is written over and over; elsewhere a line now and then.
class Display {
public:
    void line(const std::string& text) {
        clear();
        std::fprintf(stderr, "%s\n", text.c_str());
    }
    void progress(const std::string& text, bool isLast = false) {
        if (m_isTerminal) {
            std::fprintf(stderr, "\r\033[K%s", text.c_str());
            std::fflush(stderr);
            m_hasProgress = true;
        } else if (text != m_lastPlain && (isLast || Clock::now() - m_lastTime >= kPlainLineEvery)) {
            std::fprintf(stderr, "%s\n", text.c_str());
            m_lastTime = Clock::now();
            m_lastPlain = text;
        }
    }
    void clear() {
        if (std::exchange(m_hasProgress, false)) std::fputs("\r\033[K", stderr);
    }

private:
    const bool m_isTerminal = ::isatty(STDERR_FILENO) == 1;
    bool m_hasProgress = false;
    Clock::time_point m_lastTime = Clock::now();
    std::string m_lastPlain;
};

/// Everything worth telling is in run.db; the broker's events only say when to look.
class Follower {
public:
    Follower(store::RunFolder folder, std::string kind) : m_folder(std::move(folder)), m_kind(std::move(kind)) { skipThePast(); }

    void look(bool isLast = false) {
        if (!open()) return;
        readMetrics();
        readEvents();
        readSamples();
        if (const auto progress = m_reader->progress()) m_display.progress(progressText(*progress), isLast);
    }
    Display& display() { return m_display; }

private:
    bool open() {
        if (m_reader) return true;
        auto reader = store::RunReader::open(m_folder.database()); // not there before the child has begun
        if (reader) m_reader = std::move(*reader);
        return m_reader != nullptr;
    }

    /// A resumed run has told its earlier part already.
    void skipThePast() {
        if (!open()) return;
        const auto last = [](const auto& rows, std::int64_t& id) { return rows && !rows->empty() ? (id = rows->back().id, true) : false; };
        while (last(m_reader->metricsAfter(m_lastMetric, kRowsAtATime), m_lastMetric)) {
        }
        while (last(m_reader->eventsAfter(m_lastEvent, kRowsAtATime), m_lastEvent)) {
        }
        while (last(m_reader->samplesAfter(m_lastSample, kRowsAtATime), m_lastSample)) {
        }
    }

    void readMetrics() {
        while (true) {
            const auto rows = m_reader->metricsAfter(m_lastMetric, kRowsAtATime);
            if (!rows || rows->empty()) return;
            for (const store::MetricRow& row : *rows) {
                if (row.name == "train/loss")
                    m_loss = row.value;
                else if (row.name == "train/tokens_per_s" || row.name == "predict/tokens_per_s")
                    m_tokensPerSecond = row.value;
                else if (row.name.starts_with("eval/"))
                    m_display.line(atStep(row.step) + row.name + " " + roundedText(row.value));
            }
            m_lastMetric = rows->back().id;
        }
    }

    void readEvents() {
        while (true) {
            const auto rows = m_reader->eventsAfter(m_lastEvent, kRowsAtATime);
            if (!rows || rows->empty()) return;
            for (const store::EventRow& row : *rows) {
                const std::string level = row.level == "info" ? "" : row.level + ": ";
                m_display.line(level + row.message + (row.hint.empty() ? "" : " " + row.hint));
            }
            m_lastEvent = rows->back().id;
        }
    }

    void readSamples() {
        while (true) {
            const auto rows = m_reader->samplesAfter(m_lastSample, kRowsAtATime);
            if (!rows || rows->empty()) return;
            for (const store::SampleRow& row : *rows)
                m_display.line(atStep(row.step) + row.prompt + " | " + row.text);
            m_lastSample = rows->back().id;
        }
    }

    [[nodiscard]] std::string progressText(const store::Progress& progress) const {
        const bool isOver = store::isOver(progress.state);
        std::string text = progress.stage.empty() || isOver ? store::toString(progress.state) : progress.stage;
        if (progress.totalSteps > 0) text += "  " + unit() + " " + std::to_string(progress.step) + "/" + std::to_string(progress.totalSteps);
        if (!std::isnan(m_loss)) text += "  loss " + roundedText(m_loss);
        if (!std::isnan(m_tokensPerSecond)) text += "  " + roundedText(m_tokensPerSecond) + " tokens/s";
        if (progress.remainingSeconds >= 0 && !isOver) text += "  " + clockText(progress.remainingSeconds) + " left";
        return text;
    }

    /// What the run counts.
    [[nodiscard]] std::string unit() const { return m_kind == "evaluate" ? "batch" : m_kind == "predict" ? "prompt" : "step"; }
    [[nodiscard]] std::string atStep(std::int64_t step) const { return unit() == "step" ? "step " + std::to_string(step) + "  " : std::string(); }

    store::RunFolder m_folder;
    std::string m_kind;
    Display m_display;
    std::unique_ptr<store::RunReader> m_reader;
    std::int64_t m_lastMetric = 0, m_lastEvent = 0, m_lastSample = 0;
    double m_loss = std::nan(""), m_tokensPerSecond = std::nan("");
};

void passInterruptOn(BrokerClient& client, const store::RunFolder& folder, int count, Display& display) {
    const bool isFirst = count == 1;
    display.line(isFirst ? "Stopping (a training saves first). Press Ctrl+C again to end the run at once." : "Ending the run at once.");
    const auto answer = client.request({{"type", "control"}, {"run", folder.name()}, {"action", isFirst ? "stop" : "kill"}});
    if (!answer) display.line(answer.error().text());
}

int exitCodeOf(const store::RunFolder& folder) {
    const auto exit = store::readExit(folder);
    if (!exit || !*exit || !(*exit)->code) return protocol::Killed; // by a signal, or nobody knows
    return *(*exit)->code;
}

} // namespace

int followRun(std::unique_ptr<BrokerClient> client, const store::Workspace& workspace, const store::RunFolder& folder,
              Invocation& invocation) {
    Result<store::RunRecord> record = store::readRecord(folder);
    Follower follower(folder, record ? record->kind : std::string());
    int interruptsSeen = 0;
    bool isSubscribed = false;
    while (record && !store::isOver(record->state)) {
        if (!client) {
            auto again = BrokerClient::connect(workspace);
            if (!again) {
                invocation.fail(again.error());
                return invocation.exitCode;
            }
            client = std::move(*again);
            isSubscribed = false;
        }
        if (!std::exchange(isSubscribed, true) && !client->request({{"type", "subscribe"}})) client.reset();
        if (client && InterruptCounter::count() > interruptsSeen) passInterruptOn(*client, folder, ++interruptsSeen, follower.display());
        if (client && !client->nextEvent(250ms)) client.reset(); // the run goes on; look for the next broker
        follower.look();
        record = store::readRecord(folder);
    }
    follower.look(true);
    follower.display().clear();
    if (!record) {
        invocation.fail(record.error());
        return invocation.exitCode;
    }
    if (invocation.isJson) std::fputs(protocol::toLine(toJson(*record)).c_str(), stdout);
    follower.display().line("run " + std::to_string(record->number) + " (" + record->name + "): " + record->outcome);
    if (record->state == store::RunState::Interrupted)
        std::fprintf(stderr, "%sResume it with: celloom-engine resume %d\n", tail(folder.log(), 10).c_str(), record->number);
    return exitCodeOf(folder);
}

} // namespace celloom::app
