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
