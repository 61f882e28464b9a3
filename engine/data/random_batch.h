// A batch that fits a graph's inputs, drawn from a seed: for probes of graphs that have no data yet.
#pragma once

#include "engine/exec/network.h"

namespace celloom::engine {

struct RandomBatchOptions {
    std::int64_t rows = 2;    // the symbol B
    std::int64_t length = 16; // every other symbol, unless named below
    std::map<std::string, std::int64_t> symbols = {};
    std::uint64_t seed = 0;
};

/// Floating inputs are normal(0, 1); truth values even chances, but for "attention_mask", which is 1; "positions" 0, 1, …; other whole numbers
/// are below the number of rows of the embeddings that they reach. Where they reach none, their range cannot be known: an error at that input.
/// The same seed, input name and shape give the same numbers.
Result<Batch> randomBatch(const graph::ExpandedModel& model, const RandomBatchOptions& options);

} // namespace celloom::engine
