// celloom.db: the workspace's index of runs, and the user's notes and tags. Can be rebuilt from the run folders.
#pragma once

#include "models/base/result.h"
#include "models/store/run_folder.h"

#include <memory>
#include <string>
#include <vector>

namespace celloom::store {

struct RunRecord {
    int number = 0;
    std::string folder; // name inside runs/
    std::string name;
    RunState state = RunState::Queued;
    std::string kind;                           // "pretrain", "finetune", "evaluate", "predict"; empty: not known (an index of an earlier version)
    std::string outcome;                        // "interrupted (signal 9)", "stopped at step 200", …
    std::string model, precision;               // for the table: "baichuan-tiny", "O0"
    double created = 0, started = 0, ended = 0; // seconds since 1970; 0 unknown
    std::int64_t step = 0, totalSteps = 0;
    double elapsedSeconds = 0;
    double lastLoss = 0, lastPerplexity = 0, tokensPerSecond = 0; // NaN where unknown
    double learningRate = 0; // the recipe's, from which its schedule starts or to which it warms up; NaN where unknown
    std::string parent; // folder of the run this one was resumed or fine-tuned from
    std::string tags, note;
    bool hasCheckpoint = false, hasAdapter = false; // not in the index: whoever needs them asks RunFolder
    /// It makes steps. One that does not counts the batches of its data, or its prompts, in `step` and `totalSteps`.
    [[nodiscard]] bool trains() const { return kind != "evaluate" && kind != "predict"; }
};

/// Error::message of a file that SQLite cannot read: the index may then be set aside and built again.
inline constexpr const char* kDamagedMessage = "the file is damaged or no database.";

class Index {
public:
    static Result<std::unique_ptr<Index>> open(const Workspace& workspace, bool readOnly = false);
    virtual ~Index() = default;
    virtual Status upsert(const RunRecord& run) = 0;         // keeps tags and note
    virtual Result<std::vector<RunRecord>> runs() const = 0; // newest first
    virtual Result<RunRecord> run(int number) const = 0;
    virtual Status setNote(int number, const std::string& note) = 0;
    virtual Status setTags(int number, const std::string& tags) = 0;
    virtual Status remove(int number) = 0;
    /// Reads every run folder again; notes and tags stay.
    virtual Status rebuild() = 0;
};

/// run.json: what the folder must know about a run beyond its recipe, so that the index can be rebuilt. The broker writes it.
struct RunAbout {
    std::string name;
    double created = 0;    // seconds since 1970
    std::string parent;    // folder of the run this one came from
    bool isQueued = false; // waits for a device: a broker that starts later takes it up
};
Result<RunAbout> readAbout(const RunFolder& folder);
Status writeAbout(const RunFolder& folder, const RunAbout& about);

/// What the run's folder says about it (run.json, recipe, run.db, child.lock, exit.json). Parts that are not there yet leave their
/// fields unknown. A child that is gone without exit.json makes the state Interrupted.
Result<RunRecord> readRecord(const RunFolder& folder);

} // namespace celloom::store
