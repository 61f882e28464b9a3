// A run's child talks to the broker through this: commands in, progress and messages out, over a Unix socket of the child's own, so
// that a broker started later finds it. Nothing here waits: a training step never feels a slow, stopped or missing reader.
#pragma once

#include "models/base/result.h"
#include "models/store/run_folder.h"
#include "models/store/run_store.h"

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace celloom::protocol {

enum class Action { Pause, Continue, Stop, Save, Evaluate, Sample, SetLearningRate };
std::string toString(Action action); // "pause", …, "set_lr": the words of the protocol
Result<Action> actionFromString(const std::string& text);

struct Command {
    Action action = Action::Stop; // Stop saves first, then ends with exit code Interrupted
    double value = 0;             // of SetLearningRate: finite and above 0
};

class ChildLink {
public:
    /// Takes the run's lock (or the one that the supervisor passed on), and listens on childSocket() on a thread of its own.
    /// Fails when another process works on this run, or the socket cannot be made.
    static Result<std::unique_ptr<ChildLink>> open(const store::Workspace& workspace, const store::RunFolder& folder);
    virtual ~ChildLink() = default; // tries for half a second to send what is left, closes and removes the socket

    /// Commands since the last call, oldest first.
    virtual std::vector<Command> take() = 0;
    /// Waits until a command is there (true) or the time is over: for a paused run.
    virtual bool waitForCommand(std::chrono::milliseconds atMost) = 0;

    /// The newest progress goes out at most ten times a second; `rows` is the highest metric id said so far (0: not known).
    virtual void progress(const store::Progress& progress, std::int64_t rows = 0) = 0;
    /// A new event row worth showing at once.
    virtual void message(std::int64_t step, const std::string& level, const std::string& kind, const std::string& text,
                         const std::string& hint = {}) = 0;
};

} // namespace celloom::protocol
