// Costs of an expanded model: parameters, FLOPs, activation bytes. Counted per instance, summed by path prefix.
#pragma once

#include "models/graph/expand.h"

#include <cstdint>
#include <string>
#include <vector>

namespace celloom::graph {

struct Cost {
    std::int64_t parameters = 0;
    double forwardFlops = 0;           // of one forward pass; a multiply-add counts as two; causal attention is not discounted
    std::int64_t activationValues = 0; // numbers kept for the backward pass; one that several cells keep counts for the first
};

/// Cost of every instance, in the order of model.cells. Every free symbol of the model needs a number ({"B": 8, "T": 512}).
std::vector<Cost> costs(const ExpandedModel& model, const std::map<std::string, std::int64_t>& symbols);
Cost total(const std::vector<Cost>& all);

} // namespace celloom::graph
