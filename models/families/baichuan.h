// Baichuan and Baichuan 2 as a parametric graph.
#pragma once

#include "models/graph/document.h"

#include <cstdint>

namespace celloom::families {

/// The numbers are those of the published configuration class. ALiBi: 13B. Normalised head: Baichuan 2.
struct BaichuanConfig {
    std::int64_t vocab = 64000, hidden = 4096, layers = 32, heads = 32, kvHeads = 32, intermediate = 11008;
    std::int64_t maxPositions = 4096, padId = 0, bosId = 1, eosId = 2;
    double normEps = 1e-6, ropeBase = 10000, initStd = 0.02;
    bool isAlibi = false;
    bool hasNormHead = false;
};

graph::Document buildBaichuan(const BaichuanConfig& config);

} // namespace celloom::families
