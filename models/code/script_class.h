// A Script cell's code as a class of the framework's: its weights as parameters, its functions with the framework's module in front.
#pragma once

#include "models/code/code.h"

#include <string>
#include <vector>

namespace celloom::code {

struct ScriptWeight {
    std::string name, shape; // "kernel", and "hidden, hidden" as Python
    bool isOnes = false, isZeros = false;
};

/// Lines of the class, and before it what stood at the left margin. `parameters`: of the constructor, "hidden, heads".
std::vector<std::string> scriptClass(Dialect dialect, const std::string& className, const std::string& code,
                                     const std::vector<ScriptWeight>& weights, const std::string& parameters);

} // namespace celloom::code
