// In which order a network's cells run, and which of them only where a Branch takes the arm that they feed.
#pragma once

#include "models/graph/expand.h"

#include <cstddef>
#include <vector>

namespace celloom::engine {

/// One arm of the Branch with that number.
struct Arm {
    std::size_t branch = 0;
    bool whenTrue = false;
    bool operator==(const Arm&) const = default;
};

struct RunOrder {
    std::vector<std::size_t> cells; // their numbers in the model: its own order, but what feeds one arm alone comes right before its Branch
    /// By the cell's number: the arms that it feeds alone, the outermost first. It runs where all of them are taken; of most cells empty.
    std::vector<std::vector<Arm>> arms;
    [[nodiscard]] bool hasArms() const;
};

/// Branches inside of arms are followed 32 deep; what is deeper runs with the arm around it.
RunOrder runOrderOf(const graph::ExpandedModel& model);

} // namespace celloom::engine
