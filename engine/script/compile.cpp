// A source becomes functions: names that it does not define are looked up here, errors become problems with places.
#include "engine/script/compiler.h"

#include "engine/train/run_reporter.h"
#include "models/base/text.h"

#include <torch/csrc/jit/api/function_impl.h>
#include <torch/csrc/jit/frontend/error_report.h>
#include <torch/csrc/jit/frontend/resolver.h>
#include <torch/csrc/jit/runtime/graph_executor.h>

#include <algorithm>
#include <regex>

namespace celloom::engine::script {
namespace {

using namespace torch::jit;

constexpr const char* kFile = "script";          // in LibTorch's messages, where places are read from
constexpr std::int64_t kMaxOperations = 20'000; // of a method, with all that it calls

/// The place of a tree's range in the cleaned source.
std::size_t offsetIn(const ScriptSource& source, const SourceRange& range) {
    std::size_t at = 0;
    for (std::size_t line = 1; line < range.source()->starting_line_no() && at < source.text.size(); ++line) at = source.text.find('\n', at) + 1;
    return at + range.start();
}

ScriptProblem problemAtRange(const ScriptSource& source, const SourceRange& range, std::string message, std::string hint = {}) {
    if (!range.source()) return {std::move(message), std::move(hint), 0, 0, 1, {}, false};
    return problemAt(source.text, offsetIn(source, range), range.size(), std::move(message), std::move(hint));
}

/// torch, math, ops, np …: their functions that are on the list.
struct ModuleName : SugaredValue {
    ModuleName(std::string module, std::string written) : module(std::move(module)), written(std::move(written)) {}
    std::string kind() const override { return "module"; }
    std::shared_ptr<SugaredValue> attr(const SourceRange& range, GraphFunction& method, const std::string& field) override {
        if (const auto name = operatorFor(module, field)) return std::make_shared<BuiltinFunction>(Symbol::fromQualString(*name), std::nullopt);
        const auto constant = [&](double value) { return std::make_shared<SimpleValue>(method.graph()->insertConstant(value, range)); };
        if (module != "time") {
            if (field == "pi") return constant(3.14159265358979323846);
            if (field == "e") return constant(2.71828182845904523536);
            if (field == "inf") return constant(std::numeric_limits<double>::infinity());
            if (field == "nan") return constant(std::numeric_limits<double>::quiet_NaN());
            if (field == "float32") return std::make_shared<SimpleValue>(method.graph()->insertConstant(static_cast<std::int64_t>(at::kFloat), range));
            if (field == "float64") return std::make_shared<SimpleValue>(method.graph()->insertConstant(static_cast<std::int64_t>(at::kDouble), range));
            if (field == "int64") return std::make_shared<SimpleValue>(method.graph()->insertConstant(static_cast<std::int64_t>(at::kLong), range));
        }
        if (field == "nn" || field == "functional" || field == "linalg") return std::make_shared<ModuleName>(module, written + "." + field);
        const auto close = nearest(field, operatorNames(module));
        const bool isClass = written.starts_with("nn") && !field.empty() && field[0] >= 'A' && field[0] <= 'Z';
        throw ErrorReport(range) << written << "." << field << " is not available in typed code."
                                 << (isClass         ? " Cells inside a typed cell are not: declare weights and compute with them, or wire such a cell to this one."
                                     : close.empty() ? std::string()
                                                     : " Did you mean " + joined(close) + "?");
    }
    std::string module, written;
};

/// A name that nothing defines: a number for now, so that all of them are found at once.
struct FreeName : SugaredValue {
    explicit FreeName(std::string name) : name(std::move(name)) {}
    std::string kind() const override { return "name without a value"; }
    Value* asValue(const SourceRange& range, GraphFunction& method) override { return method.graph()->insertConstant(1.0, range); }
    std::shared_ptr<SugaredValue> call(const SourceRange& range, GraphFunction&, at::ArrayRef<NamedValue>, at::ArrayRef<NamedValue>, std::size_t) override {
        static const std::vector<std::string> kFunctions{"print", "float", "int", "bool", "str", "len", "range", "min", "max", "abs", "sum", "sorted", "round", "enumerate", "zip", "isinstance"};
        const auto close = nearest(name, kFunctions);
        throw ErrorReport(range) << "There is no function " << name << "." << (close.empty() ? "" : " Did you mean " + joined(close) + "?");
    }
    std::shared_ptr<SugaredValue> attr(const SourceRange& range, GraphFunction&, const std::string&) override {
        throw ErrorReport(range) << name << " is not defined.";
    }
    std::string name;
};

struct Names : Resolver {
    Names(const ScriptSource& source, const std::map<std::string, ScriptValue>& values) : source(source), values(values) {}

    std::shared_ptr<SugaredValue> resolveValue(const std::string& name, GraphFunction& method, const SourceRange& range) override {
        static const std::map<std::string, std::string> kModules{{"torch", "torch"}, {"math", "math"}, {"np", "numpy"}, {"numpy", "numpy"}, {"mnp", "numpy"},
                                                                 {"ops", "ops"},     {"F", "ops"},     {"P", "ops"},    {"mint", "mint"},   {"time", "time"},
                                                                 {"nn", "nn"}};
        if (const auto found = values.find(name); found != values.end()) {
            use(name, found->second, range);
            return std::make_shared<SimpleValue>(method.graph()->insertConstant(toIValue(found->second), range));
        }
        if (const auto found = functions.find(name); found != functions.end()) return std::make_shared<FunctionValue>(found->second);
        if (const auto found = kModules.find(name); found != kModules.end()) return std::make_shared<ModuleName>(found->second, name);
        if (name.ends_with("Error") || name == "Exception") return std::make_shared<ExceptionValue>(name);
        if (name == "self" || name == "super") return nullptr;
        use(name, std::nullopt, range);
        return std::make_shared<FreeName>(name);
    }
    TypePtr resolveType(const std::string& name, const SourceRange&) override { return name == "RunContext" ? runContextType() : nullptr; }

    void use(const std::string& name, std::optional<ScriptValue> value, const SourceRange& range) {
        if (std::any_of(used.begin(), used.end(), [&](const ScriptName& one) { return one.name == name; })) return;
        const ScriptProblem place = problemAtRange(source, range, {});
        used.push_back({name, std::move(value), place.line, place.column});
    }

    const ScriptSource& source;
    const std::map<std::string, ScriptValue>& values;
    std::map<std::string, Function*> functions;
    std::vector<ScriptName> used;
};

/// Problems that are found here and not by LibTorch.
struct Refused {
    ScriptProblem problem;
};

class Compiler {
public:
    Compiler(const ScriptSource& source, const ScriptSpec& spec) : m_source(source), m_spec(spec), m_values(source.constants) {
        for (const auto& [name, value] : spec.values) m_values[name] = value;
    }

    ScriptReport& report() { return m_report; }

    /// Which definition counts, and what it is.
    void choose() {
        if (m_spec.cell) return chooseCell();
        for (const ScriptDefinition& definition : m_source.definitions) {
            if (!definition.isClass) continue;
            if (m_main) throw Refused{problemAt(m_source.text, definition.begin, 5, "A second class.", "One script holds one callback or metric; add another script.")};
            m_main = &definition;
        }
        if (!m_main && !m_source.definitions.empty()) m_main = &m_source.definitions.back();
        if (!m_main)
            throw Refused{{"There is neither a class nor a function.", "Write class MyCallback(Callback): with methods such as step_end(self, run_context).", 1, 1, 1, {}, false}};
        m_report.definition = m_main->name;
        m_report.kind = ScriptKind::Schedule;
        if (!m_main->isClass) return;
        if (m_main->base != "Callback" && m_main->base != "Metric")
            throw Refused{problemAt(m_source.text, m_main->begin, 5, "The class " + m_main->name + (m_main->base.empty() ? " derives from nothing." : " derives from " + m_main->base + "."),
                                    "A callback derives from Callback, a metric from Metric.")};
        m_report.kind = m_main->base == "Metric" ? ScriptKind::Metric : ScriptKind::Callback;
    }

    /// A class with construct, or construct at the left margin.
    void chooseCell() {
        static constexpr const char* kForm = "Write def construct(self, x): and return what the cell gives.";
        m_report.kind = ScriptKind::Cell;
        for (const ScriptDefinition& definition : m_source.definitions) {
            const bool isConstruct = !definition.isClass && (definition.name == "construct" || definition.name == "forward");
            if (!definition.isClass && !isConstruct) continue; // a function that it calls
            if (m_main)
                throw Refused{problemAt(m_source.text, definition.begin, definition.isClass ? 5 : 3, "A second " + std::string(definition.isClass ? "class." : "construct."),
                                        "One Script cell holds one; add another cell.")};
            m_main = &definition;
        }
        if (!m_main) throw Refused{{"There is no construct.", kForm, 1, 1, 1, {}, false}};
        m_report.definition = m_main->name;
        if (m_main->isClass && !m_main->base.empty() && m_main->base != "Cell" && m_main->base != "Module")
            throw Refused{problemAt(m_source.text, m_main->begin, 5, "The class " + m_main->name + " derives from " + m_main->base + ".", "A cell derives from nn.Cell.")};
    }

    Compiled compile(bool isWidening) {
        Compiled out;
        out.unit = std::make_shared<CompilationUnit>();
        auto names = std::make_shared<Names>(m_source, m_values);
        try {
            defineHelpers(out, names, isWidening);
            if (m_main->isClass || m_spec.cell) defineClass(out, names, isWidening);
            else defineSchedule(out, names, isWidening);
        } catch (...) {
            m_report.names = names->used;
            throw;
        }
        m_report.names = names->used;
        return out;
    }

    void check(Compiled& compiled) {
        m_costs.clear(); // an earlier attempt's functions are gone, and these may lie where they were
        if (m_spec.cell) checkConstruct(compiled);
        for (const auto& [name, function] : compiled.functions) checkFunction(*function);
        for (Function* function : m_helpers) checkFunction(*function);
        if (m_spec.cell) checkKept(compiled);
        for (const auto& [name, function] : compiled.functions) costOf(*function);
        for (const auto& [name, function] : compiled.functions) insertGuards(*toGraphFunction(*function).graph());
        for (Function* function : m_helpers) insertGuards(*toGraphFunction(*function).graph());
        if (compiled.type) checkAttributes(*compiled.type);
        checkNames();
        compiled.report = m_report;
    }

private:
    SyntaxOptions options(bool isWidening) const { return {m_report.kind, m_values, isWidening}; }

    void defineHelpers(Compiled& out, const std::shared_ptr<Names>& names, bool isWidening) {
        std::vector<Def> defs;
        for (const ScriptDefinition& definition : m_source.definitions)
            if (&definition != m_main) defs.push_back(parseFunction(m_source, definition, kFile, options(isWidening), false));
        const std::vector<ResolverPtr> resolvers(defs.size(), names);
        m_helpers = out.unit->define(c10::QualifiedName("__celloom__"), {}, {}, defs, resolvers, nullptr);
        for (Function* function : m_helpers) names->functions[function->name()] = function;
    }

    void defineClass(Compiled& out, const std::shared_ptr<Names>& names, bool isWidening) {
        const ParsedClass parsed = parseClass(m_source, *m_main, kFile, options(isWidening));
        checkMethods(parsed);
        if (m_spec.cell) out.construct = constructOf(parsed).name().name();
        collectArguments(out, parsed.methods.front(), *names);
        out.type = c10::ClassType::create(c10::QualifiedName("__celloom__." + m_main->name), out.unit, /*is_module=*/false);
        out.unit->register_type(out.type);
        if (m_spec.cell) {
            for (const graph::DeclaredPort& weight : m_spec.cell->weights) out.type->addAttribute(weight.name, c10::TensorType::get());
            out.type->addAttribute("training", c10::BoolType::get());
        }
        const SimpleSelf self(out.type);
        const std::vector<ResolverPtr> resolvers(parsed.methods.size(), names);
        out.unit->define(*out.type->name(), {}, {}, parsed.methods, resolvers, &self);
        m_report.methods.clear();
        for (Function* method : out.type->methods()) {
            out.functions[method->name()] = method;
            if (method->name() != "__init__") m_report.methods.push_back(method->name());
        }
    }

    void defineSchedule(Compiled& out, const std::shared_ptr<Names>& names, bool isWidening) {
        const Def def = parseFunction(m_source, *m_main, kFile, options(isWidening), true);
        const auto parameters = parametersOf(def, false);
        if (parameters.size() != 2)
            throw Refused{problemAtRange(m_source, def.name().range(), "A schedule takes two parameters, this has " + std::to_string(parameters.size()) + ".",
                                         "Write def " + m_main->name + "(lr, cur_step_num): and return the rate.")};
        for (Function* function : out.unit->define(c10::QualifiedName("__celloom__"), {}, {}, {def}, {names}, nullptr)) out.functions[function->name()] = function;
        m_report.methods = {m_main->name};
    }

    void checkMethods(const ParsedClass& parsed) {
        std::set<std::string> names;
        for (const Def& def : parsed.methods) {
            const std::string name = def.name().name();
            if (!names.insert(name).second) throw Refused{problemAtRange(m_source, def.name().range(), "The method " + name + " is written twice.", "Delete one.")};
            if (def.decl().params().size() == 0) throw Refused{problemAtRange(m_source, def.name().range(), "A method's first parameter is self.", "Write def " + name + "(self, …).")};
        }
        if (m_report.kind == ScriptKind::Metric) return checkMetric(parsed, names);
        if (m_report.kind == ScriptKind::Cell) return checkCell(parsed);
        checkCallback(parsed, names);
    }

    /// construct, or PyTorch's forward.
    Def constructOf(const ParsedClass& parsed) const {
        std::optional<Def> found;
        for (const Def& def : parsed.methods) {
            if (def.name().name() != "construct" && def.name().name() != "forward") continue;
            if (found) throw Refused{problemAtRange(m_source, def.name().range(), "The class has both construct and forward.", "Keep one of the two.")};
            found = def;
        }
        if (!found) throw Refused{problemAtRange(m_source, parsed.range, "The class has no construct.", "Write def construct(self, x): and return what the cell gives.")};
        return *found;
    }

    /// A parameter for each input, in their order.
    void checkCell(const ParsedClass& parsed) {
        const Def construct = constructOf(parsed);
        const SourceRange place = construct.name().range();
        std::vector<std::string> ports, parameters;
        for (const graph::DeclaredPort& port : m_spec.cell->inputs) ports.push_back(port.name);
        for (const Param& param : parametersOf(construct, true)) parameters.push_back(param.ident().name());
        if (m_source.starParameters.contains(offsetIn(m_source, place))) return; // *inputs
        const std::string name = construct.name().name();
        if (parameters.size() != ports.size())
            throw Refused{problemAtRange(m_source, place, name + " takes " + counted(std::ssize(parameters), "input") + ", but the cell declares " +
                                                              (ports.empty() ? std::string("none") : std::to_string(ports.size()) + ": " + joined(ports)) + ".",
                                         "Write def " + name + "(" + joined(withSelf(ports)) + "):, or change inputs.")};
        if (parameters != ports && std::is_permutation(ports.begin(), ports.end(), parameters.begin()))
            throw Refused{problemAtRange(m_source, place, name + " takes the inputs in another order than the cell declares: " + joined(ports) + ".", "Bring them into one order.")};
    }
    static std::vector<std::string> withSelf(std::vector<std::string> names) {
        names.insert(names.begin(), "self");
        return names;
    }

    /// What a cell gives has the number of its outputs, as far as that can be told; nothing is kept between two passes.
    void checkConstruct(const Compiled& compiled) {
        Function* construct = compiled.functions.at(compiled.construct);
        const auto& schema = construct->getSchema();
        const std::size_t outputs = m_spec.cell->outputs.size();
        const c10::TypePtr& type = schema.returns().at(0).type();
        const auto wrong = [&](const std::string& what) {
            return Refused{problemAt(m_source.text, m_source.text.find(compiled.construct, m_main->begin), compiled.construct.size(),
                                     compiled.construct + " gives " + what + ", but the cell declares " + counted(static_cast<std::int64_t>(outputs), "output") + ".",
                                     outputs == 1 ? "Return one tensor." : "Return a tensor for each output: return a, b.")};
        };
        if (const auto tuple = type->cast<c10::TupleType>()) {
            for (const auto& element : tuple->elements())
                if (element->kind() != c10::TypeKind::TensorType) throw wrong("a " + element->annotation_str());
            if (tuple->elements().size() != outputs) throw wrong(counted(std::ssize(tuple->elements()), "tensor"));
            return;
        }
        if (type->isSubtypeOf(*c10::ListType::ofTensors())) return; // counted when it computes
        if (type->kind() != c10::TypeKind::TensorType) throw wrong(type->kind() == c10::TypeKind::NoneType ? "nothing" : "a " + type->annotation_str());
        if (outputs != 1) throw wrong("one tensor");
    }

    void checkKept(const Compiled& compiled) {
        for (const auto& [name, function] : compiled.functions) checkSetters(*toGraphFunction(*function).graph()->block(), name);
        for (std::size_t i = 0; i < compiled.type->numAttributes(); ++i) {
            const auto kind = compiled.type->getAttribute(i)->kind();
            if (kind != c10::TypeKind::ListType && kind != c10::TypeKind::DictType) continue;
            const std::string name = compiled.type->getAttributeName(i);
            throw Refused{problemAt(m_source.text, m_source.text.find("self." + name, m_main->begin), name.size() + 5, "self." + name + " is a list or a dict, which could change from pass to pass.",
                                    "Keep a tuple: (1, 2, 3).")};
        }
    }
    /// Where a method sets an attribute: these nodes do not know it.
    std::size_t setterOf(const std::string& name, const std::string& method) const {
        const std::string& text = m_source.text;
        const std::size_t begin = std::min(text.find("def " + method, m_main->begin), text.size());
        const std::regex setter("self\\." + name + "\\s*[-+*/%]?=[^=]");
        std::smatch found;
        return std::regex_search(text.begin() + static_cast<std::ptrdiff_t>(begin), text.end(), found, setter) ? begin + static_cast<std::size_t>(found.position()) : begin;
    }
    void checkSetters(const Block& block, const std::string& method) {
        const bool isInit = method == "__init__";
        for (const Node* node : block.nodes()) {
            for (const Block* inner : node->blocks()) checkSetters(*inner, method);
            if (node->kind() != prim::SetAttr) continue;
            const std::string name = node->s(attr::name);
            const auto& weights = m_spec.cell->weights;
            const bool isWeight = std::any_of(weights.begin(), weights.end(), [&](const graph::DeclaredPort& weight) { return weight.name == name; });
            if (isInit && !isWeight && name != "training") continue;
            throw Refused{problemAt(m_source.text, setterOf(name, method), name.size() + 5, isInit ? "self." + name + " is there already." : method + " keeps nothing: self." + name + " cannot be set.",
                                         isInit     ? isWeight ? "It is declared among the weights: delete this line." : "It says whether the model trains: delete this line."
                                         : isWeight ? "Weights change by training alone."
                                                    : "Use a name without self., or set it in __init__.")};
        }
    }

    void checkMetric(const ParsedClass& parsed, const std::set<std::string>& names) {
        for (const char* needed : {"update", "eval"})
            if (!names.contains(needed))
                throw Refused{problemAtRange(m_source, parsed.range, "The metric has no method " + std::string(needed) + ".",
                                             "A metric has clear(self), update(self, predictions, labels) and eval(self).")};
        for (const Def& def : parsed.methods) {
            const std::string name = def.name().name();
            const std::size_t count = parametersOf(def, true).size();
            const bool hasStar = m_source.starParameters.contains(offsetIn(m_source, def.name().range()));
            const bool isWrong = ((name == "clear" || name == "eval") && count != 0) || (name == "update" && count != 2 && !(count == 1 && hasStar));
            if (isWrong)
                throw Refused{problemAtRange(m_source, def.name().range(), "The metric's " + name + " takes other parameters.",
                                             name == "update" ? "Write def update(self, predictions, labels): or def update(self, *inputs):." : "Write def " + name + "(self):.")};
        }
    }

    void checkCallback(const ParsedClass& parsed, const std::set<std::string>& names) {
        const auto& events = callbackEvents();
        bool hasEvent = false;
        for (const Def& def : parsed.methods) {
            const std::string name = def.name().name();
            const bool isEvent = std::find(events.begin(), events.end(), name) != events.end();
            hasEvent = hasEvent || isEvent;
            if (isEvent && parametersOf(def, true).size() != 1)
                throw Refused{problemAtRange(m_source, def.name().range(), name + " takes one parameter beside self.", "Write def " + name + "(self, run_context):.")};
            if (isEvent && !name.starts_with("on_") && names.contains("on_train_" + name))
                throw Refused{problemAtRange(m_source, def.name().range(), name + " is never called: on_train_" + name + " stands in its place.", "Keep one of the two.")};
            const auto close = nearest(name, events, 1);
            if (!isEvent && name != "__init__" && !close.empty() && !isCalled(parsed, name)) {
                ScriptProblem problem = problemAtRange(m_source, def.name().range(), name + " is never called.", "Did you mean " + close.front() + "?");
                if (std::none_of(m_report.warnings.begin(), m_report.warnings.end(), [&](const ScriptProblem& known) { return known.message == problem.message; }))
                    m_report.warnings.push_back(std::move(problem));
            }
        }
        if (!hasEvent)
            throw Refused{problemAtRange(m_source, parsed.range, "The callback has no method that training calls.",
                                         m_report.warnings.empty() ? "Such are step_end(self, run_context) and on_train_epoch_end(self, run_context)." : m_report.warnings.front().hint)};
    }

    static bool isCalled(const ParsedClass& parsed, const std::string& name) {
        const std::function<bool(const TreeRef&)> calls = [&](const TreeRef& tree) {
            if (tree->isAtom()) return false;
            if (tree->kind() == '.' && Select(tree).selector().name() == name) return true;
            return std::any_of(tree->trees().begin(), tree->trees().end(), calls);
        };
        return std::any_of(parsed.methods.begin(), parsed.methods.end(), [&](const Def& def) { return calls(def.tree()); });
    }

    void collectArguments(Compiled& out, const Def& init, Names& names) {
        for (const Param& param : parametersOf(init, true)) {
            const std::string name = param.ident().name();
            std::optional<ScriptValue> value;
            if (const auto found = m_values.find(name); found != m_values.end()) value = found->second;
            ScriptValue standard;
            if (!value && param.defaultValue().present()) {
                const SourceRange& range = param.defaultValue().get().range();
                if (readScriptValue(std::string_view(m_source.text).substr(offsetIn(m_source, range), range.size()), standard)) value = standard;
                else throw Refused{problemAtRange(m_source, range, "A default is a number, True, False or a text here.")};
            }
            names.use(name, value, param.ident().range());
            out.arguments.push_back(toIValue(value.value_or(ScriptValue(1.0))));
        }
    }

    void checkFunction(Function& function) {
        checkOperators(*toGraphFunction(function).graph(), m_report.kind);
    }

    /// Operations of the function and of all that it calls. TorchScript knows no recursion, but calls multiply.
    std::int64_t costOf(Function& function) {
        if (const auto known = m_costs.find(&function); known != m_costs.end()) return known->second;
        std::int64_t cost = 0;
        std::vector<const Block*> blocks{toGraphFunction(function).graph()->block()};
        while (!blocks.empty()) {
            const Block* block = blocks.back();
            blocks.pop_back();
            for (const Node* node : block->nodes()) {
                ++cost;
                for (const Block* inner : node->blocks()) blocks.push_back(inner);
                if (Function* callee = calleeOf(*node)) cost += costOf(*callee);
                if (cost > kMaxOperations)
                    throw Refused{problemAtRange(m_source, node->sourceRange(), "The calls in here add up to more than " + std::to_string(kMaxOperations) + " operations.", "Use a loop.")};
            }
        }
        return m_costs[&function] = cost;
    }

    static Function* calleeOf(const Node& node) {
        if (node.kind() == prim::CallFunction) {
            const auto type = node.inputs().at(0)->type()->cast<c10::FunctionType>();
            return type && type->function()->isGraphFunction() ? type->function() : nullptr;
        }
        if (node.kind() != prim::CallMethod) return nullptr;
        const auto type = node.inputs().at(0)->type()->cast<c10::ClassType>();
        Function* method = type ? type->findMethod(node.s(attr::name)) : nullptr;
        return method && method->isGraphFunction() ? method : nullptr;
    }

    static bool isPlain(const c10::TypePtr& type) {
        switch (type->kind()) {
        case c10::TypeKind::IntType:
        case c10::TypeKind::FloatType:
        case c10::TypeKind::BoolType:
        case c10::TypeKind::StringType:
        case c10::TypeKind::NoneType:
        case c10::TypeKind::TensorType:
            return true;
        case c10::TypeKind::ListType:
        case c10::TypeKind::DictType:
        case c10::TypeKind::TupleType:
        case c10::TypeKind::OptionalType:
            return std::all_of(type->containedTypes().begin(), type->containedTypes().end(), isPlain);
        default:
            return false;
        }
    }

    void checkAttributes(const c10::ClassType& type) {
        for (std::size_t i = 0; i < type.numAttributes(); ++i)
            if (!isPlain(type.getAttribute(i))) {
                const std::string name = type.getAttributeName(i);
                const std::size_t at = m_source.text.find("self." + name, m_main->begin);
                throw Refused{problemAt(m_source.text, at, name.size() + 5, "self." + name + " keeps what is not a number, a text, a list, a dict or a tensor of them.",
                                        "Keep what you need of it: self." + name + " = cb_params.cur_step_num.")};
            }
    }

    void checkNames() {
        for (const ScriptName& name : m_report.names)
            if (!name.value) {
                std::vector<std::string> words;
                static const std::regex word("[A-Za-z_][A-Za-z_0-9]*");
                std::set<std::string> all;
                for (auto at = std::sregex_iterator(m_source.text.begin(), m_source.text.end(), word); at != std::sregex_iterator(); ++at)
                    if (at->str() != name.name && at->str().size() > 2) all.insert(at->str());
                words.assign(all.begin(), all.end());
                const auto close = nearest(name.name, words, 1);
                ScriptProblem problem{name.name + " has no value.", "Give it one beside the source, or write " + name.name + " = 0.1 above the class.", name.line, name.column,
                                      static_cast<int>(name.name.size()), {}, false};
                if (!close.empty()) problem.hint = "Did you mean " + close.front() + "? " + problem.hint;
                throw Refused{std::move(problem)};
            }
        for (const auto& [name, value] : m_spec.values)
            if (std::none_of(m_report.names.begin(), m_report.names.end(), [&](const ScriptName& one) { return one.name == name; }))
                m_report.warnings.push_back({"The value of " + name + " is not used: the source has no such name.", "Delete it.", 0, 0, 1, {}, false});
    }

    const ScriptSource& m_source;
    const ScriptSpec& m_spec;
    std::map<std::string, ScriptValue> m_values;
    const ScriptDefinition* m_main = nullptr;
    ScriptReport m_report;
    std::vector<Function*> m_helpers;
    std::map<Function*, std::int64_t> m_costs;
};

// ---- LibTorch's messages ----

std::string replaced(std::string text, const std::string& what, const std::string& with) {
    for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + with.size())) text.replace(at, what.size(), with);
    return text;
}

std::string trimmed(const std::string& text) {
    const auto begin = text.find_first_not_of(" \n:"), end = text.find_last_not_of(" \n:");
    return begin == std::string::npos ? std::string() : text.substr(begin, end - begin + 1);
}

struct Reading {
    std::string message, hint;
    bool isLimit = false;
};

/// Sentences of ours for what users meet most.
Reading readable(std::string message) {
    message = replaced(std::move(message), "__torch__.torch.classes.celloom.", "");
    message = replaced(std::move(message), "__torch__.", "");
    message = replaced(std::move(message), "__celloom__.", "");
    if (const auto mark = message.find("||"); mark != std::string::npos) return {trimmed(message.substr(0, mark)), trimmed(message.substr(mark + 2))}; // ours
    std::smatch found;
    static const std::regex noAttribute("'([A-Za-z_0-9]*)[^']*' object has no attribute or method '([^']*)'");
    if (std::regex_search(message, found, noAttribute)) {
        const std::string name = found[2], type = found[1];
        const auto members = membersOf(type);
        const auto close = nearest(name, members, 2);
        if (!members.empty())
            return {(type == "CallbackParam" ? "cb_params" : type == "RunContext" ? "run_context" : "optimizer") + std::string(" has no ") + inQuotes(name) + ".",
                    close.empty() ? "It has " + joined(members) + "." : "Did you mean " + joined(close) + "?"};
        return {"self." + name + " is not there.", "Give it its first value in __init__, or, in a cell, declare it among the weights."};
    }
    static const std::regex noSetter("Tried to set (?:nonexistent|an) attribute: ([A-Za-z_0-9]*)");
    if (std::regex_search(message, found, noSetter)) {
        const std::string name = found[1];
        return {"Nothing is kept under the name " + inQuotes(name) + ".", "Give self." + name + " its first value in __init__; of the run only optimizer.learning_rate can be set."};
    }
    static const std::regex changedType("Variable '([^']*)' previously had type ([^ ]*) but is now being assigned to a value of type (.*)");
    if (std::regex_search(message, found, changedType))
        return {found[1].str() + " was " + found[2].str() + " and is given " + trimmed(found[3].str()) + " here.", "A name keeps its type; use another name, or convert: float(x), int(x)."};
    if (message.find("Arguments for call are not valid") != std::string::npos) {
        static const std::regex instead("Expected a value of type '([^']*)' for argument '[^']*' but instead found type '([^']*)'");
        if (std::regex_search(message, found, instead)) return {"This operation does not take a value of type " + found[2].str() + ".", "Convert it first: float(x), int(x), str(x)."};
        return {"This call's arguments do not fit.", "Look at their number and types."};
    }
    if (message.find("expected else but found") != std::string::npos) return {trimmed(message) + ".", "A list in brackets takes no if after its for: write a loop."};
    if (message.find("Unknown builtin op") != std::string::npos) return {trimmed(message.substr(0, message.find('\n'))), {}};
    if (const auto at = message.find("limit: "); at != std::string::npos) {
        message = trimmed(message.substr(at + 7));
        message[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(message[0])));
        return {message + ".", "Do less in one call.", true};
    }
    for (const char* noise : {"RuntimeError: ", "AssertionError: ", "The following operation failed in the TorchScript interpreter."}) message = replaced(std::move(message), noise, "");
    message = trimmed(message);
    if (message.size() > 300) message = message.substr(0, 300) + " …";
    if (!message.empty() && message.back() != '.' && message.back() != '?' && message.back() != '!') message += ".";
    return {message, {}};
}

struct Mark {
    int line = 0;
    std::size_t column = 0, length = 1; // bytes, from 0
    std::string method;
};

/// The place in a message of LibTorch: 'File "x", line 3, in step_end' and the marked line below it.
std::optional<Mark> markIn(const std::string& text, bool isLast) {
    static const std::string kBegin = "File \"";
    const std::size_t at = isLast ? text.rfind(kBegin) : text.find(kBegin);
    if (at == std::string::npos) return {};
    Mark mark;
    const std::size_t line = text.find("\", line ", at);
    if (line == std::string::npos) return {};
    mark.line = std::atoi(text.c_str() + line + 8);
    const std::size_t end = text.find('\n', line);
    if (const std::size_t in = text.find(", in ", line); in != std::string::npos && in < end) mark.method = text.substr(in + 5, end - in - 5);
    for (std::size_t from = end; from != std::string::npos;) {
        const std::size_t next = text.find('\n', from + 1);
        const std::string shown = text.substr(from + 1, next == std::string::npos ? next : next - from - 1);
        const std::size_t first = shown.find_first_not_of(' ');
        if (first != std::string::npos && shown[first] == '~') {
            mark.column = first;
            while (first + mark.length < shown.size() && shown[first + mark.length] == '~') ++mark.length;
            break;
        }
        from = next;
    }
    return mark;
}

} // namespace

c10::IValue toIValue(const ScriptValue& value) {
    return std::visit([](const auto& held) { return c10::IValue(held); }, value);
}

ScriptProblem problemOf(const std::exception& exception, const ScriptSource& source, bool isRunning) {
    const std::string text = exception.what();
    std::string message = text;
    if (isRunning) { // "Traceback …\n marked lines\nRuntimeError: message"
        static const std::regex begin("\n[A-Za-z_.]*(?:Error|Exception): ");
        const std::size_t here = std::min(text.rfind("<--- HERE"), text.size());
        std::smatch found;
        message = here == text.size() ? text : text.substr(here + 9); // the lines of the source that follow, then the error
        if (std::regex_search(message, found, begin)) message = found.suffix();
    } else if (const std::size_t file = text.find("\n  File \""); file != std::string::npos) {
        message = text.substr(0, file);
    } else if (const std::size_t first = text.find("  File \""); first != std::string::npos) {
        message = text.substr(0, first);
    }
    if (const std::size_t trace = message.find("Exception raised from"); trace != std::string::npos) message = message.substr(0, trace);
    if (dynamic_cast<const std::bad_alloc*>(&exception) || message.find("allocate memory") != std::string::npos) message = "limit: the script asks for more memory than there is";
    const Reading reading = readable(trimmed(message));
    const auto mark = markIn(text, isRunning);
    if (!mark) return {reading.message, reading.hint, 0, 0, 1, {}, reading.isLimit};
    std::size_t at = 0;
    for (int line = 1; line < mark->line && at < source.text.size(); ++line) at = source.text.find('\n', at) + 1;
    ScriptProblem problem = problemAt(source.text, at + mark->column, mark->length, reading.message, reading.hint);
    problem.isLimit = reading.isLimit;
    problem.method = mark->method.substr(mark->method.rfind('.') + 1);
    return problem;
}

ScriptResult<Compiled> compileSource(const ScriptSource& source, const ScriptSpec& spec, ScriptReport* report) {
    registerGuards();
    registerObjects();
    getExecutorMode() = false; // profiled, the first and the second call of a method would differ in their last digits
    Compiler compiler(source, spec);
    const auto attempt = [&](bool isWidening) -> ScriptResult<Compiled> {
        try {
            Compiled compiled = compiler.compile(isWidening);
            compiler.check(compiled);
            return compiled;
        } catch (const Refused& refused) {
            return tl::unexpected(refused.problem);
        } catch (const std::exception& exception) {
            return tl::unexpected(problemOf(exception, source, false));
        }
    };
    ScriptResult<Compiled> result = tl::unexpected(ScriptProblem{});
    try {
        compiler.choose();
        result = attempt(false);
        if (!result) { // whole numbers that become others: sums, best values
            auto wide = attempt(true);
            if (wide || wide.error().line > result.error().line) result = std::move(wide);
        }
    } catch (const Refused& refused) {
        result = tl::unexpected(refused.problem);
    }
    if (report) *report = compiler.report();
    return result;
}

} // namespace celloom::engine::script
