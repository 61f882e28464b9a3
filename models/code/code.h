// A Cell graph as runnable Python, in MindSpore's and in PyTorch's words: what the Code tab and the verb `code` show. Knows no LibTorch.
// One class a graph, its hyper-parameters as arguments of __init__, cells as attributes of the same name, so that the framework's parameter
// names are Celloom's paths (but for parameterName()). engine/code reads the MindSpore text back into the same document.
#pragma once

#include "models/base/result.h"
#include "models/graph/document.h"

#include <string>
#include <vector>

namespace celloom::code {

enum class Dialect { MindSpore, PyTorch };

/// "mindspore" or "pytorch", and back.
const char* toString(Dialect dialect);
Result<Dialect> dialectNamed(const std::string& name);

/// Lines of the text that belong to one cell; lines count from 1, `last` is among them.
struct CellLines {
    int first = 0, last = 0;
    std::string composite; // the graph that the cell stands in; empty: the main graph
    std::string cell;      // empty: the class as a whole
};

struct Code {
    std::string text;
    std::vector<CellLines> lines; // by first line; a cell has some in __init__ and some in construct
    std::string mainClass;        // the class of the main graph
};

/// The whole document, composites first. Errors name the cell that cannot be written (a Plugin, a graph with problems).
Result<Code> write(const graph::Document& document, Dialect dialect);

/// What the framework calls a weight of a cell of this type: MindSpore's LayerNorm says gamma and beta, its Embedding embedding_table.
std::string parameterName(Dialect dialect, const std::string& type, const std::string& weight);

} // namespace celloom::code
