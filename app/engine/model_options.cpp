// Finds and loads the model that a verb was given.
#include "app/engine/model_options.h"

#include "engine/exec/device.h"
#include "engine/exec/runtime.h"
#include "engine/plugin/plugin.h"
#include "engine/script/trial.h"
#include "models/base/machine_memory.h"
#include "models/base/text.h"
#include "models/families/families.h"
#include "models/store/run_folder.h"

#include <cstdio>

namespace celloom::app {
namespace fs = std::filesystem;
using engine::ModelFolder;

void addModelOptions(CLI::App& verb, ModelOptions& options) {
    verb.add_option("--device", options.device, "auto, cpu or cuda")->capture_default_str();
    verb.add_option("--threads", options.threads, "Threads of one operation; 0: all processors")
        ->check(CLI::Range(0, 4096))
        ->capture_default_str();
}

void addSamplingOptions(CLI::App& verb, engine::SamplingOptions& sampling, std::vector<std::string>& stopTexts) {
    sampling.temperature = 0.8;
    sampling.topP = 0.95;
    verb.add_option("--max-new-tokens", sampling.maxNewTokens, "Tokens to write at most")->check(CLI::Range(1, 1000000))->capture_default_str();
    verb.add_option("--temperature", sampling.temperature, "0: always the likeliest token")->check(CLI::NonNegativeNumber)->capture_default_str();
    verb.add_option("--top-k", sampling.topK, "Draw from the k likeliest only; 0: all")->check(CLI::NonNegativeNumber)->capture_default_str();
    verb.add_option("--top-p", sampling.topP, "Draw from the fewest tokens that reach this probability; 1: all")->capture_default_str();
    verb.add_option("--repetition-penalty", sampling.repetitionPenalty, "Above 1: tokens already there become less likely")->capture_default_str();
    verb.add_option("--seed", sampling.seed, "The same seed gives the same text, whatever prompts stand beside it")->capture_default_str();
    verb.add_option("--stop", stopTexts, "End before this text; may be given several times")
        ->check([](const std::string& text) { return std::string(text.empty() ? "give at least one character" : ""); })
        ->allow_extra_args(false);
}

void addAdapterOptions(CLI::App& verb, ModelOptions& options) {
    verb.add_option("--adapter", options.adapters, "A LoRA adapter beside the model: a folder that PEFT or Celloom saved, or a run; may be repeated")
        ->allow_extra_args(false);
    verb.add_option("--adapter-weight", options.adapterWeights, "How much each adapter counts, in their order; 1: as it was trained")
        ->allow_extra_args(false);
    verb.add_flag("--other-base", options.takesOtherBase, "Take an adapter of a base of the same shape with other weights");
}

void addPrecisionOptions(CLI::App& verb, ModelOptions& options) {
    verb.add_option("--amp-level", options.ampLevel, "Which cells compute in the half type: O0 (none), O1, O2, O3 or auto")
        ->check(CLI::IsMember({"O0", "O1", "O2", "O3", "auto"}))
        ->capture_default_str();
    verb.add_option("--half-type", options.halfType, "bfloat16 or float16")->check(CLI::IsMember({"bfloat16", "float16"}))->capture_default_str();
    verb.add_option("--allow", options.allow, "A cell type or path pattern that computes in half whatever the level; may be repeated")
        ->allow_extra_args(false);
    verb.add_option("--deny", options.deny, "A cell type or path pattern that computes in float32 whatever the level; may be repeated")
        ->allow_extra_args(false);
}

int codeOf(const Error& error) {
    return engine::isOutOfMemory(error) ? protocol::OutOfMemory : protocol::BadInput;
}

Result<ModelFolder> openModel(const std::string& text, const Invocation& invocation) {
    std::error_code code;
    if (fs::exists(text, code)) return engine::openModelFolder(text);
    const auto run = store::Workspace{invocation.workspace}.findRun(text);
    if (!run)
        return fail(inQuotes(text) + " is neither a path nor a run in the workspace " + invocation.workspace + ".",
                    "Give a model folder, a checkpoint, a run or \"last\".", "--model");
    return engine::openModelFolder(run->path);
}

Result<fs::path> findAdapter(const std::string& text, const Invocation& invocation) {
    std::error_code code;
    if (fs::exists(text, code)) return fs::path(text);
    const auto run = store::Workspace{invocation.workspace}.findRun(text);
    if (!run)
        return fail(inQuotes(text) + " is neither a path nor a run in the workspace " + invocation.workspace + ".", "Give an adapter's folder or a run.",
                    "--adapter");
    return run->path;
}

namespace {

Result<std::vector<engine::AdapterChoice>> adaptersOf(const ModelOptions& options, const Invocation& invocation) {
    if (!options.adapterWeights.empty() && options.adapterWeights.size() != options.adapters.size())
        return fail("is given " + std::to_string(options.adapterWeights.size()) + " times for " + std::to_string(options.adapters.size()) + " adapters.",
                    "Give one weight for each adapter, or none.", "--adapter-weight");
    std::vector<engine::AdapterChoice> out;
    for (std::size_t i = 0; i < options.adapters.size(); ++i) {
        CELLOOM_TRY(path, findAdapter(options.adapters[i], invocation));
        out.push_back({path, options.adapterWeights.empty() ? 1 : options.adapterWeights[i], options.adapters[i]});
    }
    return out;
}

/// A path or a run; where weights may be missing also the name of a preset or a template.
Result<ModelFolder> openOrBuild(const ModelOptions& options, const Invocation& invocation, bool mayLackWeights) {
    std::error_code code;
    if (mayLackWeights && !fs::exists(options.model, code))
        if (auto document = families::openModel(options.model)) return ModelFolder{options.model, std::move(*document), {}, {}, {}, {}};
    return openModel(options.model, invocation);
}

Result<ModelFolder> openChecked(const ModelOptions& options, const Invocation& invocation, bool mayLackWeights) {
    CELLOOM_TRY(folder, openOrBuild(options, invocation, mayLackWeights));
    CELLOOM_TRY_STATUS(engine::checkCells(folder.document)); // forks: before any thread begins
    return folder;
}

/// The network of a graph without weights.
Result<Loaded> draw(ModelFolder folder, engine::NetworkOptions settings, const DrawnWeights& drawn) {
    graph::Expansion expansion = graph::expand(folder.document);
    if (!expansion.ok()) return tl::unexpected(expansion.firstError());
    const std::int64_t bytes = 4 * expansion.model.parameterCount(), free = machineMemory().available;
    if (free > 0 && bytes > free)
        return fail("has " + std::to_string(expansion.model.parameterCount()) + " parameters, which need " + std::to_string(bytes >> 20) + " MB; " +
                        std::to_string(free >> 20) + " MB are free.",
                    "Make the graph smaller: fewer layers have the same wires.", "--model");
    recipe::TreatmentTable plain;
    plain.cells.resize(expansion.model.cells.size());
    settings.seed = drawn.seed;
    settings.initStd = drawn.initStd;
    std::fprintf(stderr, "The model has no weights: they are drawn from the seed %llu.\n", static_cast<unsigned long long>(drawn.seed));
    CELLOOM_TRY(network, engine::Network::create(std::move(expansion.model), plain, settings));
    return Loaded{std::move(folder), std::move(network), {}};
}

Result<Loaded> loadOn(at::Device device, ModelFolder folder, const ModelOptions& options, const Invocation& invocation, const DrawnWeights* drawn) {
    CELLOOM_TRY(adapters, adaptersOf(options, invocation));
    const engine::NetworkOptions settings{.device = device,
                                          .ampLevel = *recipe::ampLevelNamed(options.ampLevel),
                                          .halfType = engine::scalarTypeOf(*recipe::floatTypeNamed(options.halfType)),
                                          .allow = options.allow,
                                          .deny = options.deny,
                                          .cells = engine::cellsOf(invocation.workspace)};
    if (drawn && folder.weightFiles.empty() && folder.adapter.empty() && adapters.empty()) return draw(std::move(folder), settings, *drawn);
    return engine::loadModel(std::move(folder), adapters, settings,
                             options.takesOtherBase ? engine::OtherBase::Allow : engine::OtherBase::Refuse,
                             [](const std::string& sentence) { std::fprintf(stderr, "%s\n", sentence.c_str()); });
}

} // namespace

std::optional<Loaded> load(const ModelOptions& options, Invocation& invocation, const DrawnWeights* drawn) {
    auto folder = openChecked(options, invocation, drawn != nullptr);
    if (!folder) {
        invocation.fail(folder.error(), codeOf(folder.error()));
        return {};
    }
    const auto device = engine::openDevice(options.device);
    if (!device) {
        invocation.fail(device.error(), protocol::NoDevice);
        return {};
    }
    if (!device->note.empty()) std::fprintf(stderr, "%s\n", device->note.c_str());
    engine::setThreads(options.threads);
    auto loaded = loadOn(device->device, std::move(*folder), options, invocation, drawn);
    if (loaded) return std::move(*loaded);
    invocation.fail(loaded.error(), codeOf(loaded.error()));
    return {};
}

} // namespace celloom::app
