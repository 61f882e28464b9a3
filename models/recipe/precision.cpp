#include "models/recipe/precision.h"

#include "models/base/text.h"
#include "models/catalog/catalog.h"

#include <algorithm>
#include <array>
#include <set>

namespace celloom::recipe {
namespace {

using catalog::AmpTraits;
using graph::CellInstance;

constexpr std::array kLevels{AmpLevel::O0, AmpLevel::O1, AmpLevel::O2, AmpLevel::O3, AmpLevel::Auto};
constexpr std::array kTypes{FloatType::Float32, FloatType::BFloat16, FloatType::Float16};

/// The cells that a list names.
Result<std::vector<bool>> namedBy(const std::vector<std::string>& items, const graph::ExpandedModel& model, const char* key) {
    std::vector<bool> out(model.cells.size(), false);
    for (std::size_t item = 0; item < items.size(); ++item) {
        const auto place = std::string(key) + "[" + std::to_string(item) + "]";
        const auto pattern = PathPattern::parse(items[item]);
        if (!pattern) return fail(pattern.error().message, pattern.error().hint, place);
        bool isFound = false;
        for (std::size_t i = 0; i < model.cells.size(); ++i) {
            if (model.cells[i].type != items[item] && !pattern->matches(model.cells[i].path)) continue;
            out[i] = isFound = true;
        }
        if (isFound) continue;
        std::set<std::string> types;
        for (const CellInstance& cell : model.cells) types.insert(cell.type);
        return fail(inQuotes(items[item]) + " is no type of cell in this model, and matches no path.",
                    "Its types are " + joined({types.begin(), types.end()}) + "; its cells " + joined(foldedNames(model, Cells::All), 40) + ".", place);
    }
    return out;
}

bool hasBias(const CellInstance& cell) {
    return std::any_of(cell.weights.begin(), cell.weights.end(), [](const graph::WeightSpec& weight) { return weight.name == "bias"; });
}

/// Without rules and lists. `inputs`: the widest type on the cell's floating inputs; none where it has none.
CellPrecision byLevel(const CellInstance& cell, const AmpTraits& traits, const PrecisionSettings& settings, std::optional<FloatType> inputs) {
    constexpr FloatType whole = FloatType::Float32;
    const FloatType half = settings.half;
    switch (settings.level) {
    case AmpLevel::O0:
        break;
    case AmpLevel::O1:
        return {traits.isHalfAtO1 ? half : whole, whole};
    case AmpLevel::O2:
        return {traits.isFloatAtO2 ? whole : half, half};
    case AmpLevel::O3:
        return {half, half};
    case AmpLevel::Auto: {
        if (traits.atAuto == AmpTraits::Auto::Half) return {half, hasBias(cell) ? whole : half};
        const bool follows = traits.atAuto == AmpTraits::Auto::Follows && inputs && cell.weights.empty();
        const FloatType type = follows ? *inputs : whole;
        return {type, type};
    }
    }
    return {};
}

/// What a cell on a list gives to others: what the level's other cells give.
FloatType wireOf(FloatType compute, const PrecisionSettings& settings) {
    switch (settings.level) {
    case AmpLevel::O2:
    case AmpLevel::O3:
        return settings.half;
    case AmpLevel::Auto:
        return compute;
    case AmpLevel::O0:
    case AmpLevel::O1:
        break;
    }
    return FloatType::Float32;
}

} // namespace

const char* nameOf(AmpLevel level) {
    constexpr std::array names{"O0", "O1", "O2", "O3", "auto"};
    return names[static_cast<std::size_t>(level)];
}

const char* nameOf(FloatType type) {
    constexpr std::array names{"float32", "bfloat16", "float16"};
    return names[static_cast<std::size_t>(type)];
}

Result<AmpLevel> ampLevelNamed(const std::string& name) {
    for (const AmpLevel level : kLevels)
        if (name == nameOf(level)) return level;
    return fail("There is no amp_level " + inQuotes(name) + ".", "Choose O0, O1, O2, O3 or auto.", "precision.amp_level");
}

std::optional<FloatType> floatTypeNamed(const std::string& name) {
    for (const FloatType type : kTypes)
        if (name == nameOf(type)) return type;
    return std::nullopt;
}

std::int64_t bytesOf(FloatType type) { return type == FloatType::Float32 ? 4 : 2; }

FloatType widest(FloatType a, FloatType b) { return a == b ? a : FloatType::Float32; }

PrecisionSettings precisionSettingsOf(const Recipe& recipe) {
    const auto level = ampLevelNamed(recipe.text("precision.amp_level"));
    const auto half = floatTypeNamed(recipe.text("precision.half_type"));
    CELLOOM_CHECK(level && half); // the fields' choices
    return {*level, *half, recipe.list("precision.allow"), recipe.list("precision.deny")};
}

Result<PrecisionTable> precisionOf(const graph::ExpandedModel& model, const TreatmentTable& treatment, const PrecisionSettings& settings) {
    CELLOOM_CHECK(treatment.cells.size() == model.cells.size());
    CELLOOM_TRY(allowed, namedBy(settings.allow, model, "precision.allow"));
    CELLOOM_TRY(denied, namedBy(settings.deny, model, "precision.deny"));
    std::vector<FloatType> wires(model.values.size(), FloatType::Float32); // of the graph's inputs
    PrecisionTable out;
    for (std::size_t i = 0; i < model.cells.size(); ++i) {
        const CellInstance& cell = model.cells[i];
        std::optional<FloatType> inputs;
        for (const graph::ValueId id : cell.inputs) {
            if (id < 0 || model.values[static_cast<std::size_t>(id)].dtype != "float") continue;
            const FloatType type = wires[static_cast<std::size_t>(id)];
            inputs = inputs ? widest(*inputs, type) : type;
        }
        const catalog::CellType* type = catalog::find(cell.type); // none: a cell of the user's own, which follows the level
        CellPrecision chosen = byLevel(cell, type ? type->amp : AmpTraits{}, settings, inputs);
        const auto choose = [&](FloatType compute, CellPrecision::Reason reason) { chosen = {compute, wireOf(compute, settings), reason}; };
        const bool hasLists = settings.level != AmpLevel::O0;
        if (hasLists && allowed[i]) choose(settings.half, CellPrecision::Reason::Allowed);
        if (hasLists && denied[i]) choose(FloatType::Float32, CellPrecision::Reason::Denied);
        if (const std::string& dtype = treatment.cells[i].dtype; !dtype.empty()) {
            const auto ruled = floatTypeNamed(dtype);
            if (!ruled) return fail("has dtype " + inQuotes(dtype) + ".", "float32, bfloat16 and float16 are known.", cell.path);
            chosen = {*ruled, *ruled, CellPrecision::Reason::Rule};
        }
        for (const graph::ValueId id : cell.outputs) wires[static_cast<std::size_t>(id)] = chosen.wire;
        out.cells.push_back(chosen);
    }
    return out;
}

} // namespace celloom::recipe
