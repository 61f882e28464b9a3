// What a run says while it works: metrics and events into run.db, progress and messages to whoever listens, lines into the log.
#pragma once

#include "engine/train/callback.h"
#include "models/protocol/child_link.h"
#include "models/store/run_store.h"

#include <cstdint>
#include <functional>
#include <string>

namespace celloom::engine {

/// "1 file", "120 files".
inline std::string counted(std::int64_t number, const std::string& noun) {
    return std::to_string(number) + " " + noun + (number == 1 ? "" : "s");
}

class RunReporter {
public:
    /// `link` may be null: nobody listens. All are used, not owned.
    RunReporter(store::RunWriter& writer, protocol::ChildLink* link, std::function<void(const std::string&)> print)
        : m_writer(writer), m_link(link), m_print(std::move(print)) {}

    /// `data` is what the message says, as the text of a JSON object, so that a window can say it in its own language
    /// (docs/file-formats.md lists the kinds and their fields).
    void info(const std::string& kind, const std::string& message, const std::string& data = {}) { event("info", kind, message, {}, data); }
    void warning(const std::string& kind, const Error& error, const std::string& data = {}) { event("warning", kind, placed(error), error.hint, data); }
    void error(const std::string& kind, const Error& error, const std::string& data = {}) { event("error", kind, placed(error), error.hint, data); }
    void metric(const std::string& name, double value);
    void sample(const std::string& prompt, const std::string& text);
    void print(const std::string& line) { m_print(line); }

    /// Shown to the user: "reading text", "training the tokenizer", "tokenising", "bigram baseline", "building the network", "training",
    /// "evaluating", "writing a sample", "saving", "paused".
    void stage(const std::string& stage);
    const std::string& stage() const { return m_progress.stage; }
    void state(store::RunState state);
    store::RunState state() const { return m_progress.state; }

    /// The steps of the whole run, and what earlier parts of a resumed run took.
    void beginTraining(std::int64_t step, std::int64_t totalSteps, std::int64_t stepsPerEpoch, double elapsedSeconds, double secondsPerStep);
    /// Of a run that makes no steps: so many batches or prompts, of which `done` are done already; then how many are.
    void beginWork(std::int64_t done, std::int64_t total);
    void workDone(std::int64_t done);
    /// After each step; `context` gives step and epoch of all that is said until the next.
    void stepDone(const CallbackParams& params);
    /// The time from here to the matching endPause counts neither as elapsed nor in the time left.
    void beginPause();
    void endPause();
    /// Tells readers that the run lives though it makes no step (a pause, a long evaluation).
    void heartbeat() { send(); }

    double elapsedSeconds() const;
    double secondsPerStep() const { return m_secondsPerStep; }
    store::RunWriter& writer() { return m_writer; }

private:
    static std::string placed(const Error& error) { return error.place.empty() ? error.message : error.place + ": " + error.message; }
    void event(const std::string& level, const std::string& kind, const std::string& message, const std::string& hint, const std::string& data = {});
    void send();
    void addTime(double steps);

    store::RunWriter& m_writer;
    protocol::ChildLink* m_link;
    std::function<void(const std::string&)> m_print;
    store::Progress m_progress;
    double m_elapsedBefore = 0, m_startTime = -1, m_lastStepTime = 0, m_pauseStart = -1; // steady clock
    double m_secondsPerStep = 0;
    std::int64_t m_stepsPerEpoch = 0;
};

} // namespace celloom::engine
