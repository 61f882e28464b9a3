// Everything about a checkpoint that does not fit the model, gathered so that the user sees it at once, with a guess at the reason.
#pragma once

#include "models/base/result.h"
#include "models/graph/expand.h"

#include <cstdint>
#include <string>
#include <vector>

namespace celloom::engine {

class Mismatches {
public:
    explicit Mismatches(const graph::ExpandedModel& model) : m_model(model) {}

    void missing(const std::string& name) { m_missing.push_back(name); }
    void unexpected(const std::string& name) { m_unexpected.push_back(name); }
    void misshaped(const std::string& name, const char* type, const std::vector<std::int64_t>& found,
                   const std::vector<std::int64_t>& expected);
    /// Fits in name and shape, but not in what it holds.
    void wrong(const std::string& what) { m_wrong.push_back(what); }

    /// Ok where nothing was gathered.
    Status toStatus(const std::string& place) const;

private:
    struct Shapes {
        std::string name;
        std::vector<std::int64_t> found, expected;
    };
    std::string guess() const;
    std::string guessFromShapes() const;
    std::string guessFromNames() const;
    std::string commonPrefix() const;

    const graph::ExpandedModel& m_model;
    std::vector<std::string> m_missing, m_unexpected, m_misshaped, m_wrong;
    std::vector<Shapes> m_shapes;
};

} // namespace celloom::engine
