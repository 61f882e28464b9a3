// Verbs that bring models in and out: export-model.
#include "app/engine/model_options.h"

#include <cstdio>
#include <nlohmann/json.hpp>

namespace celloom::app {
namespace {

void runExport(const ModelOptions& options, Invocation& invocation) {
    auto loaded = load(options, invocation);
    if (!loaded) return;
    const auto status = engine::exportModel(*loaded->network, loaded->folder.document, loaded->folder.tokenizer, options.out);
    if (!status) return invocation.fail(status.error());
    if (invocation.isJson)
        std::printf("%s\n", nlohmann::json{{"from", loaded->folder.path.string()}, {"out", options.out}}
                                .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)
                                .c_str());
    else
        std::printf("%s\n", options.out.c_str());
}

void addExportModel(CLI::App& app, Invocation& invocation) {
    auto options = std::make_shared<ModelOptions>();
    options->device = "cpu";
    CLI::App* verb = app.add_subcommand("export-model", "Writes a run's or checkpoint's model as a folder that other tools read");
    verb->add_option("model", options->model, kModelHelp)->required();
    verb->add_option("--out", options->out, "The folder to make: model.safetensors, config.json, model.cells.json, tokenizer.model")
        ->required();
    verb->callback([options, &invocation] { runExport(*options, invocation); });
}

} // namespace

void addCheckpointVerbs(CLI::App& app, Invocation& invocation) {
    addExportModel(app, invocation);
}

} // namespace celloom::app
