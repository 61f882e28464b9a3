#include "engine/code/syntax.h"
#include "engine/script/compiler.h"

#include <torch/csrc/jit/frontend/parser.h>
#include <torch/csrc/jit/frontend/tree_views.h>

#include <algorithm>

namespace celloom::engine::code {
namespace {

namespace jit = torch::jit;
using jit::Expr;
using jit::TreeRef;

struct Refused {
    std::size_t begin, end;
    std::string message, hint;
};

class Converter {
public:
    explicit Converter(std::size_t offset) : m_offset(offset) {}

    Class classOf(const jit::ClassDef& parsed) {
        Class out;
        out.name = parsed.name().name();
        for (const jit::Stmt& statement : parsed.body()) {
            if (statement.kind() == jit::TK_PASS || statement.kind() == jit::TK_EXPR_STMT) continue;
            if (statement.kind() != jit::TK_DEF)
                refuse(statement.range(), "A class of cells holds methods alone.", "Set attributes in __init__.");
            out.methods.push_back(methodOf(jit::Def(statement.tree())));
        }
        return out;
    }

private:
    [[noreturn]] void refuse(const jit::SourceRange& range, std::string message, std::string hint = {}) const {
        throw Refused{m_offset + range.start(), m_offset + range.end(), std::move(message), std::move(hint)};
    }

    Node node(Syntax kind, const jit::SourceRange& range, std::string text = {}, std::vector<Node> of = {}) const {
        return {kind, std::move(text), std::move(of), m_offset + range.start(), m_offset + range.end()};
    }

    Method methodOf(const jit::Def& def) {
        Method out{def.name().name(), {}, {}, m_offset + def.name().range().start()};
        for (const jit::Param& param : def.decl().params()) {
            Parameter one{param.ident().name(), {}, m_offset + param.range().start()};
            if (param.defaultValue().present()) one.standard.push_back(expression(param.defaultValue().get().tree()));
            out.parameters.push_back(std::move(one));
        }
        if (out.parameters.empty() || out.parameters[0].name != "self")
            refuse(def.name().range(), "A method's first parameter is self.", "");
        out.parameters.erase(out.parameters.begin());
        for (const jit::Stmt& statement : def.statements()) out.body.push_back(this->statement(statement.tree()));
        return out;
    }

    Node block(const jit::List<jit::Stmt>& statements, const jit::SourceRange& range) {
        Node out = node(Syntax::Block, range);
        for (const jit::Stmt& one : statements) out.of.push_back(statement(one.tree()));
        return out;
    }

    Node assignment(const jit::Assign& assign) {
        if (!assign.rhs().present()) return node(Syntax::Pass, assign.range());
        if (assign.lhs_list().size() != 1) refuse(assign.range(), "An assignment has one '=' here.", "Write it as two.");
        return node(Syntax::Assign, assign.range(), {}, {expression(assign.lhs_list()[0].tree()), expression(assign.rhs().get().tree())});
    }

    Node statement(const TreeRef& tree) {
        const jit::SourceRange& range = tree->range();
        switch (tree->kind()) {
        case jit::TK_ASSIGN:
            return assignment(jit::Assign(tree));
        case jit::TK_AUG_ASSIGN: {
            const jit::AugAssign augmented(tree);
            const Node target = expression(augmented.lhs().tree());
            Node value = node(Syntax::Binary, range, signOf(augmented.aug_op()), {target, expression(augmented.rhs().tree())});
            return node(Syntax::Assign, range, {}, {target, std::move(value)});
        }
        case jit::TK_RETURN: {
            Node value = expression(jit::Return(tree).expr().tree());
            return node(Syntax::Return, range, {}, {std::move(value)});
        }
        case jit::TK_EXPR_STMT:
            return node(Syntax::Expression, range, {}, {expression(jit::ExprStmt(tree).expr().tree())});
        case jit::TK_IF: {
            const jit::If one(tree);
            return node(Syntax::If, range, {},
                        {expression(one.cond().tree()), block(one.trueBranch(), range), block(one.falseBranch(), range)});
        }
        case jit::TK_FOR: {
            const jit::For one(tree);
            if (one.targets().size() != 1 || one.itrs().size() != 1) refuse(range, "A loop runs over one thing here.", "");
            return node(Syntax::For, range, {},
                        {expression(one.targets()[0].tree()), expression(one.itrs()[0].tree()), block(one.body(), range)});
        }
        case jit::TK_PASS:
        case jit::TK_ASSERT:
            return node(Syntax::Pass, range);
        default:
            return node(Syntax::Other, range, jit::kindToString(tree->kind()));
        }
    }

    static std::string signOf(int kind) {
        switch (kind) {
        case jit::TK_POW:
            return "**";
        case jit::TK_FLOOR_DIV:
            return "//";
        case jit::TK_EQ:
            return "==";
        case jit::TK_NE:
            return "!=";
        case jit::TK_LE:
            return "<=";
        case jit::TK_GE:
            return ">=";
        case jit::TK_AND:
            return "and";
        case jit::TK_OR:
            return "or";
        case jit::TK_IN:
            return "in";
        case jit::TK_IS:
            return "is";
        case jit::TK_ISNOT:
            return "is not";
        default:
            return jit::kindToString(kind);
        }
    }

    template <class List> std::vector<Node> each(const List& list) {
        std::vector<Node> out;
        for (const auto& one : list) out.push_back(expression(one.tree()));
        return out;
    }

    Node expression(const TreeRef& tree) {
        const jit::SourceRange& range = tree->range();
        switch (tree->kind()) {
        case jit::TK_VAR:
            return node(Syntax::Name, range, jit::Var(tree).name().name());
        case jit::TK_CONST:
            return node(Syntax::Number, range, jit::Const(tree).text());
        case jit::TK_STRINGLITERAL:
            return node(Syntax::String, range, jit::StringLiteral(tree).text());
        case jit::TK_TRUE:
            return node(Syntax::True, range);
        case jit::TK_FALSE:
            return node(Syntax::False, range);
        case jit::TK_NONE:
            return node(Syntax::None, range);
        case jit::TK_TUPLE_LITERAL:
            return node(Syntax::Tuple, range, {}, each(jit::TupleLiteral(tree).inputs()));
        case jit::TK_LIST_LITERAL:
            return node(Syntax::List, range, {}, each(jit::ListLiteral(tree).inputs()));
        case jit::TK_STARRED:
            return node(Syntax::Starred, range, {}, {expression(jit::Starred(tree).expr().tree())});
        case '.':
            return node(Syntax::Select, range, jit::Select(tree).selector().name(), {expression(jit::Select(tree).value().tree())});
        case jit::TK_APPLY:
            return call(jit::Apply(tree));
        case jit::TK_SUBSCRIPT: {
            Node out = node(Syntax::Subscript, range, {}, {expression(jit::Subscript(tree).value().tree())});
            for (Node& index : each(jit::Subscript(tree).subscript_exprs())) out.of.push_back(std::move(index));
            return out;
        }
        case jit::TK_SLICE_EXPR: {
            const jit::SliceExpr slice(tree);
            Node out = node(Syntax::Slice, range);
            for (const auto& part : {slice.start(), slice.end(), slice.step()})
                out.of.push_back(part.present() ? expression(part.get().tree()) : node(Syntax::Missing, range));
            return out;
        }
        case jit::TK_UNARY_MINUS:
        case jit::TK_NOT:
        case '~':
            return node(Syntax::Unary, range,
                        tree->kind() == jit::TK_NOT ? "not"
                        : tree->kind() == '~'       ? "~"
                                                    : "-",
                        {expression(tree->trees().at(0))});
        case jit::TK_IF_EXPR: {
            const jit::TernaryIf one(tree);
            return node(Syntax::Conditional, range, {},
                        {expression(one.cond().tree()), expression(one.true_expr().tree()), expression(one.false_expr().tree())});
        }
        case jit::TK_LIST_COMP: {
            const jit::ListComp one(tree);
            return node(Syntax::Each, range, {},
                        {expression(one.elt().tree()), expression(one.target().tree()), expression(one.iter().tree())});
        }
        case jit::TK_DOTS:
            return node(Syntax::Other, range, "...");
        case '+':
        case '-':
        case '*':
        case '/':
        case '%':
        case '@':
        case '<':
        case '>':
        case '&':
        case '|':
        case '^':
        case jit::TK_POW:
        case jit::TK_FLOOR_DIV:
        case jit::TK_EQ:
        case jit::TK_NE:
        case jit::TK_LE:
        case jit::TK_GE:
        case jit::TK_AND:
        case jit::TK_OR:
        case jit::TK_IS:
        case jit::TK_ISNOT:
        case jit::TK_IN: {
            const jit::BinOp one(tree);
            return node(Syntax::Binary, range, signOf(tree->kind()), {expression(one.lhs().tree()), expression(one.rhs().tree())});
        }
        default:
            return node(Syntax::Other, range, jit::kindToString(tree->kind()));
        }
    }

    Node call(const jit::Apply& apply) {
        Node out = node(Syntax::Call, apply.range(), {}, {expression(apply.callee().tree())});
        for (Node& argument : each(apply.inputs())) out.of.push_back(std::move(argument));
        for (const jit::Attribute& named : apply.attributes())
            out.of.push_back(node(Syntax::Keyword, named.range(), named.name().name(), {expression(named.value().tree())}));
        return out;
    }

    std::size_t m_offset;
};

} // namespace

ScriptResult<Class> parseClass(const ScriptSource& source, const ScriptDefinition& definition) {
    const std::string text = source.text.substr(definition.begin, definition.end - definition.begin);
    const auto problem = [&](std::size_t begin, std::size_t end, std::string message, std::string hint) {
        return tl::unexpected(
            problemAt(source.text, begin, std::max<std::size_t>(1, end > begin ? end - begin : 1), std::move(message), std::move(hint)));
    };
    try {
        const auto line = std::count(source.text.begin(), source.text.begin() + static_cast<std::ptrdiff_t>(definition.begin), '\n');
        jit::Parser parser(std::make_shared<jit::Source>(text, "code", static_cast<std::size_t>(line) + 1)); // as problemOf() finds places
        Class out = Converter(definition.begin).classOf(jit::ClassDef(parser.parseClass()));
        out.base = definition.base;
        out.begin = definition.begin;
        out.end = definition.end;
        return out;
    } catch (const Refused& refused) {
        return problem(refused.begin, refused.end, refused.message, refused.hint);
    } catch (const std::exception& exception) {
        return tl::unexpected(script::problemOf(exception, source, false));
    }
}

} // namespace celloom::engine::code
