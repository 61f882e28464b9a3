// Callbacks and metrics that the user types: how a recipe holds them. An item of callbacks.scripts is a JSON object {name, code or path, values},
// or only the path of a .py file, which is read in when the run is submitted.
#pragma once

#include "models/base/result.h"
#include "models/graph/document.h"

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace celloom::recipe {

struct TypedScript {
    std::string name;  // for events, metrics and checkpoints; empty: the file's
    std::string code;  // or
    std::string path;  // of a file to be read
    std::map<std::string, graph::ParamValue> values; // of free names and of the constructor's parameters

    [[nodiscard]] std::string shownName() const; // never empty
    bool operator==(const TypedScript&) const = default;
};

/// An item's text: a JSON object, or a path.
Result<TypedScript> typedScriptFromText(const std::string& item);
/// The item as JSON text in one line.
std::string toText(const TypedScript& script);

/// All of a list; names that are taken twice, neither code nor path, or both, are errors.
Result<std::vector<TypedScript>> typedScripts(const std::vector<std::string>& items);

/// Reads in the files of items that name one; relative paths are meant in `folder`.
Result<std::vector<std::string>> withScriptsRead(const std::vector<std::string>& items, const std::filesystem::path& folder);

} // namespace celloom::recipe
