// What the edits share. Internal to models/graph.
#pragma once

#include "models/graph/edits.h"
#include "models/graph/expression.h"

#include <functional>

namespace celloom::graph {

Result<Graph*> graphFor(Document& document, const GraphName& name);
Result<Cell*> cellFor(Graph& graph, const std::string& name);
void eachGraph(Document& document, const std::function<void(Graph&)>& visit);

/// The texts in which a hyper-parameter's name would mean it: values, dimensions, repeats, and those parameters that are expressions.
void eachExpression(const Document& document, Graph& graph, const std::function<void(std::string&)>& visit);
void eachExpression(const Document& document, Cell& cell, const std::function<void(std::string&)>& visit);
/// Whether text given for this parameter is an expression, or a name handed down, rather than the value itself.
bool isExpression(const Document& document, const Cell& cell, const std::string& param);

} // namespace celloom::graph
