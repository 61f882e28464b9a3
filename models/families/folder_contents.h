// What lies in a model's folder, for whoever wants to know before anything is loaded: weights, tokenizer, and what Celloom does not
// understand of it. Reads names, sizes and small JSON files; opens no weights, runs nothing.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace celloom::families {

struct WeightFile {
    enum class Format { Safetensors, PyTorch, MindSpore };
    std::string name;
    Format format = Format::Safetensors;
    std::int64_t bytes = 0;
};

struct NotUnderstood {
    enum class Kind {
        ConfigKey,     // "key = value" of config.json that nothing was made of
        RemoteCode,    // a Python file: never run
        MissingShard,  // a weight file that the index names and that is not there
        Tokenizer,     // a tokenizer of a kind that is not read
        ForeignWeights // weights in a format that is not read: quantised, ONNX, …
    } kind = Kind::ConfigKey;
    std::string what;
};

struct FolderContents {
    std::filesystem::path path;       // where the files are: of a run its newest checkpoint
    std::vector<WeightFile> weights;  // by name
    std::string statedType;           // what config.json says that the weights are: "bfloat16"; empty: nothing
    bool hasTokenizer = false;        // tokenizer.model
    std::vector<NotUnderstood> notUnderstood;
    bool isCut = false; // more files than are looked at (10 000)
    [[nodiscard]] std::int64_t weightBytes() const;
};

/// `path`: a folder, or a config.json or .cells.json in one. What cannot be read is left out; opening the model says why.
FolderContents folderContents(const std::filesystem::path& path);

} // namespace celloom::families
