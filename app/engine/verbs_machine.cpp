// Verbs about this machine and what a run would need of it: estimate, selftest, doctor.
#include "app/engine/broker/recipe_options.h"
#include "app/engine/verbs.h"
#include "engine/exec/device.h"
#include "engine/exec/machine.h"
#include "engine/exec/runtime.h"
#include "engine/exec/selftest.h"
#include "models/recipe/estimate.h"

#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

namespace celloom::app {
namespace fs = std::filesystem;
using nlohmann::json;
namespace {

/// "1.2 GB": powers of 1000, three digits.
std::string scaled(double value, const char* unit) {
    static const char* prefixes[] = {"", "k", "M", "G", "T", "P", "E"};
    std::size_t power = 0;
    while (value >= 999.5 && power + 1 < std::size(prefixes)) {
        value /= 1000;
        ++power;
    }
    char text[48];
    std::snprintf(text, sizeof text, "%.3g %s%s", value, prefixes[power], unit);
    return text;
}

void line(const char* name, const std::string& value) {
    std::printf("%-22s %s\n", name, value.c_str());
}
double real(std::int64_t value) {
    return static_cast<double>(value);
}

// ---- estimate ----

struct EstimateArguments {
    std::string recipe;
    std::unique_ptr<RecipeOptions> options;
};

json toJson(const recipe::Estimate& e) {
    return {{"model", e.model},
            {"parameters", e.parameters},
            {"trainable_parameters", e.trainableParameters},
            {"tokens_per_step", e.tokensPerStep},
            {"forward_flops", e.forwardFlops},
            {"flops_per_step", e.flopsPerStep},
            {"memory_bytes",
             {{"weights", e.weightBytes},
              {"gradients", e.gradientBytes},
              {"optimizer", e.optimizerBytes},
              {"activations", e.activationBytes},
              {"peak", e.peakBytes}}},
            {"checkpoint_bytes", e.checkpointBytes},
            {"kept_checkpoints", e.keptCheckpoints}};
}

void runEstimate(const EstimateArguments& arguments, Invocation& invocation) {
    const auto recipe = arguments.options->load(arguments.recipe);
    if (!recipe) return invocation.fail(recipe.error(), protocol::BadInput);
    const auto estimate = recipe::estimate(*recipe);
    if (!estimate) return invocation.fail(estimate.error(), protocol::BadInput);
    if (invocation.isJson) return void(std::printf("%s\n", toJson(*estimate).dump(-1, ' ', false, json::error_handler_t::replace).c_str()));
    line("model", estimate->model);
    line("parameters", scaled(real(estimate->parameters), "") + " (" + std::to_string(estimate->parameters) + ")");
    line("trainable", scaled(real(estimate->trainableParameters), "") + " (" + std::to_string(estimate->trainableParameters) + ")");
    line("tokens a step", std::to_string(estimate->tokensPerStep));
    line("work a step", scaled(estimate->flopsPerStep, "FLOP"));
    line("memory: weights", scaled(real(estimate->weightBytes), "B"));
    line("memory: gradients", scaled(real(estimate->gradientBytes), "B"));
    line("memory: optimizer", scaled(real(estimate->optimizerBytes), "B"));
    line("memory: activations", scaled(real(estimate->activationBytes), "B"));
    line("memory: together", scaled(real(estimate->peakBytes), "B"));
    line("disk a checkpoint", scaled(real(estimate->checkpointBytes), "B"));
    line("disk, all kept", scaled(real(estimate->checkpointBytes * estimate->keptCheckpoints), "B") + " (" +
                               std::to_string(estimate->keptCheckpoints) + " checkpoints)");
}

// ---- selftest ----

const char* toString(engine::SelfTestCheck::Outcome outcome) {
    switch (outcome) {
    case engine::SelfTestCheck::Outcome::Passed:
        return "passed";
    case engine::SelfTestCheck::Outcome::Failed:
        return "FAILED";
    case engine::SelfTestCheck::Outcome::Skipped:
        return "skipped";
    }
    return "";
}

void runSelfTest(const std::string& name, Invocation& invocation) {
    const auto device = engine::openDevice(name);
    if (!device) {
        if (!invocation.isJson) std::printf("skipped: no GPU\n");
        return invocation.fail(device.error(), protocol::NoDevice);
    }
    engine::setThreads(0);
    const auto checks = engine::selfTest(device->device);
    json list = json::array();
    bool isGood = true;
    for (const engine::SelfTestCheck& check : checks) {
        isGood = isGood && check.outcome != engine::SelfTestCheck::Outcome::Failed;
        list.push_back({{"name", check.name}, {"outcome", toString(check.outcome)}, {"detail", check.detail}});
        if (!invocation.isJson) std::printf("%-8s %s: %s\n", toString(check.outcome), check.name.c_str(), check.detail.c_str());
    }
    if (invocation.isJson)
        std::printf("%s\n", json{{"device", device->device.str()}, {"passed", isGood}, {"checks", list}}
                                .dump(-1, ' ', false, json::error_handler_t::replace)
                                .c_str());
    else {
        std::printf("%s on %s\n", isGood ? "all is well" : "this installation computes wrongly", device->device.str().c_str());
        if (device->device.is_cpu()) std::printf("GPU checks skipped: no GPU%s\n", name == "cpu" ? " asked for" : "");
    }
    if (!isGood) invocation.exitCode = protocol::Failure;
}

// ---- doctor ----

void runDoctor(Invocation& invocation) {
    const engine::MachineReport report = engine::examineMachine();
    std::error_code code;
    fs::path place = fs::absolute(invocation.workspace, code);
    while (!place.empty() && !fs::exists(place, code) && place != place.parent_path()) place = place.parent_path();
    const auto space = fs::space(place, code);
    if (invocation.isJson) {
        json out = {{"version", CELLOOM_VERSION},
                    {"libtorch", report.torchVersion},
                    {"processor", report.processor},
                    {"capability", report.capability},
                    {"processors", report.processors},
                    {"memory_bytes", report.memoryBytes},
                    {"available_memory_bytes", report.availableMemoryBytes},
                    {"float32_flops", report.floatFlops},
                    {"bfloat16_flops", report.halfFlops},
                    {"driver", report.driver},
                    {"torch_cuda", report.hasTorchCuda},
                    {"cuda_kernels", report.hasCudaKernels},
                    {"workspace_free_bytes", code ? -1 : static_cast<std::int64_t>(space.available)}};
        return void(std::printf("%s\n", out.dump(-1, ' ', false, json::error_handler_t::replace).c_str()));
    }
    line("celloom-engine", CELLOOM_VERSION);
    line("LibTorch", report.torchVersion);
    line("processor", report.processor + ", " + std::to_string(report.processors) + " usable, " + report.capability);
    line("memory", scaled(real(report.memoryBytes), "B") + ", " + scaled(real(report.availableMemoryBytes), "B") + " free");
    line("workspace's disk",
         code ? "unknown: " + code.message() : scaled(static_cast<double>(space.available), "B") + " free (" + place.string() + ")");
    line("float32 products", scaled(report.floatFlops, "FLOP/s"));
    const double ratio = report.halfFlops / report.floatFlops;
    char note[160];
    std::snprintf(note, sizeof note, "%s, %.2g times float32: amp_level O2 %s", scaled(report.halfFlops, "FLOP/s").c_str(), ratio,
                  ratio > 1.1 ? "saves time and memory on this processor" : "saves memory but no time on this processor");
    line("bfloat16 products", note);
    line("NVIDIA driver", report.driver.empty() ? "none: runs use the processor" : report.driver);
    line("LibTorch's CUDA part", report.hasTorchCuda ? "installed" : "not installed");
    line("CUDA kernels", report.hasCudaKernels ? "built" : "not built (no nvcc when Celloom was built)");
}

} // namespace

void addMachineVerbs(CLI::App& app, Invocation& invocation) {
    auto arguments = std::make_shared<EstimateArguments>();
    CLI::App* estimate = app.add_subcommand("estimate", "Parameters, work, memory and disk of a recipe, before it runs");
    estimate->add_option("recipe", arguments->recipe, "The recipe (JSON)")->required();
    arguments->options = std::make_unique<RecipeOptions>(*estimate);
    estimate->callback([arguments, &invocation] { runEstimate(*arguments, invocation); });

    auto device = std::make_shared<std::string>("auto");
    CLI::App* selftest =
        app.add_subcommand("selftest", "Checks kernels against their references, and a training step against known numbers");
    selftest->add_option("--device", *device, "auto, cpu or cuda")->capture_default_str();
    selftest->callback([device, &invocation] { runSelfTest(*device, invocation); });

    app.add_subcommand("doctor", "Says what this machine has and what Celloom makes of it")->callback([&invocation] {
        runDoctor(invocation);
    });
}

} // namespace celloom::app
