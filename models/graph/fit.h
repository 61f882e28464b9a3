// The sizes of a cell that its inputs decide: a Dense after something of width 64 takes 64.
#pragma once

#include "models/graph/edits.h"
#include "models/graph/expression.h"

#include <map>
#include <string>

namespace celloom::graph {

/// Sets the whole-number parameters that the cell leaves open and that its shape rule demands of these inputs; of a composite, the hyper-parameters that
/// an input's declared shape names. What was set stays, what the inputs do not decide stays open. `inputs` are the shapes by port, as far as
/// they are known, `scope` the hyper-parameters of the cell's graph: where one alone has the size, the cell takes its name.
void fitToInputs(Document& document, const GraphName& graph, const std::string& cell, const std::map<std::string, Shape>& inputs, const Scope& scope);

/// A size as the name of the one hyper-parameter that has it, or as the number.
ParamValue sizeInWords(std::int64_t size, const Scope& scope);

/// Whether a name in a declared shape is one of the graph's hyper-parameters.
bool isHyper(const Graph& graph, const std::string& name);

} // namespace celloom::graph
