// Cells that are written as an expression in construct, not as an attribute: sums, splits, reshapes. And how arguments of layers say
// values.
#pragma once

#include "models/code/table.h"
#include "models/graph/expand.h"

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace celloom::code {

/// A parameter of the cell as Python text.
using ValueText = std::function<Result<std::string>(const std::string& param)>;

/// The formula of an Expression as it comes back when it is written as code and read again: numbers worked out, no needless parentheses.
Result<std::string> plainFormula(const std::string& text, int inputs);

bool isExpressionForm(const std::string& type);

struct ExpressionText {
    std::string text;
    std::string tag; // for a comment behind the line, where the text alone does not say the type: "Residual"
};
/// `inputs`: the wired variables, in port order. Adds the helpers that the text calls to `needs`.
Result<ExpressionText> expressionForm(Dialect dialect, const graph::CellInstance& cell, const std::vector<std::string>& inputs,
                                      const ValueText& value, std::set<std::string>& needs);

/// The value as the argument says it. Nothing where the argument is better left out.
Result<std::optional<std::string>> inForm(const Argument& argument, const graph::CellInstance& cell, const ValueText& value);

/// Whether the framework's layer computes what this instance does; else a helper of the type's name is written out.
bool fitsLayer(Dialect dialect, const graph::CellInstance& cell);

} // namespace celloom::code
