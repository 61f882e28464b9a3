// Text that follows the language: each setter runs once now and again whenever the language changes.
#pragma once

#include <functional>
#include <vector>

namespace celloom::ui {

/// A widget keeps one, adds a setter for each translated text, and calls refresh() on QEvent::LanguageChange.
class Texts {
public:
    void add(std::function<void()> setter) {
        setter();
        m_setters.push_back(std::move(setter));
    }
    void refresh() const {
        for (const auto& setter : m_setters) setter();
    }

private:
    std::vector<std::function<void()>> m_setters;
};

} // namespace celloom::ui
