#include "models/graph/cost.h"

#include "models/base/capped.h"
#include "models/catalog/catalog.h"

#include <set>

namespace celloom::graph {

std::vector<Cost> costs(const ExpandedModel& model, const std::map<std::string, std::int64_t>& symbols) {
    std::vector<std::vector<std::int64_t>> sizes; // of each value
    for (const ValueInfo& value : model.values) {
        auto& dims = sizes.emplace_back();
        for (const Dim& dim : value.shape) {
            const auto symbol = symbols.find(dim.symbol);
            CELLOOM_CHECK(dim.symbol.empty() || symbol != symbols.end());
            dims.push_back(multiplyCapped(dim.number, dim.symbol.empty() ? 1 : symbol->second));
        }
    }
    const auto sizesOf = [&](const std::vector<ValueId>& ids) {
        catalog::Sizes out;
        for (const ValueId id : ids) out.push_back(id < 0 ? std::vector<std::int64_t>{} : sizes[static_cast<std::size_t>(id)]);
        return out;
    };
    std::vector<Cost> out;
    std::set<ValueId> kept;
    for (const CellInstance& cell : model.cells) {
        const catalog::CellType* type = catalog::find(cell.type);
        CELLOOM_CHECK(type != nullptr);
        const auto rule = type->cost(cell, sizesOf(cell.inputs), sizesOf(cell.outputs));
        Cost cost;
        for (const WeightSpec& weight : cell.weights)
            if (!weight.isBuffer) cost.parameters += sizeCapped(weight.dims);
        cost.forwardFlops = rule.forwardFlops;
        cost.activationValues = rule.keptValues;
        const auto keep = [&](const std::vector<ValueId>& ids, const std::vector<int>& which) {
            for (const int port : which) {
                const ValueId id = ids[static_cast<std::size_t>(port)];
                if (id >= 0 && kept.insert(id).second)
                    cost.activationValues = addCapped(cost.activationValues, sizeCapped(sizes[static_cast<std::size_t>(id)]));
            }
        };
        keep(cell.inputs, rule.keptInputs);
        keep(cell.outputs, rule.keptOutputs);
        out.push_back(cost);
    }
    return out;
}

Cost total(const std::vector<Cost>& all) {
    Cost out;
    for (const Cost& cost : all) {
        out.parameters = addCapped(out.parameters, cost.parameters);
        out.forwardFlops += cost.forwardFlops;
        out.activationValues = addCapped(out.activationValues, cost.activationValues);
    }
    return out;
}

} // namespace celloom::graph
