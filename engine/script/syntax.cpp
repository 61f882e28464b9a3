// From the parser's tree to the tree that the compiler takes. TorchScript types parameters, lists and numbers more strictly than Python; what
// users of MindSpore write as a matter of course is brought into its form here, each node keeping its place in the source.
#include "engine/script/compiler.h"

#include <torch/csrc/jit/frontend/error_report.h>
#include <torch/csrc/jit/frontend/parser.h>

#include <algorithm>

namespace celloom::engine::script {
namespace {

using namespace torch::jit;

Var variable(const SourceRange& range, const std::string& name) { return Var::create(range, Ident::create(range, name)); }

Expr subscript(const SourceRange& range, const std::string& name, const std::vector<Expr>& arguments) {
    return Expr(Compound::create(TK_SUBSCRIPT, range, {variable(range, name).tree(), List<Expr>::create(range, arguments).tree()}));
}

Expr typeOf(const SourceRange& range, const ScriptValue& value) {
    static constexpr const char* kNames[] = {"int", "float", "bool", "str"};
    return variable(range, kNames[value.index()]);
}

Expr call(const SourceRange& range, const std::string& name, const Expr& argument) {
    return Apply::create(range, variable(range, name), List<Expr>::create(range, {argument}), List<Attribute>::create(range, {}));
}

bool isSelect(const TreeRef& tree, const char* name) { return tree->kind() == '.' && Select(tree).selector().name() == name; }

/// "x" of self.x.
std::optional<std::string> attributeOf(const TreeRef& tree) {
    if (tree->kind() != '.') return {};
    const Select select(tree);
    if (select.value().kind() != TK_VAR || Var(select.value().tree()).name().name() != "self") return {};
    return select.selector().name();
}

/// "self.x" or "x": what an assignment gives a value to.
std::optional<std::string> targetOf(const TreeRef& tree) {
    if (const auto name = attributeOf(tree)) return "self." + *name;
    if (tree->kind() == TK_VAR) return Var(tree).name().name();
    return {};
}

TreeRef lastOf(const TreeRef& tree, std::size_t index) { return tree->trees().at(index); }

// ---- everywhere ----

TreeRef withoutAugment(const TreeRef& tree) {
    const AugAssign statement(tree);
    const Expr sum = BinOp::create(statement.range(), statement.aug_op(), statement.lhs(), statement.rhs());
    return Assign::create(statement.range(), List<Expr>::create(statement.lhs().range(), {statement.lhs()}), Maybe<Expr>::create(sum.range(), sum),
                          Maybe<Expr>::create(statement.range()))
        .tree();
}

TreeRef rateAssignment(const SourceRange& range, const Expr& target, const Expr& value) {
    const Expr number = call(value.range(), "float", value);
    return Assign::create(range, List<Expr>::create(range, {target}), Maybe<Expr>::create(range, number), Maybe<Expr>::create(range)).tree();
}

/// optimizer.learning_rate.set_data(x) and ops.assign(optimizer.learning_rate, x) are assignments.
std::optional<TreeRef> rateSetter(const TreeRef& statement) {
    const TreeRef expression = lastOf(statement, 0);
    if (expression->kind() != TK_APPLY) return {};
    const Apply apply(expression);
    const auto inputs = apply.inputs();
    const TreeRef callee = apply.callee().tree();
    if (isSelect(callee, "set_data") && isSelect(Select(callee).value().tree(), "learning_rate") && inputs.size() == 1)
        return rateAssignment(statement->range(), Select(callee).value(), inputs[0]);
    if (isSelect(callee, "assign") && inputs.size() == 2 && isSelect(inputs[0].tree(), "learning_rate"))
        return rateAssignment(statement->range(), inputs[0], inputs[1]);
    return {};
}

/// list[float] as List[float].
TreeRef withTypeName(const TreeRef& tree) {
    const TreeRef value = lastOf(tree, 0);
    if (value->kind() != TK_VAR) return tree;
    const std::string name = Var(value).name().name();
    const std::string proper = name == "list" ? "List" : name == "dict" ? "Dict" : name == "tuple" ? "Tuple" : "";
    if (proper.empty()) return tree;
    return Compound::create(TK_SUBSCRIPT, tree->range(), {variable(value->range(), proper).tree(), lastOf(tree, 1)});
}

/// MindSpore's and NumPy's axis, keep_dims and keepdims are LibTorch's dim and keepdim, in calls of ops.f(…) and x.f(…).
TreeRef withKeywords(const TreeRef& tree) {
    const Apply apply(tree);
    if (apply.callee().kind() != '.' || attributeOf(apply.callee().tree())) return tree;
    std::vector<Attribute> attributes;
    for (const Attribute& attribute : apply.attributes()) {
        const std::string name = attribute.name().name();
        const char* proper = name == "axis" ? "dim" : name == "keep_dims" || name == "keepdims" ? "keepdim" : nullptr;
        attributes.push_back(proper ? Attribute::create(attribute.range(), Ident::create(attribute.name().range(), proper), attribute.value().tree()) : attribute);
    }
    return Apply::create(apply.range(), apply.callee(), apply.inputs(), List<Attribute>::create(apply.range(), attributes)).tree();
}

TreeRef brought(const TreeRef& tree) {
    if (tree->isAtom()) return tree;
    const TreeRef inner = tree->map(brought);
    switch (inner->kind()) {
    case TK_AUG_ASSIGN:
        return brought(withoutAugment(inner));
    case TK_ASSIGN:
        if (const Assign assign(inner); assign.lhs_list().size() == 1 && isSelect(assign.lhs().tree(), "learning_rate") && assign.rhs().present() &&
                                        !attributeOf(assign.lhs().tree()))
            return rateAssignment(inner->range(), assign.lhs(), assign.rhs().get());
        return inner;
    case TK_EXPR_STMT:
        return rateSetter(inner).value_or(inner);
    case TK_SUBSCRIPT:
        return withTypeName(inner);
    case TK_APPLY:
        return withKeywords(inner);
    default:
        return inner;
    }
}

// ---- numbers that change their kind ----

bool isNumber(const Expr& expr, bool isWhole) {
    const TreeRef tree = expr.kind() == TK_UNARY_MINUS ? lastOf(expr.tree(), 0) : expr.tree();
    return tree->kind() == TK_CONST && (Const(tree).isIntegral() == isWhole);
}

/// Certainly a whole number, as far as one sees without types.
bool isSurelyWhole(const Expr& expr, const std::set<std::string>& whole) {
    static const std::set<std::string> kWhole{"cur_step_num", "cur_epoch_num", "batch_num", "epoch_num", "total_steps", "tokens", "device_number", "eval_step"};
    if (isNumber(expr, true)) return true;
    if (const auto target = targetOf(expr.tree())) return whole.contains(*target);
    switch (expr.kind()) {
    case '+':
    case '-':
    case '*':
    case '%':
    case TK_FLOOR_DIV:
        return isSurelyWhole(BinOp(expr.tree()).lhs(), whole) && isSurelyWhole(BinOp(expr.tree()).rhs(), whole);
    case TK_UNARY_MINUS:
        return isSurelyWhole(Expr(lastOf(expr.tree(), 0)), whole);
    case '.':
        return kWhole.contains(Select(expr.tree()).selector().name());
    case TK_APPLY: {
        const TreeRef callee = Apply(expr.tree()).callee().tree();
        return callee->kind() == TK_VAR && (Var(callee).name().name() == "int" || Var(callee).name().name() == "len");
    }
    default:
        return false;
    }
}

struct Assigned {
    std::string target;
    Expr value;
};

void collectAssignments(const TreeRef& tree, std::vector<Assigned>& out) {
    if (tree->isAtom()) return;
    if (tree->kind() == TK_ASSIGN)
        if (const Assign assign(tree); assign.lhs_list().size() == 1 && assign.rhs().present() && !assign.type().present())
            if (const auto target = targetOf(assign.lhs().tree())) out.push_back({*target, assign.rhs().get()});
    for (const TreeRef& child : tree->trees()) collectAssignments(child, out);
}

/// Targets that begin as a literal number and are later given what may be another kind of number.
std::set<std::string> widened(const std::vector<Assigned>& all) {
    std::map<std::string, bool> first; // whether it begins as a whole number
    std::set<std::string> whole, out;
    for (const Assigned& one : all) {
        const bool isWhole = isNumber(one.value, true);
        if (first.contains(one.target) || !(isWhole || isNumber(one.value, false))) continue;
        first[one.target] = isWhole;
        if (isWhole) whole.insert(one.target);
    }
    for (std::size_t before = whole.size() + 1; before != whole.size();) {
        before = whole.size();
        for (const Assigned& one : all)
            if (whole.contains(one.target) && !isSurelyWhole(one.value, whole)) whole.erase(one.target);
    }
    for (const Assigned& one : all) { // what is no number at all is left to the compiler to refuse
        const int kind = one.value.kind();
        if (kind == TK_STRINGLITERAL || kind == TK_LIST_LITERAL || kind == TK_DICT_LITERAL || kind == TK_TUPLE_LITERAL || kind == TK_NONE || kind == TK_TRUE || kind == TK_FALSE)
            first.erase(one.target);
    }
    for (const Assigned& one : all)
        if (first.contains(one.target) && !whole.contains(one.target) && !isNumber(one.value, false)) out.insert(one.target);
    return out;
}

TreeRef withWideNumbers(const TreeRef& tree, const std::set<std::string>& targets) {
    if (tree->isAtom()) return tree;
    const TreeRef inner = tree->map([&](const TreeRef& child) { return withWideNumbers(child, targets); });
    if (inner->kind() != TK_ASSIGN) return inner;
    const Assign assign(inner);
    if (assign.lhs_list().size() != 1 || !assign.rhs().present() || assign.type().present()) return inner;
    const auto target = targetOf(assign.lhs().tree());
    if (!target || !targets.contains(*target)) return inner;
    const Expr value = assign.rhs().get();
    return Assign::create(inner->range(), assign.lhs_list(), Maybe<Expr>::create(value.range(), call(value.range(), "float", value)),
                          Maybe<Expr>::create(inner->range()))
        .tree();
}

// ---- methods ----

Def withTypes(const Def& def, const std::function<std::optional<Expr>(std::size_t index, const Param&)>& typeOfParameter) {
    std::vector<Param> out;
    std::size_t index = 0;
    for (const Param& param : def.decl().params()) {
        std::optional<Expr> type;
        if (!param.type().present()) type = typeOfParameter(index, param);
        out.push_back(type ? param.withType(Maybe<Expr>::create(param.range(), *type)) : param);
        ++index;
    }
    return def.withDecl(Decl::create(def.decl().range(), List<Param>::create(def.decl().params().range(), out), def.decl().return_type()));
}

/// The type of a parameter's default: "patience=3" is an int.
std::optional<Expr> defaultType(const Param& param) {
    if (!param.defaultValue().present()) return {};
    const Expr value = param.defaultValue().get();
    const char* name = isNumber(value, true)                              ? "int"
                       : isNumber(value, false)                           ? "float"
                       : value.kind() == TK_TRUE || value.kind() == TK_FALSE ? "bool"
                       : value.kind() == TK_STRINGLITERAL                 ? "str"
                                                                          : nullptr;
    if (!name) return {};
    return variable(param.range(), name);
}

bool isEvent(const std::string& name) {
    const auto& events = callbackEvents();
    return std::find(events.begin(), events.end(), name) != events.end();
}

Def typed(const Def& def, const std::string& star, const SyntaxOptions& options) {
    const std::string name = def.name().name();
    return withTypes(def, [&](std::size_t index, const Param& param) -> std::optional<Expr> {
        const std::string parameter = param.ident().name();
        if (index == 0) return {};
        if (parameter == star) return subscript(param.range(), "List", {variable(param.range(), "Tensor")});
        if (name == "__init__") {
            if (const auto found = options.values.find(parameter); found != options.values.end()) return typeOf(param.range(), found->second);
            return defaultType(param).value_or(variable(param.range(), "float"));
        }
        if (options.kind == ScriptKind::Metric || options.kind == ScriptKind::Cell) return defaultType(param); // Tensor otherwise
        if (isEvent(name)) return variable(param.range(), "RunContext");
        return defaultType(param).value_or(variable(param.range(), "float"));
    });
}

/// self.x = [] holds numbers unless its type is given, {} numbers by text.
Stmt withListType(const Stmt& statement) {
    if (statement.kind() != TK_ASSIGN) return statement;
    const Assign assign(statement.tree());
    if (assign.type().present() || !assign.rhs().present() || assign.lhs_list().size() != 1 || !attributeOf(assign.lhs().tree())) return statement;
    const Expr value = assign.rhs().get();
    const bool isEmpty = (value.kind() == TK_LIST_LITERAL || value.kind() == TK_DICT_LITERAL) &&
                         std::all_of(value.tree()->trees().begin(), value.tree()->trees().end(), [](const TreeRef& list) { return list->trees().empty(); });
    if (!isEmpty) return statement;
    const SourceRange& range = value.range();
    const Expr number = variable(range, "float");
    const Expr type = value.kind() == TK_LIST_LITERAL ? subscript(range, "List", {number}) : subscript(range, "Dict", {variable(range, "str"), number});
    return Assign::create(statement.range(), assign.lhs_list(), assign.rhs(), Maybe<Expr>::create(range, type));
}

// ---- operations as objects, in cells ----

/// What self.softmax = nn.Softmax(axis=-1) stands for: a function, and a keyword that each call is given.
struct OperationObject {
    std::string function, keyword;
    std::optional<Expr> value; // of the keyword
};

/// MindSpore's and PyTorch's classes that are a function of LibTorch, and the keyword that their only parameter is, where they have one. Those whose
/// defaults differ between the two (GELU, LeakyReLU) are left out.
const std::map<std::string, std::pair<std::string, std::string>>& operationClasses() {
    static const std::map<std::string, std::pair<std::string, std::string>> list{
        {"ReLU", {"relu", ""}},        {"Sigmoid", {"sigmoid", ""}},   {"Tanh", {"tanh", ""}},      {"SiLU", {"silu", ""}},         {"Mish", {"mish", ""}},       {"Softmax", {"softmax", "dim"}},
        {"LogSoftmax", {"log_softmax", "dim"}},                        {"MatMul", {"matmul", ""}},  {"BatchMatMul", {"matmul", ""}}, {"Add", {"add", ""}},         {"Sub", {"sub", ""}},
        {"Mul", {"mul", ""}},          {"Div", {"div", ""}},           {"RealDiv", {"div", ""}},    {"Pow", {"pow", ""}},           {"Exp", {"exp", ""}},         {"Log", {"log", ""}},
        {"Sqrt", {"sqrt", ""}},        {"Rsqrt", {"rsqrt", ""}},       {"Square", {"square", ""}},  {"Abs", {"abs", ""}},           {"Neg", {"neg", ""}},         {"Erf", {"erf", ""}},
        {"Sin", {"sin", ""}},          {"Cos", {"cos", ""}},           {"Maximum", {"maximum", ""}}, {"Minimum", {"minimum", ""}},  {"Reshape", {"reshape", ""}}, {"Transpose", {"permute", ""}},
        {"ExpandDims", {"unsqueeze", ""}},                             {"Tile", {"tile", ""}},      {"Select", {"where", ""}},      {"Greater", {"gt", ""}},      {"Less", {"lt", ""}},
        {"Equal", {"eq", ""}},         {"Concat", {"cat", "dim"}},     {"Stack", {"stack", "dim"}}, {"ReduceSum", {"sum", "keepdim"}}, {"ReduceMean", {"mean", "keepdim"}},
        {"ReduceMax", {"amax", "keepdim"}},                            {"ReduceMin", {"amin", "keepdim"}}};
    return list;
}

/// nn.Softmax(-1) or ops.ReduceMean(keep_dims=True), as brought() leaves them.
std::optional<OperationObject> operationOf(const Expr& value) {
    if (value.kind() != TK_APPLY) return {};
    const Apply apply(value.tree());
    if (apply.callee().kind() != '.') return {};
    const auto found = operationClasses().find(Select(apply.callee().tree()).selector().name());
    if (found == operationClasses().end()) return {};
    OperationObject out{found->second.first, found->second.second, {}};
    const std::size_t given = apply.inputs().size() + apply.attributes().size();
    if (given > (out.keyword.empty() ? 0u : 1u) || (apply.attributes().size() == 1 && apply.attributes()[0].name().name() != out.keyword))
        throw ErrorReport(value.range()) << found->first << " takes " << (out.keyword.empty() ? "nothing" : out.keyword == "dim" ? "axis alone" : "keep_dims alone") << " here.";
    if (apply.inputs().size() == 1) out.value = apply.inputs()[0];
    else if (apply.attributes().size() == 1) out.value = apply.attributes()[0].value();
    else if (out.function == "softmax" || out.function == "log_softmax") out.value = Expr(Const::create(value.range(), "-1").tree()); // MindSpore's default
    return out;
}

/// self.softmax(x) as torch.softmax(x, dim=-1).
TreeRef withOperations(const TreeRef& tree, const std::map<std::string, OperationObject>& operations) {
    if (tree->isAtom()) return tree;
    const TreeRef inner = tree->map([&](const TreeRef& child) { return withOperations(child, operations); });
    if (inner->kind() != TK_APPLY) return inner;
    const Apply apply(inner);
    const auto name = attributeOf(apply.callee().tree());
    const auto found = name ? operations.find(*name) : operations.end();
    if (found == operations.end()) return inner;
    const SourceRange& range = apply.callee().range();
    std::vector<Attribute> attributes;
    for (const Attribute& attribute : apply.attributes()) attributes.push_back(attribute);
    if (found->second.value) attributes.push_back(Attribute::create(range, Ident::create(range, found->second.keyword), found->second.value->tree()));
    const Expr callee = Select::create(range, variable(range, "torch"), Ident::create(range, found->second.function));
    return Apply::create(apply.range(), callee, apply.inputs(), List<Attribute>::create(apply.range(), attributes)).tree();
}

class ClassReader {
public:
    ClassReader(const ScriptSource& source, const SyntaxOptions& options) : m_source(source), m_options(options) {}

    void add(const Stmt& statement, std::size_t offsetOfText) {
        if (statement.kind() == TK_PASS || statement.kind() == TK_EXPR_STMT) return;
        if (statement.kind() == TK_ASSIGN) return addAttribute(Assign(statement.tree()));
        if (statement.kind() != TK_DEF) throw ErrorReport(statement.range()) << "A class holds methods and values of attributes alone.";
        const Def def(brought(statement.tree()));
        const auto star = m_source.starParameters.find(offsetOfText + def.name().range().start());
        m_stars[def.name().name()] = star == m_source.starParameters.end() ? std::string() : star->second;
        if (def.name().name() == "__init__") m_init = def;
        else m_methods.push_back(def);
    }

    std::vector<Def> methods(const SourceRange& range) {
        const SourceRange& place = m_init ? m_init->range() : range;
        std::vector<Stmt> body = m_attributes;
        if (m_init)
            for (const Stmt& statement : m_init->statements()) append(statement, body);
        hoist(body);
        if (body.empty()) body.push_back(Pass::create(place));
        for (Stmt& statement : body) statement = withListType(statement);
        const Param self = Param::create(place, Ident::create(place, "self"), Maybe<Expr>::create(place), Maybe<Expr>::create(place), false);
        const Decl decl = m_init ? m_init->decl() : Decl::create(place, List<Param>::create(place, {self}), Maybe<Expr>::create(place));
        std::vector<Def> out{Def::create(place, Ident::create(place, "__init__"), decl, List<Stmt>::create(place, body))};
        out.insert(out.end(), m_methods.begin(), m_methods.end());
        if (m_options.kind == ScriptKind::Cell)
            for (Def& def : out) def = Def(withOperations(def.tree(), m_operations));
        if (m_options.isWidening) widen(out);
        for (Def& def : out) def = typed(def, m_stars[def.name().name()], m_options);
        return out;
    }

private:
    void addAttribute(const Assign& assign) {
        if (assign.lhs_list().size() != 1 || assign.lhs().kind() != TK_VAR) throw ErrorReport(assign.range()) << "An attribute has one name.";
        const SourceRange& range = assign.lhs().range();
        const Expr target = Select::create(range, variable(range, "self"), Ident::create(range, Var(assign.lhs().tree()).name().name()));
        m_attributes.push_back(Assign::create(assign.range(), List<Expr>::create(range, {target}), assign.rhs(), assign.type()));
    }

    /// self.clear() in __init__ stands for the method's own statements, which bring attributes into being.
    void append(const Stmt& statement, std::vector<Stmt>& body) {
        if (m_options.kind == ScriptKind::Cell && statement.kind() == TK_ASSIGN) {
            const Assign assign(statement.tree());
            const auto name = assign.lhs_list().size() == 1 ? attributeOf(assign.lhs().tree()) : std::nullopt;
            if (const auto operation = name && assign.rhs().present() ? operationOf(assign.rhs().get()) : std::nullopt) {
                m_operations[*name] = *operation;
                return;
            }
        }
        if (statement.kind() == TK_EXPR_STMT && lastOf(statement.tree(), 0)->kind() == TK_APPLY) {
            const Apply apply(lastOf(statement.tree(), 0));
            const auto name = attributeOf(apply.callee().tree());
            for (const Def& method : m_methods)
                if (name && method.name().name() == *name && method.decl().params().size() == 1 && apply.inputs().size() == 0) {
                    for (const Stmt& inner : method.statements()) body.push_back(inner);
                    return;
                }
        }
        body.push_back(statement);
    }

    /// An attribute that other methods give a literal value first begins with it.
    void hoist(std::vector<Stmt>& body) {
        std::vector<Assigned> inside, outside;
        std::set<std::string> known;
        for (const Stmt& statement : body)
            if (statement.kind() == TK_ASSIGN)
                for (const Expr& target : Assign(statement.tree()).lhs_list())
                    if (const auto name = attributeOf(target.tree())) known.insert("self." + *name);
        for (const Def& method : m_methods) collectAssignments(method.tree(), outside);
        for (const Assigned& one : outside) {
            const bool isLiteral = isNumber(one.value, true) || isNumber(one.value, false) || one.value.kind() == TK_TRUE || one.value.kind() == TK_FALSE ||
                                   one.value.kind() == TK_STRINGLITERAL || one.value.kind() == TK_LIST_LITERAL || one.value.kind() == TK_DICT_LITERAL;
            if (!one.target.starts_with("self.") || !isLiteral || !known.insert(one.target).second) continue;
            const SourceRange& range = one.value.range();
            const Expr target = Select::create(range, variable(range, "self"), Ident::create(range, one.target.substr(5)));
            body.push_back(Assign::create(range, List<Expr>::create(range, {target}), Maybe<Expr>::create(range, one.value), Maybe<Expr>::create(range)));
        }
    }

    static void widen(std::vector<Def>& methods) {
        std::vector<Assigned> attributes;
        for (const Def& def : methods) collectAssignments(def.tree(), attributes);
        std::erase_if(attributes, [](const Assigned& one) { return !one.target.starts_with("self."); });
        const std::set<std::string> shared = widened(attributes);
        for (Def& def : methods) {
            std::vector<Assigned> own;
            collectAssignments(def.tree(), own);
            std::erase_if(own, [](const Assigned& one) { return one.target.starts_with("self."); });
            std::set<std::string> targets = widened(own);
            targets.insert(shared.begin(), shared.end());
            def = Def(withWideNumbers(def.tree(), targets));
        }
    }

    const ScriptSource& m_source;
    const SyntaxOptions& m_options;
    std::vector<Stmt> m_attributes;
    std::map<std::string, OperationObject> m_operations; // of a cell, by attribute
    std::optional<Def> m_init;
    std::vector<Def> m_methods;
    std::map<std::string, std::string> m_stars; // by method
};

std::shared_ptr<Source> sourceOf(const ScriptSource& source, const ScriptDefinition& definition, const std::string& file) {
    const std::size_t line = static_cast<std::size_t>(std::count(source.text.begin(), source.text.begin() + static_cast<std::ptrdiff_t>(definition.begin), '\n'));
    return std::make_shared<Source>(source.text.substr(definition.begin, definition.end - definition.begin), file, line + 1);
}

} // namespace

ParsedClass parseClass(const ScriptSource& source, const ScriptDefinition& definition, const std::string& file, const SyntaxOptions& options) {
    Parser parser(sourceOf(source, definition, file));
    ClassReader reader(source, options);
    if (!definition.isClass) {
        const Def construct(parser.parseFunction(/*is_method=*/true));
        reader.add(Stmt(construct.tree()), definition.begin);
        return {reader.methods(construct.name().range()), construct.name().range()};
    }
    const ClassDef parsed(parser.parseClass());
    for (const Stmt& statement : parsed.body()) reader.add(statement, definition.begin);
    return {reader.methods(parsed.name().range()), parsed.name().range()};
}

Def parseFunction(const ScriptSource& source, const ScriptDefinition& definition, const std::string& file, const SyntaxOptions& options, bool isSchedule) {
    Parser parser(sourceOf(source, definition, file));
    Def def(brought(parser.parseFunction(/*is_method=*/false)));
    if (options.isWidening) {
        std::vector<Assigned> own;
        collectAssignments(def.tree(), own);
        def = Def(withWideNumbers(def.tree(), widened(own)));
    }
    return withTypes(def, [&](std::size_t index, const Param& param) -> std::optional<Expr> {
        if (isSchedule && index == 1) return variable(param.range(), "int");
        if (options.kind == ScriptKind::Metric || options.kind == ScriptKind::Cell) return defaultType(param);
        return defaultType(param).value_or(variable(param.range(), "float"));
    });
}

std::vector<Param> parametersOf(const Def& def, bool isMethod) {
    std::vector<Param> out;
    for (const Param& param : def.decl().params()) out.push_back(param);
    if (isMethod && !out.empty()) out.erase(out.begin());
    return out;
}

} // namespace celloom::engine::script
