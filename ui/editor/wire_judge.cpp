#include "ui/editor/wire_judge.h"

#include "models/catalog/catalog.h"
#include "models/graph/parameters.h"

#include <algorithm>

namespace celloom::ui {

namespace {

const LevelPort* portOf(const std::vector<LevelPort>& ports, const std::string& name) {
    const auto found = std::find_if(ports.begin(), ports.end(), [&](const LevelPort& port) { return port.name == name; });
    return found == ports.end() ? nullptr : &*found;
}

} // namespace

WireJudge::WireJudge(const ModelLevel& level) : m_level(level), m_before(level.boxes.size()), m_after(level.boxes.size()) {
    for (std::size_t i = 0; i < level.boxes.size(); ++i) {
        const BoxKind kind = level.boxes[i].kind == BoxKind::Composite ? BoxKind::Cell : level.boxes[i].kind;
        m_boxes[{kind, level.boxes[i].name}] = i;
    }
    for (const LevelWire& wire : level.wires) {
        m_after[wire.from].push_back(wire.to);
        m_before[wire.to].push_back(wire.from);
    }
    for (const graph::Cell& cell : level.graph->cells) m_cells[cell.name] = &cell;
}

std::optional<std::size_t> WireJudge::boxOf(const graph::Endpoint& end, BoxKind kind) const {
    const auto found = m_boxes.find(end.cell.empty() ? std::pair(kind, end.port) : std::pair(BoxKind::Cell, end.cell));
    return found == m_boxes.end() ? std::nullopt : std::optional(found->second);
}

std::vector<bool> WireJudge::reached(std::size_t start, const std::vector<std::vector<std::size_t>>& ways) const {
    std::vector<bool> out(m_level.boxes.size(), false);
    std::vector<std::size_t> waiting{start};
    out[start] = true;
    while (!waiting.empty()) {
        const std::size_t box = waiting.back();
        waiting.pop_back();
        for (const std::size_t next : ways[box]) {
            if (out[next]) continue;
            out[next] = true;
            waiting.push_back(next);
        }
    }
    return out;
}

bool WireJudge::closesCircle(std::size_t from, std::size_t to) {
    if (m_above && m_above->first == from) return m_above->second[to];
    if (m_below && m_below->first == to) return m_below->second[from];
    m_above = {from, reached(from, m_before)};
    m_below = {to, reached(to, m_after)};
    return m_above->second[to];
}

bool WireJudge::isFit(const graph::Wire& wire) {
    const auto fromBox = boxOf(wire.from, BoxKind::Input), toBox = boxOf(wire.to, BoxKind::Output);
    if (!fromBox || !toBox || closesCircle(*fromBox, *toBox)) return false;
    const LevelBox &from = m_level.boxes[*fromBox], &to = m_level.boxes[*toBox];
    const LevelPort* source = portOf(from.outputs, wire.from.cell.empty() ? std::string() : wire.from.port);
    const LevelPort* target = portOf(to.inputs, wire.to.cell.empty() ? std::string() : wire.to.port);
    if (!source || !target || target->dtype.empty() || source->dtype != target->dtype) return false;
    const catalog::CellType* type = to.kind == BoxKind::Cell ? catalog::find(to.type) : nullptr;
    const auto cell = m_cells.find(to.name);
    if (!type || cell == m_cells.end() || !source->shape) return true;
    const auto instance = graph::readCell(*cell->second, m_level.hyper);
    if (!instance) return true;
    catalog::RuleInput rule{*instance, {}};
    for (const LevelPort& port : to.inputs) {
        const auto& shape = &port == target ? source->shape : port.shape;
        if (!shape && !port.isOptional) return true; // more is to be wired first
        rule.inputs.push_back(shape.value_or(graph::Shape{}));
    }
    return type->shapeRule(rule).has_value();
}

} // namespace celloom::ui
