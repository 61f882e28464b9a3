// A model on disk: a Hugging Face style folder, a run's checkpoint, or a run (its newest checkpoint). Opening, loading weights, exporting.
#pragma once

#include "engine/exec/network.h"
#include "models/base/result.h"
#include "models/graph/document.h"

#include <filesystem>
#include <memory>
#include <string>

namespace celloom::engine {

struct ModelFolder {
    std::filesystem::path path;
    graph::Document document;
    std::vector<std::filesystem::path> weightFiles; // of the base where there is an adapter; one, or the shards of an index; safetensors,
                                                    // torch.save's or MindSpore's
    std::filesystem::path tokenizer;                // tokenizer.model; empty when there is none
    std::vector<std::int64_t> endIds; // every eos_token_id of config.json, then of generation_config.json, each once; empty: none is told
    std::filesystem::path adapter;    // the folder of a run's or checkpoint's adapter; empty when there is none
};

/// A folder with model.cells.json or config.json, an adapter's (with the base that it names), a run's folder (its newest complete
/// checkpoint), or a .cells.json document (no weights). Reads the structure and finds the weight files; reads no weights.
Result<ModelFolder> openModelFolder(const std::filesystem::path& path);

/// Fills the network's parameters, one after another: the files are mapped, and let go of as they are copied. Missing, unexpected and
/// mis-shaped tensors are all listed in one error, with a guess. Nothing in a file is executed.
Status loadWeights(const ModelFolder& folder, Network& network);

/// Network of the folder with its weights, and its adapter switched on: what forward, predict and samples use.
Result<std::unique_ptr<Network>> loadNetwork(const ModelFolder& folder, const NetworkOptions& options);

/// Writes model.safetensors (checkpoint names), config.json where the family has one, model.cells.json and tokenizer.model (if given) into
/// an existing folder. A checkpoint adds its own files and commits the folder as a whole. An active adapter must have been merged.
/// Weights are written as float32, bfloat16 or float16.
Status writeModelFiles(const Network& network, const graph::Document& document, const std::filesystem::path& tokenizer,
                       const std::filesystem::path& folder, at::ScalarType type = at::kFloat);

/// Copies tokenizer.model and what stands beside it (added tokens, the chat template) into an existing folder; nothing for an empty path.
Status writeTokenizerFiles(const std::filesystem::path& tokenizer, const std::filesystem::path& folder);

/// The same as a new folder that appears whole or not at all. An existing one (with files in it) is refused.
Status exportModel(const Network& network, const graph::Document& document, const std::filesystem::path& tokenizer,
                   const std::filesystem::path& target);

} // namespace celloom::engine
