// Merging adapters into a copy of their base, with proof.
#pragma once

#include "engine/checkpoint/adapter_folder.h"
#include "engine/checkpoint/model_folder.h"

#include <vector>

namespace celloom::engine {

/// What merging changed in the logits of a few rows of fixed tokens: the largest difference to the base with its adapters beside it.
struct MergeProof {
    double inFloat32 = 0;   // merged
    double asWritten = 0;   // merged, and every weight rounded to the type that is written
    double logitRange = 0;  // the largest logit, to compare with
    double ofAdapters = 0;  // what the adapters changed in the base's logits
};

/// Merges the network's active adapters and rounds all weights to `type` (float32, bfloat16 or float16). The network is then that model.
Result<MergeProof> mergeWithProof(Network& network, at::ScalarType type);

/// An adapter that went into a merged model: celloom_merged.json beside it, so that it is not merged twice.
struct MergedAdapter {
    std::filesystem::path folder;
    double weight = 1;
};
/// Writes the merged network as a new folder that appears whole or not at all.
Status exportMerged(const Network& network, const ModelFolder& base, const std::vector<MergedAdapter>& adapters, at::ScalarType type,
                    const std::filesystem::path& target);

/// Refuses an adapter that was merged into this base (a folder) already.
Status checkNotMerged(const std::filesystem::path& base, const std::filesystem::path& adapter);

} // namespace celloom::engine
