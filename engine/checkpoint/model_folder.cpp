// Finds the parts of a model on disk and writes them.
#include "engine/checkpoint/model_folder.h"

#include "engine/checkpoint/adapter_folder.h"
#include "engine/checkpoint/atomic_folder.h"
#include "engine/checkpoint/fingerprint.h"
#include "engine/checkpoint/safetensors.h"
#include "engine/checkpoint/weights.h"
#include "engine/text/tokenizer.h"
#include "models/base/files.h"
#include "models/base/text.h"
#include "models/families/families.h"
#include "models/graph/json.h"
#include "models/graph/json_text.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

namespace celloom::engine {
namespace fs = std::filesystem;
using nlohmann::json;
namespace {

constexpr const char* kWeights = "model.safetensors";
constexpr graph::JsonLimits kIndexLimits{.maxBytes = 32u << 20, .maxDepth = 8}; // enough for 250 000 tensors

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

/// False also where a link leads nowhere or in a circle.
bool isFile(const fs::path& path) {
    std::error_code code;
    return fs::is_regular_file(path, code);
}

bool isThere(const fs::path& path) {
    std::error_code code;
    return fs::exists(path, code);
}

/// The shards that an index names: files beside it, with this ending.
Result<std::vector<fs::path>> shardsOf(const fs::path& index, const std::string& ending) {
    CELLOOM_TRY(text, readFile(index, kIndexLimits.maxBytes));
    CELLOOM_TRY(document, graph::parseJson(text, index.string(), kIndexLimits));
    if (!document.is_object() || !document.contains("weight_map") || !document["weight_map"].is_object())
        return fail("has no weight_map.", "Download the file again.", index.string());
    std::set<std::string> names;
    for (const auto& [tensor, file] : document["weight_map"].items()) {
        if (!file.is_string() || fs::path(file.get<std::string>()).filename() != file.get<std::string>() ||
            !file.get<std::string>().ends_with(ending))
            return fail("gives " + graph::describe(file) + " as the file of " + inQuotes(tensor) + ", expected a " +
                            ending + " file beside it.",
                        "Was the index changed, or downloaded from somewhere else?", index.string());
        names.insert(file.get<std::string>());
    }
    std::vector<fs::path> files;
    for (const std::string& name : names) {
        if (!isFile(index.parent_path() / name))
            return fail("names the shard " + inQuotes(name, 120) + ", which is not there.", "Download the missing file.", index.string());
        files.push_back(index.parent_path() / name);
    }
    return files;
}

/// safetensors first; then what torch.save wrote, then a MindSpore checkpoint (whose name says nothing).
Result<std::vector<fs::path>> weightFilesOf(const fs::path& folder) {
    for (const auto& [name, ending] : {std::pair{kWeights, ".safetensors"}, std::pair{"pytorch_model.bin", ".bin"}}) {
        if (isFile(folder / name)) return std::vector<fs::path>{folder / name};
        const fs::path index = folder / (std::string(name) + ".index.json");
        if (isFile(index)) return shardsOf(index, ending);
    }
    std::vector<fs::path> checkpoints;
    std::error_code code;
    for (fs::directory_iterator item(folder, code), end; !code && item != end; item.increment(code))
        if (item->path().extension() == ".ckpt" && isFile(item->path())) checkpoints.push_back(item->path());
    if (checkpoints.empty())
        return fail("has no weights (model.safetensors, pytorch_model.bin, their index of shards, or a .ckpt file).",
                    "A file of another name can be imported: celloom-engine import FILE.", folder.string());
    if (checkpoints.size() > 1)
        return fail("has " + std::to_string(checkpoints.size()) + " .ckpt files.",
                    "Import the one that you want: celloom-engine import FILE.", folder.string());
    return checkpoints;
}

Result<graph::Document> documentOf(const fs::path& folder) {
    if (isFile(folder / "model.cells.json")) return graph::loadDocument(folder / "model.cells.json");
    CELLOOM_TRY(text, readFile(folder / "config.json", 16 << 20));
    return families::fromConfigJson(text, (folder / "config.json").string());
}

/// Adds the id, or the ids, of "eos_token_id" in one of the folder's files, which need not be there.
Status addEndIds(const fs::path& file, std::vector<std::int64_t>& ids) {
    if (!isFile(file)) return {};
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

enum class MayHaveAdapter { Yes, No };
Result<ModelFolder> openFolder(const fs::path& given, MayHaveAdapter mayHaveAdapter);

/// An adapter's folder: its base lies where the adapter was trained beside it.
Result<ModelFolder> openWithBase(const fs::path& folder) {
    CELLOOM_TRY(adapter, openAdapterFolder(folder));
    if (!adapter.notes || adapter.notes->base.path.empty())
        return fail("is an adapter that does not say where its base lies.", "Give the base as the model, and this folder as its adapter.", folder.string());
    const fs::path base = adapter.notes->base.path;
    std::error_code code;
    if (!fs::is_directory(base, code))
        return fail("is an adapter of the base " + base.string() + ", which is not there.", "Give the base as the model, and this folder as its adapter.",
                    folder.string());
    CELLOOM_TRY(out, openFolder(base, MayHaveAdapter::No));
    if (isFile(folder / "model.cells.json")) {
        CELLOOM_TRY(document, graph::loadDocument(folder / "model.cells.json"));
        out.document = std::move(document);
    }
    if (isFile(folder / "tokenizer.model")) out.tokenizer = folder / "tokenizer.model";
    out.path = folder;
    out.adapter = folder;
    return out;
}

Result<ModelFolder> openFolder(const fs::path& given, MayHaveAdapter mayHaveAdapter) {
    if (given.filename().string().ends_with(".cells.json") && isFile(given)) {
        CELLOOM_TRY(document, graph::loadDocument(given));
        return ModelFolder{given, std::move(document), {}, {}, {}, {}};
    }
    std::error_code code;
    if (!fs::is_directory(given, code))
        return fail("is no model folder.", "Give a folder with config.json, a run, a checkpoint or a .cells.json file.", given.string());
    fs::path folder = given;
    if (isThere(folder / "recipe.json") && !isThere(folder / kWeights)) {
        CELLOOM_TRY(newest, newestCheckpoint(folder));
        folder = newest;
    }
    if (isThere(folder / recipe::kAdapterConfig) && !isThere(folder / kWeights)) {
        if (mayHaveAdapter == MayHaveAdapter::No) return fail("is named as a base, but is an adapter itself.", "Merge it first.", folder.string());
        return openWithBase(folder);
    }
    if (!isFile(folder / "model.cells.json") && !isFile(folder / "config.json")) // a pipe would be waited for
        return fail("has neither config.json nor model.cells.json.", "Give a folder with a model in it.", folder.string());
    ModelFolder out;
    out.path = folder;
    CELLOOM_TRY(document, documentOf(folder));
    out.document = std::move(document);
    CELLOOM_TRY(files, weightFilesOf(folder));
    out.weightFiles = std::move(files);
    if (isFile(folder / "tokenizer.model")) out.tokenizer = folder / "tokenizer.model";
    for (const char* name : {"config.json", "generation_config.json"}) CELLOOM_TRY_STATUS(addEndIds(folder / name, out.endIds));
    return out;
}

} // namespace

Result<ModelFolder> openModelFolder(const fs::path& path) { return openFolder(path, MayHaveAdapter::Yes); }

Status loadWeights(const ModelFolder& folder, Network& network) {
    if (folder.weightFiles.empty()) return fail("holds no weights.", "Give a checkpoint or an exported model.", folder.path.string());
    std::vector<WantedTensor> wanted;
    std::map<std::string, Parameter*> parameters;
    for (Parameter& parameter : network.parameters()) {
        if (parameter.isAdapter) continue;
        wanted.push_back({parameter.path, parameter.tensor.sizes().vec()});
        parameters[parameter.path] = &parameter;
    }
    CELLOOM_TRY(plan, planWeights(folder.weightFiles, network.model(), wanted, folder.path));
    const graph::ExpandedModel& model = network.model();
    recipe::BaseIdentity base{model.name, model.family, fs::absolute(folder.weightFiles.front().parent_path()).string(), {}, {}};
    Fingerprint fingerprint;
    for (const WeightPlan::Item& item : plan.items) {
        at::Tensor& target = parameters.at(item.path)->tensor;
        at::Tensor source; // where one tensor of the file is the parameter: before it is rounded to what the network keeps
        if (item.rows.size() == 1 && item.rows.front().isWhole) {
            CELLOOM_TRY(tensor, item.rows.front().file->tensor(item.rows.front().name));
            source = std::move(tensor);
            fingerprint.add(item.name, source);
        }
        CELLOOM_TRY_STATUS(copyWeight(item, target));
        if (!source.defined()) fingerprint.add(item.name, target);
        base.shapes[item.name] = item.shape;
    }
    base.fingerprint = fingerprint.value();
    network.setBase(std::move(base));
    network.baseChanged();
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
    if (folder.adapter.empty()) return network;
    CELLOOM_TRY(adapter, openAdapterFolder(folder.adapter));
    const std::string name = folder.adapter.filename().string();
    CELLOOM_TRY_STATUS(loadAdapter(*network, name, adapter));
    CELLOOM_TRY_STATUS(network->activate({{name, 1}}));
    return network;
}

Status writeModelFiles(const Network& network, const graph::Document& document, const fs::path& tokenizer, const fs::path& folder,
                       at::ScalarType type) {
    if (!network.activeAdapters().empty() && !network.isMerged())
        return fail("the model has an adapter, which a folder of plain weights cannot hold.", "Merge it first.", folder.string());
    std::map<std::string, at::Tensor> tensors;
    for (const Parameter& parameter : network.parameters())
        if (!parameter.isAdapter) tensors[families::checkpointName(network.model().family, parameter.path)] = parameter.tensor.to(parameter.isBuffer ? at::kFloat : type);
    CELLOOM_TRY_STATUS(writeSafetensors(folder / kWeights, tensors));
    CELLOOM_TRY_STATUS(writeFileAtomically(folder / "model.cells.json", graph::toJson(document)));
    // A graph that its owner has changed is of no family any more: model.cells.json alone describes it then.
    if (const auto config = families::toConfigJson(document)) CELLOOM_TRY_STATUS(writeFileAtomically(folder / "config.json", *config));
    return writeTokenizerFiles(tokenizer, folder);
}

Status writeTokenizerFiles(const fs::path& tokenizer, const fs::path& folder) {
    if (tokenizer.empty()) return {};
    for (const fs::path& file : tokenizerFiles(tokenizer)) {
        CELLOOM_TRY(bytes, readFile(file));
        CELLOOM_TRY_STATUS(writeFileAtomically(folder / (file == tokenizer ? fs::path("tokenizer.model") : file.filename()), bytes));
    }
    return {};
}

Status exportModel(const Network& network, const graph::Document& document, const fs::path& tokenizer, const fs::path& target) {
    CELLOOM_TRY(folder, AtomicFolder::create(target));
    CELLOOM_TRY_STATUS(writeModelFiles(network, document, tokenizer, folder.path()));
    return folder.commit();
}

} // namespace celloom::engine
