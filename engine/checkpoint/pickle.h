// Reads a pickle as a drawing of what it would build. Nothing is imported, called or built: a call is a node that says "this function with
// these arguments", and a function that is not on the caller's list is refused by name.
#pragma once

#include "models/base/result.h"

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace celloom::engine {

/// A value of the pickle. Values name each other by their index in Pickle::nodes; a list can hold itself, so walk with a bound.
struct PickleNode {
    enum class Kind { None, Bool, Integer, LargeInteger, Real, Text, Bytes, Tuple, List, Dict, Function, Call, Persistent } kind = Kind::None;
    std::int64_t integer = 0;         // Integer, Bool; a LargeInteger does not fit, its value is not kept
    double real = 0;                  // Real
    std::string_view text;            // Text, Bytes; of a Function its module
    std::string_view name;            // of a Function its name in the module
    std::vector<int> items;           // Tuple, List; of a Dict (or a Call that gets items) key, value, key, value, …
    int function = -1, argument = -1; // Call: the Function and a Tuple; Persistent: the id, in `argument`

    [[nodiscard]] bool isFunction(std::string_view wantedModule, std::string_view wantedName) const {
        return kind == Kind::Function && text == wantedModule && name == wantedName;
    }
};

struct Pickle {
    std::vector<PickleNode> nodes;
    int top = -1; // what it builds

    [[nodiscard]] const PickleNode& operator[](int index) const { return nodes[static_cast<std::size_t>(index)]; }
};

/// "a number", "a list", "torch.Size(…)": for messages.
std::string describe(const Pickle& pickle, int index);

/// Reads up to the first STOP. `isKnown(module, name)` decides about functions. Texts are views of `bytes`. Bounded: 64 MB, 2 million
/// values, 4 million entries on the stack. Protocols 2 to 5 as far as Python's own pickler writes plain data.
Result<Pickle> readPickle(std::string_view bytes, const std::function<bool(std::string_view module, std::string_view name)>& isKnown);

} // namespace celloom::engine
