// What a Network holds. Only for the files that implement it.
#pragma once

#include "engine/cells/cell.h"
#include "engine/exec/network.h"
#include "engine/exec/run_order.h"

namespace celloom::engine {

/// Cells at the places first..last of the order, one after another, whose inside is computed again in the backward pass.
struct RecomputedLayer {
    std::size_t first = 0, last = 0;
    std::vector<graph::ValueId> inputs, outputs;
    std::vector<at::Tensor> parameters; // that take gradients
};

struct Network::State {
    /// An adapter, active or not.
    struct Held {
        std::map<std::size_t, CellAdapter> cells;   // by the cell's number
        std::map<std::size_t, at::Tensor> replaced; // by the parameter's number: biases and whole weights of its own
        bool worksAlone = false;                    // see Network::activate
    };
    /// Where a parameter of the base lies in its cell.
    struct Slot {
        std::size_t cell = 0, number = 0;
    };

    graph::ExpandedModel model;
    recipe::TreatmentTable treatment;
    recipe::PrecisionTable precision;
    NetworkOptions options;
    recipe::BaseIdentity base;
    std::vector<std::unique_ptr<Cell>> cells;
    std::vector<Parameter> parameters;
    std::vector<Slot> slots;          // like parameters; of adapters' tensors: the cell alone
    RunOrder order;
    std::vector<std::size_t> lastUse; // by value: the place in the order of the last cell that reads it; outputs are kept to the end
    std::vector<RecomputedLayer> recomputedLayers; // in order
    TensorCache tables;

    std::map<std::string, Held> adapters;
    std::vector<AdapterWeight> active;
    std::map<std::size_t, at::Tensor> beforeMerge; // by the parameter's number

    /// The parameters of one cell's adapter, drawn as PEFT draws them.
    void addTrainedAdapter(std::size_t cell, const recipe::LoraSettings& settings);
    /// Another tensor in place of the base's parameter, for the cell only.
    void place(std::size_t parameter, const at::Tensor& tensor) { cells[slots[parameter].cell]->setWeight(slots[parameter].number, tensor); }
    [[nodiscard]] const Parameter* matrixOf(std::size_t cell) const;
};

/// The layers whose cells are treated with recompute: a run of such cells below one numbered name ("layers.3"), in the same arms of the same
/// Branches, so that each is left out as a whole or not at all.
std::vector<RecomputedLayer> layersToRecompute(const Network::State& state);

/// Draws normal(0, 1), uniform(-1, 1) … from (seed, path), on the CPU.
at::Generator generatorFor(std::uint64_t seed, const std::string& path);

} // namespace celloom::engine
