#include "models/graph/fixes.h"

#include "models/catalog/catalog.h"
#include "models/graph/difference.h"
#include "models/graph/fix_parts.h"
#include "models/graph/parameters.h"
#include "models/graph/problems.h"

#include <algorithm>
#include <set>

namespace celloom::graph {
namespace {

constexpr std::size_t kMostTried = 40;
constexpr int kDeepest = 32;

bool isSameProblem(const Problem& a, const Problem& b) {
    return a.path == b.path && a.message == b.message;
}

/// The graphs that a problem's path leads through, and the cell; false where it leads nowhere.
bool follow(FixContext& context) {
    const std::string& path = context.problem.path;
    std::size_t from = 0;
    if (const auto slash = path.find('/'); slash != std::string::npos) {
        context.levels.push_back({path.substr(0, slash), path.substr(0, slash + 1), {}});
        from = slash + 1;
    } else {
        context.levels.push_back({});
    }
    if (!graphOf(context.document, context.levels.back().graph)) return false;
    while (from < path.size()) {
        std::size_t end = std::min(path.find('.', from), path.size());
        const Cell* cell = findCell(context.graph(), path.substr(from, end - from));
        if (!cell) return false;
        if (!cell->repeat.empty() && end < path.size()) end = std::min(path.find('.', end + 1), path.size()); // the instance's number
        if (end >= path.size()) {
            context.cell = cell->name;
            return true;
        }
        if (!context.document.composites.contains(cell->type)) return false;
        context.levels.push_back({cell->type, path.substr(0, end + 1), cell->name});
        from = end + 1;
    }
    return true;
}

/// Where a problem lies at a composite cell, the mistake may be inside of it.
std::optional<FixContext> inside(const FixContext& context) {
    const Cell* cell = context.cell.empty() ? nullptr : findCell(context.graph(), context.cell);
    if (!cell || !context.document.composites.contains(cell->type)) return {};
    FixContext inner = context;
    inner.levels.push_back({cell->type, context.problem.path + ".", cell->name});
    inner.cell.clear();
    return inner;
}

struct Outcome {
    bool isMended = false;
    std::size_t errors = 0; // that are left, without what is still to come
};

/// Tries a fix on a copy.
Outcome tried(const FixContext& context, const Document& original, const std::map<std::string, ParamValue>& overrides, const Fix& fix) {
    Document trial = original;
    if (!fix.apply(trial) || isSame(trial, original)) return {};
    const Expansion after = expand(trial, overrides);
    Outcome out{true, 0};
    for (const Problem& problem : after.problems) {
        if (isSameProblem(problem, context.problem)) return {};
        if (problem.severity != Problem::Severity::Error || isStillMissing(problem)) continue;
        ++out.errors;
        const bool isOld = std::any_of(context.expansion.problems.begin(), context.expansion.problems.end(),
                                       [&](const Problem& old) { return isSameProblem(old, problem); });
        if (problem.path == context.problem.path && !isOld) return {}; // one mistake in place of another
    }
    return out;
}

} // namespace

// ---- what is known at a problem ----

Scope FixContext::scope(std::size_t level) const {
    Scope scope;
    for (std::size_t at = 0; at <= level; ++at) {
        const Graph& graph = *graphOf(document, levels[at].graph);
        const Cell* user = at > 0 ? findCell(*graphOf(document, levels[at - 1].graph), levels[at].cell) : nullptr;
        Scope inner;
        for (const HyperParameter& hyper : graph.hyper) {
            const auto given = user ? user->params.find(hyper.name) : std::map<std::string, ParamValue>::const_iterator();
            const bool isGiven = user && given != user->params.end();
            const ParamValue& value = isGiven ? given->second : hyper.value;
            const auto* text = std::get_if<std::string>(&value);
            if (!text) {
                inner[hyper.name] = std::visit([](const auto& held) { return ResolvedValue(held); }, value);
            } else if (const auto evaluated = evaluate(*text, isGiven ? scope : inner)) {
                inner[hyper.name] = *evaluated;
            }
        }
        scope = std::move(inner);
    }
    return scope;
}

std::optional<Shape> FixContext::shape(std::size_t level, const Endpoint& source) const {
    std::size_t at = level;
    Endpoint end = source;
    while (end.cell.empty() && at > 0) { // what comes in from the level above
        const Graph& above = *graphOf(document, levels[at - 1].graph);
        const Endpoint target{levels[at].cell, end.port};
        const auto wire = std::find_if(above.wires.begin(), above.wires.end(), [&](const Wire& one) { return one.to == target; });
        if (wire == above.wires.end()) return {};
        end = wire->from;
        --at;
    }
    std::string prefix = levels[at].prefix;
    const Graph* graph = graphOf(document, levels[at].graph);
    for (int depth = 0; !end.cell.empty() && depth < kDeepest; ++depth) { // down to the cell that makes it
        const Cell* cell = findCell(*graph, end.cell);
        if (!cell) return {};
        std::string path = prefix + cell->name;
        if (!cell->repeat.empty()) path += ".0";
        const auto composite = document.composites.find(cell->type);
        if (composite == document.composites.end()) {
            end.port = path + "." + end.port;
            break;
        }
        const Endpoint out{"", end.port};
        const auto wire = std::find_if(composite->second.wires.begin(), composite->second.wires.end(), [&](const Wire& one) { return one.to == out; });
        if (wire == composite->second.wires.end() || wire->from.cell.empty()) return {};
        end = wire->from;
        prefix = path + ".";
        graph = &composite->second;
    }
    for (const ValueInfo& value : expansion.model.values)
        if (value.producer == end.port) return value.shape;
    return {};
}

std::map<std::string, Shape> FixContext::inputShapes() const {
    std::map<std::string, Shape> out;
    for (const Wire& wire : graph().wires)
        if (wire.to.cell == cell && !cell.empty())
            if (auto found = shape(wire.from)) out[wire.to.port] = std::move(*found);
    return out;
}

std::vector<PortAbout> inputsOf(const Document& document, const Cell& cell, const Scope& scope) {
    std::vector<PortAbout> out;
    if (const Graph* inner = graphOf(document, cell.type); inner && !cell.type.empty()) {
        for (const Port& port : inner->inputs) out.push_back({port.name, port.dtype, false});
    } else if (const catalog::CellType* type = catalog::find(cell.type)) {
        const auto instance = readCell(cell, scope);
        for (const catalog::PortDef& port : instance ? catalog::inputPorts(*type, *instance) : type->inputs) out.push_back({port.name, port.dtype, port.isOptional});
    }
    return out;
}

std::vector<PortAbout> outputsOf(const Document& document, const Cell& cell, const Scope& scope) {
    std::vector<PortAbout> out;
    if (const Graph* inner = graphOf(document, cell.type); inner && !cell.type.empty()) {
        for (const Port& port : inner->outputs) out.push_back({port.name, port.dtype, false});
    } else if (const catalog::CellType* type = catalog::find(cell.type)) {
        const auto instance = readCell(cell, scope);
        for (const catalog::PortDef& port : instance ? catalog::outputPorts(*type, *instance) : type->outputs) out.push_back({port.name, port.dtype, false});
    }
    return out;
}

// ---- fixes ----

std::string Fix::title() const {
    const auto word = [this](std::size_t i) { return i < words.size() ? words[i] : std::string(); };
    switch (kind) {
    case Kind::AddWire:
        return "Wire " + word(0) + " to " + word(1);
    case Kind::RemoveWire:
        return "Remove the wire from " + word(0) + " to " + word(1);
    case Kind::MoveWireEnd:
        return "Move the wire from " + word(0) + " to " + word(1);
    case Kind::JoinByAdd:
        return "Join both with an Add";
    case Kind::SetValue:
        return "Set " + word(0) + " to " + word(1);
    case Kind::RemoveValue:
        return "Remove " + word(0);
    case Kind::RenameValue:
        return "Write " + word(1) + " for " + word(0);
    case Kind::SetType:
        return "Make " + word(0) + " of type " + word(1);
    case Kind::TakeFromLibrary:
        return "Take " + word(0) + " from the library";
    case Kind::RemoveCell:
        return "Remove " + word(0);
    case Kind::Rename:
        return "Rename " + word(0) + " to " + word(1);
    case Kind::NoRepeat:
        return "Do not repeat " + word(0);
    case Kind::DeclareShape:
    case Kind::DeclareType:
        return "Declare " + word(0) + " as " + word(1);
    case Kind::RemovePort:
        return "Remove the port " + word(0);
    case Kind::PutBetween:
        return "Put " + word(0) + " between " + word(1) + " and " + word(2);
    }
    return {};
}

bool isStillMissing(const Problem& problem) {
    return problem.message.ends_with(kHasNoWire) || problem.message.find(kNeedsParameter) != std::string::npos;
}

std::vector<Fix> fixesFor(const Document& document, const Problem& problem, const std::map<std::string, ParamValue>& overrides) {
    Document effective = document;
    if (!applyOverrides(effective, overrides)) return {};
    const Expansion expansion = expand(document, overrides);
    FixContext context{effective, expansion, problem, {}, {}};
    if (!follow(context)) return {};
    Candidates candidates;
    const auto find = [&](const FixContext& at) {
        for (const auto& finder : {findNames, findTypes, findValues, findWires, findShapes}) finder(at, candidates);
    };
    find(context);
    if (const auto inner = inside(context)) find(*inner);
    std::stable_sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) { return a.rank < b.rank; });
    struct Mending {
        Fix fix;
        std::size_t errors;
    };
    std::vector<Mending> mending;
    std::set<std::string> titles;
    std::size_t tries = 0;
    for (Candidate& candidate : candidates) {
        if (tries >= kMostTried) break;
        if (!titles.insert(candidate.fix.title()).second) continue;
        ++tries;
        if (const Outcome outcome = tried(context, document, overrides, candidate.fix); outcome.isMended) mending.push_back({std::move(candidate.fix), outcome.errors});
    }
    // Those that leave the fewest errors: of ten outputs that could be wired here, those whose shapes fit further on.
    std::size_t fewest = SIZE_MAX;
    for (const Mending& one : mending) fewest = std::min(fewest, one.errors);
    std::vector<Fix> out;
    for (Mending& one : mending)
        if (one.errors == fewest && out.size() < kMostFixes) out.push_back(std::move(one.fix));
    return out;
}

} // namespace celloom::graph
