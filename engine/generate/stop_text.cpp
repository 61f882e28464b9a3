#include "engine/generate/stop_text.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace celloom::engine {

std::string StopText::push(const std::string& delta) {
    if (m_isFound) return {};
    m_pending += delta;
    std::size_t at = std::string::npos;
    for (const std::string& stop : m_stops) at = std::min(at, m_pending.find(stop));
    if (at != std::string::npos) {
        m_isFound = true;
        m_pending.resize(at);
        return std::exchange(m_pending, {});
    }
    const std::size_t shown = m_pending.size() - heldBack();
    std::string out = m_pending.substr(0, shown);
    m_pending.erase(0, shown);
    return out;
}

std::string StopText::finish() {
    return std::exchange(m_pending, {});
}

/// The length of the longest end of the pending text that begins a stop string.
std::size_t StopText::heldBack() const {
    std::size_t out = 0;
    for (const std::string& stop : m_stops)
        for (std::size_t length = std::min(stop.size() - 1, m_pending.size()); length > out; --length)
            if (std::string_view(m_pending).ends_with(std::string_view(stop).substr(0, length))) out = length;
    return out;
}

} // namespace celloom::engine
