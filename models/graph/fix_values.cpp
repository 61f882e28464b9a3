// Fixes by values: parameters and hyper-parameters that are misspelt, out of range, or do not go with what is wired; types that are not there.
#include "models/catalog/catalog.h"
#include "models/graph/edit_parts.h"
#include "models/graph/fit.h"
#include "models/graph/fix_parts.h"
#include "models/graph/parameters.h"
#include "models/graph/problems.h"
#include "models/library/entry.h"
#include "models/library/standard.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace celloom::graph {
namespace {

using Kind = Fix::Kind;

constexpr std::size_t kMostSuggested = 3; // for one word
constexpr std::int64_t kFarthest = 256;   // of numbers that are looked through, from the one that is wrong

std::string textOf(const ParamValue& value) {
    return toString(std::visit([](const auto& held) { return ResolvedValue(held); }, value));
}

Fix valueFix(const GraphName& graph, const std::string& cell, const std::string& param, const ParamValue& value) {
    return {Kind::SetValue, {param, textOf(value)}, [=](Document& document) { return setParam(document, graph, cell, param, value); }};
}

Fix hyperFix(const GraphName& graph, const std::string& name, const ParamValue& value) {
    return {Kind::SetValue, {name, textOf(value)}, [=](Document& document) -> Status {
                CELLOOM_TRY(owner, graphFor(document, graph));
                for (HyperParameter& hyper : owner->hyper)
                    if (hyper.name == name) hyper.value = value;
                return {};
            }};
}

// ---- types ----

void suggestType(const FixContext& context, const Cell& cell, const std::string& type, double rank, Candidates& out) {
    out.push_back({{Kind::SetType, {cell.name, type}, [graph = context.graphName(), name = cell.name, type](Document& document) -> Status {
                        CELLOOM_TRY(owner, graphFor(document, graph));
                        CELLOOM_TRY(target, cellFor(*owner, name));
                        if (wouldRecurse(document, graph, type)) return fail(type + " contains " + graph + ".");
                        target->type = type;
                        return {};
                    }},
                   rank});
}

// ---- a name that is misspelt ----

/// The texts that stand for `text` with each name it does not know replaced by one that is close.
std::vector<std::string> respelt(const std::string& text, const Scope& scope) {
    std::vector<std::string> known, out;
    for (const auto& [name, value] : scope) known.push_back(name);
    for (const std::string& name : namesIn(text)) {
        if (scope.contains(name)) continue;
        std::vector<std::string> meant = nearest(name, known, kMostSuggested);
        for (const std::string& other : known) // "vocabulary" for vocab
            if (meant.empty() && std::min(name.size(), other.size()) >= 3 && (name.starts_with(other) || other.starts_with(name))) meant.push_back(other);
        for (const std::string& right : meant) out.push_back(replaceNames(text, {{name, right}}));
    }
    return out;
}

// ---- numbers ----

/// 7 -> 8, 6, 9, 5, …
std::vector<std::int64_t> around(std::int64_t number, std::int64_t farthest) {
    std::vector<std::int64_t> out;
    for (std::int64_t distance = 1; distance <= farthest; ++distance) {
        out.push_back(number + distance);
        if (number - distance > 0) out.push_back(number - distance);
    }
    return out;
}

/// The cell as it would be with another value, by its own rules alone; what is not known of its inputs is not held against it.
bool goesWell(const catalog::CellType& type, Cell cell, const std::string& param, const ParamValue& value, const std::map<std::string, Shape>& inputs, const Scope& scope) {
    cell.params[param] = value;
    const auto instance = readCell(cell, scope);
    if (!instance) return false;
    catalog::RuleInput rule{*instance, {}};
    for (const catalog::PortDef& port : catalog::inputPorts(type, *instance)) {
        const auto known = inputs.find(port.name);
        if (known == inputs.end() && !port.isOptional) return true;
        rule.inputs.push_back(known == inputs.end() ? Shape{} : known->second);
    }
    return type.shapeRule(rule).has_value();
}

/// The plain sizes of what comes in, the last dimensions first.
std::vector<std::int64_t> sizesOf(const std::map<std::string, Shape>& inputs) {
    std::vector<std::int64_t> out;
    for (const auto& [port, shape] : inputs)
        for (auto dim = shape.rbegin(); dim != shape.rend(); ++dim)
            if (dim->symbol.empty() && std::find(out.begin(), out.end(), dim->number) == out.end()) out.push_back(dim->number);
    return out;
}

void suggestNumbers(const FixContext& context, const Cell& cell, const catalog::CellType& type, const catalog::ParamDef& def, Candidates& out) {
    const Scope scope = context.scope();
    const auto inputs = context.inputShapes();
    const auto given = cell.params.find(def.name);
    std::optional<double> now;
    if (given != cell.params.end()) {
        if (const auto* whole = std::get_if<std::int64_t>(&given->second)) now = static_cast<double>(*whole);
        if (const auto* real = std::get_if<double>(&given->second)) now = *real;
        if (const auto* text = std::get_if<std::string>(&given->second))
            if (const auto value = evaluate(*text, scope); value && !std::holds_alternative<bool>(*value))
                now = std::holds_alternative<double>(*value) ? std::get<double>(*value) : static_cast<double>(std::get<std::int64_t>(*value));
    }
    double rank = 0;
    const auto add = [&](const ParamValue& value) { out.push_back({valueFix(context.graphName(), cell.name, def.name, value), rank++}); };
    if (now && (*now < def.minimum || *now > def.maximum)) {
        const double allowed = std::clamp(*now, def.minimum, def.maximum);
        add(def.kind == catalog::ParamKind::Integer ? ParamValue(static_cast<std::int64_t>(allowed)) : ParamValue(allowed));
    }
    if (def.kind != catalog::ParamKind::Integer) {
        if (def.standard) add(*def.standard);
        return;
    }
    for (const std::int64_t size : sizesOf(inputs))
        if (goesWell(type, cell, def.name, size, inputs, scope)) add(sizeInWords(size, scope));
    if (now && std::abs(*now) < 1e9) { // the nearest that go well
        std::size_t found = 0;
        for (const std::int64_t number : around(static_cast<std::int64_t>(std::llround(*now)), kFarthest)) {
            if (found == 2) break;
            if (!goesWell(type, cell, def.name, number, inputs, scope)) continue;
            add(sizeInWords(number, scope));
            ++found;
        }
        if (goesWell(type, cell, def.name, static_cast<std::int64_t>(std::llround(*now)), inputs, scope)) add(static_cast<std::int64_t>(std::llround(*now)));
    }
    if (given != cell.params.end()) return;
    for (const auto& [name, value] : scope) // nothing is known: a size that the graph speaks of
        if (std::holds_alternative<std::int64_t>(value) && goesWell(type, cell, def.name, name, inputs, scope)) add(name);
}

/// A number that a hyper-parameter has somewhere above: of 64 / 7 either. Those near to it, then the `sizes` of what comes in.
void suggestRoots(const FixContext& context, std::size_t level, const std::string& text, const std::vector<std::int64_t>& sizes, Candidates& out, int depth = 0) {
    if (depth > 8) return;
    const Graph& graph = *graphOf(context.document, context.levels[level].graph);
    for (const std::string& name : namesIn(text)) {
        const auto hyper = std::find_if(graph.hyper.begin(), graph.hyper.end(), [&](const HyperParameter& one) { return one.name == name; });
        if (hyper == graph.hyper.end()) continue;
        const ParamValue* value = &hyper->value;
        const Cell* user = level > 0 ? findCell(*graphOf(context.document, context.levels[level - 1].graph), context.levels[level].cell) : nullptr;
        const auto given = user ? user->params.find(name) : std::map<std::string, ParamValue>::const_iterator();
        const bool isGiven = user && given != user->params.end();
        if (isGiven) value = &given->second;
        if (const auto* further = std::get_if<std::string>(value)) {
            suggestRoots(context, isGiven ? level - 1 : level, *further, sizes, out, depth + 1);
            continue;
        }
        const auto* number = std::get_if<std::int64_t>(value);
        if (!number) continue;
        // of a composite the cell that uses it is told, not the composite
        const std::size_t from = user ? level - 1 : level;
        double rank = -200 + std::log2(1.0 + static_cast<double>(std::abs(*number))) * 10; // the smaller of two is the count of something
        const auto add = [&](const ParamValue& other) {
            out.push_back({user ? valueFix(context.levels[from].graph, user->name, name, other) : hyperFix(context.levels[from].graph, name, other), rank});
            rank += 0.1;
        };
        for (const std::int64_t other : around(*number, 8))
            if (other >= 1) add(other);
        for (const std::int64_t size : sizes)
            if (size != *number) add(user ? sizeInWords(size, context.scope(from)) : ParamValue(size));
    }
}

// ---- whole cells ----

void findParam(const FixContext& context, const Cell& cell, const catalog::CellType& type, const catalog::ParamDef& def, Candidates& out) {
    const Scope scope = context.scope();
    const auto given = cell.params.find(def.name);
    const auto* text = given == cell.params.end() ? nullptr : std::get_if<std::string>(&given->second);
    const auto add = [&](const ParamValue& value, double rank) { out.push_back({valueFix(context.graphName(), cell.name, def.name, value), rank}); };
    double rank = 0;
    switch (def.kind) {
    case catalog::ParamKind::Choice:
        if (text)
            for (const std::string& choice : nearest(*text, def.choices)) add(choice, rank++);
        for (const std::string& choice : def.choices) add(choice, 50 + rank++);
        return;
    case catalog::ParamKind::Flag:
        if (def.standard) add(*def.standard, 0);
        for (const bool value : {true, false}) add(value, ++rank);
        return;
    case catalog::ParamKind::Integer:
    case catalog::ParamKind::Real:
        if (text) {
            for (const std::string& right : respelt(*text, scope)) add(right, rank++ - 100);
            suggestRoots(context, context.levels.size() - 1, *text, sizesOf(context.inputShapes()), out);
        }
        suggestNumbers(context, cell, type, def, out);
        return;
    case catalog::ParamKind::IntegerList:
        if (text)
            for (const std::string& right : respelt(*text, scope)) add(right, rank++);
        return;
    default:
        return;
    }
}

/// Parameters that the type does not have: the one that was meant, or none.
template <class Names> void findUnknown(const FixContext& context, const Cell& cell, const Names& known, Candidates& out) {
    for (const auto& [name, value] : cell.params) {
        if (std::find(known.begin(), known.end(), name) != known.end()) continue;
        double rank = 0;
        for (const std::string& right : nearest(name, known, kMostSuggested))
            if (!cell.params.contains(right))
                out.push_back({{Kind::RenameValue, {name, right}, [graph = context.graphName(), cell = cell.name, name = name, right](Document& document) -> Status {
                                    CELLOOM_TRY(owner, graphFor(document, graph));
                                    CELLOOM_TRY(target, cellFor(*owner, cell));
                                    auto node = target->params.extract(name);
                                    if (node.empty()) return fail("There is no such parameter.");
                                    node.key() = right;
                                    target->params.insert(std::move(node));
                                    return {};
                                }},
                               rank++});
        out.push_back({{Kind::RemoveValue, {name}, [graph = context.graphName(), cell = cell.name, name = name](Document& document) -> Status {
                            CELLOOM_TRY(owner, graphFor(document, graph));
                            CELLOOM_TRY(target, cellFor(*owner, cell));
                            target->params.erase(name);
                            return {};
                        }},
                       40});
    }
}

void findRepeat(const FixContext& context, const Cell& cell, Candidates& out) {
    if (cell.repeat.empty() || context.problem.parameter != "repeat") return;
    const Scope scope = context.scope();
    double rank = 0;
    for (const std::string& right : respelt(cell.repeat, scope))
        out.push_back({{Kind::SetValue, {"repeat", right}, [graph = context.graphName(), name = cell.name, right](Document& document) { return setRepeat(document, graph, name, right); }}, rank++});
    out.push_back({{Kind::NoRepeat, {cell.name}, [graph = context.graphName(), name = cell.name](Document& document) { return setRepeat(document, graph, name, ""); }}, 60});
}

void findHyper(const FixContext& context, Candidates& out) {
    const Graph& graph = context.graph();
    Scope scope;
    for (const HyperParameter& hyper : graph.hyper) {
        if (hyper.name == context.problem.parameter) {
            const auto* text = std::get_if<std::string>(&hyper.value);
            double rank = 0;
            if (text)
                for (const std::string& right : respelt(*text, scope)) out.push_back({hyperFix(context.graphName(), hyper.name, right), rank++});
            if (text) suggestRoots(context, context.levels.size() - 1, *text, {}, out);
            return;
        }
        const auto* text = std::get_if<std::string>(&hyper.value);
        const auto value = text ? evaluate(*text, scope) : Result<ResolvedValue>(std::visit([](const auto& held) { return ResolvedValue(held); }, hyper.value));
        if (value) scope[hyper.name] = *value;
    }
}

} // namespace

void findTypes(const FixContext& context, Candidates& out) {
    const Cell* cell = findCell(context.graph(), context.cell);
    if (!cell || context.document.composites.contains(cell->type) || catalog::find(cell->type)) return;
    if (library::findStandard(cell->type))
        out.push_back({{Kind::TakeFromLibrary, {cell->type}, [type = cell->type](Document& document) -> Status {
                            CELLOOM_TRY(copied, library::copyInto(document, type));
                            if (copied.type != type) return fail("The name is taken.");
                            return {};
                        }},
                       0});
    std::vector<std::string> known;
    for (const auto& [name, graph] : context.document.composites) known.push_back(name);
    for (const catalog::CellType& type : catalog::all()) known.push_back(type.name);
    double rank = 1;
    for (const std::string& type : nearest(cell->type, known, kMostSuggested)) suggestType(context, *cell, type, rank++, out);
    out.push_back({{Kind::RemoveCell, {cell->name}, [graph = context.graphName(), name = cell->name](Document& document) { return removeCells(document, graph, {name}); }}, 80});
}

void findValues(const FixContext& context, Candidates& out) {
    const Cell* cell = findCell(context.graph(), context.cell);
    if (!cell) {
        findHyper(context, out);
        return;
    }
    findRepeat(context, *cell, out);
    const std::string& wrong = context.problem.parameter;
    if (const auto composite = context.document.composites.find(cell->type); composite != context.document.composites.end()) {
        findUnknown(context, *cell, namesOf(composite->second.hyper), out);
        const auto given = cell->params.find(wrong);
        if (given == cell->params.end()) return;
        const auto* text = std::get_if<std::string>(&given->second);
        if (!text) return;
        double rank = 0;
        for (const std::string& right : respelt(*text, context.scope())) out.push_back({valueFix(context.graphName(), cell->name, wrong, right), rank++});
        return;
    }
    const catalog::CellType* type = catalog::find(cell->type);
    if (!type) return;
    findUnknown(context, *cell, namesOf(type->params), out);
    for (const catalog::ParamDef& def : type->params)
        if (def.name == wrong) findParam(context, *cell, *type, def, out);
}

} // namespace celloom::graph
