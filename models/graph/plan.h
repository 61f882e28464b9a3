// What is the same for every instance of a graph: sound names, which wire feeds which port, an order in which the cells can run.
#pragma once

#include "models/graph/document.h"
#include "models/graph/problems.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace celloom::graph {

struct Plan {
    std::vector<const Cell*> order;                                             // in which the cells can run
    std::map<std::string, std::vector<std::pair<std::string, Endpoint>>> feeds; // by target cell ("" = the outputs): port, source
    bool isUsable = true;                                                       // false: problems were found
};

/// What a cell or a port may be called: letters, digits, _ and -, of any script, at most 128 bytes.
bool isCellName(const std::string& name);

/// Problems are reported with paths below `path`. The plan points into `graph`.
Plan planOf(const Graph& graph, const std::string& path, ProblemList& problems);

} // namespace celloom::graph
