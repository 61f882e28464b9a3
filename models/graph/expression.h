// Expressions over hyper-parameters: "hidden / heads", "roundUp(hidden * 8 / 3, 256)". Pure, bounded, exact on whole numbers.
// Grammar: + - * / % and parentheses, unary minus, roundUp(x, multiple), min(a, b, …), max(a, b, …), floor(x), ceil(x).
#pragma once

#include "models/base/result.h"
#include "models/graph/expand.h"

#include <map>
#include <string>
#include <vector>

namespace celloom::graph {

/// Hyper-parameters by name. Only numbers can stand in an expression; a flag can be one alone, so that it is handed down by its name.
using Scope = std::map<std::string, ResolvedValue>;
/// What free symbols such as "B" stand for: in a main graph each for itself, in a composite the dimension that is wired in.
using Symbols = std::map<std::string, Dim>;

/// int64 where the result is whole (fractions are exact: 8 / 3 * 3 is 8), the flag where the text is its name, double otherwise. Errors: unknown name, division by zero,
/// overflow, more than 1000 bytes or 50 levels of nesting.
Result<ResolvedValue> evaluate(const std::string& text, const Scope& scope);

/// A whole number, or an error that shows the expression, the names in it and the value that it gave.
Result<std::int64_t> evaluateInteger(const std::string& text, const Scope& scope);

/// A dimension: a whole number, or one symbol times a whole number ("2 * T").
Result<Dim> evaluateDim(const std::string& text, const Scope& scope, const Symbols& symbols);

/// The names in an expression, functions left out; each once, in order. Any text is taken: what is no expression has names too.
std::vector<std::string> namesIn(const std::string& text);
/// The text with names replaced by other texts; where these are more than a name or a number, in parentheses.
std::string replaceNames(const std::string& text, const std::map<std::string, std::string>& replacements);

/// A name that can stand in an expression: a letter or _, then letters, digits and _.
bool isIdentifier(const std::string& text);

/// "128" or "85.33": a resolved number as text.
std::string toString(const ResolvedValue& value);
std::string toString(const Dim& dim); // "512", "T", "2 * T"

} // namespace celloom::graph
