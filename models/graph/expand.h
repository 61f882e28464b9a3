// Document -> flat list of primitive cell instances with resolved numbers and symbolic shapes, in an order in which they can run.
// This is what the engine executes, costs are counted on and rules are matched against.
#pragma once

#include "models/base/result.h"
#include "models/graph/document.h"

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

namespace celloom::graph {

/// A parameter after expressions are evaluated.
using ResolvedValue = std::variant<std::int64_t, double, bool, std::string>;

/// A dimension: a number, or a free symbol such as "B" times a factor. `symbol` empty means a plain number.
struct Dim {
    std::int64_t number = 1;
    std::string symbol;
    bool operator==(const Dim&) const = default;
};
using Shape = std::vector<Dim>;
inline constexpr std::int64_t kMaxDim = 1'000'000'000'000;
std::string toString(const Shape& shape); // "[B, T, 512]"

/// A learnable tensor of a cell instance, or a buffer.
struct WeightSpec {
    std::string name; // "weight", "bias"
    std::vector<std::int64_t> dims;
    /// FanIn: uniform within ±1/√(numbers that feed one output), as PyTorch and MindSpore begin a convolution.
    enum class Init { Normal, Ones, Zeros, FanIn } init = Init::Normal;
    /// What the cell itself keeps while it trains (running statistics): saved and loaded with the weights, never changed by an optimizer,
    /// and no parameter in counts.
    bool isBuffer = false;
};

/// A port that an instance declares itself (Script, Plugin). Names in the shape that are no hyper-parameters are symbols, bound by what is
/// wired in: one name stands for one dimension.
struct DeclaredPort {
    std::string name;
    Shape shape;
    std::string dtype = "float"; // or "int64", "bool"
    bool operator==(const DeclaredPort&) const = default;
};

/// Index into ExpandedModel::values.
using ValueId = int;

struct ValueInfo {
    std::string producer; // path of the producing cell instance and its port "layers.0.mlp.gate_proj.out", or the input's name
    Shape shape;
    std::string dtype = "float";
};

struct CellInstance {
    std::string path;                            // "layers.3.self_attn.W_pack"
    std::string type;                            // catalogue type
    std::map<std::string, ResolvedValue> params; // every parameter of the type, defaults filled in
    std::vector<ValueId> inputs;                 // in the catalogue's port order; -1 where an optional port has no wire
    std::vector<ValueId> outputs;
    std::vector<WeightSpec> weights;

    [[nodiscard]] std::int64_t integer(const std::string& name) const;
    [[nodiscard]] double real(const std::string& name) const;
    [[nodiscard]] bool flag(const std::string& name) const;
    [[nodiscard]] const std::string& text(const std::string& name) const;
    [[nodiscard]] std::vector<std::int64_t> integers(const std::string& name) const; // of an IntegerList: "256,128,128"
    [[nodiscard]] std::vector<DeclaredPort> ports(const std::string& name) const;    // of a Ports: "x: [B, T, 512]; mask: [B, T] bool"
};

struct NamedValue {
    std::string name;
    ValueId value;
};

struct ExpandedModel {
    std::string name, family;
    std::map<std::string, ResolvedValue> hyper; // the main graph's hyper-parameters, evaluated
    std::vector<NamedValue> inputs, outputs;
    std::vector<ValueInfo> values;
    std::vector<CellInstance> cells;

    [[nodiscard]] std::int64_t parameterCount() const;
    [[nodiscard]] std::int64_t hyperInteger(const std::string& name, std::int64_t otherwise) const;
};

/// One thing wrong (or doubtful) in a document. `path` is a cell path inside the main graph, "Composite/cell" inside a composite that
/// the main graph does not use, and empty for the main graph itself.
struct Problem {
    enum class Severity { Error, Warning } severity = Severity::Error;
    std::string path;
    std::string message;
    std::string hint;
    std::string parameter; // the parameter to change, where there is one
};

struct Expansion {
    ExpandedModel model; // complete only when no problem is an error
    std::vector<Problem> problems;
    [[nodiscard]] bool ok() const;
    [[nodiscard]] Error firstError() const;
};

/// The document with hyper-parameters of its main graph replaced. Unknown names are refused with the nearest known ones.
Status applyOverrides(Document& document, const std::map<std::string, ParamValue>& overrides);

/// Validates and expands. `overrides` replace hyper-parameters of the main graph. Bounded: at most 200 000 instances, depth 32,
/// 100 problems; of a repeated cell only the first instance that has errors is reported.
Expansion expand(const Document& document, const std::map<std::string, ParamValue>& overrides = {});

} // namespace celloom::graph
