// The one table between cell types and the frameworks' layers, read in both directions: the writer takes a type's first row, the importer
// any row by its name.
#pragma once

#include "models/code/code.h"

#include <optional>
#include <string>
#include <vector>

namespace celloom::code {

/// How an argument says a parameter's value.
enum class Form {
    Plain,      // the value itself
    Tuple,      // (value,)
    Padding,    // None for -1; an expression as "pad_id if pad_id >= 0 else None"
    TanhFlag,   // True for "tanh", False for "none"
    Complement, // one minus the value: PyTorch's momentum
    Pair,       // 3, or (3, 5)
    Padding4,   // 1, or (top, bottom, left, right)
    PoolStride, // as Pair; 0 means the window's size
    PoolMode,   // no parameter: "pad" where the pool needs it
    Padding2,   // 1, (1, 2) or "same": PyTorch's padding of a convolution
    Fixed       // no parameter of the cell: only the value `standard` means what the cell computes
};

struct Argument {
    std::string name;  // in Python
    std::string param; // of the cell; empty where Fixed
    Form form = Form::Plain;
    std::optional<std::string> standard; // what leaving it out means, as Python text; none: it must be given
    bool isByName = false;               // written with its name even where it could stand without
};

struct Layer {
    Dialect dialect;
    std::string name; // below nn: "Dense"
    std::string type; // of the catalogue
    std::vector<Argument> arguments;
};

const std::vector<Layer>& layers();
/// The layer that a type is written as; null: a class of the same name is written out (helpers.h), or an expression.
const Layer* layerOf(Dialect dialect, const std::string& type);
const Layer* layerNamed(Dialect dialect, const std::string& name);

} // namespace celloom::code
