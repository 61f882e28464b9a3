// Verbs about this machine and what a run would need of it: estimate, selftest, doctor.
#include "app/engine/broker/recipe_options.h"
#include "app/engine/verbs.h"
#include "engine/exec/device.h"
#include "engine/exec/machine.h"
#include "engine/exec/memory.h"
#include "engine/exec/runtime.h"
#include "engine/exec/selftest.h"
#include "models/families/families.h"
#include "models/recipe/checks.h"
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

constexpr std::int64_t kProgramBytes = 300'000'000; // LibTorch itself, its threads and buffers

struct EstimateArguments {
    std::string recipe, predict;
    std::int64_t batch = 1, context = 0;
    std::unique_ptr<RecipeOptions> options;
};

const char* toString(recipe::MemoryPhase phase) {
    switch (phase) {
    case recipe::MemoryPhase::Forward:
        return "forward";
    case recipe::MemoryPhase::Backward:
        return "backward";
    case recipe::MemoryPhase::Update:
        return "update";
    case recipe::MemoryPhase::Evaluation:
        return "evaluation";
    }
    return "";
}

json toJson(const recipe::MemoryParts& parts) {
    return {{"weights", parts.weights}, {"gradients", parts.gradients}, {"optimizer", parts.optimizer}, {"activations", parts.activations}};
}

/// Where the run would take place, and whether `bytes` of tensors fit there now. On a processor the program itself takes memory too.
struct Fit {
    std::string device;
    std::int64_t neededBytes = 0;
    engine::DeviceMemory memory;
    std::string problem; // why the device cannot be used
    [[nodiscard]] bool isKnown() const { return memory.total > 0 || !problem.empty(); }
    [[nodiscard]] bool fits() const { return problem.empty() && neededBytes <= memory.free; }
};

Fit fitOf(std::int64_t bytes, at::Device device) {
    return {device.is_cpu() ? "cpu" : "cuda", device.is_cpu() ? bytes + kProgramBytes : bytes, engine::deviceMemory(device), {}};
}

json toJson(const Fit& fit) {
    if (!fit.isKnown()) return {{"device", fit.device}, {"needed_bytes", fit.neededBytes}};
    if (!fit.problem.empty()) return {{"device", fit.device}, {"needed_bytes", fit.neededBytes}, {"fits", false}, {"problem", fit.problem}};
    return {{"device", fit.device}, {"needed_bytes", fit.neededBytes}, {"free_bytes", fit.memory.free}, {"fits", fit.fits()}};
}

void sayFit(const Fit& fit) {
    if (!fit.isKnown()) return;
    if (!fit.problem.empty()) return line("fits here", "NO: " + fit.problem);
    line("fits here", std::string(fit.fits() ? "yes" : "NO") + ": about " + scaled(real(fit.neededBytes), "B") + " needed, " +
                          scaled(real(fit.memory.free), "B") + " free on the " + (fit.device == "cpu" ? "processor" : "GPU"));
}

json toJson(const recipe::Estimate& e, const Fit& fit) {
    json phases = json::object();
    for (std::size_t i = 0; i < recipe::kMemoryPhases; ++i)
        if (e.phasePeaks[i] > 0) phases[toString(static_cast<recipe::MemoryPhase>(i))] = e.phasePeaks[i];
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
              {"peak", e.peakBytes},
              {"peak_phase", toString(e.peakPhase)},
              {"peak_parts", toJson(e.peak)},
              {"phases", phases}}},
            {"here", toJson(fit)},
            {"checkpoint_bytes", e.checkpointBytes},
            {"kept_checkpoints", e.keptCheckpoints}};
}

void say(const recipe::Estimate& e, const Fit& fit) {
    line("model", e.model);
    line("parameters", scaled(real(e.parameters), "") + " (" + std::to_string(e.parameters) + ")");
    line("trainable", scaled(real(e.trainableParameters), "") + " (" + std::to_string(e.trainableParameters) + ")");
    line("tokens a step", std::to_string(e.tokensPerStep));
    line("work a step", scaled(e.flopsPerStep, "FLOP"));
    line("memory: weights", scaled(real(e.weightBytes), "B"));
    line("memory: gradients", scaled(real(e.gradientBytes), "B"));
    line("memory: optimizer", scaled(real(e.optimizerBytes), "B"));
    line("memory: activations", scaled(real(e.activationBytes), "B"));
    line("memory: at most", scaled(real(e.peakBytes), "B") + ", in the " + toString(e.peakPhase) + " phase: weights " +
                                scaled(real(e.peak.weights), "B") + ", gradients " + scaled(real(e.peak.gradients), "B") + ", optimizer " +
                                scaled(real(e.peak.optimizer), "B") + ", activations " + scaled(real(e.peak.activations), "B"));
    sayFit(fit);
    line("disk a checkpoint", scaled(real(e.checkpointBytes), "B"));
    line("disk, all kept",
         scaled(real(e.checkpointBytes * e.keptCheckpoints), "B") + " (" + std::to_string(e.keptCheckpoints) + " checkpoints)");
}

void print(const json& value) {
    std::printf("%s\n", value.dump(-1, ' ', false, json::error_handler_t::replace).c_str());
}

void runPredictionEstimate(const EstimateArguments& arguments, Invocation& invocation) {
    const auto document = families::openModel(arguments.predict);
    if (!document) return invocation.fail(document.error(), protocol::BadInput);
    const graph::Expansion expansion = graph::expand(*document);
    if (!expansion.ok()) return invocation.fail(expansion.firstError(), protocol::BadInput);
    const auto estimate = recipe::estimatePrediction(expansion.model, arguments.batch, arguments.context);
    if (!estimate) return invocation.fail(estimate.error(), protocol::BadInput);
    const recipe::PredictionEstimate& e = *estimate;
    json types = json::array();
    for (const auto& type : e.types)
        types.push_back({{"dtype", type.dtype},
                         {"weight_bytes", type.weightBytes},
                         {"cache_bytes", type.cacheBytes},
                         {"work_bytes", type.workBytes},
                         {"peak_bytes", type.peakBytes()},
                         {"here", toJson(fitOf(type.peakBytes(), at::kCPU))}});
    if (invocation.isJson)
        return print({{"model", e.model},
                      {"parameters", e.parameters},
                      {"batch", e.batch},
                      {"context", e.context},
                      {"prompt_flops", e.promptFlops},
                      {"token_flops", e.tokenFlops},
                      {"types", types}});
    line("model", e.model);
    line("parameters", scaled(real(e.parameters), "") + " (" + std::to_string(e.parameters) + ")");
    line("context", std::to_string(e.batch) + " x " + std::to_string(e.context) + " tokens");
    line("work of the prompt", scaled(e.promptFlops, "FLOP"));
    line("work a new token", scaled(e.tokenFlops, "FLOP"));
    for (const auto& type : e.types) {
        const Fit fit = fitOf(type.peakBytes(), at::kCPU);
        line(type.dtype.c_str(), scaled(real(type.peakBytes()), "B") + ": weights " + scaled(real(type.weightBytes), "B") + ", cache " +
                                     scaled(real(type.cacheBytes), "B") + ", reading the prompt " + scaled(real(type.workBytes), "B") +
                                     (fit.isKnown() ? fit.fits() ? "; fits here" : "; does NOT fit here" : ""));
    }
}

void runEstimate(const EstimateArguments& arguments, Invocation& invocation) {
    if (!arguments.predict.empty()) return runPredictionEstimate(arguments, invocation);
    if (arguments.recipe.empty())
        return invocation.fail({"neither a recipe nor --predict MODEL is given.", "celloom-engine estimate --help says more.", {}}, protocol::Usage);
    auto recipe = arguments.options->load(arguments.recipe);
    if (!recipe) return invocation.fail(recipe.error(), protocol::BadInput);
    const auto device = engine::openDevice(recipe->text("device"));
    if (device) // the one that the run would get: a GPU only where one is asked for, or found
        if (auto status = recipe->set("device", std::string(device->device.is_cpu() ? "cpu" : "cuda")); !status)
            return invocation.fail(status.error(), protocol::BadInput);
    const auto estimate = recipe::estimate(*recipe);
    if (!estimate) return invocation.fail(estimate.error(), protocol::BadInput);
    if (const auto model = recipe::modelOf(*recipe))
        for (const recipe::Problem& problem : recipe::modelWarnings(*recipe, *model))
            std::fprintf(stderr, "warning: %s: %s %s\n", problem.key.c_str(), problem.message.c_str(), problem.hint.c_str());
    const Fit fit = device ? fitOf(estimate->peakBytes, device->device) : Fit{"cuda", estimate->peakBytes, {}, device.error().text()};
    if (invocation.isJson) return print(toJson(*estimate, fit));
    say(*estimate, fit);
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
    CLI::App* estimate = app.add_subcommand("estimate", "Parameters, work, memory and disk of a recipe, or of a prediction, before it runs");
    estimate->add_option("recipe", arguments->recipe, "The recipe (JSON)");
    estimate->add_option("--predict", arguments->predict, "Instead of a recipe: a MODEL that is to predict")->type_name("MODEL");
    estimate->add_option("--context", arguments->context, "With --predict: tokens of a row, prompt and answer; 0: the model's max_positions")
        ->check(CLI::Range(std::int64_t(0), std::int64_t(1) << 24));
    estimate->add_option("--batch", arguments->batch, "With --predict: rows at a time")
        ->check(CLI::Range(std::int64_t(1), std::int64_t(1) << 20));
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
