// The table of types for people to read, and what of it this machine is slow at.
#pragma once

#include "models/base/half_support.h"
#include "models/recipe/precision.h"

namespace celloom::recipe {

/// Cells of one type at the same place of repeated layers that are computed alike.
struct PrecisionRow {
    std::string name; // folded: "layers.{0..31}.self_attn.q_proj"
    std::string type;
    CellPrecision precision;
    std::int64_t count = 0; // cells
};
/// In the model's order.
std::vector<PrecisionRow> foldedPrecision(const graph::ExpandedModel& model, const PrecisionTable& table);

/// The half types that cells compute in although the machine has no instructions for them.
std::vector<FloatType> slowTypes(const PrecisionTable& table, const HalfSupport& support);

} // namespace celloom::recipe
