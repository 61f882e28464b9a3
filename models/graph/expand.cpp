// One pass from document to instances: composites and repeats unrolled, expressions evaluated, wires followed, shapes inferred.
// An error poisons the values behind it, so that one mistake is reported once and not again by every cell that follows.
#include "models/graph/expand.h"

#include "models/catalog/catalog.h"
#include "models/graph/declared_ports.h"
#include "models/graph/edits.h"
#include "models/graph/expression.h"
#include "models/graph/parameters.h"
#include "models/graph/plan.h"
#include "models/graph/problems.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>

namespace celloom::graph {
namespace {

constexpr std::size_t kMaxInstances = 200000;
constexpr int kMaxDepth = 32;
constexpr std::int64_t kMaxParameters = 100'000'000'000'000'000;
constexpr ValueId kUnwired = -1;
constexpr ValueId kPoisoned = -2;

/// Outputs of an instance by port, in port order.
using Ports = std::vector<std::pair<std::string, ValueId>>;

struct Context {
    std::string path;   // "layers.3.self_attn", empty for the main graph
    const Scope* scope; // hyper-parameters
    int depth = 0;
};

class Expander {
public:
    /// `instances` counts over several expanders, so that together they stay within the bound.
    Expander(const Document& document, ProblemList problems, std::size_t& instances)
        : m_document(document), m_problems(std::move(problems)), m_instances(instances) {}

    /// Expands `graph` as a whole model: its inputs are the model's.
    void run(const Graph& graph) {
        m_model.name = graph.name;
        m_model.family = m_document.family;
        const auto scope = hyper(graph, "", {});
        if (!scope) return;
        m_model.hyper = *scope;
        std::vector<ValueId> inputs;
        Symbols symbols;
        for (const Port& port : graph.inputs)
            for (const std::string& dim : port.shape)
                if (isIdentifier(dim) && !scope->count(dim)) symbols[dim] = Dim{1, dim};
        for (const Port& port : graph.inputs) {
            inputs.push_back(input(port, *scope, symbols));
            m_model.inputs.push_back({port.name, inputs.back()});
        }
        const auto outputs = instantiate(graph, {"", &*scope, 0}, inputs);
        checkOutputs(graph, "", outputs, *scope, symbols, "the graph");
        for (std::size_t i = 0; i < outputs.size(); ++i) m_model.outputs.push_back({graph.outputs[i].name, outputs[i]});
    }

    ExpandedModel takeModel() { return std::move(m_model); }
    const std::set<std::string>& usedComposites() const { return m_used; }

private:
    [[nodiscard]] bool isStopped() const { return m_isStopped || m_problems.isFull(); }

    // ---- hyper-parameters ----

    /// A graph's hyper-parameters, in order: each sees those before it. `given` are set from outside, already evaluated.
    std::optional<Scope> hyper(const Graph& graph, const std::string& path, const Scope& given) {
        Scope scope;
        const std::size_t before = m_problems.errors();
        for (const HyperParameter& parameter : graph.hyper) {
            if (!isIdentifier(parameter.name)) {
                m_problems.error(path, "The hyper-parameter name " + inQuotes(parameter.name) + " cannot be used.",
                                 "Names are a letter, then letters, digits and _.");
                continue;
            }
            Result<ResolvedValue> value = std::visit([](const auto& held) { return ResolvedValue(held); }, parameter.value);
            if (const auto found = given.find(parameter.name); found != given.end())
                value = found->second;
            else if (const auto* text = std::get_if<std::string>(&parameter.value))
                value = evaluate(*text, scope);
            if (const auto* text = std::get_if<std::string>(&parameter.value);
                text && value && std::holds_alternative<double>(*value) && !given.contains(parameter.name))
                rememberFraction(parameter.name, *text, scope);
            if (!value)
                m_problems.error(path, std::move(value).error(), parameter.name);
            else if (!scope.emplace(parameter.name, *value).second)
                m_problems.error(path, "Two hyper-parameters are named " + parameter.name + ".", "Rename one.", parameter.name);
        }
        if (m_problems.errors() != before) return {};
        return scope;
    }

    /// A hyper-parameter that came out as no whole number does harm only where a cell needs one: its origin is told there.
    void rememberFraction(const std::string& name, const std::string& text, const Scope& scope) {
        const auto whole = evaluateInteger(text, scope);
        if (whole) return;
        const std::string& said =
            whole.error().message; // "the expression "hidden / heads" gives 9.14 (heads = 7, hidden = 64), expected …"
        const auto open = said.rfind(" ("), close = said.rfind(')');
        if (open != std::string::npos && close != std::string::npos && open < close)
            m_fractions[name] = inQuotes(text) + said.substr(open, close + 1 - open);
    }
    [[nodiscard]] std::string originOf(const Error& error) const {
        for (const auto& [name, origin] : m_fractions)
            if (error.message.find(name + " = ") != std::string::npos) return name + " is " + origin + ": change one of these numbers.";
        return error.hint;
    }

    /// The values that a cell gives to its composite's hyper-parameters.
    Scope givenHyper(const Cell& cell, const Graph& composite, const std::string& path, const Scope& scope) {
        Scope given;
        const auto known = namesOf(composite.hyper);
        for (const auto& [name, value] : cell.params) {
            if (std::find(known.begin(), known.end(), name) == known.end()) {
                m_problems.error(path, cell.type + " has no hyper-parameter " + inQuotes(name) + ".",
                                 didYouMean(name, known, "Hyper-parameters"), name);
            } else if (const auto* text = std::get_if<std::string>(&value)) {
                auto evaluated = evaluate(*text, scope);
                if (evaluated && std::holds_alternative<double>(*evaluated)) rememberFraction(name, *text, scope);
                if (evaluated)
                    given[name] = *evaluated;
                else
                    m_problems.error(path, std::move(evaluated).error(), name);
            } else {
                given[name] = std::visit([](const auto& held) { return ResolvedValue(held); }, value);
            }
        }
        return given;
    }

    // ---- instances ----

    ValueId addValue(std::string producer, Shape shape, std::string dtype) {
        m_model.values.push_back({std::move(producer), std::move(shape), std::move(dtype)});
        return static_cast<ValueId>(m_model.values.size()) - 1;
    }

    ValueId input(const Port& port, const Scope& scope, const Symbols& symbols) {
        if (port.shape.empty()) {
            m_problems.error("", "The input " + port.name + " has no shape.", "Give one such as [B, T].");
            return kPoisoned;
        }
        const auto shape = declaredShape(port, scope, symbols);
        if (shape) return addValue(port.name, *shape, port.dtype);
        m_problems.error("", "The input " + port.name + ": " + shape.error().message, shape.error().hint);
        return kPoisoned;
    }

    static Result<Shape> declaredShape(const Port& port, const Scope& scope, const Symbols& symbols) {
        Shape shape;
        for (const std::string& text : port.shape) {
            CELLOOM_TRY(dim, evaluateDim(text, scope, symbols));
            shape.push_back(std::move(dim));
        }
        return shape;
    }

    /// All cells of a graph, in order. Returns the values of its outputs.
    std::vector<ValueId> instantiate(const Graph& graph, const Context& context, const std::vector<ValueId>& inputs) {
        std::vector<ValueId> outputs(graph.outputs.size(), kPoisoned);
        auto found = m_plans.find(&graph);
        if (found == m_plans.end()) found = m_plans.emplace(&graph, planOf(graph, context.path, m_problems)).first;
        const Plan& plan = found->second;
        if (!plan.isUsable) return outputs;
        std::map<std::pair<std::string, std::string>, ValueId> produced;
        for (std::size_t i = 0; i < inputs.size(); ++i) produced[{"", graph.inputs[i].name}] = inputs[i];
        std::set<std::string> failed; // cells whose ports are not known
        const auto gather = [&](const std::string& target) {
            std::map<std::string, ValueId> fed;
            if (const auto feeds = plan.feeds.find(target); feeds != plan.feeds.end())
                for (const auto& [port, source] : feeds->second) fed[port] = sourceValue(source, produced, failed, context.path);
            return fed;
        };
        for (const Cell* cell : plan.order) {
            if (isStopped()) return outputs;
            const auto result = repeated(*cell, context, gather(cell->name));
            if (result)
                for (const auto& [port, value] : *result) produced[{cell->name, port}] = value;
            else
                failed.insert(cell->name);
        }
        const auto fed = gather("");
        for (std::size_t i = 0; i < outputs.size(); ++i) {
            const auto found = fed.find(graph.outputs[i].name);
            if (found != fed.end())
                outputs[i] = found->second;
            else
                m_problems.error(context.path, "The output " + graph.outputs[i].name + kHasNoWire, "Wire a cell's output to it.");
        }
        return outputs;
    }

    ValueId sourceValue(const Endpoint& source, const std::map<std::pair<std::string, std::string>, ValueId>& produced,
                        const std::set<std::string>& failed, const std::string& path) {
        if (const auto found = produced.find({source.cell, source.port}); found != produced.end()) return found->second;
        if (failed.count(source.cell)) return kPoisoned;
        std::vector<std::string> ports;
        for (const auto& [end, value] : produced)
            if (end.first == source.cell) ports.push_back(end.second);
        m_problems.error(below(path, source.cell),
                         "A wire starts at the output " + inQuotes(source.port) + ", which this cell does not have.",
                         didYouMean(source.port, ports, "Outputs"));
        return kPoisoned;
    }

    /// A cell, or as many of it in a row as `repeat` says. Nothing when its ports cannot be known.
    std::optional<Ports> repeated(const Cell& cell, const Context& context, std::map<std::string, ValueId> fed) {
        const std::string path = below(context.path, cell.name);
        if (cell.repeat.empty()) return one(cell, path, context, fed);
        const auto count = evaluateInteger(cell.repeat, *context.scope);
        if (!count) {
            m_problems.error(path, count.error(), "repeat");
            return {};
        }
        if (*count < 1 || *count > static_cast<std::int64_t>(kMaxInstances)) {
            m_problems.error(path, "repeat is " + std::to_string(*count) + ", must be 1 to " + std::to_string(kMaxInstances) + ".", "",
                             "repeat");
            return {};
        }
        std::optional<Ports> last;
        for (std::int64_t i = 0; i < *count && !isStopped(); ++i) {
            const std::size_t before = m_problems.errors();
            std::vector<std::string> inputNames;
            last = one(cell, below(path, std::to_string(i)), context, fed, &inputNames);
            if (!last || m_problems.errors() != before) break; // the others would say the same
            if (*count > 1 && last->size() > inputNames.size()) {
                m_problems.error(path,
                                 "gives " + std::to_string(last->size()) + " outputs but takes " + std::to_string(inputNames.size()) +
                                     " inputs, so it cannot follow itself.",
                                 "A repeated cell needs an input for each output.", "repeat");
                return {};
            }
            for (std::size_t k = 0; k < last->size() && k < inputNames.size(); ++k) fed[inputNames[k]] = (*last)[k].second;
        }
        return last;
    }

    std::optional<Ports> one(const Cell& cell, const std::string& path, const Context& context, const std::map<std::string, ValueId>& fed,
                             std::vector<std::string>* inputNames = nullptr) {
        if (++m_instances > kMaxInstances) {
            if (!m_isStopped)
                m_problems.error(path, "The graph holds more than " + std::to_string(kMaxInstances) + " cells here.",
                                 "Lower a repeat count.", "repeat");
            m_isStopped = true;
            return {};
        }
        if (const auto composite = m_document.composites.find(cell.type); composite != m_document.composites.end()) {
            m_used.insert(cell.type);
            if (inputNames) *inputNames = namesOf(composite->second.inputs);
            return compositeInstance(cell, composite->second, path, context, fed);
        }
        if (const catalog::CellType* type = catalog::find(cell.type)) return primitiveInstance(cell, *type, path, context, fed, inputNames);
        std::vector<std::string> known;
        for (const auto& [name, graph] : m_document.composites) known.push_back(name);
        for (const auto& type : catalog::all()) known.push_back(type.name);
        m_problems.error(path, "There is no cell type " + inQuotes(cell.type) + ".", didYouMean(cell.type, known, "Types"));
        return {};
    }

    /// The value of each input port, in order; reports wires to ports that are not there, missing wires and types that differ.
    std::optional<std::vector<ValueId>> match(const std::vector<catalog::PortDef>& ports, const std::string& path, const std::string& type,
                                              const std::map<std::string, ValueId>& fed) {
        const std::size_t before = m_problems.errors();
        std::vector<ValueId> inputs;
        bool isPoisoned = false;
        const auto names = namesOf(ports);
        for (const auto& [port, value] : fed)
            if (std::find(names.begin(), names.end(), port) == names.end())
                m_problems.error(path, "A wire ends at the input " + inQuotes(port) + ", which " + type + " does not have.",
                                 didYouMean(port, names, "Inputs"));
        for (const catalog::PortDef& port : ports) {
            const auto found = fed.find(port.name);
            inputs.push_back(found == fed.end() ? kUnwired : found->second);
            isPoisoned = isPoisoned || inputs.back() == kPoisoned;
            if (inputs.back() == kUnwired && !port.isOptional)
                m_problems.error(path, "The input " + port.name + kHasNoWire, "Wire something to it.");
            if (inputs.back() < 0) continue;
            const ValueInfo& value = m_model.values[static_cast<std::size_t>(inputs.back())];
            if (value.dtype != port.dtype)
                m_problems.error(
                    path, "The input " + port.name + " takes " + port.dtype + ", but " + value.producer + " gives " + value.dtype + ".",
                    value.dtype == "int64" ? "Put an Embedding between them." : "Change what feeds it.");
        }
        if (isPoisoned || m_problems.errors() != before) return {};
        return inputs;
    }

    std::optional<Ports> primitiveInstance(const Cell& cell, const catalog::CellType& type, const std::string& path, const Context& context,
                                           const std::map<std::string, ValueId>& fed, std::vector<std::string>* inputNames) {
        CellInstance instance;
        instance.path = path;
        instance.type = type.name;
        if (!resolveParams(cell, type, path, *context.scope, instance)) return {};
        const auto ports = catalog::inputPorts(type, instance);
        if (inputNames) *inputNames = namesOf(ports);
        Ports out;
        for (const auto& port : catalog::outputPorts(type, instance)) out.emplace_back(port.name, kPoisoned);
        const auto inputs = match(ports, path, type.name, fed);
        if (!inputs) return out;
        catalog::RuleInput rule{instance, {}};
        for (const ValueId input : *inputs)
            rule.inputs.push_back(input < 0 ? Shape{} : m_model.values[static_cast<std::size_t>(input)].shape);
        auto shapes = type.shapeRule(rule);
        if (!shapes) {
            const std::string parameter = shapes.error().place;
            m_problems.error(path, std::move(shapes).error(), parameter);
            return out;
        }
        CELLOOM_CHECK(shapes->size() == out.size());
        if (type.weights) instance.weights = type.weights(instance);
        if (!countParameters(instance)) return out;
        instance.inputs = *inputs;
        for (std::size_t i = 0; i < out.size(); ++i) {
            for (const Dim& dim : (*shapes)[i])
                if (dim.number > kMaxDim) {
                    m_problems.error(path, "The output " + out[i].first + " would be " + toString((*shapes)[i]) +
                                               "; a dimension is at most " + std::to_string(kMaxDim) + ".");
                    return out;
                }
            out[i].second = addValue(path + "." + out[i].first, (*shapes)[i], catalog::outputPorts(type, instance)[i].dtype);
            instance.outputs.push_back(out[i].second);
        }
        m_model.cells.push_back(std::move(instance));
        return out;
    }

    bool resolveParams(const Cell& cell, const catalog::CellType& type, const std::string& path, const Scope& scope,
                       CellInstance& instance) {
        const std::size_t before = m_problems.errors();
        const auto known = namesOf(type.params);
        for (const auto& [name, value] : cell.params)
            if (std::find(known.begin(), known.end(), name) == known.end())
                m_problems.error(path, type.name + " has no parameter " + inQuotes(name) + ".", didYouMean(name, known, "Parameters"),
                                 name);
        for (const catalog::ParamDef& def : type.params) {
            const auto given = cell.params.find(def.name);
            if (given == cell.params.end() && !def.standard) {
                m_problems.error(path, type.name + kNeedsParameter + def.name + ".", def.help, def.name);
                continue;
            }
            auto value = resolveParam(def, given == cell.params.end() ? *def.standard : given->second, scope);
            if (value)
                instance.params[def.name] = std::move(*value);
            else
                m_problems.error(path, value.error().message, originOf(value.error()), def.name);
        }
        if (m_problems.errors() != before) return false;
        if (!type.check) return true;
        auto status = type.check(instance);
        if (status) return true;
        const std::string parameter = status.error().place;
        m_problems.error(path, std::move(status).error(), parameter);
        return false;
    }

    bool countParameters(const CellInstance& instance) {
        for (const WeightSpec& weight : instance.weights) {
            std::int64_t size = 1;
            for (const std::int64_t dim : weight.dims)
                if (__builtin_mul_overflow(size, dim, &size)) size = INT64_MAX;
            if (size <= kMaxParameters && m_parameters + size <= kMaxParameters) {
                m_parameters += size;
                continue;
            }
            m_problems.error(instance.path, "The model would have more than " + std::to_string(kMaxParameters) + " parameters here.",
                             "Make it smaller.");
            m_isStopped = true;
            return false;
        }
        return true;
    }

    std::optional<Ports> compositeInstance(const Cell& cell, const Graph& composite, const std::string& path, const Context& context,
                                           const std::map<std::string, ValueId>& fed) {
        Ports out;
        for (const Port& port : composite.outputs) out.emplace_back(port.name, kPoisoned);
        if (context.depth + 1 > kMaxDepth) {
            m_problems.error(path, "Composites nest deeper than " + std::to_string(kMaxDepth) + " levels here.", "Use fewer levels.");
            return out;
        }
        const std::size_t before = m_problems.errors();
        const Scope given = givenHyper(cell, composite, path, *context.scope);
        if (m_problems.errors() != before) return out;
        const auto scope = hyper(composite, path, given);
        std::vector<catalog::PortDef> ports;
        for (const Port& port : composite.inputs) ports.push_back({port.name, false, port.dtype});
        const auto inputs = match(ports, path, cell.type, fed);
        if (!scope || !inputs) return out;
        Symbols symbols;
        for (std::size_t i = 0; i < inputs->size(); ++i) bindSymbols(composite.inputs[i], (*inputs)[i], *scope, symbols);
        for (std::size_t i = 0; i < inputs->size(); ++i)
            checkDeclared(composite.inputs[i], (*inputs)[i], *scope, symbols, path, cell.type, "Change what feeds it");
        if (m_problems.errors() != before) return out;
        const auto outputs = instantiate(composite, {path, &*scope, context.depth + 1}, *inputs);
        if (m_problems.errors() == before) checkOutputs(composite, path, outputs, *scope, symbols, cell.type);
        for (std::size_t i = 0; i < outputs.size(); ++i) out[i].second = outputs[i];
        return out;
    }

    /// In a declared shape a bare name that is no hyper-parameter stands for whatever dimension is wired in.
    void bindSymbols(const Port& port, ValueId value, const Scope& scope, Symbols& symbols) {
        const Shape& actual = m_model.values[static_cast<std::size_t>(value)].shape;
        for (std::size_t i = 0; i < port.shape.size() && i < actual.size(); ++i)
            if (isIdentifier(port.shape[i]) && !scope.count(port.shape[i])) symbols.emplace(port.shape[i], actual[i]);
    }

    /// Holds the value at a port to the port's declared shape; a port without one takes any.
    void checkDeclared(const Port& port, ValueId value, const Scope& scope, const Symbols& symbols, const std::string& path,
                       const std::string& type, const std::string& advice) {
        if (port.shape.empty() || value < 0) return;
        const ValueInfo& info = m_model.values[static_cast<std::size_t>(value)];
        const auto declared = declaredShape(port, scope, symbols);
        if (!declared)
            return m_problems.error(path, "The shape of the port " + port.name + ": " + declared.error().message, declared.error().hint);
        if (*declared == info.shape) return;
        std::string parameter; // the hyper-parameter whose value does not fit
        for (std::size_t i = 0; i < declared->size() && declared->size() == info.shape.size() && parameter.empty(); ++i)
            if ((*declared)[i] != info.shape[i] && scope.count(port.shape[i])) parameter = port.shape[i];
        m_problems.error(path,
                         port.name + " is " + toString(info.shape) + ", but " + type + " declares [" + joined(port.shape) +
                             "] = " + toString(*declared) + ".",
                         advice + (parameter.empty() ? "." : ", or " + parameter + "."), parameter);
    }

    void checkOutputs(const Graph& graph, const std::string& path, const std::vector<ValueId>& outputs, const Scope& scope,
                      const Symbols& symbols, const std::string& type) {
        for (std::size_t i = 0; i < outputs.size(); ++i) {
            const Port& port = graph.outputs[i];
            checkDeclared(port, outputs[i], scope, symbols, path, type, "Change the cell that gives it, the declared shape");
            if (outputs[i] < 0) continue;
            const ValueInfo& info = m_model.values[static_cast<std::size_t>(outputs[i])];
            if (info.dtype != port.dtype)
                m_problems.error(path, "The output " + port.name + " is declared " + port.dtype + ", but " + info.producer + " gives " +
                                           info.dtype + ".");
        }
    }

    const Document& m_document;
    ProblemList m_problems;
    std::size_t& m_instances;
    ExpandedModel m_model;
    std::map<const Graph*, Plan> m_plans; // made once, whatever the number of instances
    std::set<std::string> m_used;
    std::map<std::string, std::string> m_fractions; // by hyper-parameter: why it is no whole number
    std::int64_t m_parameters = 0;
    bool m_isStopped = false;
};

/// "A -> B -> A" when composites contain each other, else empty. Walks with its own stack: documents may be deep.
std::string findRecursion(const Document& document) {
    enum class Mark { Open, Done };
    std::map<std::string, Mark> marks;
    struct Step {
        const std::string* name;
        std::size_t next = 0;
    };
    for (const auto& [start, graph] : document.composites) {
        if (marks.count(start)) continue;
        std::vector<Step> walk{{&start}};
        marks[start] = Mark::Open;
        while (!walk.empty()) {
            const auto& cells = document.composites.at(*walk.back().name).cells;
            if (walk.back().next == cells.size()) {
                marks[*walk.back().name] = Mark::Done;
                walk.pop_back();
                continue;
            }
            const auto inner = document.composites.find(cells[walk.back().next++].type);
            if (inner == document.composites.end()) continue;
            const auto mark = marks.find(inner->first);
            if (mark == marks.end()) {
                marks[inner->first] = Mark::Open;
                walk.push_back({&inner->first});
            } else if (mark->second == Mark::Open) {
                std::string circle;
                for (const Step& step : walk)
                    if (!circle.empty() || *step.name == inner->first) circle += *step.name + " -> ";
                return circle + inner->first;
            }
        }
    }
    return {};
}

/// The composite that the cell at a path stands in, empty for the main graph: where a mistake is mended, whatever the number of instances.
std::string compositeAt(const Document& document, const std::string& path) {
    const auto slash = path.find('/');
    std::string inside = slash == std::string::npos ? "" : path.substr(0, slash);
    for (std::size_t from = slash == std::string::npos ? 0 : slash + 1; from < path.size();) {
        const auto graph = document.composites.find(inside);
        if (graph == document.composites.end() && !inside.empty()) return {};
        const auto& cells = inside.empty() ? document.main.cells : graph->second.cells;
        std::size_t end = std::min(path.find('.', from), path.size());
        const auto cell = std::find_if(cells.begin(), cells.end(), [&](const Cell& other) { return path.compare(from, end - from, other.name) == 0; });
        if (cell == cells.end()) return inside;
        if (!cell->repeat.empty()) end = end < path.size() ? std::min(path.find('.', end + 1), path.size()) : end; // the instance's number
        if (end >= path.size()) return inside;
        inside = cell->type;
        from = end + 1;
    }
    return inside;
}

} // namespace

std::int64_t CellInstance::integer(const std::string& name) const {
    return std::get<std::int64_t>(params.at(name));
}
double CellInstance::real(const std::string& name) const {
    return std::get<double>(params.at(name));
}
bool CellInstance::flag(const std::string& name) const {
    return std::get<bool>(params.at(name));
}
const std::string& CellInstance::text(const std::string& name) const {
    return std::get<std::string>(params.at(name));
}

std::vector<std::int64_t> CellInstance::integers(const std::string& name) const {
    const std::string& list = text(name);
    std::vector<std::int64_t> out;
    const char* end = list.data() + list.size();
    for (const char* at = list.data(); at < end; ++at) {
        std::int64_t number = 0;
        const auto read = std::from_chars(at, end, number);
        CELLOOM_CHECK(read.ec == std::errc());
        out.push_back(number);
        at = read.ptr;
    }
    return out;
}

std::vector<DeclaredPort> CellInstance::ports(const std::string& name) const {
    return readDeclaredPorts(text(name), {}).value(); // resolveParam() wrote it
}

std::int64_t ExpandedModel::parameterCount() const {
    std::int64_t count = 0;
    for (const CellInstance& cell : cells)
        for (const WeightSpec& weight : cell.weights) {
            if (weight.isBuffer) continue;
            std::int64_t size = 1;
            for (const std::int64_t dim : weight.dims) size *= dim; // bounded by expand()
            count += size;
        }
    return count;
}

std::int64_t ExpandedModel::hyperInteger(const std::string& name, std::int64_t otherwise) const {
    const auto found = hyper.find(name);
    if (found == hyper.end()) return otherwise;
    const auto* whole = std::get_if<std::int64_t>(&found->second);
    return whole ? *whole : otherwise;
}

bool Expansion::ok() const {
    return std::none_of(problems.begin(), problems.end(),
                        [](const Problem& problem) { return problem.severity == Problem::Severity::Error; });
}

Error Expansion::firstError() const {
    for (const Problem& problem : problems) {
        if (problem.severity != Problem::Severity::Error) continue;
        std::string place = problem.path;
        if (!problem.parameter.empty()) place += (place.empty() ? "" : ", ") + problem.parameter;
        return {problem.message, problem.hint, place};
    }
    return {};
}

Status applyOverrides(Document& document, const std::map<std::string, ParamValue>& overrides) {
    for (const auto& [name, value] : overrides) {
        auto& all = document.main.hyper;
        const auto found = std::find_if(all.begin(), all.end(), [&wanted = name](const HyperParameter& hyper) { return hyper.name == wanted; });
        if (found == all.end())
            return fail("The model has no hyper-parameter " + inQuotes(name) + ".", didYouMean(name, namesOf(all), "Hyper-parameters"),
                        name);
        found->value = value;
    }
    return {};
}

Expansion expand(const Document& original, const std::map<std::string, ParamValue>& overrides) {
    Expansion out;
    Document document = original;
    if (auto status = applyOverrides(document, overrides); !status) {
        out.problems.push_back({Problem::Severity::Error, "", status.error().message, status.error().hint, status.error().place});
        return out;
    }
    for (const auto& [name, graph] : document.composites)
        if (catalog::find(name))
            out.problems.push_back(
                {Problem::Severity::Error, name + "/", "The composite has the name of a cell type of the catalogue.", "Rename it.", ""});
    if (const std::string circle = findRecursion(document); !circle.empty())
        out.problems.push_back(
            {Problem::Severity::Error, "", "Composites contain each other: " + circle + ".", "Remove one of them from the other.", ""});
    if (!out.ok()) return out;
    std::size_t instances = 0;
    Expander expander(document, ProblemList(out.problems, "", false), instances);
    expander.run(document.main);
    // What the model uses is not looked at by itself, also where an error kept the expansion from coming to it.
    const auto used = compositesUsedBy(document, document.main);
    std::set<std::string> seen(used.begin(), used.end());
    for (const auto& [name, graph] : document.composites) {
        if (!seen.insert(name).second) continue;
        Expander alone(document, ProblemList(out.problems, name + "/", true), instances);
        alone.run(graph);
        seen.insert(alone.usedComposites().begin(), alone.usedComposites().end());
    }
    for (Problem& problem : out.problems)
        if (const std::string inside = compositeAt(document, problem.path); !inside.empty() && !problem.path.starts_with(inside + "/"))
            problem.hint += (problem.hint.empty() ? "In the composite " : " In the composite ") + inside + ".";
    out.model = expander.takeModel();
    return out;
}

} // namespace celloom::graph
