// What the recipe's "lora" section means for a model, cell by cell, and the way back: ticked cells as a short list of targets.
// Plain data, no widgets.
#pragma once

#include "models/graph/expand.h"
#include "models/recipe/lora.h"
#include "models/recipe/parameter_table.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace celloom::ui {

/// Vectors are indexed like ExpandedModel::cells.
struct LoraChoice {
    std::vector<bool> possible;       // the cell takes an adapter and lies in lora.layers_to_transform
    std::vector<std::int64_t> values; // parameters that an adapter brings there, with the biases that learn because of it
    std::vector<bool> ticked;         // the "lora" section gives it one
    std::optional<Error> error;       // its place is the field's key; what matches all the same is ticked
    recipe::ParameterCounts counts;   // of the whole treatment, rules included
};

LoraChoice chooseLora(const recipe::Recipe& recipe, const graph::ExpandedModel& model);

/// The shortest lora.targets found that choose exactly these cells among the possible ones: "all-linear", ends of names, then path
/// patterns. Empty where nothing is ticked.
std::vector<std::string> targetsFor(const graph::ExpandedModel& model, const std::vector<bool>& possible, const std::vector<bool>& ticked);

/// Cells meant by a quick choice; none where the model has no such cells.
enum class QuickTargets { QueryAndValue, Attention, AllLinear };
std::vector<bool> quickTargets(const graph::ExpandedModel& model, const std::vector<bool>& possible, QuickTargets which);

/// A path taken apart: "layers.3.self_attn.q_proj" is the names {"layers.{}", "self_attn", "q_proj"} and the numbers {3}.
struct FoldedPath {
    std::vector<std::string> names;
    std::vector<std::int64_t> numbers;
};
FoldedPath foldedPath(const std::string& path);
/// "{0..3,7}", or "7" for one number. The numbers are sorted and differ.
std::string rangesOf(const std::vector<std::int64_t>& numbers);

} // namespace celloom::ui
