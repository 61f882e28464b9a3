// How an epoch's rows fall into optimizer steps. Known before training begins, so that the total shown equals the steps run.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace celloom::engine {

enum class EpochTail { Run, Drop }; // the last step of an epoch may be smaller: run it, or leave it out

struct StepPlan {
    std::int64_t rows = 0, batchSize = 1, accumulation = 1;
    EpochTail tail = EpochTail::Run;

    struct MicroBatch {
        std::int64_t firstRow, rows;
    };

    [[nodiscard]] std::int64_t stepsPerEpoch() const {
        const std::int64_t rowsPerStep = batchSize * accumulation;
        return tail == EpochTail::Drop ? rows / rowsPerStep : (rows + rowsPerStep - 1) / rowsPerStep;
    }
    /// The batches whose gradients make up one step; `step` counts from 0 within its epoch.
    [[nodiscard]] std::vector<MicroBatch> microBatches(std::int64_t step) const {
        std::vector<MicroBatch> out;
        for (std::int64_t i = 0; i < accumulation; ++i) {
            const std::int64_t first = (step * accumulation + i) * batchSize;
            if (first < rows) out.push_back({first, std::min(batchSize, rows - first)});
        }
        return out;
    }
};

} // namespace celloom::engine
