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
        for (const graph::WeightSpec& weight : cell.weights) {
            const std::string path = cell.path + "." + weight.name;
            out.push_back(
                {path, families::checkpointName(model.family, path), index, weight.dims, false, !treated.frozen && !treated.lora});
        }
        if (!treated.lora) continue;
        const auto& matrix = cell.weights.front().dims; // [out, in]: resolve() gives LoRA to such cells only
        const std::string module = families::checkpointName(model.family, cell.path);
        const std::vector<std::int64_t> a{treated.lora->rank, matrix[1]}, b{matrix[0], treated.lora->rank};
        out.push_back({cell.path + ".lora_A.weight", kPeftPrefix + module + ".lora_A.weight", index, a, true, true});
        out.push_back({cell.path + ".lora_B.weight", kPeftPrefix + module + ".lora_B.weight", index, b, true, true});
    }
    return out;
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
