// Ends a streamed text before a stop string, which may come in pieces: what could still become one is held back.
#pragma once

#include <string>
#include <vector>

namespace celloom::engine {

class StopText {
public:
    /// UTF-8, none empty.
    explicit StopText(std::vector<std::string> stops) : m_stops(std::move(stops)) {}

    /// Takes whole characters; returns those that may be shown. After a stop string was found nothing comes any more.
    std::string push(const std::string& delta);
    /// What was held back, now that no more comes.
    std::string finish();
    bool isFound() const { return m_isFound; }

private:
    std::size_t heldBack() const;

    std::vector<std::string> m_stops;
    std::string m_pending;
    bool m_isFound = false;
};

} // namespace celloom::engine
