// Loss scale for half-precision gradients: MindSpore's managers (FixedLossScaleManager, DynamicLossScaleManager).
#pragma once

#include "models/base/result.h"
#include "models/recipe/recipe.h"

#include <cstdint>

namespace celloom::engine {

/// value() multiplies the loss; gradients are divided by it again. update() is told after each step whether a gradient overflowed.
class LossScale {
public:
    enum class Kind { None, Fixed, Dynamic };
    struct State {
        double value = 1;
        std::int64_t current = 1, lastChange = 0, overflowsInARow = 0; // steps count from 1
    };

    static constexpr std::int64_t kMostOverflows = 1000; // in a row

    LossScale() = default;
    /// As MindSpore checks them: value and first at least 1, factor above 0, window above 0.
    static Result<LossScale> fixed(double value = 128, bool dropOverflowUpdate = true);
    static Result<LossScale> dynamic(double first = 16777216, double factor = 2, std::int64_t window = 2000);
    /// "auto" is MindSpore's choice by level: dynamic(), as it stands above, at O2 with float16; none otherwise.
    static Result<LossScale> of(const recipe::Recipe& recipe);

    [[nodiscard]] bool isOn() const { return m_kind != Kind::None; }
    /// A step whose gradients overflow is skipped. Otherwise it ends the run.
    [[nodiscard]] bool dropsOverflow() const { return isOn() && m_dropsOverflow; }
    [[nodiscard]] double value() const { return m_state.value; }
    /// Overflow: value / factor, not below 1. After `window` steps without one since the last change: value * factor.
    /// Fails after more than 1000 overflows in a row, as MindSpore does.
    Status update(bool isOverflow);

    [[nodiscard]] const State& state() const { return m_state; }
    void restore(const State& state) { m_state = state; }

private:
    LossScale(Kind kind, double value, double factor, std::int64_t window) : m_kind(kind), m_factor(factor), m_window(window) { m_state.value = value; }
    bool m_dropsOverflow = true;
    Kind m_kind = Kind::None;
    double m_factor = 1;
    std::int64_t m_window = 1;
    State m_state;
};

} // namespace celloom::engine
