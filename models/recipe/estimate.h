// What a run will need, before it starts: parameters, FLOPs, memory, disk. Derived from the graph's costs; nothing is measured.
#pragma once

#include "models/base/result.h"
#include "models/graph/expand.h"
#include "models/recipe/memory_plan.h"
#include "models/recipe/recipe.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace celloom::recipe {

/// What the symbols of a model's shapes stand for: B the rows, T the length, and all others the length too.
std::map<std::string, std::int64_t> symbolSizes(const graph::ExpandedModel& model, std::int64_t rows, std::int64_t length);

struct Estimate {
    std::string model;
    std::int64_t parameters = 0, trainableParameters = 0;
    std::int64_t tokensPerStep = 0;
    double forwardFlops = 0, flopsPerStep = 0; // a step: forward, and twice that backward, for every micro-batch
    // Bytes of tensors, each part by itself:
    std::int64_t weightBytes = 0;     // float32 masters, at O2 the copies in the half type, and the best weights where they are kept
    std::int64_t gradientBytes = 0;   // float32
    std::int64_t optimizerBytes = 0;  // the optimizer's state, float32
    std::int64_t activationBytes = 0; // kept for the backward pass of one micro-batch, with the loss
    // The most that they take together, and when: not the sum, for gradients come while activations go. The program itself adds about
    // 300 MB, the corpus 4 bytes a token.
    std::int64_t peakBytes = 0;
    MemoryParts peak; // its parts
    MemoryPhase peakPhase = MemoryPhase::Forward;
    std::array<std::int64_t, kMemoryPhases> phasePeaks{}; // 0: the phase does not occur
    // Bytes on disk:
    std::int64_t checkpointBytes = 0; // weights, the best ones too where they are kept, and optimizer state
    std::int64_t keptCheckpoints = 0; // as many as the recipe keeps
};

/// Fails where the model or its rules are refused. The vocabulary is the one the run will have: of the tokenizer to be trained, unless
/// model.overrides, a given tokenizer or weights to start from decide.
Result<Estimate> estimate(const Recipe& recipe);
/// The same of a model that was opened and expanded already, its overrides applied.
Result<Estimate> estimate(const Recipe& recipe, const graph::ExpandedModel& model);

/// What a prediction needs: weights, and for each token of the context the keys and values of every attention.
struct PredictionEstimate {
    std::string model;
    std::int64_t parameters = 0;
    std::int64_t batch = 1, context = 0; // rows, tokens of each
    double promptFlops = 0, tokenFlops = 0; // reading a context of that length; writing one more token after it
    struct OfType {
        std::string dtype; // "float32", "bfloat16", "float16"
        std::int64_t weightBytes = 0, cacheBytes = 0;
        std::int64_t workBytes = 0; // what reading the prompt takes for a moment
        [[nodiscard]] std::int64_t peakBytes() const { return weightBytes + cacheBytes + workBytes; }
    };
    std::vector<OfType> types;
};
/// `context` 0: the model's max_positions.
Result<PredictionEstimate> estimatePrediction(const graph::ExpandedModel& model, std::int64_t batch, std::int64_t context);

/// How the recipe's steps use memory. Rows are as long as train.sequence_length says; token files may have rows of their own length.
MemoryOptions memoryOptions(const Recipe& recipe, const graph::ExpandedModel& model);

/// The recipe's model with its overrides; the vocabulary is the one that a trained tokenizer would have.
Result<graph::ExpandedModel> modelOf(const Recipe& recipe);

} // namespace celloom::recipe
