// Names and layout of a workspace on disk. Everything about a run lives in its folder; celloom.db can be rebuilt from the folders.
//
//   workspace/
//     celloom.db                      index of runs, notes, tags (the broker and the window write it, children never)
//     broker.lock                     locked by the living broker; where it listens
//     cache/                          tokenised data, keyed by content and settings
//     runs/.last-number               the highest number that a run was given
//     runs/0042-baichuan-tiny/
//       recipe.json                   the complete recipe as it was submitted
//       run.json                      name, time of creation, parent, whether it waits in the queue (index.h): the broker's
//       model.cells.json              the graph as it was run
//       tokenizer.model               a copy, or the one that was trained
//       run.db                        metrics, events, samples, progress: written by this run's child alone
//       log.txt                       the child's messages
//       child.lock                    locked while the run's processes live; who they are (run_lock.h)
//       exit.json                     {"code": n} or {"signal": n} and the time: written when the child's end is known
//       checkpoints/step-000200/      model.safetensors (checkpoint names), config.json, model.cells.json, tokenizer.model,
//                                     trainer.safetensors, state.json, manifest.json (SHA-256 of each): predict opens such a folder
#pragma once

#include "models/base/result.h"

#include <filesystem>
#include <string>
#include <vector>

namespace celloom::store {

/// How a run stands. Text forms are the lower-case names ("queued", "running", …), used in JSON, SQL and on the command line.
enum class RunState { Queued, Preparing, Running, Paused, Stopping, Finished, Stopped, Failed, Interrupted };
std::string toString(RunState state);
Result<RunState> runStateFromString(const std::string& text);
[[nodiscard]] bool isOver(RunState state);

struct RunFolder {
    std::filesystem::path path;
    [[nodiscard]] int number() const;       // 42
    [[nodiscard]] std::string name() const; // "0042-baichuan-tiny"
    [[nodiscard]] std::filesystem::path about() const;
    [[nodiscard]] std::filesystem::path recipe() const;
    [[nodiscard]] std::filesystem::path graph() const;
    [[nodiscard]] std::filesystem::path tokenizer() const;
    [[nodiscard]] std::filesystem::path database() const;
    [[nodiscard]] std::filesystem::path log() const;
    [[nodiscard]] std::filesystem::path exit() const;
    [[nodiscard]] std::filesystem::path checkpoints() const;
    /// The complete one with the highest step: it can be opened as a model, and resumed from. Empty when there is none.
    [[nodiscard]] std::filesystem::path newestCheckpoint() const;
    /// What a fine-tuning run made in PEFT's form: the finished adapter, else that of the newest checkpoint. Empty when there is none.
    [[nodiscard]] std::filesystem::path adapter() const;
    /// A complete one: it can be opened as a model, and resumed from.
    [[nodiscard]] bool hasCheckpoint() const { return !newestCheckpoint().empty(); }
    /// It has trained an adapter, which goes onto other models of its base too.
    [[nodiscard]] bool hasAdapter() const { return !adapter().empty(); }
};

struct Workspace {
    std::filesystem::path path;
    [[nodiscard]] std::filesystem::path index() const;
    [[nodiscard]] std::filesystem::path cache() const;
    [[nodiscard]] std::filesystem::path runs() const;

    /// Creates the folders. Fails with the reason when the workspace cannot be written.
    static Result<Workspace> open(const std::filesystem::path& path);
    /// Makes nothing: for a workspace on a read-only disk. Fails when it is none.
    static Result<Workspace> openForReading(const std::filesystem::path& path);
    /// Takes the next number and makes the folder (exclusively: two processes never get the same one). A number is never given twice, also when
    /// its run was deleted.
    Result<RunFolder> createRun(const std::string& name) const;
    /// By number ("42"), folder name or path; "last" is the newest.
    [[nodiscard]] Result<RunFolder> findRun(const std::string& text) const;
    [[nodiscard]] std::vector<RunFolder> allRuns() const; // by number
};

} // namespace celloom::store
