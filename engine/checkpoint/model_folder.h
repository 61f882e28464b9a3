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
    std::vector<std::filesystem::path> weightFiles; // one, or the shards of model.safetensors.index.json
    std::filesystem::path tokenizer;                // tokenizer.model; empty when there is none
};

/// Reads config.json or model.cells.json and finds the weight files; reads no weights.
Result<ModelFolder> openModelFolder(const std::filesystem::path& path);

/// Fills the network's parameters. Missing, unexpected and mis-shaped tensors are all listed in one error.
Status loadWeights(const ModelFolder& folder, Network& network);

/// Network of the folder with its weights: what forward, predict and samples use.
Result<std::unique_ptr<Network>> loadNetwork(const ModelFolder& folder, const NetworkOptions& options);

/// Writes model.safetensors (checkpoint names), config.json where the family has one, model.cells.json, tokenizer.model. Atomic as a whole.
Status exportModel(const Network& network, const graph::Document& document, const std::filesystem::path& tokenizer,
                   const std::filesystem::path& target);

} // namespace celloom::engine
