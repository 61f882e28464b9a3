// What the symbols of declared ports (Script and Plugin cells) stand for, learned from the shapes that are wired in.
#pragma once

#include "models/base/result.h"
#include "models/graph/expand.h"

#include <map>
#include <string>

namespace celloom::graph {

class PortSymbols {
public:
    /// Holds a shape to what the port declares, and learns its symbols from it. The error names the port, both shapes, and the symbol that
    /// would stand for two things.
    Status bind(const DeclaredPort& port, const Shape& actual);

    /// The port's shape with every symbol replaced. Fails where a symbol is not known or a dimension grows beyond kMaxDim.
    [[nodiscard]] Result<Shape> shapeOf(const DeclaredPort& port) const;

private:
    struct Meaning {
        Dim dim;
        std::string port; // that it was learned from
    };
    std::map<std::string, Meaning> m_known;
};

/// A tensor's or a weight's sizes as a shape.
Shape plainShape(const std::vector<std::int64_t>& sizes);

} // namespace celloom::graph
