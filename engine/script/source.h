// Sources typed by the user, taken apart before any compiler sees them: bounded in size and depth, what the language does not have refused
// with place and hint, comments and docstrings blanked so that every line and column stays where it was. Knows no LibTorch.
#pragma once

#include "models/base/result.h"
#include "models/graph/document.h"

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace celloom::engine {

/// What is wrong with a source, and where: lines and columns count from 1, columns in characters.
struct ScriptProblem {
    std::string message, hint;
    int line = 0, column = 0, length = 1; // line 0: the source as a whole
    std::string method;                   // in which it happened while running; empty: nowhere in particular
    bool isLimit = false;                 // it took too long or too much

    /// With the place "name:line:column".
    [[nodiscard]] Error asError(const std::string& name) const;
};
template <class T> using ScriptResult = tl::expected<T, ScriptProblem>;

/// A value that a script's name stands for: "initial_lr" is 0.001.
using ScriptValue = graph::ParamValue;

/// A class or a function at the left margin.
struct ScriptDefinition {
    bool isClass = false;
    std::string name, base;       // the base's last name: "Callback" of "ms.train.Callback"; empty: none
    std::size_t begin = 0, end = 0; // of ScriptSource::text
};

struct ScriptSource {
    std::string text; // as long as what was read, line by line
    std::vector<ScriptDefinition> definitions;
    std::map<std::string, ScriptValue> constants;      // "initial_lr = 0.1" at the left margin
    std::map<std::size_t, std::string> starParameters; // "*inputs" of the method whose name is at this offset; the star is blanked
};

struct ScriptLimits {
    std::size_t maxBytes = 64 << 10, maxLines = 5000;
    std::size_t maxTokensOfLine = 1000; // of a logical line: the compiler's recursion follows it
    std::size_t maxBrackets = 32, maxIndents = 12, maxPrefixes = 8, maxElifs = 64;
};

ScriptResult<ScriptSource> readScriptSource(std::string_view code, const ScriptLimits& limits = {});

/// The place of a byte of the text.
ScriptProblem problemAt(std::string_view text, std::size_t offset, std::size_t bytes, std::string message, std::string hint = {});

/// "0.1", "-3", "True", "'cosine'": a Python literal; nothing where it is none.
bool readScriptValue(std::string_view text, ScriptValue& value);
/// As Python writes it, so that it reads back as the same value: 3.0, 1e-05, True, "cosine".
std::string scriptValueText(const ScriptValue& value);

} // namespace celloom::engine
