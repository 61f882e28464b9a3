#include "engine/train/loss_scale.h"

#include "models/base/text.h"
#include "models/recipe/precision.h"

#include <algorithm>

namespace celloom::engine {

Result<LossScale> LossScale::fixed(double value, bool dropOverflowUpdate) {
    if (!(value >= 1)) return fail("The loss scale is " + numberText(value) + ", below 1.", "Give 1 or more.", "precision.loss_scale_value");
    LossScale out(Kind::Fixed, value, 1, 1);
    out.m_dropsOverflow = dropOverflowUpdate;
    return out;
}

Result<LossScale> LossScale::dynamic(double first, double factor, std::int64_t window) {
    if (!(first >= 1)) return fail("The first loss scale is " + numberText(first) + ", below 1.", "Give 1 or more.", "precision.loss_scale_value");
    if (!(factor > 0))
        return fail("The loss scale's factor is " + numberText(factor) + ".", "Give a number above 0; 2 is usual.", "precision.loss_scale_factor");
    if (window <= 0)
        return fail("The loss scale's window is " + std::to_string(window) + " steps.", "Give 1 or more.", "precision.loss_scale_window");
    return LossScale(Kind::Dynamic, first, factor, window);
}

Result<LossScale> LossScale::of(const recipe::Recipe& recipe) {
    const std::string& kind = recipe.text("precision.loss_scale");
    const double value = recipe.real("precision.loss_scale_value");
    if (kind == "auto") {
        const recipe::PrecisionSettings precision = recipe::precisionSettingsOf(recipe);
        const bool isScaled = precision.level == recipe::AmpLevel::O2 && precision.half == recipe::FloatType::Float16;
        return isScaled ? dynamic() : LossScale();
    }
    if (kind == "fixed") return fixed(value, recipe.flag("precision.drop_overflow_update"));
    if (kind == "dynamic") return dynamic(value, recipe.real("precision.loss_scale_factor"), recipe.integer("precision.loss_scale_window"));
    return LossScale();
}

Status LossScale::update(bool isOverflow) {
    m_state.overflowsInARow = isOverflow ? m_state.overflowsInARow + 1 : 0;
    if (m_kind == Kind::Dynamic) {
        if (isOverflow) {
            m_state.value = std::max(m_state.value / m_factor, 1.0);
            m_state.lastChange = m_state.current;
        } else if (m_state.current - m_state.lastChange >= m_window) {
            m_state.value *= m_factor;
            m_state.lastChange = m_state.current;
        }
    }
    ++m_state.current;
    if (m_state.overflowsInARow > kMostOverflows)
        return fail("More than 1000 steps in a row overflowed.", "Lower the learning rate, or train in bfloat16 or float32.", "precision.loss_scale");
    return {};
}

} // namespace celloom::engine
