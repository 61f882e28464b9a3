// Problems found while a document is expanded: bounded, with the helpers that word them. Internal to models/graph.
#pragma once

#include "models/base/text.h"
#include "models/graph/expand.h"

#include <string>
#include <vector>

namespace celloom::graph {

/// Collects errors and warnings into one list. Errors and warnings are bounded apart, so that no number of warnings hides an error.
class ProblemList {
public:
    /// `prefix` goes before every path. With isAdvice every error is listed as a warning (a composite that the model does not use).
    ProblemList(std::vector<Problem>& list, std::string prefix, bool isAdvice)
        : m_list(list), m_prefix(std::move(prefix)), m_isAdvice(isAdvice) {}

    void error(const std::string& path, std::string message, std::string hint = {}, std::string parameter = {}) {
        if (m_errors++ < kMost) add(m_isAdvice, path, std::move(message), std::move(hint), std::move(parameter));
    }
    void error(const std::string& path, Error error, const std::string& parameter = {}) {
        this->error(path, std::move(error.message), std::move(error.hint), parameter);
    }
    void warning(const std::string& path, std::string message, std::string hint) {
        if (m_warnings++ < kMost) add(true, path, std::move(message), std::move(hint), {});
    }
    [[nodiscard]] std::size_t errors() const { return m_errors; }
    [[nodiscard]] bool isFull() const { return m_errors >= kMost; } // looking further would tell nothing more

private:
    static constexpr std::size_t kMost = 100;

    void add(bool isWarning, const std::string& path, std::string message, std::string hint, std::string parameter) {
        using enum Problem::Severity;
        if (isWarning && m_list.size() >= 2 * kMost) return;
        m_list.push_back({isWarning ? Warning : Error, m_prefix + path, std::move(message), std::move(hint), std::move(parameter)});
    }

    std::vector<Problem>& m_list;
    std::string m_prefix;
    bool m_isAdvice;
    std::size_t m_errors = 0, m_warnings = 0;
};

/// How problems are worded that say what is still to come rather than what is wrong: isStillMissing() knows them by it.
inline constexpr const char* kHasNoWire = " has no wire.";
inline constexpr const char* kNeedsParameter = " needs the parameter ";

/// The path of a cell inside the graph at `path` (empty: the main graph).
inline std::string below(const std::string& path, const std::string& name) {
    return path.empty() ? name : path + "." + name;
}

inline std::string toText(const Endpoint& end) {
    return end.cell.empty() ? end.port : end.cell + "." + end.port;
}

template <class Items> std::vector<std::string> namesOf(const Items& items) {
    std::vector<std::string> out;
    for (const auto& item : items) out.push_back(item.name);
    return out;
}

/// "Did you mean a?", or all there are: "Ports are a, b."
inline std::string didYouMean(const std::string& word, const std::vector<std::string>& known, const std::string& what) {
    const auto close = nearest(word, known);
    if (!close.empty()) return "Did you mean " + joined(close) + "?";
    return known.empty() ? "There are no " + what + "." : what + " are " + joined(known) + ".";
}

} // namespace celloom::graph
