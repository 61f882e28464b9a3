#include "ui/editor/model_level.h"

#include "models/catalog/catalog.h"
#include "models/graph/edits.h"
#include "models/graph/expression.h"
#include "models/graph/parameters.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <numeric>
#include <optional>

namespace celloom::ui {

namespace {

using graph::findCell;

const graph::Graph* compositeOf(const graph::Document& document, const graph::Cell& cell) {
    const auto found = document.composites.find(cell.type);
    return found == document.composites.end() ? nullptr : &found->second;
}

/// Instances below a path, and how many numbered ones stand directly under it.
struct Found {
    std::vector<std::size_t> instances;
    std::int64_t repeat = 0;
};

/// Where the instances of an expansion are, by path: everything below one path stands together.
class PathIndex {
public:
    explicit PathIndex(const graph::ExpandedModel& model) : m_cells(model.cells), m_order(model.cells.size()) {
        std::iota(m_order.begin(), m_order.end(), std::size_t(0));
        std::sort(m_order.begin(), m_order.end(), [&](std::size_t a, std::size_t b) { return m_cells[a].path < m_cells[b].path; });
    }

    [[nodiscard]] std::optional<std::size_t> at(const std::string& path) const {
        const auto found = from(path);
        return found != m_order.end() && m_cells[*found].path == path ? std::optional(*found) : std::nullopt;
    }

    /// In the order of the expansion.
    [[nodiscard]] Found below(const std::string& path, bool isRepeated) const {
        Found found;
        if (const auto own = at(path)) found.instances.push_back(*own);
        const std::string inside = path + '.';
        for (auto next = from(inside); next != m_order.end() && m_cells[*next].path.starts_with(inside); ++next) {
            found.instances.push_back(*next);
            if (!isRepeated) continue;
            const std::string& candidate = m_cells[*next].path;
            std::int64_t number = 0;
            if (std::from_chars(candidate.data() + inside.size(), candidate.data() + candidate.size(), number).ec == std::errc())
                found.repeat = std::max(found.repeat, number + 1);
        }
        std::sort(found.instances.begin(), found.instances.end());
        return found;
    }

private:
    [[nodiscard]] std::vector<std::size_t>::const_iterator from(const std::string& path) const {
        return std::lower_bound(m_order.begin(), m_order.end(), path, [&](std::size_t index, const std::string& wanted) { return m_cells[index].path < wanted; });
    }

    const std::vector<graph::CellInstance>& m_cells;
    std::vector<std::size_t> m_order;
};

/// Follows ports through composites to the primitive cells behind them, and so to the expansion's values.
class ValueFinder {
public:
    ValueFinder(const ModelAnalysis& analysis, const PathIndex& index) : m_analysis(analysis), m_index(index) {}

    /// What comes out of a cell; of a repeated one, out of its last instance.
    [[nodiscard]] const graph::ValueInfo* output(const graph::Cell& cell, const std::string& port, const std::string& prefix, int depth = 0) const {
        const auto path = pathOf(cell, prefix, true);
        if (!path || depth > kMostDepth) return nullptr;
        const graph::Graph* inner = compositeOf(m_analysis.document, cell);
        if (!inner) return primitive(*path, cell.type, port, true);
        const std::string wanted = port.empty() && !inner->outputs.empty() ? inner->outputs.front().name : port;
        for (const graph::Wire& wire : inner->wires) {
            if (!wire.to.cell.empty() || wire.to.port != wanted || wire.from.cell.empty()) continue;
            if (const graph::Cell* source = findCell(*inner, wire.from.cell)) return output(*source, wire.from.port, *path + '.', depth + 1);
        }
        return nullptr;
    }

    /// What goes into a cell; of a repeated one, into its first instance.
    [[nodiscard]] const graph::ValueInfo* input(const graph::Cell& cell, const std::string& port, const std::string& prefix, int depth = 0) const {
        const auto path = pathOf(cell, prefix, false);
        if (!path || depth > kMostDepth) return nullptr;
        const graph::Graph* inner = compositeOf(m_analysis.document, cell);
        if (!inner) return primitive(*path, cell.type, port, false);
        for (const graph::Wire& wire : inner->wires) {
            if (!wire.from.cell.empty() || wire.from.port != port || wire.to.cell.empty()) continue;
            const graph::Cell* target = findCell(*inner, wire.to.cell);
            if (const graph::ValueInfo* found = target ? input(*target, wire.to.port, *path + '.', depth + 1) : nullptr) return found;
        }
        return nullptr;
    }

    [[nodiscard]] std::optional<graph::Shape> shape(const graph::Cell& cell, const std::string& port, const std::string& prefix) const {
        const graph::ValueInfo* value = output(cell, port, prefix);
        return value ? std::optional(value->shape) : std::nullopt;
    }

private:
    static constexpr int kMostDepth = 32;

    [[nodiscard]] std::optional<std::string> pathOf(const graph::Cell& cell, const std::string& prefix, bool isLast) const {
        const std::string path = prefix + cell.name;
        if (cell.repeat.empty()) return path;
        const Found found = m_index.below(path, true);
        return found.repeat == 0 ? std::nullopt : std::optional(path + '.' + std::to_string(isLast ? found.repeat - 1 : 0));
    }

    [[nodiscard]] const graph::ValueInfo* primitive(const std::string& path, const std::string& type, const std::string& port, bool isOutput) const {
        const auto found = m_index.at(path);
        const catalog::CellType* about = catalog::find(type);
        if (!found || !about) return nullptr;
        const graph::CellInstance& instance = m_analysis.expansion.model.cells[*found];
        const std::vector<catalog::PortDef> ports = isOutput ? catalog::outputPorts(*about, instance) : catalog::inputPorts(*about, instance);
        const auto& values = isOutput ? instance.outputs : instance.inputs;
        std::size_t index = 0;
        for (std::size_t i = 0; i < ports.size(); ++i)
            if (ports[i].name == port) index = i;
        if (index >= values.size() || values[index] < 0) return nullptr;
        return &m_analysis.expansion.model.values[static_cast<std::size_t>(values[index])];
    }

    const ModelAnalysis& m_analysis;
    const PathIndex& m_index;
};

/// Its index. A wire may name a port that the cell does not have: it is drawn, so that it can be taken away.
std::size_t portNamed(std::vector<LevelPort>& ports, const std::string& name) {
    for (std::size_t i = 0; i < ports.size(); ++i)
        if (ports[i].name == name) return i;
    ports.push_back({name, {}, true, {}});
    return ports.size() - 1;
}

/// As it is declared; empty where it is not.
std::string portShape(const graph::Port& port) {
    if (port.shape.empty()) return {};
    std::string text = "[";
    for (std::size_t i = 0; i < port.shape.size(); ++i) text += (i ? ", " : "") + port.shape[i];
    return text + "]";
}

/// Of a cell whose parameters could be read; those that depend on them fall back to what the type says of itself.
void addPorts(LevelBox& box, const graph::Graph* inner, const graph::Cell& cell, const graph::Scope& scope) {
    if (inner) {
        for (const graph::Port& port : inner->inputs) box.inputs.push_back({port.name, port.dtype, false, {}});
        for (const graph::Port& port : inner->outputs) box.outputs.push_back({port.name, port.dtype, false, {}});
        return;
    }
    const catalog::CellType* about = catalog::find(cell.type);
    if (!about) return;
    const auto add = [](std::vector<LevelPort>& out, const std::vector<catalog::PortDef>& ports) {
        for (const catalog::PortDef& port : ports) out.push_back({port.name, port.dtype, port.isOptional, {}});
    };
    const auto instance = graph::readCell(cell, scope);
    add(box.inputs, instance ? catalog::inputPorts(*about, *instance) : about->inputs);
    add(box.outputs, instance ? catalog::outputPorts(*about, *instance) : about->outputs);
}

LevelBox makeBox(const ModelAnalysis& analysis, const PathIndex& instances, const ValueFinder& shapes, const graph::Cell& cell, const std::string& prefix,
                 const graph::Scope& scope) {
    LevelBox box;
    box.name = cell.name;
    box.type = cell.type;
    const bool isRepeated = !cell.repeat.empty();
    const graph::Graph* inner = compositeOf(analysis.document, cell);
    box.kind = inner ? BoxKind::Composite : BoxKind::Cell;
    if (const catalog::CellType* about = catalog::find(cell.type); about && !inner) box.category = about->category;
    Found found = instances.below(prefix + cell.name, isRepeated);
    const bool isComplete = analysis.expansion.ok();
    box.repeat = isRepeated && isComplete ? found.repeat : 0;
    box.repeatText = isRepeated ? (isComplete ? std::to_string(found.repeat) : cell.repeat) : std::string();
    if (!isComplete) found.instances.clear(); // half a model's counts would mislead
    box.path = prefix + cell.name + (isRepeated ? ".0" : "");
    for (std::size_t index : found.instances) {
        for (const graph::WeightSpec& weight : analysis.expansion.model.cells[index].weights) {
            if (weight.isBuffer) continue;
            std::int64_t count = 1;
            for (std::int64_t dim : weight.dims) count *= dim;
            box.parameters += count;
        }
    }
    box.instances = std::move(found.instances);
    addPorts(box, inner, cell, scope);
    for (LevelPort& port : box.outputs) port.shape = shapes.shape(cell, port.name, prefix);
    if (!box.outputs.empty() && box.outputs.front().shape) box.shape = graph::toString(*box.outputs.front().shape);
    box.position = cell.position;
    return box;
}

const graph::Graph* graphAt(const ModelAnalysis& analysis, const LevelPath& path, std::string* prefix) {
    const graph::Graph* graph = &analysis.document.main;
    for (const LevelStep& step : path) {
        const graph::Cell* cell = findCell(*graph, step.cell);
        graph = cell ? compositeOf(analysis.document, *cell) : nullptr;
        if (!graph) return nullptr;
        if (prefix) *prefix += step.cell + (cell->repeat.empty() ? "" : '.' + std::to_string(step.instance)) + '.';
    }
    return graph;
}

/// What a value written in the document comes to; a text that is no expression stays as it is.
graph::ResolvedValue resolved(const graph::ParamValue& value, const graph::Scope& scope) {
    const auto* text = std::get_if<std::string>(&value);
    if (!text) return std::visit([](const auto& held) { return graph::ResolvedValue(held); }, value);
    auto evaluated = graph::evaluate(*text, scope);
    return evaluated ? *evaluated : graph::ResolvedValue(*text);
}

/// The hyper-parameters of the graph at `path`: handed down from level to level, as the expansion does.
graph::Scope hyperAt(const ModelAnalysis& analysis, const LevelPath& path) {
    graph::Scope scope = analysis.expansion.model.hyper;
    const graph::Graph* graph = &analysis.document.main;
    for (const LevelStep& step : path) {
        const graph::Cell* cell = findCell(*graph, step.cell);
        graph = cell ? compositeOf(analysis.document, *cell) : nullptr;
        if (!graph) return {};
        graph::Scope inner;
        for (const graph::HyperParameter& parameter : graph->hyper) {
            const auto given = cell->params.find(parameter.name);
            inner[parameter.name] = given != cell->params.end() ? resolved(given->second, scope) : resolved(parameter.value, inner);
        }
        scope = std::move(inner);
    }
    return scope;
}

} // namespace

bool isValid(const ModelAnalysis& analysis, const LevelPath& path) {
    return graphAt(analysis, path, nullptr) != nullptr;
}

std::optional<std::pair<LevelPath, std::string>> locate(const ModelAnalysis& analysis, const std::string& path) {
    std::vector<std::string> names;
    for (std::size_t from = 0; from <= path.size();) {
        const std::size_t dot = std::min(path.find('.', from), path.size());
        names.push_back(path.substr(from, dot - from));
        from = dot + 1;
    }
    LevelPath level;
    const graph::Graph* graph = &analysis.document.main;
    for (std::size_t i = 0; i < names.size() && graph; ++i) {
        const graph::Cell* cell = findCell(*graph, names[i]);
        if (!cell) return std::nullopt;
        std::int64_t instance = 0;
        const bool isNumbered = !cell->repeat.empty() && i + 1 < names.size();
        if (isNumbered) {
            const std::string& number = names[++i];
            if (std::from_chars(number.data(), number.data() + number.size(), instance).ec != std::errc()) return std::nullopt;
        }
        if (i + 1 == names.size()) return std::pair{level, cell->name};
        level.push_back({cell->name, instance});
        graph = compositeOf(analysis.document, *cell);
    }
    return std::nullopt;
}

std::int64_t repeatOf(const ModelAnalysis& analysis, const LevelPath& path) {
    if (path.empty()) return 0;
    std::string prefix;
    const graph::Graph* graph = graphAt(analysis, {path.begin(), path.end() - 1}, &prefix);
    const graph::Cell* cell = graph ? findCell(*graph, path.back().cell) : nullptr;
    if (!cell || cell->repeat.empty()) return 0;
    return PathIndex(analysis.expansion.model).below(prefix + cell->name, true).repeat;
}

ModelLevel makeLevel(const ModelAnalysis& analysis, const LevelPath& path) {
    ModelLevel level;
    level.graph = graphAt(analysis, path, &level.prefix);
    CELLOOM_CHECK(level.graph);
    for (const auto& [name, graph] : analysis.document.composites)
        if (&graph == level.graph) level.graphName = name;
    level.hyper = hyperAt(analysis, path);
    const PathIndex instances(analysis.expansion.model);
    const ValueFinder shapes(analysis, instances);
    std::map<std::string, std::size_t> inputs, cells, outputs;
    for (const graph::Port& port : level.graph->inputs) {
        inputs[port.name] = level.boxes.size();
        level.boxes.push_back({.kind = BoxKind::Input, .name = port.name, .type = port.dtype, .shape = portShape(port), .outputs = {{"", port.dtype, false, {}}}});
    }
    for (const graph::Cell& cell : level.graph->cells) {
        cells[cell.name] = level.boxes.size();
        level.boxes.push_back(makeBox(analysis, instances, shapes, cell, level.prefix, level.hyper));
    }
    for (const graph::Port& port : level.graph->outputs) {
        outputs[port.name] = level.boxes.size();
        level.boxes.push_back({.kind = BoxKind::Output, .name = port.name, .type = port.dtype, .shape = portShape(port), .inputs = {{"", port.dtype, false, {}}}});
    }
    if (path.empty()) // what comes in from outside is known for the main graph alone
        for (const graph::NamedValue& input : analysis.expansion.model.inputs)
            if (const auto box = inputs.find(input.name); box != inputs.end() && input.value >= 0) // none where its shape is wrong, as the problems say
                level.boxes[box->second].outputs[0].shape = analysis.expansion.model.values[static_cast<std::size_t>(input.value)].shape;
    for (const graph::Wire& wire : level.graph->wires) {
        const auto& sources = wire.from.cell.empty() ? inputs : cells;
        const auto& targets = wire.to.cell.empty() ? outputs : cells;
        const auto from = sources.find(wire.from.cell.empty() ? wire.from.port : wire.from.cell);
        const auto to = targets.find(wire.to.cell.empty() ? wire.to.port : wire.to.cell);
        if (from == sources.end() || to == targets.end()) continue; // among the problems
        auto& outs = level.boxes[from->second].outputs;
        auto& ins = level.boxes[to->second].inputs;
        const std::size_t fromPort = portNamed(outs, wire.from.cell.empty() ? std::string() : wire.from.port);
        const std::size_t toPort = portNamed(ins, wire.to.cell.empty() ? std::string() : wire.to.port);
        if (!outs[fromPort].shape && wire.from.cell.empty() && !wire.to.cell.empty()) // what comes into a composite, its cells know
            if (const graph::ValueInfo* value = shapes.input(*findCell(*level.graph, wire.to.cell), wire.to.port, level.prefix)) outs[fromPort].shape = value->shape;
        ins[toPort].shape = outs[fromPort].shape;
        if (LevelBox& target = level.boxes[to->second]; target.kind == BoxKind::Output && target.shape.empty() && ins[toPort].shape)
            target.shape = graph::toString(*ins[toPort].shape); // it declares none
        level.wires.push_back({from->second, to->second, fromPort, toPort, wire});
    }
    return level;
}

std::vector<std::string> valuesOnWires(const ModelAnalysis& analysis, const ModelLevel& level) {
    const PathIndex instances(analysis.expansion.model);
    const ValueFinder values(analysis, instances);
    std::map<std::string, const graph::Cell*> cells;
    for (const graph::Cell& cell : level.graph->cells) cells[cell.name] = &cell;
    std::vector<std::string> out;
    for (const LevelWire& wire : level.wires) {
        const graph::Endpoint &from = wire.wire.from, &to = wire.wire.to;
        const graph::ValueInfo* value = from.cell.empty() ? nullptr : values.output(*cells.at(from.cell), from.port, level.prefix);
        if (!value && !to.cell.empty()) value = values.input(*cells.at(to.cell), to.port, level.prefix);
        out.push_back(value ? value->producer : std::string());
    }
    return out;
}

std::vector<std::string> valuesOf(const ModelAnalysis& analysis, const ModelLevel& level, std::size_t box) {
    const LevelBox& about = level.boxes[box];
    if (about.kind == BoxKind::Input || about.kind == BoxKind::Output) { // whatever a wire of it carries
        const std::vector<std::string> onWires = valuesOnWires(analysis, level);
        for (std::size_t i = 0; i < level.wires.size(); ++i)
            if ((level.wires[i].from == box || level.wires[i].to == box) && !onWires[i].empty()) return {onWires[i]};
        return {};
    }
    const graph::Cell* cell = findCell(*level.graph, about.name);
    if (!cell) return {};
    const PathIndex instances(analysis.expansion.model);
    const ValueFinder values(analysis, instances);
    std::vector<std::string> out;
    for (const LevelPort& port : about.outputs) {
        const graph::ValueInfo* value = values.output(*cell, port.name, level.prefix);
        out.push_back(value ? value->producer : std::string());
    }
    return out;
}

} // namespace celloom::ui
