// What a Python expression stands for while classes are read: numbers and expressions of hyper-parameters, layers, tensors. Internal to
// engine/code.
#pragma once

#include "engine/code/syntax.h"
#include "models/graph/document.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace celloom::engine::code {

/// Thrown inside the importer, caught where it is called.
struct Refusal {
    std::size_t begin = 0, end = 0;
    std::string message, hint;
};

struct Value;

/// A layer or a class of the file as __init__ makes it, before it is called.
struct Layer {
    enum class Kind { Cell, Sequence, List, Attention, Helper } kind = Kind::Cell;
    std::string type;                                // Cell: of the catalogue, or a composite
    std::map<std::string, graph::ParamValue> params; // Cell
    std::string repeat;                              // Cell: as many in a row
    std::vector<Value> items;                        // Sequence, List
    bool isTuple = false;                            // gives (output, something): MindSpore's nn.MultiheadAttention
    bool isUsed = false;
    std::string attribute, name; // of self; the cell's name where a comment tells another
    std::string note;
    std::size_t begin = 0, end = 0;
};

struct Value {
    enum class Kind { None, Number, Expression, Flag, Text, Items, Layer, Tensor, Shape, Size, Dtype, Undefined } kind = Kind::None;
    graph::ParamValue number; // Number, Flag, Text
    std::string text;         // Expression, over hyper-parameters; Undefined: why
    int level = 3;            // of the expression: 1 a sum, 2 a product, 3 one word
    std::vector<Value> items; // Items
    std::shared_ptr<Layer> layer;
    graph::Endpoint end;    // Tensor; Shape and Size: of which tensor
    std::int64_t index = 0; // Size: which dimension
    std::size_t place = 0;
};

inline Value tensorAt(graph::Endpoint end) {
    Value out;
    out.kind = Value::Kind::Tensor;
    out.end = std::move(end);
    return out;
}
inline Value itemsOf(std::vector<Value> items) {
    Value out;
    out.kind = Value::Kind::Items;
    out.items = std::move(items);
    return out;
}

} // namespace celloom::engine::code
