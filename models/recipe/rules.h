// Treatment rules: an ordered list of path patterns, resolved once into a table of paths that editor, engine and estimate all read.
#pragma once

#include "models/base/result.h"
#include "models/graph/expand.h"
#include "models/recipe/path_pattern.h"

#include <optional>
#include <string>
#include <vector>

namespace celloom::recipe {

/// A low-rank adapter beside a weight matrix (Hu et al., arXiv:2106.09685): y = W x + scale() B A drop(x).
struct LoraSettings {
    std::int64_t rank = 8;
    double alpha = 16;
    double dropout = 0;
    bool useRsLora = false; // scaled by alpha / sqrt(rank) (Kalajdzievski, arXiv:2312.03732) instead of alpha / rank
    bool useDora = false;   // a learned length for each row of W + scale() B A (Liu et al., arXiv:2402.09353)
    bool operator==(const LoraSettings&) const = default;
    [[nodiscard]] double scale() const;
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
    std::optional<bool> trainBias; // the bias learns although the rest of the cell is frozen or has an adapter
    std::optional<bool> saveWhole; // every weight learns and belongs to the adapter's file (PEFT's modules_to_save)
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
    bool trainBias = false;
    bool saveWhole = false;
    bool operator==(const Treatment&) const = default;

    /// Whether the cell's own weight of that name learns. An adapter's tensors always do.
    [[nodiscard]] bool trains(const std::string& weightName) const;
};

struct TreatmentTable {
    std::vector<Treatment> cells;
    [[nodiscard]] bool hasAdapters() const;
};

/// The compact text form used on the command line and in the form: a pattern, a colon, settings. "layers.{3..5}.*.q_proj: lora r=8
/// alpha=16 dropout=0.05", "layers.{0..3}.**: freeze". Settings: freeze, train, lora (then r=, alpha=, dropout=, rslora, dora),
/// train_bias, save, dtype=, recompute, recompute=false, stage=, lr_scale=, weight_decay=.
Result<Rule> parseRule(const std::string& text);
std::string toText(const Rule& rule);

/// Fails when a pattern is malformed, matches nothing (the real names are listed), or asks LoRA where no matched cell takes an adapter
/// (catalog::CellType::takesAdapter). Of the cells that a LoRA rule matches, those that take one get it. No rules: all at their defaults.
/// A rule that only says recompute may name a group of cells, such as a layer: "layers.*: recompute".
Result<TreatmentTable> resolve(const graph::ExpandedModel& model, const std::vector<Rule>& rules);
/// The same on top of a table that holds something already. `place` of errors: "rules[2]".
Status resolveOnto(TreatmentTable& table, const graph::ExpandedModel& model, const std::vector<Rule>& rules);

/// The model's cell paths with repeats folded: "layers.{0..39}.self_attn.W_pack"; all, or those that take an adapter.
enum class Cells { All, TakingAdapters };
std::vector<std::string> foldedNames(const graph::ExpandedModel& model, Cells which);
/// Whether a LoRA adapter can stand beside this cell's weight (catalog::CellType::takesAdapter).
bool takesAdapter(const graph::CellInstance& cell);

} // namespace celloom::recipe
