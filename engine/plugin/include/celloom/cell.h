// Cells for Celloom in libraries of their own. Needs these headers and LibTorch's, nothing else of Celloom:
//
//     #include <celloom/cell.h>
//
//     class Swish : public celloom::plugin::Cell {
//         using Cell::Cell;
//         std::vector<at::Tensor> construct(const std::vector<at::Tensor>& inputs, const celloom::plugin::Context& context) override {
//             return {inputs[0] * (inputs[0] * context.weight("beta")).sigmoid()};
//         }
//     };
//     CELLOOM_PLUGIN(CELLOOM_CELL("Swish", Swish))
//
// A graph names the library and the cell, and declares its ports and weights: {"type": "Plugin", "params": {"library": "swish.so", "cell": "Swish",
// "inputs": "x: [B, C]", "outputs": "out: [B, C]", "weights": "beta: []"}}. The workspace must trust the file: celloom-engine plugin trust FILE.
// docs/examples/plugin is a whole one, with its CMakeLists.txt.
#pragma once

#include "version.h"

#include <ATen/core/Tensor.h>
#include <torch/headeronly/version.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace celloom::plugin {

/// What a cell knows of its place when it is made.
struct CellInfo {
    std::string path;                                        // "layers.3.gate"
    std::string settings;                                    // as the graph has them
    std::vector<std::string> inputs, outputs;                // names of its ports, in order
    std::map<std::string, std::vector<std::int64_t>> weights; // their sizes
};

/// What a cell knows of a pass.
struct Context {
    bool isTraining = false;
    /// A recomputed layer runs a second time, for its gradients: the results must be the same again.
    bool isAgain = false;
    /// For draws of one's own: differs from cell to cell and from step to step, and is the same when a step is computed again.
    std::uint64_t seed = 0;
    /// Floating inputs and weights have this type; results of another are converted.
    at::ScalarType computeType = at::kFloat;
    std::map<std::string, at::Tensor> weights;

    const at::Tensor& weight(const std::string& name) const {
        const auto found = weights.find(name);
        TORCH_CHECK(found != weights.end(), "the cell declares no weight ", name);
        return found->second;
    }
};

/// One is made for each cell of a graph, and lives as long as its network. What it throws ends the run with its message and the cell's path.
class Cell {
public:
    /// Settings that cannot be are refused here, by throwing.
    explicit Cell(const CellInfo& info) : m_info(info) {}
    Cell(const Cell&) = delete;
    Cell& operator=(const Cell&) = delete;
    virtual ~Cell() = default;

    /// A result for each declared output, of the declared shape (Celloom looks). Gradients come from autograd: use differentiable operations, or a
    /// torch::autograd::Function. Nothing may be kept between passes, and inputs and weights stay as they are.
    virtual std::vector<at::Tensor> construct(const std::vector<at::Tensor>& inputs, const Context& context) = 0;

    const CellInfo& info() const { return m_info; }

private:
    CellInfo m_info;
};

} // namespace celloom::plugin

// ---- what Celloom reads of the library ----

extern "C" {
struct CelloomCellEntry {
    const char* name;
    celloom::plugin::Cell* (*make)(const celloom::plugin::CellInfo& info);
    void (*destroy)(celloom::plugin::Cell* cell);
};
struct CelloomPlugin {
    const char* stamp; // CELLOOM_PLUGIN_STAMP
    std::uint64_t count;
    const CelloomCellEntry* cells;
};
}

#define CELLOOM_TEXT_OF_(value) #value
#define CELLOOM_TEXT_OF(value) CELLOOM_TEXT_OF_(value)
#if defined(__clang__)
#define CELLOOM_COMPILER "clang " CELLOOM_TEXT_OF(__clang_major__)
#elif defined(__GNUC__)
#define CELLOOM_COMPILER "gcc " CELLOOM_TEXT_OF(__GNUC__)
#else
#define CELLOOM_COMPILER "another compiler"
#endif
/// What must be the same in the library and in the engine that loads it. 1: of the interface in this file.
#define CELLOOM_PLUGIN_STAMP                                                                                                               \
    "interface 1; celloom " CELLOOM_VERSION_TEXT "; libtorch " TORCH_VERSION "; cxx11abi " CELLOOM_TEXT_OF(_GLIBCXX_USE_CXX11_ABI) "; " CELLOOM_COMPILER

#define CELLOOM_CELL(name, type)                                                                                                           \
    CelloomCellEntry {                                                                                                                     \
        name, [](const celloom::plugin::CellInfo& info) -> celloom::plugin::Cell* { return new type(info); },                              \
            [](celloom::plugin::Cell* cell) { delete cell; }                                                                               \
    }

/// Once in a library, at namespace scope, with a CELLOOM_CELL for each of its cells. The stamp lies in the file so that it is read before anything of
/// the library runs.
#define CELLOOM_PLUGIN(...)                                                                                                                \
    extern "C" __attribute__((used, visibility("default"))) const char celloom_plugin_stamp[];                                             \
    const char celloom_plugin_stamp[] = "celloom-plugin{" CELLOOM_PLUGIN_STAMP "}";                                                        \
    extern "C" __attribute__((visibility("default"))) const CelloomPlugin* celloom_plugin() {                                              \
        static const CelloomCellEntry cells[] = {__VA_ARGS__};                                                                             \
        static const CelloomPlugin plugin{CELLOOM_PLUGIN_STAMP, sizeof cells / sizeof cells[0], cells};                                    \
        return &plugin;                                                                                                                    \
    }
