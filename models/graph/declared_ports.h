// Ports that an instance declares itself, as text: "x: [B, T, hidden]; mask: [B, T] bool". A name, the shape, and the dtype where it is not float.
#pragma once

#include "models/base/result.h"
#include "models/graph/expression.h"

#include <string>
#include <vector>

namespace celloom::graph {

inline constexpr std::size_t kMaxDeclaredPorts = 32, kMaxDeclaredDims = 8;

/// Hyper-parameters of `scope` become numbers, other names symbols. Parted by semicolons or line ends; an empty text declares none.
/// Errors quote the port that they are about.
Result<std::vector<DeclaredPort>> readDeclaredPorts(const std::string& text, const Scope& scope);

/// The same as readDeclaredPorts() reads it back without a scope.
std::string toText(const std::vector<DeclaredPort>& ports);

} // namespace celloom::graph
