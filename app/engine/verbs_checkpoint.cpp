// Verbs that bring models in and out: import, export-model, verify.
#include "app/engine/model_inputs.h"
#include "app/engine/model_options.h"
#include "engine/checkpoint/export_folder.h"
#include "engine/checkpoint/safetensors.h"
#include "engine/checkpoint/verify_folder.h"
#include "models/base/files.h"
#include "models/base/text.h"
#include "models/families/families.h"
#include "models/families/vocabulary.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/isnan.h>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

namespace celloom::app {
namespace fs = std::filesystem;
namespace {

using engine::ModelFolder;
using nlohmann::json;

struct FolderArguments {
    std::string source, out;
    std::string type, maxShardSize = "5GB", format = "safetensors"; // as the user wrote them
    std::string config, tokenizer, prefix;                          // of import
};

struct VerifyArguments : ModelOptions {
    std::string inputs, expected;
    double tolerance = 1e-4;
};

void print(const json& value) {
    std::printf("%s\n", value.dump(-1, ' ', false, json::error_handler_t::replace).c_str());
}

// ---- import, export-model ----

Result<engine::ExportOptions> exportOptions(const FolderArguments& arguments) {
    engine::ExportOptions out;
    if (arguments.type == "float32") out.type = engine::ElementType::Float32;
    if (arguments.type == "bfloat16") out.type = engine::ElementType::BFloat16;
    if (arguments.type == "float16") out.type = engine::ElementType::Float16;
    if (arguments.format == "mindspore") out.format = engine::ExportOptions::Format::MindSpore;
    auto bytes = engine::parseBytes(arguments.maxShardSize);
    if (!bytes) return fail(bytes.error().message, bytes.error().hint, "--max-shard-size");
    out.maxShardBytes = *bytes;
    return out;
}

/// The config.json to keep: the one that --config names, or the one beside the weights; empty where there is none.
fs::path configOf(const ModelFolder& folder, const FolderArguments& arguments) {
    std::error_code code;
    fs::path path = arguments.config.empty() ? folder.path : fs::path(arguments.config);
    if (fs::is_directory(path, code)) path /= "config.json";
    return path.extension() == ".json" && !path.string().ends_with(".cells.json") && fs::is_regular_file(path, code) ? path : fs::path();
}

/// The model that a folder or a file of weights is, and the keys of its config.json that nobody understood.
Result<ModelFolder> openSource(const FolderArguments& arguments, std::vector<std::string>& notRead) {
    std::error_code code;
    const fs::path source = arguments.source;
    if (!fs::exists(source, code)) return fail("is not there.", "Give a model folder or a file of weights.", source.string());
    ModelFolder out;
    if (fs::is_directory(source, code) && arguments.config.empty()) {
        CELLOOM_TRY(folder, engine::openModelFolder(source));
        out = std::move(folder);
    } else if (!fs::is_directory(source, code)) {
        out.path = source.has_parent_path() ? source.parent_path() : fs::path(".");
        CELLOOM_TRY(document, families::openModel(arguments.config.empty() ? out.path.string() : arguments.config));
        out.document = std::move(document);
        out.weightFiles = {source};
        if (fs::is_regular_file(out.path / "tokenizer.model", code)) out.tokenizer = out.path / "tokenizer.model";
    } else {
        return fail("is for a single file of weights; this is a folder.", "Give the file, or put config.json into the folder.", "--config");
    }
    if (!arguments.tokenizer.empty()) out.tokenizer = arguments.tokenizer;
    if (const fs::path config = configOf(out, arguments); !config.empty()) {
        CELLOOM_TRY(text, readFile(config, 16 << 20));
        CELLOOM_TRY(opened, families::readConfigJson(text, config.string()));
        notRead = std::move(opened.notRead);
    }
    return out;
}

Result<engine::ExportSource> exportSource(ModelFolder folder, const FolderArguments& arguments) {
    if (folder.weightFiles.empty())
        return fail("holds no weights.", "Give a checkpoint, a run or a folder with weights.", folder.path.string());
    if (!folder.adapter.empty())
        return fail("is a base with a LoRA adapter beside it.", "celloom-engine merge writes both as one model; --adapter takes the adapter alone.",
                    folder.path.string());
    graph::Expansion expansion = graph::expand(folder.document);
    if (!expansion.ok()) return tl::unexpected(expansion.firstError());
    CELLOOM_TRY(
        plan, engine::planWeights(folder.weightFiles, expansion.model, engine::tensorsOf(expansion.model), folder.path, arguments.prefix));
    engine::ExportSource out;
    out.document = std::move(folder.document);
    out.model = std::move(expansion.model);
    out.plan = std::move(plan);
    out.config = configOf(folder, arguments);
    if (arguments.config.empty()) out.folder = folder.path; // a config of one's own comes without companions
    out.tokenizer = folder.tokenizer;
    return out;
}

void tell(const engine::ExportReport& report, const engine::ExportSource& source, const std::vector<std::string>& notReadKeys,
          const FolderArguments& arguments, const Invocation& invocation) {
    if (invocation.isJson)
        return print({{"out", arguments.out},
                      {"files", report.files},
                      {"tensors", report.tensors},
                      {"bytes", report.bytes},
                      {"dtype", engine::nameOf(report.type)},
                      {"not_understood", {{"config", notReadKeys}, {"weights", source.plan.notRead}}},
                      {"not_carried", report.left}});
    const auto note = [](const char* what, const std::vector<std::string>& items) {
        if (!items.empty()) std::fprintf(stderr, "%s: %s\n", what, joined(items).c_str());
    };
    note("Of config.json not understood (kept in the copy)", notReadKeys);
    note("In the weights, not read", source.plan.notRead);
    note("Files left behind", report.left);
    std::fprintf(stderr, "%llu tensors, %llu bytes of %s.\n", static_cast<unsigned long long>(report.tensors),
                 static_cast<unsigned long long>(report.bytes), engine::nameOf(report.type));
    std::printf("%s\n", arguments.out.c_str());
}

/// A damaged source was refused; anything else went wrong while working.
int exportCodeOf(const Error& error, const engine::ExportSource& source) {
    for (const auto& item : source.plan.items)
        for (const auto& rows : item.rows)
            if (rows.file->path().string() == error.place) return protocol::BadInput;
    return protocol::Failure;
}

void runExport(const FolderArguments& arguments, Result<ModelFolder> folder, const std::vector<std::string>& notRead,
               Invocation& invocation) {
    const auto options = exportOptions(arguments);
    if (!options) return invocation.fail(options.error(), protocol::Usage);
    if (!folder) return invocation.fail(folder.error(), protocol::BadInput);
    const auto source = exportSource(std::move(*folder), arguments);
    if (!source) return invocation.fail(source.error(), codeOf(source.error()));
    const auto report = engine::exportFolder(*source, *options, arguments.out);
    if (!report) return invocation.fail(report.error(), exportCodeOf(report.error(), *source));
    tell(*report, *source, notRead, arguments, invocation);
}

// ---- verify ----

struct Difference {
    double largest = 0;
    std::int64_t compared = 0; // values
    bool isBeyond = false;
};

/// `counts`: positions [B,T] that count; undefined: all.
Result<Difference> differenceOf(const std::string& name, const at::Tensor& found, const at::Tensor& expected, const at::Tensor& counts,
                                double tolerance) {
    if (found.sizes() != expected.sizes())
        return fail(name + " is " + shapeText(expected.sizes().vec()) + " in the reference, computed were " +
                    shapeText(found.sizes().vec()) + ".");
    at::NoGradGuard guard;
    at::Tensor difference = (found.to(at::kDouble) - expected.to(at::kDouble)).abs();
    if (counts.defined() && difference.dim() == 3) difference = difference.index({counts.to(at::kBool)});
    Difference out;
    out.compared = difference.numel();
    if (out.compared == 0) return fail(name + " has no position that counts.");
    const bool isNumber = !at::isnan(difference).any().item<bool>();
    out.largest = isNumber ? difference.max().item<double>() : std::nan("");
    out.isBeyond = !(out.largest <= tolerance); // also where either is NaN
    return out;
}

/// Differences by name. The network runs once.
Result<std::map<std::string, Difference>> compare(const VerifyArguments& arguments, engine::Network& network) {
    CELLOOM_TRY(batch, readBatch(arguments.inputs));
    if (auto status = checkValues(batch, families::vocabularyOf(network.model())); !status)
        return fail(status.error().message, status.error().hint, arguments.inputs);
    CELLOOM_TRY(reference, engine::TensorFile::open(arguments.expected));
    CELLOOM_TRY(results, network.forward(batch));
    CELLOOM_TRY_STATUS(addLoss(batch, network, results));
    std::map<std::string, Difference> out;
    for (const auto& [name, tensor] : results) {
        if (!reference->has(name)) continue;
        CELLOOM_TRY(expected, reference->tensor(name));
        auto difference = differenceOf(name, tensor.to(at::kCPU), expected, batch.attentionMask, arguments.tolerance);
        if (!difference) return fail(difference.error().message, {}, arguments.expected);
        out[name] = *difference;
    }
    if (out.empty()) return fail("holds neither \"logits\" nor \"loss\".", "These are the names that are compared.", arguments.expected);
    return out;
}

void tellVerified(const VerifyArguments& arguments, const ModelFolder& folder, const engine::VerifyReport& report,
                  const std::map<std::string, Difference>& differences, const Invocation& invocation) {
    if (invocation.isJson) {
        json compared = json::object();
        for (const auto& [name, difference] : differences)
            compared[name] = {{"largest_difference", difference.largest}, {"values", difference.compared}, {"ok", !difference.isBeyond}};
        return print({{"folder", folder.path.string()},
                      {"files", report.files},
                      {"tensors", report.tensors},
                      {"parameters", report.parameters},
                      {"bytes", report.bytes},
                      {"dtypes", report.types},
                      {"manifest", report.hasManifest},
                      {"tokenizer_words", report.tokenizerWords},
                      {"not_read", report.notRead},
                      {"tolerance", arguments.tolerance},
                      {"compared", compared}});
    }
    std::printf("%s: %llu tensors with %llu parameters (%s) in %llu file%s; all are numbers, names and shapes fit%s.\n",
                folder.path.c_str(), static_cast<unsigned long long>(report.tensors), static_cast<unsigned long long>(report.parameters),
                joined(report.types).c_str(), static_cast<unsigned long long>(report.files), report.files == 1 ? "" : "s",
                report.hasManifest ? "; sizes and hashes are those of manifest.json" : "");
    if (report.tokenizerWords > 0) std::printf("tokenizer.model: %lld words\n", static_cast<long long>(report.tokenizerWords));
    for (const auto& [name, difference] : differences)
        std::printf("%s: largest difference %.3g over %lld values%s\n", name.c_str(), difference.largest,
                    static_cast<long long>(difference.compared), difference.isBeyond ? " (beyond the tolerance)" : "");
}

void runVerify(const VerifyArguments& arguments, Invocation& invocation) {
    if (arguments.inputs.empty() != arguments.expected.empty())
        return invocation.fail({"needs --inputs and --expected together.", {}, "verify"}, protocol::Usage);
    auto folder = openModel(arguments.model, invocation);
    if (!folder) return invocation.fail(folder.error(), protocol::BadInput);
    if (folder->weightFiles.empty()) return invocation.fail({"holds no weights.", {}, arguments.model}, protocol::BadInput);
    const auto report = engine::verifyFolder(*folder);
    if (!report) return invocation.fail(report.error(), codeOf(report.error()));
    std::map<std::string, Difference> differences;
    if (!arguments.inputs.empty()) {
        auto loaded = load(arguments, invocation);
        if (!loaded) return;
        auto compared = compare(arguments, *loaded->network);
        if (!compared) return invocation.fail(compared.error(), codeOf(compared.error()));
        differences = std::move(*compared);
    }
    tellVerified(arguments, *folder, *report, differences, invocation);
    for (const auto& [name, difference] : differences)
        if (difference.isBeyond)
            return invocation.fail({name + " differs from the reference by " + numberText(difference.largest) + ", more than " +
                                        numberText(arguments.tolerance) + ".",
                                    "Is config.json that of these weights?", folder->path.string()});
}

// ---- the command line ----

void addFolderOptions(CLI::App& verb, FolderArguments& arguments) {
    verb.add_option("--out", arguments.out, "The folder to make; it must not exist")->required();
    verb.add_option("--dtype", arguments.type, "float32, bfloat16 or float16; default: as most of the weights are")
        ->check(CLI::IsMember({"float32", "bfloat16", "float16"}));
    verb.add_option("--max-shard-size", arguments.maxShardSize,
                    "Largest safetensors file, such as 5GB or 500MB; more become shards with an index")
        ->capture_default_str();
}

void addImport(CLI::App& app, Invocation& invocation) {
    auto arguments = std::make_shared<FolderArguments>();
    CLI::App* verb =
        app.add_subcommand("import", "Makes a model folder of safetensors, pytorch_model.bin or a MindSpore .ckpt; runs no code in them");
    verb->add_option("source", arguments->source, "A folder with config.json and weights, or one file of weights beside its config.json")
        ->required();
    verb->add_option("--config", arguments->config, "For a file of weights: its config.json, .cells.json or a preset such as baichuan2-7b");
    verb->add_option("--tokenizer", arguments->tokenizer, "A tokenizer.model that lies elsewhere")->check(CLI::ExistingFile);
    verb->add_option("--strip-prefix", arguments->prefix, "Taken off the tensors' names, such as \"module.\"");
    addFolderOptions(*verb, *arguments);
    verb->callback([arguments, &invocation] {
        std::vector<std::string> notRead;
        auto folder = openSource(*arguments, notRead);
        runExport(*arguments, std::move(folder), notRead, invocation);
    });
}

void addExportModel(CLI::App& app, Invocation& invocation) {
    auto arguments = std::make_shared<FolderArguments>();
    CLI::App* verb = app.add_subcommand("export-model", "Writes a run's or checkpoint's model as a folder that other tools read");
    verb->add_option("model", arguments->source, kModelHelp)->required();
    verb->add_option("--format", arguments->format, "safetensors: Hugging Face's layout; mindspore: model.ckpt with MindFormers' names")
        ->check(CLI::IsMember({"safetensors", "mindspore"}))
        ->capture_default_str();
    addFolderOptions(*verb, *arguments);
    verb->callback([arguments, &invocation] { runExport(*arguments, openModel(arguments->source, invocation), {}, invocation); });
}

void addVerify(CLI::App& app, Invocation& invocation) {
    auto arguments = std::make_shared<VerifyArguments>();
    CLI::App* verb = app.add_subcommand("verify", "Reads every byte of a model folder; with a reference, also computes and compares");
    verb->add_option("model", arguments->model, kModelHelp)->required();
    verb->add_option("--inputs", arguments->inputs,
                     "safetensors with input_ids [B,T]; optional labels, attention_mask, segments, positions")
        ->check(CLI::ExistingFile);
    verb->add_option("--expected", arguments->expected, "safetensors with the logits [B,T,V] or the loss that another program computed")
        ->check(CLI::ExistingFile);
    verb->add_option("--tolerance", arguments->tolerance, "Largest difference that is let pass")
        ->check(CLI::NonNegativeNumber)
        ->capture_default_str();
    addModelOptions(*verb, *arguments);
    verb->callback([arguments, &invocation] { runVerify(*arguments, invocation); });
}

} // namespace

void addCheckpointVerbs(CLI::App& app, Invocation& invocation) {
    addImport(app, invocation);
    addExportModel(app, invocation);
    addVerify(app, invocation);
}

} // namespace celloom::app
