// Treatment rules: an ordered list of path patterns, resolved once into a table of paths that editor, engine and estimate all read.
#pragma once

#include "models/base/result.h"
#include "models/graph/expand.h"
#include "models/recipe/path_pattern.h"

#include <optional>
#include <string>
#include <vector>

namespace celloom::recipe {

struct LoraSettings {
    std::int64_t rank = 8;
    double alpha = 16;
    double dropout = 0;
    bool operator==(const LoraSettings&) const = default;
};

/// One rule; later rules win over earlier ones, setting by setting.
struct Rule {
    std::string pattern;
    std::optional<bool> frozen;
    std::optional<LoraSettings> lora;
    std::optional<std::string> dtype; // "float32", "bfloat16", "float16"
    std::optional<bool> recompute;
    std::optional<std::int64_t> stage; // pipeline stage
    std::optional<double> lrScale;
    std::optional<double> weightDecay;
    bool operator==(const Rule&) const = default;
};

/// How one cell instance is treated. Indexed like ExpandedModel::cells.
struct Treatment {
    bool frozen = false;
    std::optional<LoraSettings> lora;
    std::string dtype; // empty: what amp_level says
    bool recompute = false;
    std::int64_t stage = 0;
    double lrScale = 1;
    std::optional<double> weightDecay;
    bool operator==(const Treatment&) const = default;
};

struct TreatmentTable {
    std::vector<Treatment> cells;
};

/// The compact text form used on the command line and in the form: a pattern, a colon, settings. "layers.{3..5}.*.q_proj: lora r=8
/// alpha=16 dropout=0.05", "layers.{0..3}.**: freeze". Settings: freeze, train, lora, dtype=, recompute, recompute=false, stage=,
/// lr_scale=, weight_decay=.
Result<Rule> parseRule(const std::string& text);
std::string toText(const Rule& rule);

/// Fails when a pattern is malformed, matches nothing (the real names are listed), or asks LoRA where no matched cell takes an adapter
/// (catalog::CellType::takesAdapter). Of the cells that a LoRA rule matches, those that take one get it. No rules: all at their defaults.
Result<TreatmentTable> resolve(const graph::ExpandedModel& model, const std::vector<Rule>& rules);

} // namespace celloom::recipe
