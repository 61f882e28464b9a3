// Finds the parts of a model on disk and writes them.
#include "engine/checkpoint/model_folder.h"

#include "engine/checkpoint/atomic_folder.h"
#include "engine/checkpoint/safetensors.h"
#include "models/base/files.h"
#include "models/families/families.h"
#include "models/graph/json.h"
#include "models/graph/json_text.h"

#include <ATen/core/grad_mode.h>
#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

namespace celloom::engine {
namespace fs = std::filesystem;
using nlohmann::json;
namespace {

constexpr const char* kWeights = "model.safetensors";
constexpr const char* kIndex = "model.safetensors.index.json";

/// checkpoints/step-000200, …: the complete one with the highest step. A manifest is written last, so its presence says "complete".
Result<fs::path> newestCheckpoint(const fs::path& run) {
    fs::path newest;
    std::error_code code;
    for (fs::directory_iterator item(run / "checkpoints", code), end; !code && item != end; item.increment(code)) {
        const std::string name = item->path().filename().string();
        const auto longer = [](const std::string& a, const std::string& b) { return a.size() != b.size() ? a.size() < b.size() : a < b; };
        if (name.starts_with("step-") && fs::exists(item->path() / "manifest.json") &&
            (newest.empty() || longer(newest.filename().string(), name)))
            newest = item->path();
    }
    if (newest.empty()) return fail("this run has no checkpoint yet.", "Wait for its first one, or ask the run to save.", run.string());
    return newest;
}

Result<std::vector<fs::path>> shardsOf(const fs::path& folder) {
    const fs::path index = folder / kIndex;
    CELLOOM_TRY(text, readFile(index, 256 << 20));
    const json document = json::parse(text, nullptr, false);
    if (!document.is_object() || !document.contains("weight_map") || !document["weight_map"].is_object())
        return fail("has no weight_map.", "Download the file again.", index.string());
    std::set<std::string> names;
    for (const auto& [tensor, file] : document["weight_map"].items()) {
        if (!file.is_string() || fs::path(file.get<std::string>()).filename() != file.get<std::string>() ||
            !file.get<std::string>().ends_with(".safetensors"))
            return fail("gives no safetensors file beside it for \"" + tensor + "\".", {}, index.string());
        names.insert(file.get<std::string>());
    }
    std::vector<fs::path> files;
    for (const std::string& name : names) {
        if (!fs::is_regular_file(folder / name))
            return fail("names the shard " + name + ", which is not there.", "Download the missing file.", index.string());
        files.push_back(folder / name);
    }
    return files;
}

Result<std::vector<fs::path>> weightFilesOf(const fs::path& folder) {
    if (fs::is_regular_file(folder / kWeights)) return std::vector<fs::path>{folder / kWeights};
    if (fs::is_regular_file(folder / kIndex)) return shardsOf(folder);
    std::error_code code;
    for (fs::directory_iterator item(folder, code), end; !code && item != end; item.increment(code)) {
        const std::string extension = item->path().extension().string();
        if (extension == ".bin" || extension == ".pt" || extension == ".pth" || extension == ".ckpt" || extension == ".pkl")
            return fail("holds its weights as a pickle (" + item->path().filename().string() +
                            "), which can run code when it is opened; it was not opened.",
                        "Use a safetensors version of this model.", folder.string());
    }
    return fail("has no weights (model.safetensors).", {}, folder.string());
}

Result<graph::Document> documentOf(const fs::path& folder) {
    if (fs::is_regular_file(folder / "model.cells.json")) return graph::loadDocument(folder / "model.cells.json");
    CELLOOM_TRY(text, readFile(folder / "config.json", 16 << 20));
    return families::fromConfigJson(text, (folder / "config.json").string());
}

/// Adds the id, or the ids, of "eos_token_id" in one of the folder's files, which need not be there.
Status addEndIds(const fs::path& file, std::vector<std::int64_t>& ids) {
    if (!fs::is_regular_file(file)) return {};
    CELLOOM_TRY(text, readFile(file, graph::JsonLimits{}.maxBytes));
    CELLOOM_TRY(config, graph::parseJson(text, file.string()));
    if (!config.is_object() || !config.contains("eos_token_id") || config["eos_token_id"].is_null()) return {};
    const json& value = config["eos_token_id"];
    for (const json& id : value.is_array() ? value : json::array({value})) {
        if (!id.is_number_integer() || id.get<std::int64_t>() < 0)
            return fail("gives an eos_token_id that is no token id: " + id.dump() + ".", {}, file.string());
        if (std::find(ids.begin(), ids.end(), id.get<std::int64_t>()) == ids.end()) ids.push_back(id.get<std::int64_t>());
    }
    return {};
}

std::string listed(const std::vector<std::string>& names) {
    constexpr std::size_t kShown = 8;
    std::string out;
    for (std::size_t i = 0; i < std::min(names.size(), kShown); ++i) out += (i > 0 ? ", " : "") + names[i];
    if (names.size() > kShown) out += " and " + std::to_string(names.size() - kShown) + " more";
    return out;
}

std::string shapeText(at::IntArrayRef shape) {
    std::string out = "[";
    for (std::size_t i = 0; i < shape.size(); ++i) out += (i > 0 ? ", " : "") + std::to_string(shape[i]);
    return out + "]";
}

/// Everything that does not fit, gathered so that the user sees it at once.
struct Mismatches {
    std::vector<std::string> missing, unexpected, misshaped;

    Status toStatus(const fs::path& place) const {
        if (missing.empty() && unexpected.empty() && misshaped.empty()) return {};
        std::string message = "the weights do not fit the model";
        if (!missing.empty()) message += "; missing: " + listed(missing);
        if (!unexpected.empty()) message += "; unexpected: " + listed(unexpected);
        if (!misshaped.empty()) message += "; of another shape: " + listed(misshaped);
        return fail(message + ".", guess(), place.string());
    }

private:
    std::string guess() const {
        if (missing.empty() && unexpected.empty()) return "Is this the checkpoint of a model with another size or vocabulary?";
        if (!missing.empty() && !unexpected.empty()) return "Is this the checkpoint of another family of models?";
        return missing.empty() ? "Is the model described with fewer layers than the checkpoint has?"
                               : "Is a part of the checkpoint missing, or the model described with more layers?";
    }
};

using Opened = std::map<std::string, std::shared_ptr<SafetensorsFile>>; // by tensor name

Result<Opened> openAll(const std::vector<fs::path>& files) {
    Opened out;
    for (const fs::path& path : files) {
        CELLOOM_TRY(file, SafetensorsFile::open(path));
        for (const std::string& name : file->names())
            if (!out.emplace(name, file).second) return fail("repeats the tensor \"" + name + "\" of another shard.", {}, path.string());
    }
    return out;
}

Status copyInto(Parameter& parameter, const at::Tensor& source, const fs::path& place) {
    try {
        at::NoGradGuard guard;
        parameter.tensor.copy_(source); // converts bfloat16, float16 and float64 to float32
        return {};
    } catch (const std::exception& exception) {
        return tl::unexpected(errorOf(exception, place.string() + ": " + parameter.path));
    }
}

} // namespace

Result<ModelFolder> openModelFolder(const fs::path& given) {
    if (given.filename().string().ends_with(".cells.json") && fs::is_regular_file(given)) {
        CELLOOM_TRY(document, graph::loadDocument(given));
        return ModelFolder{given, std::move(document), {}, {}, {}};
    }
    if (!fs::is_directory(given))
        return fail("is no model folder.", "Give a folder with config.json, a run, a checkpoint or a .cells.json file.", given.string());
    fs::path folder = given;
    if (fs::exists(folder / "recipe.json") && !fs::exists(folder / kWeights)) {
        CELLOOM_TRY(newest, newestCheckpoint(folder));
        folder = newest;
    }
    if (!fs::exists(folder / "model.cells.json") && !fs::exists(folder / "config.json"))
        return fail("has neither config.json nor model.cells.json.", "Give a folder with a model in it.", folder.string());
    ModelFolder out;
    out.path = folder;
    CELLOOM_TRY(document, documentOf(folder));
    out.document = std::move(document);
    CELLOOM_TRY(files, weightFilesOf(folder));
    out.weightFiles = std::move(files);
    if (fs::is_regular_file(folder / "tokenizer.model")) out.tokenizer = folder / "tokenizer.model";
    for (const char* name : {"config.json", "generation_config.json"}) CELLOOM_TRY_STATUS(addEndIds(folder / name, out.endIds));
    return out;
}

Status loadWeights(const ModelFolder& folder, Network& network) {
    if (folder.weightFiles.empty()) return fail("holds no weights.", "Give a checkpoint or an exported model.", folder.path.string());
    const std::string& family = network.model().family;
    CELLOOM_TRY(opened, openAll(folder.weightFiles));
    Mismatches mismatches;
    std::vector<std::pair<Parameter*, at::Tensor>> copies;
    for (Parameter& parameter : network.parameters()) {
        const std::string name = families::checkpointName(family, parameter.path);
        const auto found = opened.find(name);
        if (found == opened.end()) {
            mismatches.missing.push_back(name);
            continue;
        }
        CELLOOM_TRY(source, found->second->tensor(name));
        if (source.sizes() != parameter.tensor.sizes() || !at::isFloatingType(source.scalar_type()))
            mismatches.misshaped.push_back(name + " is " + c10::toString(source.scalar_type()) + " " + shapeText(source.sizes()) +
                                           ", expected " + shapeText(parameter.tensor.sizes()));
        else
            copies.emplace_back(&parameter, source);
        opened.erase(found);
    }
    for (const auto& item : opened)
        if (!families::isIgnorable(network.model(), item.first)) mismatches.unexpected.push_back(item.first);
    CELLOOM_TRY_STATUS(mismatches.toStatus(folder.path));
    for (auto& [parameter, source] : copies) CELLOOM_TRY_STATUS(copyInto(*parameter, source, folder.path));
    return {};
}

Result<std::unique_ptr<Network>> loadNetwork(const ModelFolder& folder, const NetworkOptions& options) {
    graph::Expansion expansion = graph::expand(folder.document);
    if (!expansion.ok()) return tl::unexpected(expansion.firstError());
    recipe::TreatmentTable plain;
    plain.cells.resize(expansion.model.cells.size());
    NetworkOptions unfilled = options;
    unfilled.initialise = false;
    CELLOOM_TRY(network, Network::create(std::move(expansion.model), plain, unfilled));
    CELLOOM_TRY_STATUS(loadWeights(folder, *network));
    return network;
}

Status writeModelFiles(const Network& network, const graph::Document& document, const fs::path& tokenizer, const fs::path& folder) {
    std::map<std::string, at::Tensor> tensors;
    for (const Parameter& parameter : network.parameters())
        tensors[families::checkpointName(network.model().family, parameter.path)] = parameter.tensor;
    CELLOOM_TRY_STATUS(writeSafetensors(folder / kWeights, tensors));
    CELLOOM_TRY_STATUS(writeFileAtomically(folder / "model.cells.json", graph::toJson(document)));
    // A graph that its owner has changed is of no family any more: model.cells.json alone describes it then.
    if (const auto config = families::toConfigJson(document)) CELLOOM_TRY_STATUS(writeFileAtomically(folder / "config.json", *config));
    if (tokenizer.empty()) return {};
    CELLOOM_TRY(bytes, readFile(tokenizer));
    return writeFileAtomically(folder / "tokenizer.model", bytes);
}

Status exportModel(const Network& network, const graph::Document& document, const fs::path& tokenizer, const fs::path& target) {
    CELLOOM_TRY(folder, AtomicFolder::create(target));
    CELLOOM_TRY_STATUS(writeModelFiles(network, document, tokenizer, folder.path()));
    return folder.commit();
}

} // namespace celloom::engine
