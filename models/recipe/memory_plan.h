// The tensor memory of a training step or a prediction, worked out before it runs: the cells are gone through forward and backward as
// the engine does, every tensor taken and given back where the engine takes and gives it back. Nothing is measured.
// A test holds the sums to what the engine's allocator counts.
#pragma once

#include "models/graph/expand.h"
#include "models/recipe/precision.h"

#include <array>
#include <cstdint>
#include <map>
#include <string>

namespace celloom::recipe {

/// Bytes.
struct MemoryParts {
    std::int64_t weights = 0; // float32 masters, the copies of cells that compute in a half type, and the best weights where they are kept
    std::int64_t gradients = 0;
    std::int64_t optimizer = 0;
    std::int64_t activations = 0; // what the backward pass needs, the loss, and what exists only for a moment
    [[nodiscard]] std::int64_t total() const { return weights + gradients + optimizer + activations; }
};

enum class MemoryPhase { Forward, Backward, Update, Evaluation };
inline constexpr std::size_t kMemoryPhases = 4;

/// What an optimizer keeps and makes.
struct OptimizerMemory {
    int states = 2;           // float32 numbers kept for each number that learns
    bool isFactored = false;  // of a matrix only the sums of rows and of columns are kept, and one weight at a time is updated (Adafactor)
    int updateCopies = 0;     // tensors of every weight's size that exist during an update
};
OptimizerMemory optimizerMemoryOf(const Recipe& recipe);

struct MemoryOptions {
    std::map<std::string, std::int64_t> symbols; // what the model's free dimensions stand for: {"B": 8, "T": 512}
    PrecisionSettings precision;      // whose lists are known to fit the model
    bool isAccumulated = false;       // gradients of an earlier micro-batch wait while the next one runs
    bool hasDocumentAttention = false; // a mask of document borders
    bool hasZLoss = false;
    bool evaluates = false;
    bool keepsBestWeights = false; // a second copy of all that learns
    bool isGpu = false;
    OptimizerMemory optimizer;
    std::int64_t frozenBytes = 4;  // of a number in a weight that does not learn
    bool lastPositionOnly = false; // of a prediction: the head computes one position
};

struct MemoryPlan {
    MemoryParts whole; // each part by itself: all gradients, and all that is kept when the backward pass begins
    MemoryParts peak;  // the parts at the moment when they are largest together
    MemoryPhase peakPhase = MemoryPhase::Forward;
    std::array<std::int64_t, kMemoryPhases> phasePeaks{}; // 0: the phase does not occur
};

/// Every free symbol of the model needs a number.
MemoryPlan planTraining(const graph::ExpandedModel& model, const TreatmentTable& treatment, const MemoryOptions& options);
/// A forward pass that keeps nothing, weights in float32; gradients and moments are nothing. The cache of keys and values is not in it.
MemoryPlan planPrediction(const graph::ExpandedModel& model, const TreatmentTable& treatment, const MemoryOptions& options);

} // namespace celloom::recipe
