#include "models/recipe/parameter_table.h"

#include "models/families/families.h"

#include <algorithm>

namespace celloom::recipe {
namespace {

constexpr const char* kPeftPrefix = "base_model.model."; // before the module's name in adapter files

} // namespace

std::vector<ParameterRow> parameterTable(const graph::ExpandedModel& model, const TreatmentTable& treatment) {
    CELLOOM_CHECK(treatment.cells.size() == model.cells.size());
    std::vector<ParameterRow> out;
    for (std::size_t i = 0; i < model.cells.size(); ++i) {
        const graph::CellInstance& cell = model.cells[i];
        const Treatment& treated = treatment.cells[i];
        const int index = static_cast<int>(i);
        const std::string module = kPeftPrefix + families::checkpointName(model.family, cell.path);
        for (const graph::WeightSpec& weight : cell.weights) {
            const std::string path = cell.path + "." + weight.name;
            const bool isTrainable = !weight.isBuffer && treated.trains(weight.name);
            const bool isInAdapter = (isTrainable || weight.isBuffer) && (treated.saveWhole || (treated.trainBias && weight.name == "bias"));
            const std::string inAdapter = module + (treated.lora ? ".base_layer." : ".") + weight.name;
            out.push_back({path, families::checkpointName(model.family, path), index, weight.dims, false, isTrainable, isInAdapter ? inAdapter : "", weight.isBuffer});
        }
        if (!treated.lora) continue;
        const auto& matrix = cell.weights.front().dims; // [out, in]: resolve() gives LoRA to such cells only
        const auto add = [&](const std::string& name, std::vector<std::int64_t> dims) {
            out.push_back({cell.path + "." + name, module + "." + name, index, std::move(dims), true, true, module + "." + name});
        };
        add("lora_A.weight", {treated.lora->rank, matrix[1]});
        add("lora_B.weight", {matrix[0], treated.lora->rank});
        if (treated.lora->useDora) add("lora_magnitude_vector", {matrix[0]});
    }
    return out;
}

ParameterCounts countParameters(const std::vector<ParameterRow>& table) {
    ParameterCounts counts;
    int lastAdapted = -1;
    for (const ParameterRow& row : table) {
        if (row.isBuffer) continue;
        std::int64_t size = 1;
        for (const std::int64_t dim : row.dims) size *= dim;
        (row.isAdapter ? counts.adapters : counts.base) += size;
        if (row.isTrainable) counts.trainable += size;
        if (row.isAdapter && row.cell != lastAdapted) ++counts.adaptedCells;
        if (row.isAdapter) lastAdapted = row.cell;
    }
    return counts;
}

const ParameterRow* findPath(const std::vector<ParameterRow>& table, const std::string& path) {
    const auto found = std::find_if(table.begin(), table.end(), [&](const ParameterRow& row) { return row.path == path; });
    return found == table.end() ? nullptr : &*found;
}

const ParameterRow* findCheckpointName(const std::vector<ParameterRow>& table, const std::string& name) {
    const auto found = std::find_if(table.begin(), table.end(), [&](const ParameterRow& row) { return row.checkpointName == name; });
    return found == table.end() ? nullptr : &*found;
}

} // namespace celloom::recipe
