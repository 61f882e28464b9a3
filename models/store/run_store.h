// run.db: what a run measured and said. One writer (the run's child, on a thread of its own, in batches); readers may be many.
#pragma once

#include "models/base/result.h"
#include "models/store/run_folder.h"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace celloom::store {

/// One value of one metric. Values may be NaN or infinite. Names: "train/loss", "train/lr", "train/grad_norm", "train/tokens_per_s",
/// "train/loss_scale", "train/auxiliary_loss", "eval/loss", "eval/perplexity", "system/memory_bytes", …
struct MetricRow {
    std::int64_t id = 0; // grows; a reader asks for rows after the last it saw
    std::int64_t step = 0;
    double epoch = 0;
    std::string name;
    double value = 0;
    double time = 0;           // seconds since 1970
    bool isSuperseded = false; // a resume from an earlier step has run this step again
};

struct EventRow {
    std::int64_t id = 0;
    double time = 0;
    std::int64_t step = 0;
    std::string level; // "info", "warning", "error"
    std::string kind;  // "started", "checkpoint", "evaluation", "overflow", "resumed", "stopped", …
    std::string message, hint;
    std::string data; // JSON object, for programs
};

struct SampleRow {
    std::int64_t id = 0;
    double time = 0;
    std::int64_t step = 0;
    std::string prompt, text;
};

struct Progress {
    RunState state = RunState::Queued;
    std::string stage; // "tokenising", "training", "evaluating", …: shown to the user
    std::int64_t step = 0, totalSteps = 0;
    double epoch = 0, totalEpochs = 0;
    double elapsedSeconds = 0, remainingSeconds = -1; // training time over all resumes; -1 unknown
    double updated = 0;                               // heartbeat, seconds since 1970; the writer fills it in
    std::int64_t pid = 0;                             // of the child; the writer fills it in
};

class RunWriter {
public:
    /// Opens or creates run.db. Fails with the reason (read-only, full, damaged).
    static Result<std::unique_ptr<RunWriter>> open(const std::filesystem::path& database);
    virtual ~RunWriter() = default; // flushes

    // None of these waits for the disk. A failure to write is kept and reported by lastError(), and retried.
    virtual void metric(std::int64_t step, double epoch, const std::string& name, double value) = 0;
    virtual void event(std::int64_t step, const std::string& level, const std::string& kind, const std::string& message,
                       const std::string& hint = {}, const std::string& data = {}) = 0;
    virtual void sample(std::int64_t step, const std::string& prompt, const std::string& text) = 0;
    virtual void progress(const Progress& progress) = 0;

    /// On resume: rows of steps after `step` are marked superseded.
    virtual Status supersedeAfter(std::int64_t step) = 0;
    /// Waits until all that was said is committed. A checkpoint calls it first, so that rows up to its step are on the disk.
    virtual Status flush() = 0;
    virtual Error lastError() const = 0; // empty message: none
    /// The highest id of a metric that is committed: what ChildLink::progress() tells the readers.
    virtual std::int64_t lastMetricId() const = 0;
};

class RunReader {
public:
    static Result<std::unique_ptr<RunReader>> open(const std::filesystem::path& database); // read-only
    virtual ~RunReader() = default;
    virtual Result<std::vector<MetricRow>> metricsAfter(std::int64_t id, int limit) const = 0;
    virtual Result<std::vector<EventRow>> eventsAfter(std::int64_t id, int limit) const = 0;
    virtual Result<std::vector<SampleRow>> samplesAfter(std::int64_t id, int limit) const = 0;
    virtual Result<Progress> progress() const = 0;
    /// Superseded flags may change behind rows already read: this number grows when they do, and a reader then reads again.
    virtual Result<std::int64_t> generation() const = 0;
    /// Last value of each metric.
    virtual Result<std::vector<MetricRow>> latest() const = 0;
};

} // namespace celloom::store
