// Looks at every byte of a model folder: is it whole, does it fit its model, is every number one?
#pragma once

#include "engine/checkpoint/model_folder.h"
#include "engine/checkpoint/tensor_table.h"

namespace celloom::engine {

struct VerifyReport {
    bool hasManifest = false;                                        // its sizes and hashes were compared
    std::uint64_t files = 0, tensors = 0, parameters = 0, bytes = 0; // of the weights
    std::vector<std::string> types;                                  // of the weights in the files, each once
    std::vector<std::string> notRead;                                // in the weight files
    std::int64_t tokenizerWords = 0;                                 // 0: there is no tokenizer
};

/// The manifest (where there is one), the checksums inside the weight files, names and shapes against the graph, NaN and infinity in any
/// tensor (all told at once), the tokenizer and its size. Needs the memory of two tensors.
Result<VerifyReport> verifyFolder(const ModelFolder& folder);

} // namespace celloom::engine
