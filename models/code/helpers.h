// Classes and functions that are written out where a framework has no equal: the same computation as the engine's cell of that type.
// The importer takes a class of these names for the cell, if its text is this one.
#pragma once

#include "models/code/code.h"

#include <string>
#include <vector>

namespace celloom::code {

struct Helper {
    std::string name; // "RMSNorm"
    std::string type; // of the cell that it computes; empty: a function that others use
    std::string text; // from "class" or "def" to the last line, with its line end
    bool needsMath = false, needsNumpy = false;
    std::vector<std::string> uses; // helpers that it calls
};

/// In the order in which they are written.
const std::vector<Helper>& helpers(Dialect dialect);
const Helper* helperNamed(Dialect dialect, const std::string& name);
const Helper* helperOf(Dialect dialect, const std::string& type);

} // namespace celloom::code
