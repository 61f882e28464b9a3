#include "engine/exec/run_order.h"

#include <algorithm>
#include <map>
#include <optional>

namespace celloom::engine {
namespace {

constexpr std::size_t kMostDeep = 32;
constexpr std::size_t kWhenTrue = 1, kWhenFalse = 2; // ports of a Branch

using Arms = std::vector<Arm>;

/// What both lie inside of.
Arms common(const Arms& a, const Arms& b) {
    const auto [end, ignored] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
    return {a.begin(), end};
}

/// Puts a cell into the order, behind what feeds its arms alone.
void emit(std::size_t cell, const std::map<std::size_t, std::vector<std::size_t>>& inside, std::vector<std::size_t>& order) {
    if (const auto found = inside.find(cell); found != inside.end())
        for (const std::size_t other : found->second) emit(other, inside, order);
    order.push_back(cell);
}

} // namespace

bool RunOrder::hasArms() const {
    return std::any_of(arms.begin(), arms.end(), [](const Arms& one) { return !one.empty(); });
}

RunOrder runOrderOf(const graph::ExpandedModel& model) {
    std::vector<std::optional<Arms>> read(model.values.size()); // by value: the arms that all of its readers lie in
    const auto narrow = [&](graph::ValueId id, const Arms& arms) {
        auto& known = read[static_cast<std::size_t>(id)];
        known = known ? common(*known, arms) : arms;
    };
    for (const graph::NamedValue& output : model.outputs) narrow(output.value, {});
    RunOrder out;
    out.arms.resize(model.cells.size());
    for (std::size_t i = model.cells.size(); i-- > 0;) { // readers come behind what they read
        const graph::CellInstance& cell = model.cells[i];
        std::optional<Arms> arms;
        for (const graph::ValueId id : cell.outputs)
            if (const auto& one = read[static_cast<std::size_t>(id)]) arms = arms ? common(*arms, *one) : *one;
        out.arms[i] = arms.value_or(Arms{});
        for (std::size_t port = 0; port < cell.inputs.size(); ++port) {
            if (cell.inputs[port] < 0) continue;
            Arms of = out.arms[i];
            if (cell.type == "Branch" && (port == kWhenTrue || port == kWhenFalse) && of.size() < kMostDeep)
                of.push_back({i, port == kWhenTrue});
            narrow(cell.inputs[port], of);
        }
    }
    std::map<std::size_t, std::vector<std::size_t>> inside; // by the innermost Branch, in the model's order
    for (std::size_t i = 0; i < model.cells.size(); ++i)
        if (!out.arms[i].empty()) inside[out.arms[i].back().branch].push_back(i);
    for (std::size_t i = 0; i < model.cells.size(); ++i)
        if (out.arms[i].empty()) emit(i, inside, out.cells);
    return out;
}

} // namespace celloom::engine
