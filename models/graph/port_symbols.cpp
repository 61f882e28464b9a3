#include "models/graph/port_symbols.h"

#include "models/base/capped.h"
#include "models/graph/expression.h"

namespace celloom::graph {

Status PortSymbols::bind(const DeclaredPort& port, const Shape& actual) {
    const auto wrong = [&](const std::string& why) {
        return fail(port.name + " is " + toString(actual) + ", but the cell declares " + toString(port.shape) + why + ".",
                    "Change the declared shape, or what feeds " + port.name + ".");
    };
    if (actual.size() != port.shape.size()) return wrong(": " + std::to_string(actual.size()) + " dimensions, not " + std::to_string(port.shape.size()));
    for (std::size_t i = 0; i < actual.size(); ++i) {
        const Dim &declared = port.shape[i], &given = actual[i];
        if (declared.symbol.empty()) {
            if (given != declared) return wrong("");
            continue;
        }
        if (given.number % declared.number != 0)
            return wrong(", and " + toString(given) + " is no multiple of " + std::to_string(declared.number));
        const Dim meaning{given.number / declared.number, given.symbol};
        const auto [known, isNew] = m_known.emplace(declared.symbol, Meaning{meaning, port.name});
        if (!isNew && known->second.dim != meaning)
            return wrong(", where " + declared.symbol + " would be " + toString(meaning) + "; it is " + toString(known->second.dim) +
                         (known->second.port == port.name ? " in an earlier dimension" : " from " + known->second.port));
    }
    return {};
}

Result<Shape> PortSymbols::shapeOf(const DeclaredPort& port) const {
    Shape out;
    for (const Dim& declared : port.shape) {
        if (declared.symbol.empty()) {
            out.push_back(declared);
            continue;
        }
        const auto known = m_known.find(declared.symbol);
        if (known == m_known.end())
            return fail("The dimension " + declared.symbol + " of " + port.name + " is in no input.",
                        "Use a name that an input's shape has, a hyper-parameter, or a number.");
        const std::int64_t number = multiplyCapped(declared.number, known->second.dim.number);
        if (number > kMaxDim)
            return fail(port.name + " would have a dimension of more than " + std::to_string(kMaxDim) + ".", "Declare a smaller one.");
        out.push_back({number, known->second.dim.symbol});
    }
    return out;
}

Shape plainShape(const std::vector<std::int64_t>& sizes) {
    Shape out;
    for (const std::int64_t size : sizes) out.push_back({size, ""});
    return out;
}

} // namespace celloom::graph
