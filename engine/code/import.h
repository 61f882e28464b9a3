// Python source to Cell graph: a file of nn.Cell classes (or nn.Module ones) becomes a document. What the catalogue knows is imported, the
// rest is refused with its place. The text is bounded by engine/script/source.h, its syntax read by LibTorch's parser; no Python runs.
#pragma once

#include "engine/script/code_source.h"
#include "models/graph/document.h"

#include <map>
#include <string>
#include <vector>

namespace celloom::engine::code {

struct ImportOptions {
    std::string name = "source";                     // of the source, for places
    std::string className;                           // the class to import as the main graph; empty: the last that no other uses
    std::vector<graph::Port> inputs;                 // shapes of its inputs, where the source does not say them in comments
    std::map<std::string, graph::ParamValue> values; // of its constructor's parameters; they win over defaults
};

struct Imported {
    graph::Document document;
    std::string className;          // that became the main graph, or the composite in it
    std::vector<std::string> notes; // what was left out or assumed: "self.pool is never called"
};

/// In this process: for text that is trusted, and for the child. See tryImport().
ScriptResult<Imported> importCode(const std::string& text, const ImportOptions& options);

/// The same in a child process whose memory, time and files are limited. Forks: call it before the process has started threads.
ScriptResult<Imported> tryImport(const std::string& text, const ImportOptions& options);

/// "x: [B, T, 512]; mask: [B, T] bool" as ports, for ImportOptions::inputs.
Result<std::vector<graph::Port>> readInputPorts(const std::string& text);

} // namespace celloom::engine::code
