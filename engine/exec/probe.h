// Looks into a graph while one batch goes through it: what is on each wire, where attention looks, and the gradients.
#pragma once

#include "engine/exec/network.h"
#include "engine/exec/value_statistics.h"
#include "models/recipe/path_pattern.h"

#include <functional>
#include <string>
#include <vector>

namespace celloom::engine {

class Loss;

/// One wire's end: an output of a cell, or an input of the graph.
struct ProbedWire {
    std::string name; // "layers.0.mlp.gate_proj.out"; of an input, its name
    std::string port; // "out"
    std::vector<std::int64_t> shape;
    std::string type; // "float32", "bfloat16", "int64", "bool" …
    ValueStatistics values;
};

/// Where the queries of one batch row look, head by head. A sequence longer than the map is made smaller: neighbouring queries are averaged,
/// the weights of neighbouring keys added, so that each row of the map still sums to 1.
struct AttentionMap {
    std::int64_t batchRow = 0, heads = 0, queries = 0, keys = 0; // of the cell
    std::int64_t rows = 0, columns = 0;                          // of the map
    std::vector<float> weights;                                  // [heads][rows][columns]; NaN where a query sees no key
};

struct ProbedCell {
    std::string path, type;
    std::size_t index = 0, count = 0; // its number among the model's cells, and how many there are
    double seconds = 0;               // that it took, about
    std::vector<ProbedWire> wires;    // in the order of its outputs
    std::vector<AttentionMap> attention; // one of an attention cell, none of others
};

struct ProbeOptions {
    std::int64_t bins = 32;    // of a histogram
    std::int64_t mapSize = 64; // rows and columns of an attention map at most; 0: no maps
    std::int64_t mapRow = 0;   // of the batch
    /// Only cells whose path, or the path of a composite that they lie in, matches one of these. Empty: all.
    std::vector<recipe::PathPattern> cells;
    /// Runs the batch as a training step does (dropout and all) and tells of each wire the loss's gradient. Needs a loss.
    bool gradients = false;
    std::uint64_t dropoutSeed = 0;
};

/// Whether the path, or that of a composite above it, matches: "layers.0" takes in all of the layer's cells.
bool liesUnder(const std::string& path, const recipe::PathPattern& pattern);

/// Who is told, as soon as it is known; nothing is kept. Any may be empty.
struct ProbeListener {
    std::function<void(const ProbedWire&)> input;
    std::function<void(const ProbedCell&)> cell;
    std::function<void(const ProbedWire&)> gradient; // from the loss back to the inputs; wires that no gradient reaches are left out
};

struct ProbeSummary {
    std::size_t cells = 0;                // that were looked at
    std::vector<std::string> notComputed; // those that this batch did not reach: the arm of a Branch that no row took
    double loss = 0;                      // with a loss: the sum of its terms' means
};

/// One batch through the network. Inputs whose number of dimensions or fixed sizes are not the graph's, or whose symbols disagree, are an error
/// at that input; what goes wrong in a cell, an error at that cell, after the listener was told of all before it. Without gradients the memory
/// is that of a prediction. `loss` may be null.
Result<ProbeSummary> probe(Network& network, const Batch& batch, const Loss* loss, const ProbeOptions& options, const ProbeListener& listener);

} // namespace celloom::engine
