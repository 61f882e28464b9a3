// Python's syntax as plain data: what the importer walks. Knows no LibTorch; parse.cpp brings the parser's tree into this form.
#pragma once

#include "engine/script/code_source.h"

#include <string>
#include <vector>

namespace celloom::engine::code {

/// Children, by kind, in this order.
enum class Syntax {
    Name,   // text
    Number, // text
    String, // text
    True,
    False,
    None,
    Tuple,       // items
    List,        // items
    Call,        // callee, arguments; named ones are Keyword
    Keyword,     // text; value
    Starred,     // value
    Select,      // value; text
    Subscript,   // value, indices
    Slice,       // begin, end, step: Missing where left out
    Binary,      // text is the sign: "+", "//", "**", "@", "==", "is", "is not", …; both sides
    Unary,       // text: "-", "not", "~"; operand
    Conditional, // condition, value if so, value otherwise
    Each,        // [value for target in range]: value, target, range
    Missing,
    // statements
    Assign,     // target (a Tuple for several), value
    Return,     // value, or none
    Expression, // value
    If,         // condition, Block, Block
    For,        // target, range, Block
    Block,      // statements
    Pass,
    Other // text: what it is called
};

struct Node {
    Syntax kind = Syntax::Other;
    std::string text;
    std::vector<Node> of;
    std::size_t begin = 0, end = 0; // of ScriptSource::text
};

struct Parameter {
    std::string name;
    std::vector<Node> standard; // one, or none
    std::size_t begin = 0;
};

struct Method {
    std::string name;
    std::vector<Parameter> parameters; // without self
    std::vector<Node> body;
    std::size_t begin = 0;
};

struct Class {
    std::string name, base;
    std::vector<Method> methods;
    std::size_t begin = 0, end = 0;
    [[nodiscard]] const Method* method(const std::string& name) const {
        for (const Method& one : methods)
            if (one.name == name) return &one;
        return nullptr;
    }
};

/// Through LibTorch's parser. The source's bounds keep its recursion shallow; still, call it in a limited child where the source is a
/// stranger's.
ScriptResult<Class> parseClass(const ScriptSource& source, const ScriptDefinition& definition);

} // namespace celloom::engine::code
