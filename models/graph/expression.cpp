#include "models/graph/expression.h"

#include "models/base/text.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <functional>
#include <numeric>
#include <optional>
#include <set>

namespace celloom::graph {
namespace {

__extension__ typedef __int128 Wide; // holds any product of two 64-bit numbers

constexpr std::size_t kMaxBytes = 1000;
constexpr int kMaxDepth = 50;
constexpr double kExactLimit = 9007199254740992.0; // 2^53: up to here every whole double is the number it says

/// An exact fraction, or a real once a decimal has come in. A symbol may multiply a whole fraction.
struct Value {
    bool isReal = false;
    std::int64_t over = 0, under = 1; // under > 0, lowest terms
    double real = 0;
    std::string symbol;

    [[nodiscard]] double asReal() const { return isReal ? real : static_cast<double>(over) / static_cast<double>(under); }
};

tl::unexpected<Error> overflow() {
    return fail("the result is too large for a 64-bit number.");
}

Result<Value> fraction(Wide over, Wide under) {
    if (under == 0) return fail("divides by zero.");
    if (under < 0) {
        over = -over;
        under = -under;
    }
    for (Wide a = over < 0 ? -over : over, b = under;;) { // Euclid
        if (b == 0) {
            if (a != 0) {
                over /= a;
                under /= a;
            }
            break;
        }
        const Wide rest = a % b;
        a = b;
        b = rest;
    }
    if (over > INT64_MAX || over < -INT64_MAX || under > INT64_MAX) return overflow();
    Value out;
    out.over = static_cast<std::int64_t>(over);
    out.under = static_cast<std::int64_t>(under);
    return out;
}

Result<Value> realValue(double number) {
    if (!std::isfinite(number)) return fail("gives no finite number.");
    Value out;
    out.isReal = true;
    out.real = number;
    return out;
}

/// Down to the whole number below (or above); exact for fractions.
Result<Value> toWhole(const Value& x, bool up) {
    if (!x.isReal) {
        std::int64_t whole = x.over / x.under;
        if (x.over % x.under != 0 && (x.over > 0) == up) whole += up ? 1 : -1;
        return fraction(whole, 1);
    }
    const double whole = up ? std::ceil(x.real) : std::floor(x.real);
    if (std::abs(whole) > kExactLimit) return overflow();
    return fraction(static_cast<std::int64_t>(whole), 1);
}

Result<Value> multiply(const Value& a, const Value& b) {
    if (!a.symbol.empty() && !b.symbol.empty())
        return fail("multiplies the symbols " + a.symbol + " and " + b.symbol + "; a dimension has one at most.");
    if (a.isReal || b.isReal) {
        if (!a.symbol.empty() || !b.symbol.empty()) return fail("multiplies a symbol by a fraction.");
        return realValue(a.asReal() * b.asReal());
    }
    CELLOOM_TRY(out, fraction(static_cast<Wide>(a.over) * b.over, static_cast<Wide>(a.under) * b.under));
    out.symbol = a.symbol + b.symbol;
    return out;
}

Result<Value> apply(char op, const Value& a, const Value& b) {
    if (op == '*') return multiply(a, b);
    if (!b.symbol.empty() || (!a.symbol.empty() && op != '/'))
        return fail("uses the symbol " + (a.symbol.empty() ? b.symbol : a.symbol) +
                    " in a sum or below a fraction; only symbol times number is possible.");
    if (a.isReal || b.isReal) {
        if (!a.symbol.empty()) return fail("multiplies a symbol by a fraction.");
        const double x = a.asReal(), y = b.asReal();
        if (op == '/' && y == 0) return fail("divides by zero.");
        if (op == '%') return fail("takes the remainder (%) of a number that is not whole.");
        return realValue(op == '+' ? x + y : op == '-' ? x - y : x / y);
    }
    const Wide ao = a.over, au = a.under, bo = b.over, bu = b.under;
    if (op == '%') {
        if (au != 1 || bu != 1) return fail("takes the remainder (%) of a number that is not whole.");
        return bo == 0 ? fail("divides by zero.") : fraction(ao % bo, 1);
    }
    // |ao·bu ± bo·au| stays below 2^127: each factor fits 63 bits
    auto out = op == '/' ? fraction(ao * bu, au * bo) : fraction(op == '+' ? ao * bu + bo * au : ao * bu - bo * au, au * bu);
    if (out) out->symbol = a.symbol;
    return out;
}

class Parser {
public:
    Parser(const std::string& text, const Scope& scope, const Symbols* symbols) : m_text(text), m_scope(scope), m_symbols(symbols) {}

    Result<Value> parse() {
        if (m_text.size() > kMaxBytes) return fail("is longer than " + std::to_string(kMaxBytes) + " bytes.");
        CELLOOM_TRY(out, sum(0));
        peek();
        if (m_at < m_text.size()) return unexpected();
        return out;
    }

    /// "hidden = 256, heads = 3": what the names stood for.
    [[nodiscard]] std::string used() const {
        std::string out;
        for (const std::string& name : m_used) out += (out.empty() ? "" : ", ") + name + " = " + toString(m_scope.at(name));
        return out;
    }

private:
    char peek() {
        while (m_at < m_text.size() && (m_text[m_at] == ' ' || m_text[m_at] == '\t')) ++m_at;
        return m_at < m_text.size() ? m_text[m_at] : '\0';
    }
    bool take(char c) {
        if (peek() != c || c == '\0') return false;
        ++m_at;
        return true;
    }
    tl::unexpected<Error> unexpected() {
        if (peek() == '\0' && m_at >= m_text.size()) return fail("ends too early.");
        return fail("has " + inQuotes(m_text.substr(m_at), 12) + " at character " + std::to_string(m_at + 1) + ", where it cannot stand.");
    }

    Result<Value> sum(int depth) {
        CELLOOM_TRY(left, product(depth));
        while (peek() == '+' || peek() == '-') {
            const char op = m_text[m_at++];
            CELLOOM_TRY(right, product(depth));
            CELLOOM_TRY(both, apply(op, left, right));
            left = std::move(both);
        }
        return left;
    }

    Result<Value> product(int depth) {
        CELLOOM_TRY(left, atom(depth));
        while (peek() == '*' || peek() == '/' || peek() == '%') {
            const char op = m_text[m_at++];
            CELLOOM_TRY(right, atom(depth));
            CELLOOM_TRY(both, apply(op, left, right));
            left = std::move(both);
        }
        return left;
    }

    Result<Value> atom(int depth) {
        if (depth > kMaxDepth) return fail("nests deeper than " + std::to_string(kMaxDepth) + " levels.");
        if (take('-')) {
            CELLOOM_TRY(inner, atom(depth + 1));
            return multiply(*fraction(-1, 1), inner);
        }
        if (take('(')) {
            CELLOOM_TRY(inner, sum(depth + 1));
            if (!take(')')) return unexpected();
            return inner;
        }
        const char c = peek();
        if ((c >= '0' && c <= '9') || c == '.') return number();
        const std::string name = identifier();
        if (name.empty()) return unexpected();
        return take('(') ? call(name, depth) : variable(name);
    }

    Result<Value> number() {
        const char* begin = m_text.data() + m_at;
        const char* end = m_text.data() + m_text.size();
        double real = 0;
        const auto asReal = std::from_chars(begin, end, real);
        if (asReal.ec != std::errc()) return asReal.ec == std::errc::result_out_of_range ? overflow() : unexpected();
        const std::string_view digits(begin, static_cast<std::size_t>(asReal.ptr - begin));
        m_at += digits.size();
        if (digits.find_first_of(".eE") != std::string_view::npos) return realValue(real);
        std::int64_t whole = 0;
        if (std::from_chars(begin, asReal.ptr, whole).ec != std::errc()) return overflow();
        return fraction(whole, 1);
    }

    std::string identifier() {
        peek();
        std::size_t end = m_at;
        while (end < m_text.size() && isIdentifier(m_text.substr(m_at, end + 1 - m_at))) ++end;
        std::string name = m_text.substr(m_at, end - m_at);
        m_at = end;
        return name;
    }

    Result<Value> variable(const std::string& name) {
        if (const auto found = m_scope.find(name); found != m_scope.end()) {
            m_used.insert(name);
            if (const auto* whole = std::get_if<std::int64_t>(&found->second)) return fraction(*whole, 1);
            if (const auto* real = std::get_if<double>(&found->second)) return realValue(*real);
            return fail("uses " + inQuotes(name) + ", which is not a number.");
        }
        if (m_symbols) {
            if (const auto found = m_symbols->find(name); found != m_symbols->end()) {
                CELLOOM_TRY(out, fraction(found->second.number, 1));
                out.symbol = found->second.symbol;
                return out;
            }
        }
        std::vector<std::string> known;
        for (const auto& [other, value] : m_scope) known.push_back(other);
        const auto close = nearest(name, known, 1);
        const std::string hint = !close.empty()  ? "Did you mean " + close.front() + "?"
                                 : known.empty() ? ""
                                                 : "Known here are " + joined(known) + ".";
        return fail("uses the unknown name " + inQuotes(name) + ".", hint);
    }

    Result<Value> call(const std::string& name, int depth) {
        std::vector<Value> arguments;
        do {
            CELLOOM_TRY(argument, sum(depth + 1));
            if (!argument.symbol.empty()) return fail("uses the symbol " + argument.symbol + " in a function.");
            arguments.push_back(std::move(argument));
        } while (take(','));
        if (!take(')')) return unexpected();
        const auto count = arguments.size();
        if (name == "floor" || name == "ceil") return count == 1 ? toWhole(arguments[0], name == "ceil") : wrongCount(name, "one number");
        if (name == "roundUp") return count == 2 ? roundUp(arguments[0], arguments[1]) : wrongCount(name, "two numbers");
        if (name == "min" || name == "max") {
            if (count < 2) return wrongCount(name, "two numbers or more");
            std::size_t best = 0;
            for (std::size_t i = 1; i < count; ++i) {
                CELLOOM_TRY(difference, apply('-', arguments[i], arguments[best]));
                if (name == "min" ? difference.asReal() < 0 : difference.asReal() > 0) best = i;
            }
            return arguments[best];
        }
        return fail("calls the unknown function " + inQuotes(name) + ".", "Functions are roundUp, min, max, floor and ceil.");
    }

    static tl::unexpected<Error> wrongCount(const std::string& name, const std::string& expected) {
        return fail(name + "() takes " + expected + ".");
    }

    static Result<Value> roundUp(const Value& x, const Value& multiple) {
        if (multiple.asReal() <= 0) return fail("rounds up to a multiple of " + numberText(multiple.asReal()) + ", which is not above 0.");
        CELLOOM_TRY(parts, apply('/', x, multiple));
        CELLOOM_TRY(whole, toWhole(parts, true));
        return multiply(whole, multiple);
    }

    const std::string& m_text;
    const Scope& m_scope;
    const Symbols* m_symbols;
    std::size_t m_at = 0;
    std::set<std::string> m_used;
};

Error inExpression(const std::string& text, Error error) {
    error.message = "the expression " + inQuotes(text) + " " + error.message;
    return error;
}

/// The whole number that a value is, if it is one.
std::optional<std::int64_t> wholeOf(const Value& value) {
    if (!value.isReal) return value.under == 1 ? std::optional(value.over) : std::nullopt;
    if (value.real != std::trunc(value.real) || std::abs(value.real) > kExactLimit) return std::nullopt;
    return static_cast<std::int64_t>(value.real);
}

} // namespace

bool isIdentifier(const std::string& text) {
    if (text.empty() || (text[0] >= '0' && text[0] <= '9')) return false;
    for (const char c : text)
        if (!(c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'))) return false;
    return true;
}

Result<ResolvedValue> evaluate(const std::string& text, const Scope& scope) {
    if (const auto flag = scope.find(trimmed(text)); flag != scope.end() && std::holds_alternative<bool>(flag->second)) return flag->second;
    auto value = Parser(text, scope, nullptr).parse();
    if (!value) return tl::unexpected(inExpression(text, std::move(value).error()));
    if (const auto whole = wholeOf(*value)) return *whole;
    return value->asReal();
}

Result<std::int64_t> evaluateInteger(const std::string& text, const Scope& scope) {
    Parser parser(text, scope, nullptr);
    auto value = parser.parse();
    if (!value) return tl::unexpected(inExpression(text, std::move(value).error()));
    if (const auto whole = wholeOf(*value)) return *whole;
    const std::string used = parser.used();
    return fail("the expression " + inQuotes(text) + " gives " + numberText(value->asReal()) + (used.empty() ? "" : " (" + used + ")") +
                ", expected a whole number.");
}

Result<Dim> evaluateDim(const std::string& text, const Scope& scope, const Symbols& symbols) {
    auto value = Parser(text, scope, &symbols).parse();
    if (!value) return tl::unexpected(inExpression(text, std::move(value).error()));
    const auto whole = wholeOf(*value);
    if (!whole) return fail("the dimension " + inQuotes(text) + " gives " + numberText(value->asReal()) + ", expected a whole number.");
    if (*whole < 1 || *whole > kMaxDim)
        return fail("the dimension " + inQuotes(text) + " gives " + std::to_string(*whole) + ", expected 1 to " + std::to_string(kMaxDim) +
                    ".");
    return Dim{*whole, value->symbol};
}

namespace {

/// Calls `name` for each name that is no function, `other` for the rest, in order.
void walkNames(const std::string& text, const std::function<void(const std::string&)>& name,
               const std::function<void(const std::string&)>& other) {
    const auto isWord = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
    for (std::size_t at = 0; at < text.size();) {
        std::size_t end = at + 1;
        if (isWord(text[at])) // "1e5" and "0.5" are words too, and no names
            while (end < text.size() && (isWord(text[end]) || text[end] == '.')) ++end;
        const std::string word = text.substr(at, end - at);
        const auto next = text.find_first_not_of(' ', end);
        const bool isFunction = next != std::string::npos && text[next] == '(';
        (isIdentifier(word) && !isFunction ? name : other)(word);
        at = end;
    }
}

} // namespace

std::vector<std::string> namesIn(const std::string& text) {
    std::vector<std::string> out;
    walkNames(
        text,
        [&](const std::string& name) {
            if (std::find(out.begin(), out.end(), name) == out.end()) out.push_back(name);
        },
        [](const std::string&) {});
    return out;
}

std::string replaceNames(const std::string& text, const std::map<std::string, std::string>& replacements) {
    std::string out;
    walkNames(
        text,
        [&](const std::string& name) {
            const auto found = replacements.find(name);
            if (found == replacements.end()) {
                out += name;
                return;
            }
            double number = 0;
            const bool isWhole = trimmed(name) == trimmed(text); // nothing stands beside it
            const bool isPlain = isWhole || isIdentifier(found->second) || (readNumber(found->second, number) && number >= 0);
            out += isPlain ? found->second : "(" + found->second + ")";
        },
        [&](const std::string& rest) { out += rest; });
    return out;
}

std::string toString(const ResolvedValue& value) {
    if (const auto* whole = std::get_if<std::int64_t>(&value)) return std::to_string(*whole);
    if (const auto* real = std::get_if<double>(&value)) return numberText(*real);
    if (const auto* yes = std::get_if<bool>(&value)) return *yes ? "true" : "false";
    return std::get<std::string>(value);
}

std::string toString(const Dim& dim) {
    if (dim.symbol.empty()) return std::to_string(dim.number);
    return dim.number == 1 ? dim.symbol : std::to_string(dim.number) + " * " + dim.symbol;
}

std::string toString(const Shape& shape) {
    std::string out = "[";
    for (std::size_t i = 0; i < shape.size(); ++i) out += (i ? ", " : "") + toString(shape[i]);
    return out + "]";
}

} // namespace celloom::graph
