#include "models/code/python.h"

#include "models/base/text.h"

#include <array>
#include <cstdio>

namespace celloom::code {
namespace {

const std::set<std::string> kKeywords{"False",    "None",   "True",  "and",  "as",     "assert",   "async",   "await", "break", "class",
                                      "continue", "def",    "del",   "elif", "else",   "except",   "finally", "for",   "from",  "global",
                                      "if",       "import", "in",    "is",   "lambda", "nonlocal", "not",     "or",    "pass",  "raise",
                                      "return",   "try",    "while", "with", "yield",  "print",    "range",   "self",  "super"};

/// Walks the grammar of models/graph/expression.h and writes the same in Python. Depth is bounded by the evaluator, which has seen the
/// text.
class Translator {
public:
    Translator(const std::string& text, const graph::Scope& scope, bool isWhole, const NameOf& nameOf, std::set<std::string>& needs)
        : m_text(text), m_scope(scope), m_isWhole(isWhole), m_nameOf(nameOf), m_needs(needs) {}

    Result<std::string> run() {
        CELLOOM_TRY(out, sum(0));
        skip();
        if (m_at != m_text.size()) return wrong();
        return out;
    }

private:
    tl::unexpected<Error> wrong() const { return fail("the expression " + inQuotes(m_text) + " cannot be read."); }
    void skip() {
        while (m_at < m_text.size() && (m_text[m_at] == ' ' || m_text[m_at] == '\t')) ++m_at;
    }
    bool take(char c) {
        skip();
        if (m_at >= m_text.size() || m_text[m_at] != c) return false;
        ++m_at;
        return true;
    }
    char next() {
        skip();
        return m_at < m_text.size() ? m_text[m_at] : '\0';
    }

    Result<std::string> sum(int depth) {
        CELLOOM_TRY(out, product(depth));
        while (next() == '+' || next() == '-') {
            const char sign = m_text[m_at++];
            CELLOOM_TRY(right, product(depth));
            out += std::string(" ") + sign + " " + right;
        }
        return out;
    }

    Result<std::string> product(int depth) {
        skip();
        const std::size_t begin = m_at;
        CELLOOM_TRY(out, unary(depth));
        while (next() == '*' || next() == '/' || next() == '%') {
            const char sign = m_text[m_at++];
            CELLOOM_TRY(right, unary(depth));
            const bool isExact =
                sign == '/' && m_isWhole && graph::evaluateInteger(m_text.substr(begin, m_at - begin), m_scope).has_value();
            out += " " + (isExact ? std::string("//") : std::string(1, sign)) + " " + right;
        }
        return out;
    }

    Result<std::string> unary(int depth) {
        if (depth > 60) return wrong();
        if (take('-')) {
            CELLOOM_TRY(inner, unary(depth + 1));
            return "-" + inner;
        }
        if (take('(')) {
            CELLOOM_TRY(inner, sum(depth + 1));
            if (!take(')')) return wrong();
            return "(" + inner + ")";
        }
        skip();
        const std::size_t begin = m_at;
        const auto isPart = [&](char c) {
            return c == '_' || c == '.' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        };
        while (m_at < m_text.size() &&
               (isPart(m_text[m_at]) || ((m_text[m_at] == '-' || m_text[m_at] == '+') && m_at > begin && isExponent(begin))))
            ++m_at;
        const std::string word = m_text.substr(begin, m_at - begin);
        if (word.empty()) return wrong();
        double number = 0;
        if (!graph::isIdentifier(word)) return readNumber(std::string_view(word), number) ? Result<std::string>(word) : wrong();
        if (next() == '(') return call(word, depth);
        if (!m_scope.contains(word)) return fail(inQuotes(word, 40) + " in the expression " + inQuotes(m_text) + " is no hyper-parameter.");
        return m_nameOf(word);
    }

    /// "1e" before the place where it stands.
    bool isExponent(std::size_t begin) const {
        const char before = m_text[m_at - 1];
        return (before == 'e' || before == 'E') && (m_text[begin] >= '0' && m_text[begin] <= '9');
    }

    Result<std::string> call(const std::string& name, int depth) {
        static const std::set<std::string> kFunctions{"roundUp", "floor", "ceil", "min", "max"};
        if (!kFunctions.contains(name))
            return fail("the expression " + inQuotes(m_text) + " calls " + inQuotes(name, 40) + ", which is no function.");
        ++m_at; // (
        std::string arguments;
        while (true) {
            CELLOOM_TRY(argument, sum(depth + 1));
            arguments += (arguments.empty() ? "" : ", ") + argument;
            if (take(')')) break;
            if (!take(',')) return wrong();
        }
        if (name == "roundUp") m_needs.insert("round_up");
        if (name == "floor" || name == "ceil") m_needs.insert("math");
        return (name == "roundUp" ? "round_up" : name == "floor" || name == "ceil" ? "math." + name : name) + "(" + arguments + ")";
    }

    const std::string& m_text;
    const graph::Scope& m_scope;
    bool m_isWhole;
    const NameOf& m_nameOf;
    std::set<std::string>& m_needs;
    std::size_t m_at = 0;
};

} // namespace

std::string pythonString(const std::string& text) {
    std::string out = "\"";
    for (const char c : text) {
        if (c == '\n')
            out += "\\n";
        else if (c == '\t')
            out += "\\t";
        else if (c == '"' || c == '\\')
            out += std::string("\\") + c;
        else if (static_cast<unsigned char>(c) < ' ')
            out += ' ';
        else
            out += c;
    }
    return out + "\"";
}

std::string pythonValue(const graph::ParamValue& value) {
    if (const auto* yes = std::get_if<bool>(&value)) return *yes ? "True" : "False";
    if (const auto* whole = std::get_if<std::int64_t>(&value)) return std::to_string(*whole);
    if (const auto* number = std::get_if<double>(&value)) {
        const std::string text = numberText(*number);
        return text.find_first_of(".eEnN") == std::string::npos ? text + ".0" : text;
    }
    return pythonString(std::get<std::string>(value));
}

std::string pythonName(const std::string& name) {
    std::string out;
    for (const char c : name) {
        const bool isPart = c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (isPart)
            out += c;
        else if (static_cast<unsigned char>(c) < 0x80)
            out += '_';
        else {
            std::array<char, 4> digits{};
            std::snprintf(digits.data(), digits.size(), "%02x", static_cast<unsigned>(static_cast<unsigned char>(c)));
            out += digits.data();
        }
    }
    while (out.starts_with("__")) out.erase(0, 1); // Python's own
    if (out.empty() || (out[0] >= '0' && out[0] <= '9')) out = "cell_" + out;
    if (kKeywords.contains(out)) out += '_';
    return out;
}

std::string uniqueName(std::string wanted, std::set<std::string>& taken) {
    while (!taken.insert(wanted).second) wanted += '_';
    return wanted;
}

Result<std::string> pythonExpression(const std::string& expression, const graph::Scope& scope, bool isWhole, const NameOf& nameOf,
                                     std::set<std::string>& needs) {
    return Translator(expression, scope, isWhole, nameOf, needs).run();
}

std::vector<std::string> listItems(const std::string& list) {
    std::vector<std::string> out(1);
    int depth = 0;
    for (const char c : list) {
        depth += c == '(' ? 1 : c == ')' ? -1 : 0;
        if (c == ',' && depth <= 0)
            out.emplace_back();
        else
            out.back() += c;
    }
    for (std::string& item : out) item = trimmed(item);
    return out;
}

} // namespace celloom::code
