#include "models/families/folder_contents.h"

#include "models/base/files.h"
#include "models/base/text.h"
#include "models/families/families.h"
#include "models/graph/json_text.h"

#include <algorithm>
#include <set>
#include <tuple>

namespace celloom::families {
namespace fs = std::filesystem;
namespace {

constexpr int kMaxFiles = 10000;
constexpr const char* kIndices[] = {"model.safetensors.index.json", "pytorch_model.bin.index.json"};

using Kind = NotUnderstood::Kind;

/// Of a run its newest checkpoint; else the folder itself.
fs::path placeOfFiles(const fs::path& folder) {
    std::error_code error;
    fs::path newest;
    for (fs::directory_iterator at(folder / "checkpoints", error), end; !error && at != end; at.increment(error))
        if (at->path().filename().string().starts_with("step-") && at->path().filename() > newest.filename()) newest = at->path();
    return newest.empty() ? folder : newest;
}

bool endsWithAny(const std::string& name, std::initializer_list<const char*> endings) {
    return std::any_of(endings.begin(), endings.end(), [&](const char* ending) { return name.ends_with(ending); });
}

void addWeights(const fs::directory_entry& entry, WeightFile::Format format, FolderContents& out) {
    std::error_code error;
    const auto bytes = entry.file_size(error);
    if (!error) out.weights.push_back({entry.path().filename().string(), format, static_cast<std::int64_t>(bytes)});
}

void sortIn(const fs::directory_entry& entry, FolderContents& out) {
    const std::string name = entry.path().filename().string();
    if (name == "tokenizer.model")
        out.hasTokenizer = true;
    else if (name.starts_with("model") && name.ends_with(".safetensors")) // "model-00001-of-00002.safetensors"
        addWeights(entry, WeightFile::Format::Safetensors, out);
    else if (name.starts_with("pytorch_model") && name.ends_with(".bin"))
        addWeights(entry, WeightFile::Format::PyTorch, out);
    else if (name.ends_with(".ckpt"))
        addWeights(entry, WeightFile::Format::MindSpore, out);
    else if (name.ends_with(".py"))
        out.notUnderstood.push_back({Kind::RemoteCode, name});
    else if (endsWithAny(name, {".gguf", ".ggml", ".onnx", ".msgpack", ".h5", ".npz", ".pth", ".pt", ".mindir"}) ||
             name == "quantize_config.json")
        out.notUnderstood.push_back({Kind::ForeignWeights, name});
    else if (name == "vocab.json" || name == "merges.txt" || name == "vocab.txt")
        out.notUnderstood.push_back({Kind::Tokenizer, name});
}

/// Small JSON files of other tools; anything wrong with them is no business of this list.
Result<nlohmann::json> readObject(const fs::path& path) {
    CELLOOM_TRY(text, readFile(path, graph::JsonLimits{}.maxBytes));
    CELLOOM_TRY(value, graph::parseJson(text, path.string()));
    if (!value.is_object()) return fail("is no object.", {}, path.string());
    return value;
}

void readIndex(const fs::path& path, FolderContents& out) {
    const auto index = readObject(path);
    if (!index || !index->contains("weight_map") || !(*index)["weight_map"].is_object()) return;
    std::set<std::string> missing;
    for (const auto& [tensor, file] : (*index)["weight_map"].items())
        if (file.is_string()) missing.insert(file.get<std::string>());
    for (const WeightFile& file : out.weights) missing.erase(file.name);
    for (const std::string& name : missing) out.notUnderstood.push_back({Kind::MissingShard, inQuotes(name)});
}

void readConfig(const fs::path& path, FolderContents& out) {
    const auto text = readFile(path, graph::JsonLimits{}.maxBytes);
    if (!text) return;
    if (const auto opened = readConfigJson(*text, path.string()))
        for (const std::string& key : opened->notRead) out.notUnderstood.push_back({Kind::ConfigKey, key});
    const auto config = graph::parseJson(*text, path.string());
    if (!config || !config->is_object()) return;
    for (const char* key : {"torch_dtype", "dtype"})
        if (config->contains(key) && (*config)[key].is_string()) out.statedType = (*config)[key].get<std::string>();
}

} // namespace

std::int64_t FolderContents::weightBytes() const {
    std::int64_t sum = 0;
    for (const WeightFile& file : weights) sum += file.bytes;
    return sum;
}

FolderContents folderContents(const fs::path& path) {
    FolderContents out;
    std::error_code error;
    out.path = fs::is_directory(path, error) ? placeOfFiles(path) : path.parent_path();
    int seen = 0;
    for (fs::directory_iterator at(out.path, error), end; !error && at != end; at.increment(error)) {
        if (++seen > kMaxFiles) {
            out.isCut = true;
            break;
        }
        std::error_code ofEntry;
        if (at->is_regular_file(ofEntry)) sortIn(*at, out);
    }
    if (!out.hasTokenizer && fs::exists(out.path / "tokenizer.json", error)) out.notUnderstood.push_back({Kind::Tokenizer, "tokenizer.json"});
    std::sort(out.weights.begin(), out.weights.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
    for (const char* index : kIndices) readIndex(out.path / index, out);
    readConfig(out.path / "config.json", out);
    std::stable_sort(out.notUnderstood.begin(), out.notUnderstood.end(),
                     [](const auto& a, const auto& b) { return std::tie(a.kind, a.what) < std::tie(b.kind, b.what); });
    return out;
}

} // namespace celloom::families
