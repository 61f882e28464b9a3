// Finds and loads the model that a verb was given.
#include "app/engine/model_options.h"

#include "engine/exec/device.h"
#include "engine/exec/runtime.h"
#include "models/base/text.h"
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
    verb.add_option("--stop", stopTexts, "End before this text; may be given several times")->allow_extra_args(false);
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

std::optional<Loaded> load(const ModelOptions& options, Invocation& invocation) {
    const auto device = engine::openDevice(options.device);
    if (!device) {
        invocation.fail(device.error(), protocol::NoDevice);
        return {};
    }
    if (!device->note.empty()) std::fprintf(stderr, "%s\n", device->note.c_str());
    engine::setThreads(options.threads);
    auto folder = openModel(options.model, invocation);
    auto network = folder ? engine::loadNetwork(*folder, {.device = device->device}) : tl::unexpected(folder.error());
    if (!network) {
        invocation.fail(network.error(), codeOf(network.error()));
        return {};
    }
    return Loaded{std::move(*folder), std::move(*network)};
}

} // namespace celloom::app
