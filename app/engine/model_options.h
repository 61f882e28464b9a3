// What every verb that uses a model shares: --model, --device and --threads, finding MODEL, and loading its network.
#pragma once

#include "app/engine/verbs.h"
#include "engine/checkpoint/loaded_model.h"
#include "engine/generate/sampling.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace celloom::app {

/// Owned by the verbs' callbacks.
struct ModelOptions {
    std::string model, device = "auto", out;
    int threads = 0;
    std::vector<std::string> adapters;  // folders or runs
    std::vector<double> adapterWeights; // of each adapter; empty: 1
    std::string ampLevel = "O0", halfType = "bfloat16";
    std::vector<std::string> allow, deny; // cell types or path patterns, as precision.allow and precision.deny
    bool takesOtherBase = false;        // an adapter of a base of the same shape with other weights
};

inline constexpr const char* kModelHelp = "A folder with config.json, a run (number, name or \"last\"), a checkpoint or an exported model";

/// --device and --threads. Each verb adds --model itself, since some take it as a position.
void addModelOptions(CLI::App& verb, ModelOptions& options);

/// How tokens are chosen, as every verb that writes text takes it. Sets this program's standard: temperature 0.8, top-p 0.95.
void addSamplingOptions(CLI::App& verb, engine::SamplingOptions& sampling, std::vector<std::string>& stopTexts);

/// --adapter, --adapter-weight and --other-base, for load() to obey.
void addAdapterOptions(CLI::App& verb, ModelOptions& options);

/// --amp-level, --half-type, --allow and --deny, for load() to obey.
void addPrecisionOptions(CLI::App& verb, ModelOptions& options);

/// OutOfMemory where memory ran out, BadInput otherwise.
int codeOf(const Error& error);

/// MODEL: a path, or a run of the workspace by number, name or "last".
Result<engine::ModelFolder> openModel(const std::string& text, const Invocation& invocation);

/// An adapter's folder or a run's: a path, or a run of the workspace by number, name or "last".
Result<std::filesystem::path> findAdapter(const std::string& text, const Invocation& invocation);

using Loaded = engine::LoadedModel;

/// How weights begin, for a verb that takes models without them: graphs that were never trained, presets by name.
struct DrawnWeights {
    std::uint64_t seed = 0;
    double initStd = 0.02;
};

/// The network of options.model on options.device, or says what went wrong (and sets the exit code) and gives nothing.
/// Where the model has no weights, they are drawn, if `drawn` says how; null: that is refused.
std::optional<Loaded> load(const ModelOptions& options, Invocation& invocation, const DrawnWeights* drawn = nullptr);

} // namespace celloom::app
