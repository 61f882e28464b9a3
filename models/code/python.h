// Small pieces of Python: names, values, and a document's expressions as Python's.
#pragma once

#include "models/graph/expression.h"

#include <functional>
#include <set>
#include <string>
#include <vector>

namespace celloom::code {

/// As Python writes it, so that it reads back as the same value: 3.0, 1e-05, True, "cosine".
std::string pythonValue(const graph::ParamValue& value);
/// The text as a string literal of one line.
std::string pythonString(const std::string& text);

/// A name that Python takes, and that no keyword is: "layer-norm" is layer_norm, "class" is class_.
std::string pythonName(const std::string& name);
/// `wanted`, with _ behind it as often as needed to be none of `taken`; taken from now on.
std::string uniqueName(std::string wanted, std::set<std::string>& taken);

/// How a hyper-parameter is written at this place: "hidden", or "self.hidden".
using NameOf = std::function<std::string(const std::string& hyper)>;
/// An expression of the document. Whole: where a whole number is needed, quotients that come out whole under `scope` are written //.
/// Adds "round_up" and "math" to `needs` where the text needs them.
Result<std::string> pythonExpression(const std::string& expression, const graph::Scope& scope, bool isWhole, const NameOf& nameOf,
                                     std::set<std::string>& needs);

/// The items of an IntegerList: parted at commas outside of parentheses.
std::vector<std::string> listItems(const std::string& list);

} // namespace celloom::code
