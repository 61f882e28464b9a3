// The table that settles identity: every learnable tensor of a run by its path, with its name in checkpoints and how it is treated.
// Editor, engine, estimate and export read the same rows, so a path in an error, a rule and a file always means one tensor.
#pragma once

#include "models/recipe/rules.h"

#include <string>
#include <vector>

namespace celloom::recipe {

struct ParameterRow {
    std::string path;           // "layers.3.self_attn.W_pack.weight"; of an adapter "layers.3.self_attn.W_pack.lora_A.weight"
    std::string checkpointName; // "model.layers.3.…"; of an adapter PEFT's "base_model.model.model.layers.3.….lora_A.weight"
    int cell = 0;               // index into ExpandedModel::cells and TreatmentTable::cells
    std::vector<std::int64_t> dims;
    bool isAdapter = false;
    bool isTrainable = true; // a base tensor is not when its cell is frozen or has an adapter; an adapter always is
    /// Name in an adapter's file; empty where the tensor is not in it. PEFT's names: of a trained bias "….k_proj.base_layer.bias", of a
    /// cell saved whole "base_model.model.lm_head.weight".
    std::string adapterName;
    bool isBuffer = false; // WeightSpec::isBuffer: kept by the cell itself; never trainable
};

/// In the order of the model's cells; an adapter's tensors follow those of its cell.
/// lora_A is [r, in], lora_B [out, r], as PEFT writes them; DoRA's lora_magnitude_vector [out].
std::vector<ParameterRow> parameterTable(const graph::ExpandedModel& model, const TreatmentTable& treatment);

/// Parameters of the base, of adapters, and those that learn.
struct ParameterCounts {
    std::int64_t base = 0, adapters = 0, trainable = 0; // buffers are none
    int adaptedCells = 0;
};
ParameterCounts countParameters(const std::vector<ParameterRow>& table);

/// The row of a path, or null.
const ParameterRow* findPath(const std::vector<ParameterRow>& table, const std::string& path);
/// The row of a tensor in a checkpoint or an adapter file, or null.
const ParameterRow* findCheckpointName(const std::vector<ParameterRow>& table, const std::string& name);

} // namespace celloom::recipe
