// Verbs about adapters: merge.
#include "app/engine/model_options.h"

#include <cstdio>
#include <nlohmann/json.hpp>

namespace celloom::app {
namespace {

struct MergeArguments : ModelOptions {
    std::string dtype = "float32";
};

at::ScalarType typeOf(const std::string& name) { return name == "bfloat16" ? at::kBFloat16 : name == "float16" ? at::kHalf : at::kFloat; }

void runMerge(const MergeArguments& arguments, Invocation& invocation) {
    auto loaded = load(arguments, invocation);
    if (!loaded) return;
    if (loaded->adapters.empty())
        return invocation.fail({"has no adapter to merge.", "Give --adapter, or a run that trained one.", arguments.model}, protocol::BadInput);
    const at::ScalarType type = typeOf(arguments.dtype);
    const auto proof = engine::mergeWithProof(*loaded->network, type);
    if (!proof) return invocation.fail(proof.error(), codeOf(proof.error()));
    if (const auto status = engine::exportMerged(*loaded->network, loaded->folder, loaded->adapters, type, arguments.out); !status)
        return invocation.fail(status.error());
    if (invocation.isJson)
        return void(std::printf("%s\n", nlohmann::json{{"out", arguments.out},
                                                       {"dtype", arguments.dtype},
                                                       {"largest_logit_difference", proof->inFloat32},
                                                       {"largest_logit_difference_as_written", proof->asWritten},
                                                       {"largest_logit", proof->logitRange},
                                                       {"adapters_changed", proof->ofAdapters}}
                                            .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)
                                            .c_str()));
    std::printf("largest logit difference, merged in float32: %.3g (logits reach %.3g; the adapter changed them by up to %.3g)\n", proof->inFloat32,
                proof->logitRange, proof->ofAdapters);
    if (type != at::kFloat) std::printf("largest logit difference, written as %s: %.3g\n", arguments.dtype.c_str(), proof->asWritten);
    std::printf("%s\n", arguments.out.c_str());
}

void addMerge(CLI::App& app, Invocation& invocation) {
    auto arguments = std::make_shared<MergeArguments>();
    arguments->device = "cpu";
    CLI::App* verb = app.add_subcommand("merge", "Writes a base with its LoRA adapters merged into its weights, as a folder that other tools read");
    verb->add_option("--model", arguments->model, kModelHelp)->required();
    addAdapterOptions(*verb, *arguments);
    verb->add_option("--out", arguments->out, "The folder to make")->required();
    verb->add_option("--dtype", arguments->dtype, "Type of the written weights; merging itself is float32")
        ->check(CLI::IsMember({"float32", "bfloat16", "float16"}))
        ->capture_default_str();
    addModelOptions(*verb, *arguments);
    verb->callback([arguments, &invocation] { runMerge(*arguments, invocation); });
}

} // namespace

void addAdapterVerbs(CLI::App& app, Invocation& invocation) {
    addMerge(app, invocation);
}

} // namespace celloom::app
