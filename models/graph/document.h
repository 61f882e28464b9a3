// The Cell graph document: plain data that the editor edits, the engine runs and the user versions. No behaviour here.
// JSON form: docs/file-formats.md. A path of cell names ("layers.3.self_attn.q_proj") is a cell's identity everywhere.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace celloom::graph {

/// A parameter as the user wrote it. A string given for a number is an expression over hyper-parameters ("hidden / heads").
using ParamValue = std::variant<std::int64_t, double, bool, std::string>;

/// One dimension or more: each entry an expression over hyper-parameters and free symbols: "B", "T", "hidden", "2 * heads".
using SymbolicShape = std::vector<std::string>;

struct Port {
    std::string name;
    SymbolicShape shape;
    std::string dtype = "float"; // "float" follows the precision rules; "int64", "bool" are fixed
};

struct HyperParameter {
    std::string name;
    ParamValue value;
    std::string help;
};

struct Position {
    double x = 0, y = 0;
};

/// A cell: `type` names a catalogue type or a composite of the document. With `repeat` (an expression) the cell stands for that
/// many instances in a row, output i feeding input i of the next; their paths are name.0, name.1, …
struct Cell {
    std::string name;
    std::string type;
    std::map<std::string, ParamValue> params;
    std::string repeat;
    std::string note;
    std::optional<Position> position;
};

/// An end of a wire. An empty cell name means the graph's own input (as source) or output (as target).
struct Endpoint {
    std::string cell;
    std::string port;
    bool operator==(const Endpoint&) const = default;
};

struct Wire {
    Endpoint from, to;
    bool operator==(const Wire&) const = default;
};

/// Where a composite was taken from: a library's entry, as it was at that version. An edited copy keeps it; docs/file-formats.md.
struct Origin {
    std::string library; // "celloom": the standard composites; "workspace": the user's own
    std::string name;
    std::int64_t version = 1;
    bool operator==(const Origin&) const = default;
};

struct Graph {
    std::string name;
    std::string note;
    std::vector<HyperParameter> hyper;
    std::vector<Port> inputs, outputs;
    std::vector<Cell> cells;
    std::vector<Wire> wires;
    std::optional<Origin> origin = {}; // of a composite from a library
};

inline constexpr int kSchemaVersion = 1;

struct Document {
    int schema = kSchemaVersion;
    std::string family; // "baichuan", "internlm2", … or empty: decides weight names and config.json (models/families)
    Graph main;
    std::map<std::string, Graph> composites;
};

} // namespace celloom::graph
