#include "models/recipe/precision_summary.h"

#include "models/base/text.h"

#include <algorithm>
#include <map>

namespace celloom::recipe {
namespace {

/// "layers..mlp" of "layers.3.mlp": equal for the same place of repeated layers.
std::string withoutNumbers(const std::string& path) {
    std::string out;
    for (std::size_t from = 0; from <= path.size();) {
        const std::size_t dot = std::min(path.find('.', from), path.size());
        const std::string_view name = std::string_view(path).substr(from, dot - from);
        std::int64_t number = 0;
        if (!readNumber(name, number)) out += name;
        out += '.';
        from = dot + 1;
    }
    return out;
}

} // namespace

std::vector<PrecisionRow> foldedPrecision(const graph::ExpandedModel& model, const PrecisionTable& table) {
    CELLOOM_CHECK(table.cells.size() == model.cells.size());
    std::vector<PrecisionRow> rows;
    std::vector<graph::ExpandedModel> members; // by row: its cells alone
    std::map<std::string, std::vector<std::size_t>> byPlace; // rows by folded path and type
    for (std::size_t i = 0; i < model.cells.size(); ++i) {
        const graph::CellInstance& cell = model.cells[i];
        auto& found = byPlace[withoutNumbers(cell.path) + '/' + cell.type];
        const auto row = std::find_if(found.begin(), found.end(), [&](std::size_t r) { return rows[r].precision == table.cells[i]; });
        const std::size_t index = row == found.end() ? rows.size() : *row;
        if (row == found.end()) {
            found.push_back(index);
            rows.push_back({{}, cell.type, table.cells[i], 0});
            members.emplace_back();
        }
        ++rows[index].count;
        members[index].cells.emplace_back().path = cell.path;
    }
    for (std::size_t r = 0; r < rows.size(); ++r) rows[r].name = foldedNames(members[r], Cells::All).front();
    return rows;
}

std::vector<FloatType> slowTypes(const PrecisionTable& table, const HalfSupport& support) {
    std::vector<FloatType> out;
    for (const FloatType type : {FloatType::BFloat16, FloatType::Float16}) {
        const bool isFast = type == FloatType::BFloat16 ? support.bfloat16 : support.float16;
        const bool isUsed = std::any_of(table.cells.begin(), table.cells.end(), [&](const CellPrecision& cell) { return cell.compute == type; });
        if (isUsed && !isFast) out.push_back(type);
    }
    return out;
}

} // namespace celloom::recipe
