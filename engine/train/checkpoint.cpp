#include "engine/train/checkpoint.h"

#include "engine/checkpoint/adapter_folder.h"
#include "engine/checkpoint/atomic_folder.h"
#include "engine/checkpoint/manifest.h"
#include "engine/checkpoint/model_folder.h"
#include "engine/checkpoint/safetensors.h"
#include "models/base/files.h"
#include "models/base/kill_points.h"
#include "models/graph/json.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>

namespace celloom::engine {
namespace fs = std::filesystem;
using nlohmann::json;
namespace {

constexpr int kStateSchema = 1;
constexpr const char* kPrefix = "step-";
constexpr const char* kDamagedPrefix = "damaged-";
constexpr const char* kTrainerFile = "trainer.safetensors";
constexpr const char* kCallbackFile = "callbacks.safetensors";

/// The whole model; of a run with adapters only these, since the base lies elsewhere and does not change.
Status writeModel(const CheckpointContent& content, const fs::path& folder) {
    if (!content.network.treatment().hasAdapters()) return writeModelFiles(content.network, content.document, content.tokenizer, folder);
    CELLOOM_TRY_STATUS(writeAdapterFiles(content.network, content.chatTemplate, folder));
    CELLOOM_TRY_STATUS(writeFileAtomically(folder / "model.cells.json", graph::toJson(content.document)));
    return writeTokenizerFiles(content.tokenizer, folder);
}

Status removeFolder(const fs::path& path) {
    std::error_code error;
    fs::remove_all(path, error);
    if (error) return fail("cannot be deleted: " + error.message() + ".", {}, path.string());
    return {};
}

/// They keep the file mapped as long as they live.
Result<std::map<std::string, at::Tensor>> tensorsOf(const fs::path& path) {
    CELLOOM_TRY(file, SafetensorsFile::open(path));
    std::map<std::string, at::Tensor> out;
    for (const std::string& name : file->names()) {
        CELLOOM_TRY(tensor, file->tensor(name));
        out[name] = tensor;
    }
    return out;
}

json parsedTexts(const std::map<std::string, std::string>& texts) {
    json out = json::object();
    for (const auto& [name, text] : texts) out[name] = json::parse(text);
    return out;
}

} // namespace

void collectCallbackState(const std::vector<Callback*>& callbacks, RunProgressState& state) {
    state.callbacks.clear();
    state.callbackJson.clear();
    for (const Callback* callback : callbacks) {
        const std::string name = callback->stateName();
        if (name.empty()) continue;
        state.callbacks[name] = callback->state();
        if (std::string text = callback->stateJson(); !text.empty()) state.callbackJson[name] = std::move(text);
    }
}

Status restoreCallbackState(const RunProgressState& state, const std::vector<Callback*>& callbacks) {
    for (Callback* callback : callbacks) {
        const std::string name = callback->stateName();
        if (const auto saved = state.callbacks.find(name); saved != state.callbacks.end()) callback->restore(saved->second);
        if (const auto saved = state.callbackJson.find(name); saved != state.callbackJson.end()) CELLOOM_TRY_STATUS(callback->restoreJson(saved->second));
    }
    return {};
}

std::map<std::string, at::Tensor> collectCallbackTensors(const std::vector<Callback*>& callbacks) {
    std::map<std::string, at::Tensor> out;
    for (const Callback* callback : callbacks)
        for (const auto& [name, tensor] : callback->stateTensors()) out[callback->stateName() + "/" + name] = tensor;
    return out;
}

Status restoreCallbackTensors(const fs::path& checkpoint, const std::vector<Callback*>& callbacks) {
    if (!fs::exists(checkpoint / kCallbackFile)) return {};
    CELLOOM_TRY(all, tensorsOf(checkpoint / kCallbackFile));
    for (Callback* callback : callbacks) {
        const std::string prefix = callback->stateName() + "/";
        std::map<std::string, at::Tensor> own;
        for (const auto& [name, tensor] : all)
            if (name.starts_with(prefix)) own[name.substr(prefix.size())] = tensor;
        if (!own.empty()) CELLOOM_TRY_STATUS(callback->restoreTensors(own));
    }
    return {};
}

std::string toJson(const RunProgressState& state) {
    const LossScale::State& scale = state.model.lossScale;
    json out = {{"schema", kStateSchema},
                {"step", state.model.step},
                {"fixed_learning_rate", state.model.fixedRate ? json(*state.model.fixedRate) : json()},
                {"loss_scale", {{"value", scale.value}, {"current", scale.current}, {"last_change", scale.lastChange}, {"overflows", scale.overflowsInARow}}},
                {"callbacks", state.callbacks},
                {"callback_json", parsedTexts(state.callbackJson)},
                {"corpus", json::parse(toJson(state.corpus))},
                {"recipe", state.recipe},
                {"settings", state.settings},
                {"steps_per_epoch", state.stepsPerEpoch},
                {"threads", state.threads},
                {"device", state.device},
                {"elapsed_seconds", state.elapsedSeconds},
                {"seconds_per_step", state.secondsPerStep},
                {"baseline_perplexity", state.baselinePerplexity},
                {"baseline_match", state.baselineMatch}};
    return out.dump(2) + "\n";
}

Result<RunProgressState> progressStateFromJson(const std::string& text, const std::string& place) {
    try {
        const json in = json::parse(text);
        if (in.at("schema") != kStateSchema) return fail("has state schema " + in.at("schema").dump() + "; this Celloom reads 1.", {}, place);
        RunProgressState state;
        state.model.step = in.at("step");
        if (!in.at("fixed_learning_rate").is_null()) state.model.fixedRate = in.at("fixed_learning_rate").get<double>();
        const json& scale = in.at("loss_scale");
        state.model.lossScale = {scale.at("value"), scale.at("current"), scale.at("last_change"), scale.at("overflows")};
        state.callbacks = in.at("callbacks");
        if (const auto texts = in.find("callback_json"); texts != in.end()) // absent in checkpoints of earlier versions
            for (const auto& [name, value] : texts->items()) state.callbackJson[name] = value.dump();
        CELLOOM_TRY(corpus, corpusFromJson(in.at("corpus").dump(), place));
        state.corpus = std::move(corpus);
        state.recipe = in.at("recipe");
        if (in.contains("settings")) state.settings = in.at("settings"); // both absent in checkpoints of earlier versions
        state.stepsPerEpoch = in.value("steps_per_epoch", std::int64_t(0));
        state.threads = in.at("threads");
        state.device = in.at("device");
        state.elapsedSeconds = in.at("elapsed_seconds");
        state.secondsPerStep = in.at("seconds_per_step");
        state.baselinePerplexity = in.at("baseline_perplexity");
        state.baselineMatch = in.value("baseline_match", -1.0); // absent in checkpoints of pretraining runs of earlier versions
        return state;
    } catch (const json::exception& error) {
        return fail(std::string("is damaged: ") + error.what() + ".", "Use another checkpoint.", place);
    }
}

std::string checkpointName(std::int64_t step) {
    const std::string digits = std::to_string(step);
    return kPrefix + std::string(digits.size() < 6 ? 6 - digits.size() : 0, '0') + digits;
}

std::int64_t checkpointStep(const fs::path& path) {
    const std::string name = path.filename().string();
    std::int64_t step = -1;
    if (!name.starts_with(kPrefix)) return -1;
    const char* begin = name.data() + std::string_view(kPrefix).size();
    const auto [end, error] = std::from_chars(begin, name.data() + name.size(), step);
    return error == std::errc() && end == name.data() + name.size() ? step : -1;
}

std::vector<fs::path> listCheckpoints(const fs::path& folder) {
    std::vector<fs::path> out;
    std::error_code error;
    for (fs::directory_iterator item(folder, error), end; !error && item != end; item.increment(error))
        if (item->is_directory() && checkpointStep(item->path()) >= 0) out.push_back(item->path());
    std::sort(out.begin(), out.end(), [](const fs::path& a, const fs::path& b) { return checkpointStep(a) < checkpointStep(b); });
    return out;
}

Result<fs::path> writeCheckpoint(const fs::path& folder, const CheckpointContent& content, const std::function<Status()>& beforeVisible) {
    const fs::path target = folder / checkpointName(content.state.model.step);
    CELLOOM_TRY(partial, AtomicFolder::create(target));
    CELLOOM_TRY_STATUS(writeModel(content, partial.path()));
    CELLOOM_TRY_STATUS(writeSafetensors(partial.path() / kTrainerFile, content.optimizer.state()));
    if (!content.callbackTensors.empty()) CELLOOM_TRY_STATUS(writeSafetensors(partial.path() / kCallbackFile, content.callbackTensors));
    CELLOOM_TRY_STATUS(writeFileAtomically(partial.path() / "state.json", toJson(content.state)));
    CELLOOM_TRY_STATUS(writeManifest(partial.path()));
    CELLOOM_TRY_STATUS(beforeVisible());
    killPoint("checkpoint-write");
    CELLOOM_TRY_STATUS(partial.commit(AtomicFolder::Existing::Replace));
    return target;
}

Result<RunProgressState> verifyCheckpoint(const fs::path& checkpoint) {
    CELLOOM_TRY_STATUS(verifyManifest(checkpoint));
    const fs::path path = checkpoint / "state.json";
    CELLOOM_TRY(text, readFile(path, 64 << 20));
    return progressStateFromJson(text, path.string());
}

Status loadCheckpoint(const fs::path& checkpoint, Network& network, Optimizer& optimizer) {
    if (network.treatment().hasAdapters()) {
        CELLOOM_TRY(adapter, openAdapterFolder(checkpoint));
        CELLOOM_TRY_STATUS(loadTrainedAdapter(network, adapter));
    } else {
        CELLOOM_TRY(folder, openModelFolder(checkpoint));
        CELLOOM_TRY_STATUS(loadWeights(folder, network));
    }
    const fs::path path = checkpoint / kTrainerFile;
    CELLOOM_TRY(tensors, tensorsOf(path));
    if (auto status = optimizer.restore(tensors); !status)
        return fail(status.error().message, status.error().hint, path.string());
    return {};
}

Result<FoundCheckpoint> newestCheckpoint(const fs::path& folder, const std::function<void(const Error&)>& report) {
    FoundCheckpoint found;
    const std::vector<fs::path> all = listCheckpoints(folder);
    for (auto path = all.rbegin(); path != all.rend(); ++path) {
        auto state = verifyCheckpoint(*path);
        if (state) {
            found.path = *path;
            found.state = std::move(*state);
            return found;
        }
        report(state.error());
        found.damaged.push_back(*path);
    }
    if (found.damaged.empty()) return found;
    return fail(found.damaged.size() == 1 ? "The run's only checkpoint is damaged." : "All " + std::to_string(found.damaged.size()) + " checkpoints of the run are damaged.",
                "Put them back from a copy, or delete them to let the run begin again, or start a new run.", folder.string());
}

Status setAside(const fs::path& checkpoint) {
    const fs::path name = checkpoint.parent_path() / (kDamagedPrefix + checkpoint.filename().string());
    std::error_code error;
    fs::remove_all(name, error); // an earlier one of the same step
    fs::rename(checkpoint, name, error);
    if (error) return fail("cannot be set aside: " + error.message() + ".", {}, checkpoint.string());
    return {};
}

Status pruneCheckpoints(const fs::path& folder, std::int64_t keep, const fs::path& best) {
    const std::vector<fs::path> all = listCheckpoints(folder);
    for (std::size_t i = 0; i + static_cast<std::size_t>(keep) < all.size(); ++i)
        if (all[i].filename() != best.filename()) CELLOOM_TRY_STATUS(removeFolder(all[i]));
    std::error_code error;
    for (fs::directory_iterator item(folder, error), end; !error && item != end; item.increment(error))
        if (AtomicFolder::isPartial(item->path())) CELLOOM_TRY_STATUS(removeFolder(item->path()));
    return {};
}

} // namespace celloom::engine
