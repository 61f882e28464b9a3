// What a run will need, before it starts: parameters, FLOPs, memory, disk. Derived from the graph's costs; nothing is measured.
#pragma once

#include "models/base/result.h"
#include "models/graph/expand.h"
#include "models/recipe/recipe.h"

#include <cstdint>
#include <string>

namespace celloom::recipe {

struct Estimate {
    std::string model;
    std::int64_t parameters = 0, trainableParameters = 0;
    std::int64_t tokensPerStep = 0;
    double forwardFlops = 0, flopsPerStep = 0; // a step: forward, and twice that backward, for every micro-batch
    // Bytes of memory at a step's peak, of one micro-batch:
    std::int64_t weightBytes = 0;     // float32 masters, and at O2 the copies in the half type
    std::int64_t gradientBytes = 0;   // float32
    std::int64_t optimizerBytes = 0;  // two float32 moments
    std::int64_t activationBytes = 0; // kept for the backward pass, with the loss
    std::int64_t peakBytes = 0;       // their sum; the program itself adds about 300 MB
    // Bytes on disk:
    std::int64_t checkpointBytes = 0; // weights and optimizer state
    std::int64_t keptCheckpoints = 0; // as many as the recipe keeps
};

/// Fails where the model or its rules are refused. The vocabulary is the one the run will have: of the tokenizer to be trained, unless
/// model.overrides or a given tokenizer decides.
Result<Estimate> estimate(const Recipe& recipe);

/// The recipe's model with its overrides; the vocabulary is the one that a trained tokenizer would have.
Result<graph::ExpandedModel> modelOf(const Recipe& recipe);

} // namespace celloom::recipe
