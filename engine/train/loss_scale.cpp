#include "engine/train/loss_scale.h"

#include <algorithm>

namespace celloom::engine {

LossScale LossScale::of(const recipe::Recipe& recipe) {
    const std::string& kind = recipe.text("precision.loss_scale");
    const double value = recipe.real("precision.loss_scale_value");
    if (kind == "fixed") return fixed(value);
    if (kind == "dynamic") return dynamic(value, recipe.real("precision.loss_scale_factor"), recipe.integer("precision.loss_scale_window"));
    return {};
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
