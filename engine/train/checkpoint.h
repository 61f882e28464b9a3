// A run's checkpoints: model folders that anyone can open, with what resuming exactly needs beside them. They appear whole or not at all.
#pragma once

#include "engine/data/sources.h"
#include "engine/train/model.h"
#include "models/graph/document.h"

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace celloom::engine {

/// state.json. Random numbers need no state: the order of the data, dropout and samples are drawn from the recipe's seed and the step.
struct RunProgressState {
    Model::State model;
    std::map<std::string, std::map<std::string, double>> callbacks; // by Callback::stateName()
    std::map<std::string, std::string> callbackJson;                // Callback::stateJson(), likewise; absent in older checkpoints
    std::vector<CorpusFile> corpus;
    std::map<std::string, std::string> settings; // the whole recipe, field by field as text: a resume says what has changed since
    std::int64_t stepsPerEpoch = 0;              // 0: in checkpoints of earlier versions
    std::map<std::string, std::string> recipe; // fields on which the data's order hangs, as text: a resumed run must have the same
    std::int64_t threads = 1; // another number changes the last digits of sums
    std::string device;       // "cpu", "cuda"
    double elapsedSeconds = 0; // of training, over all resumes
    double secondsPerStep = 0; // moving average; 0: not known
    double baselinePerplexity = 0; // of the bigram yardstick; 0: none
    double baselineMatch = -1;     // share of held-out questions that the base answered as expected; -1: not asked
};

/// The state of all callbacks that have one, into `state` and out of it.
void collectCallbackState(const std::vector<Callback*>& callbacks, RunProgressState& state);
Status restoreCallbackState(const RunProgressState& state, const std::vector<Callback*>& callbacks);
/// Their tensors, "NAME/TENSOR".
std::map<std::string, at::Tensor> collectCallbackTensors(const std::vector<Callback*>& callbacks);
/// Out of the checkpoint's callbacks.safetensors, where it has one.
Status restoreCallbackTensors(const std::filesystem::path& checkpoint, const std::vector<Callback*>& callbacks);

std::string toJson(const RunProgressState& state);
Result<RunProgressState> progressStateFromJson(const std::string& text, const std::string& place);

/// "step-000200".
std::string checkpointName(std::int64_t step);
/// The step of such a name, or -1.
std::int64_t checkpointStep(const std::filesystem::path& path);
/// Checkpoints of the folder, oldest first.
std::vector<std::filesystem::path> listCheckpoints(const std::filesystem::path& folder);

struct CheckpointContent {
    const Network& network;
    const graph::Document& document;
    std::filesystem::path tokenizer; // empty: none
    Optimizer& optimizer;
    const RunProgressState& state;
    std::string chatTemplate; // its name, for an adapter; empty: none
    std::map<std::string, at::Tensor> callbackTensors; // of collectCallbackTensors
};

/// Writes folder/step-NNNNNN: model files (of a run with adapters the adapter's files and the graph instead), trainer.safetensors,
/// callbacks.safetensors (where a callback keeps tensors), state.json, manifest.json. `beforeVisible` runs when all is written and before
/// the folder gets its name (metrics up to here must be on the disk first). A checkpoint of the same step is replaced.
Result<std::filesystem::path> writeCheckpoint(const std::filesystem::path& folder, const CheckpointContent& content,
                                              const std::function<Status()>& beforeVisible);

/// Verifies every file by checksum, then reads the state; nothing is loaded yet.
Result<RunProgressState> verifyCheckpoint(const std::filesystem::path& checkpoint);
/// Weights and moments. Where the network trains adapters its base must have been loaded before.
Status loadCheckpoint(const std::filesystem::path& checkpoint, Network& network, Optimizer& optimizer);

struct FoundCheckpoint {
    std::filesystem::path path; // empty: there is none
    RunProgressState state;
    std::vector<std::filesystem::path> damaged; // newer ones
};
/// The newest checkpoint that verifies. Each newer one that does not is handed to `report`. Fails where there are some and none verifies: a
/// run that began again would overwrite what may still be saved by hand.
Result<FoundCheckpoint> newestCheckpoint(const std::filesystem::path& folder, const std::function<void(const Error&)>& report);

/// Gives a damaged checkpoint another name ("damaged-step-000200"), under which it counts neither as the newest nor as one of those kept.
Status setAside(const std::filesystem::path& checkpoint);

/// Deletes all but the newest `keep` and `best` (empty: none), and what a killed process left half-written.
Status pruneCheckpoints(const std::filesystem::path& folder, std::int64_t keep, const std::filesystem::path& best);

} // namespace celloom::engine
