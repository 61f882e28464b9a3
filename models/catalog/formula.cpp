#include "models/catalog/formula.h"

#include "models/base/text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace celloom::catalog {
namespace {

using Op = Formula::Op;

struct Entry {
    Op op;
    const char* name;
    int operands;
};
constexpr std::array kFunctions{Entry{Op::Exp, "exp", 1},         Entry{Op::Log, "log", 1},         Entry{Op::Sqrt, "sqrt", 1},
                                Entry{Op::Abs, "abs", 1},         Entry{Op::Sin, "sin", 1},         Entry{Op::Cos, "cos", 1},
                                Entry{Op::Tanh, "tanh", 1},       Entry{Op::Sigmoid, "sigmoid", 1}, Entry{Op::Relu, "relu", 1},
                                Entry{Op::Maximum, "maximum", 2}, Entry{Op::Minimum, "minimum", 2}, Entry{Op::Where, "where", 3}};
constexpr std::array kSigns{Entry{Op::LessEqual, "<=", 2}, Entry{Op::GreaterEqual, ">=", 2}, Entry{Op::Equal, "==", 2},
                            Entry{Op::NotEqual, "!=", 2},  Entry{Op::Less, "<", 2},          Entry{Op::Greater, ">", 2},
                            Entry{Op::Power, "**", 2},     Entry{Op::Add, "+", 2},           Entry{Op::Subtract, "-", 2},
                            Entry{Op::Multiply, "*", 2},   Entry{Op::Divide, "/", 2}};

/// Of numbers alone. NaN where it is none; the reader refuses that.
double compute(Op op, const std::vector<double>& x) {
    switch (op) {
    case Op::Negate:
        return -x[0];
    case Op::Exp:
        return std::exp(x[0]);
    case Op::Log:
        return std::log(x[0]);
    case Op::Sqrt:
        return std::sqrt(x[0]);
    case Op::Abs:
        return std::abs(x[0]);
    case Op::Sin:
        return std::sin(x[0]);
    case Op::Cos:
        return std::cos(x[0]);
    case Op::Tanh:
        return std::tanh(x[0]);
    case Op::Sigmoid:
        return 1 / (1 + std::exp(-x[0]));
    case Op::Relu:
        return std::max(x[0], 0.0);
    case Op::Add:
        return x[0] + x[1];
    case Op::Subtract:
        return x[0] - x[1];
    case Op::Multiply:
        return x[0] * x[1];
    case Op::Divide:
        return x[0] / x[1];
    case Op::Power:
        return std::pow(x[0], x[1]);
    case Op::Maximum:
        return std::max(x[0], x[1]);
    case Op::Minimum:
        return std::min(x[0], x[1]);
    default:
        break;
    }
    return NAN;
}

bool isLetter(char c) {
    return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
bool isDigit(char c) {
    return c >= '0' && c <= '9';
}

class Reader {
public:
    Reader(const std::string& text, int inputs) : m_text(text), m_isUsed(static_cast<std::size_t>(inputs), false) {}

    Result<Formula> read() {
        if (m_text.size() > kMaxFormulaBytes)
            return fail("is longer than " + std::to_string(kMaxFormulaBytes) + " bytes.", "Part it into several cells.");
        CELLOOM_TRY(result, sum(0));
        if (comparison() != nullptr)
            return fail("compares at character " + std::to_string(m_at + 1) + " outside of where().", "Write where(in0 > 0, a, b).");
        if (peek() != '\0' || m_at < m_text.size()) return unexpected();
        if (m_formula.nodes[static_cast<std::size_t>(result)].op == Op::Number) return fail("uses no input.", "Its inputs are in0, in1, …");
        for (std::size_t i = 0; i < m_isUsed.size(); ++i)
            if (!m_isUsed[i]) return fail("does not use in" + std::to_string(i) + ".", "Use it, or lower inputs.");
        return std::move(m_formula);
    }

private:
    char peek() {
        while (m_at < m_text.size() && (m_text[m_at] == ' ' || m_text[m_at] == '\t' || m_text[m_at] == '\n' || m_text[m_at] == '\r'))
            ++m_at;
        return m_at < m_text.size() ? m_text[m_at] : '\0';
    }
    bool take(std::string_view sign) {
        peek();
        if (m_text.compare(m_at, sign.size(), sign) != 0) return false;
        m_at += sign.size();
        return true;
    }
    tl::unexpected<Error> unexpected() {
        if (peek() == '\0' && m_at >= m_text.size()) return fail("ends too early.");
        return fail("has " + inQuotes(m_text.substr(m_at, 12)) + " at character " + std::to_string(m_at + 1) + ", where it cannot stand.");
    }
    /// A comparison that stands here, without taking it.
    const Entry* comparison() {
        peek();
        for (const Entry& entry : kSigns)
            if (isComparison(entry.op) && m_text.compare(m_at, std::string_view(entry.name).size(), entry.name) == 0) return &entry;
        return nullptr;
    }

    Result<int> add(Op op, std::vector<int> of) {
        std::vector<double> numbers;
        for (const int operand : of) {
            const Formula::Node& node = m_formula.nodes[static_cast<std::size_t>(operand)];
            if (node.op == Op::Number) numbers.push_back(node.number);
        }
        if (numbers.size() == of.size() && !isComparison(op) && op != Op::Where) return number(compute(op, numbers));
        Formula::Node node;
        node.op = op;
        node.of = std::move(of);
        return add(std::move(node));
    }
    Result<int> number(double value) {
        if (!std::isfinite(value)) return fail("gives no finite number before character " + std::to_string(m_at + 1) + ".");
        Formula::Node node;
        node.number = value;
        return add(std::move(node));
    }
    Result<int> add(Formula::Node node) {
        if (m_formula.nodes.size() >= kMaxFormulaNodes)
            return fail("has more than " + std::to_string(kMaxFormulaNodes) + " terms.", "Part it into several cells.");
        m_formula.nodes.push_back(std::move(node));
        return static_cast<int>(m_formula.nodes.size()) - 1;
    }

    Result<int> sum(int depth) {
        CELLOOM_TRY(left, product(depth));
        while (peek() == '+' || peek() == '-') {
            const Op op = m_text[m_at++] == '+' ? Op::Add : Op::Subtract;
            CELLOOM_TRY(right, product(depth));
            CELLOOM_TRY(both, add(op, {left, right}));
            left = both;
        }
        return left;
    }

    Result<int> product(int depth) {
        CELLOOM_TRY(left, factor(depth));
        while ((peek() == '*' && m_text.compare(m_at, 2, "**") != 0) || peek() == '/') {
            if (m_text.compare(m_at, 2, "//") == 0) return unexpected();
            const Op op = m_text[m_at++] == '*' ? Op::Multiply : Op::Divide;
            CELLOOM_TRY(right, factor(depth));
            CELLOOM_TRY(both, add(op, {left, right}));
            left = both;
        }
        return left;
    }

    Result<int> factor(int depth) {
        if (depth > kMaxFormulaDepth)
            return fail("nests deeper than " + std::to_string(kMaxFormulaDepth) + " levels at character " + std::to_string(m_at + 1) + ".",
                        "Part it into several cells.");
        if (take("-")) {
            CELLOOM_TRY(inner, factor(depth + 1));
            return add(Op::Negate, {inner});
        }
        CELLOOM_TRY(base, atom(depth));
        if (!take("**")) return base;
        CELLOOM_TRY(exponent, factor(depth + 1)); // binds to the right, and takes a minus
        return add(Op::Power, {base, exponent});
    }

    Result<int> atom(int depth) {
        if (take("(")) {
            CELLOOM_TRY(inner, sum(depth + 1));
            if (!take(")")) return unexpected();
            return inner;
        }
        const char c = peek();
        if (isDigit(c) || c == '.') return literal();
        if (!isLetter(c)) return unexpected();
        std::size_t end = m_at;
        while (end < m_text.size() && (isLetter(m_text[end]) || isDigit(m_text[end]))) ++end;
        const std::string name = m_text.substr(m_at, end - m_at);
        const std::size_t begin = m_at;
        m_at = end;
        return take("(") ? call(name, begin, depth) : input(name, begin);
    }

    Result<int> literal() {
        double value = 0;
        const auto read = std::from_chars(m_text.data() + m_at, m_text.data() + m_text.size(), value);
        if (read.ec != std::errc()) return unexpected();
        m_at = static_cast<std::size_t>(read.ptr - m_text.data());
        return number(value);
    }

    Result<int> input(const std::string& name, std::size_t begin) {
        for (std::size_t i = 0; i < m_isUsed.size(); ++i) {
            if (name != "in" + std::to_string(i)) continue;
            m_isUsed[i] = true;
            Formula::Node node;
            node.op = Op::Input;
            node.input = static_cast<int>(i);
            return add(std::move(node));
        }
        const std::string last = "in" + std::to_string(m_isUsed.size() - 1);
        return fail("uses the unknown name " + inQuotes(name, 40) + " at character " + std::to_string(begin + 1) + ".",
                    m_isUsed.size() == 1 ? "Its input is in0; set inputs for more."
                                         : "Its inputs are in0 to " + last + "; inputs says how many.");
    }

    Result<int> call(const std::string& name, std::size_t begin, int depth) {
        const auto entry = std::find_if(kFunctions.begin(), kFunctions.end(), [&](const Entry& known) { return name == known.name; });
        if (entry == kFunctions.end()) {
            std::vector<std::string> names;
            for (const Entry& known : kFunctions) names.emplace_back(known.name);
            return fail("calls the unknown function " + inQuotes(name, 40) + " at character " + std::to_string(begin + 1) + ".",
                        "Functions are " + joined(names, names.size()) + ".");
        }
        std::vector<int> of;
        do {
            CELLOOM_TRY(argument, entry->op == Op::Where && of.empty() ? condition(depth + 1) : sum(depth + 1));
            of.push_back(argument);
        } while (take(","));
        if (comparison())
            return fail("compares at character " + std::to_string(m_at + 1) + ", where a number is needed.",
                        "Only the first place of where() compares.");
        if (!take(")")) return unexpected();
        if (static_cast<int>(of.size()) != entry->operands)
            return fail("gives " + name + "() at character " + std::to_string(begin + 1) + " " + std::to_string(of.size()) +
                        " arguments; it takes " + std::to_string(entry->operands) + ".");
        return add(entry->op, std::move(of));
    }

    Result<int> condition(int depth) {
        CELLOOM_TRY(left, sum(depth));
        const Entry* sign = comparison();
        if (!sign)
            return fail("needs a comparison at character " + std::to_string(m_at + 1) + ", in the first place of where().",
                        "Write where(in0 > 0, a, b).");
        m_at += std::string_view(sign->name).size();
        CELLOOM_TRY(right, sum(depth));
        const auto isNumber = [&](int node) { return m_formula.nodes[static_cast<std::size_t>(node)].op == Op::Number; };
        if (isNumber(left) && isNumber(right))
            return fail("compares two numbers at character " + std::to_string(m_at + 1) + ".", "Compare an input.");
        return add(sign->op, {left, right});
    }

    const std::string& m_text;
    std::size_t m_at = 0;
    std::vector<bool> m_isUsed;
    Formula m_formula;
};

} // namespace

bool isComparison(Op op) {
    return op >= Op::Less && op <= Op::NotEqual;
}
bool isInfix(Op op) {
    return (op >= Op::Add && op <= Op::Power) || isComparison(op);
}

const char* nameOf(Op op) {
    if (op == Op::Negate) return "-";
    for (const Entry& entry : kFunctions)
        if (entry.op == op) return entry.name;
    for (const Entry& entry : kSigns)
        if (entry.op == op) return entry.name;
    return "";
}

Result<Formula> readFormula(const std::string& text, int inputs) {
    auto formula = Reader(text, inputs).read();
    if (formula) return formula;
    return fail("The formula " + inQuotes(text, 60) + " " + formula.error().message, formula.error().hint, "formula");
}

} // namespace celloom::catalog
