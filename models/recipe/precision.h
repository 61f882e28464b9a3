// Which cell computes in which type: resolved once from the level, the lists and the rules. Engine, estimate and Train page read this table.
#pragma once

#include "models/recipe/recipe.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace celloom::recipe {

/// MindSpore's amp_level (mindspore/train/amp.py). Parameters and gradients are float32 at each, the network's outputs come back to float32.
///  - O0:   float32.
///  - O1:   products, attention and ReLU compute in the half type, each output goes back to float32.
///  - O2:   everything in the half type but normalisations, which compute in float32 and give the half type.
///  - O3:   everything in the half type.
///  - Auto: cell by cell: products in half (float32 once a bias is added), Softmax and normalisations in float32, the others in the widest
///          type of their inputs.
enum class AmpLevel { O0, O1, O2, O3, Auto };
enum class FloatType { Float32, BFloat16, Float16 };

/// "O0" … "O3", "auto"; "float32", "bfloat16", "float16".
const char* nameOf(AmpLevel level);
const char* nameOf(FloatType type);
/// Fails for what is none, as MindSpore's Model does for "O4".
Result<AmpLevel> ampLevelNamed(const std::string& name);
std::optional<FloatType> floatTypeNamed(const std::string& name);
std::int64_t bytesOf(FloatType type);
/// The narrowest type that holds both: of two different half types float32.
FloatType widest(FloatType a, FloatType b);

struct PrecisionSettings {
    AmpLevel level = AmpLevel::O0;
    FloatType half = FloatType::BFloat16;
    /// Cell types ("Softmax") or path patterns ("layers.0.**"): these compute in the half type, or in float32. Where both name a cell it is
    /// float32. What such a cell gives to others follows the level: float32 at O1, half at O2 and O3. Without effect at O0.
    std::vector<std::string> allow, deny;
};
PrecisionSettings precisionSettingsOf(const Recipe& recipe);

struct CellPrecision {
    FloatType compute = FloatType::Float32; // to which inputs and weights are brought
    FloatType wire = FloatType::Float32;    // of its outputs
    enum class Reason { Level, Allowed, Denied, Rule } reason = Reason::Level;
    bool operator==(const CellPrecision&) const = default;
};
/// Indexed like ExpandedModel::cells.
struct PrecisionTable {
    std::vector<CellPrecision> cells;
};

/// A rule's dtype wins over the lists, the lists over the level. Fails where a list's item is no cell type of the model and matches no path,
/// or where a rule's dtype is unknown.
Result<PrecisionTable> precisionOf(const graph::ExpandedModel& model, const TreatmentTable& treatment, const PrecisionSettings& settings);

} // namespace celloom::recipe
