#include "engine/script/code_source.h"

#include "models/base/text.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>

namespace celloom::engine {
namespace {

using Text = std::string_view;

enum class TokenKind { Name, Number, String, Operator };

struct Token {
    TokenKind kind;
    std::size_t begin = 0, end = 0;
    [[nodiscard]] std::size_t size() const { return end - begin; }
};

bool isNameStart(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool isDigit(char c) { return c >= '0' && c <= '9'; }
bool isNamePart(char c) { return isNameStart(c) || isDigit(c); }
bool isContinuation(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

int charactersOf(Text text) { return static_cast<int>(std::count_if(text.begin(), text.end(), [](char c) { return !isContinuation(c); })); }

struct Refusal {
    Text word, message, hint;
};
/// Words of Python that typed code does not have, wherever they stand.
constexpr Refusal kRefusedWords[] = {
    {"lambda", "lambda is not available.", "Write a function with def."},
    {"with", "with is not available.", "There are no files or contexts here."},
    {"try", "try is not available.", "Test for what may go wrong with if; an error stops or disables the callback as the recipe says."},
    {"except", "except is not available.", "Test for what may go wrong with if."},
    {"finally", "finally is not available.", "Test for what may go wrong with if."},
    {"yield", "yield is not available.", "Return a list."},
    {"async", "async is not available.", ""},
    {"await", "await is not available.", ""},
    {"global", "global is not available.", "Keep state in an attribute: self.name."},
    {"nonlocal", "nonlocal is not available.", "Keep state in an attribute: self.name."},
};

/// Modules whose import lines are read over: what comes from them is there anyway.
const std::set<Text> kKnownModules{"mindspore", "mindformers", "torch", "math", "numpy", "typing", "time", "__future__"};

/// ASCII for a full-width form (U+FF01 to U+FF5E) and for quotes and marks that an input method writes; 0: none.
char asciiFor(Text character) {
    if (character.size() != 3) return 0;
    const auto byte = [&](int i) { return static_cast<unsigned>(static_cast<unsigned char>(character[static_cast<std::size_t>(i)])); };
    const unsigned code = (byte(0) & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F);
    if (code >= 0xFF01 && code <= 0xFF5E) return static_cast<char>(code - 0xFF01 + '!');
    if (code == 0x201C || code == 0x201D) return '"';
    if (code == 0x2018 || code == 0x2019) return '\'';
    if (code == 0x3000) return ' ';
    if (code == 0x3001) return ',';
    if (code == 0x3002) return '.';
    return 0;
}

class Reader {
public:
    /// `isOfCells`: a file of cells, code_source.h.
    Reader(Text code, const ScriptLimits& limits, bool isOfCells) : m_limits(limits), m_isOfCells(isOfCells) { m_out.text = std::string(code); }

    ScriptResult<CodeSource> read() {
        if (!checkBytes() || !readLines()) return tl::unexpected(std::move(*m_problem));
        return std::move(m_out);
    }

private:
    bool refuse(std::size_t offset, std::size_t bytes, std::string message, std::string hint = {}) {
        m_problem = problemAt(m_out.text, offset, bytes, std::move(message), std::move(hint));
        return false;
    }
    bool refuse(const Token& token, std::string message, std::string hint = {}) {
        return refuse(token.begin, token.size(), std::move(message), std::move(hint));
    }

    [[nodiscard]] Text text(const Token& token) const { return Text(m_out.text).substr(token.begin, token.size()); }
    [[nodiscard]] bool is(std::size_t index, Text word) const { return index < m_line.size() && text(m_line[index]) == word; }
    [[nodiscard]] bool isKind(std::size_t index, TokenKind kind) const { return index < m_line.size() && m_line[index].kind == kind; }

    void blank(std::size_t begin, std::size_t end, Text instead = {}) {
        for (std::size_t i = begin; i < end; ++i)
            if (m_out.text[i] != '\n') m_out.text[i] = ' ';
        if (instead.size() <= end - begin) std::copy(instead.begin(), instead.end(), m_out.text.begin() + static_cast<std::ptrdiff_t>(begin));
    }

    bool checkBytes();
    bool readLines();
    bool readLogicalLine(std::size_t& at);
    bool readToken(std::size_t& at);
    bool readString(std::size_t& at, std::size_t quote);
    bool readNumber(std::size_t& at);
    bool readBracket(std::size_t at);
    bool checkIndent(std::size_t begin);
    bool checkLine();
    bool checkWords();
    bool checkStars(bool isDefinition);
    bool checkColon();
    bool replaceCalls();
    bool checkTopLevel();
    bool readImport();
    bool readClass();
    bool readConstant();

    ScriptLimits m_limits;
    bool m_isOfCells;
    CodeSource m_out;
    std::optional<ScriptProblem> m_problem;
    std::vector<Token> m_line;        // of the logical line being read
    std::vector<std::size_t> m_brackets; // offsets of those open
    std::vector<std::size_t> m_indents{0};
    std::vector<bool> m_isClassBody{false}; // of each indent
    bool m_opensBlock = false, m_opensClass = false; // by the line before
    char m_indentWith = 0;
    std::size_t m_elifs = 0;
};

bool Reader::checkBytes() {
    std::string& all = m_out.text;
    if (all.starts_with("\xEF\xBB\xBF")) all.erase(0, 3);
    if (all.size() > m_limits.maxBytes) {
        m_problem = ScriptProblem{"The source is longer than " + std::to_string(m_limits.maxBytes >> 10) + " KiB.", m_isOfCells ? "Bring it in class by class." : "Typed code is short.", 0, 0, 1, {}, false};
        return false;
    }
    if (!isUtf8(all)) {
        m_problem = ScriptProblem{"The source is not valid UTF-8 text.", "Save it as UTF-8.", 0, 0, 1, {}, false};
        return false;
    }
    for (std::size_t i = 0; i < all.size(); ++i)
        if (all[i] == '\r') all[i] = i + 1 < all.size() && all[i + 1] == '\n' ? ' ' : '\n';
    for (std::size_t i = 0; i < all.size(); ++i)
        if (static_cast<unsigned char>(all[i]) < ' ' && all[i] != '\n' && all[i] != '\t') return refuse(i, 1, "A control character stands here.", "Delete it.");
    if (static_cast<std::size_t>(std::count(all.begin(), all.end(), '\n')) > m_limits.maxLines) {
        m_problem = ScriptProblem{"The source has more than " + std::to_string(m_limits.maxLines) + " lines.", m_isOfCells ? "Bring it in class by class." : "Typed code is short.", 0, 0, 1, {}, false};
        return false;
    }
    if (all.empty() || all.back() != '\n') all += '\n';
    return true;
}

bool Reader::readLines() {
    for (std::size_t at = 0; at < m_out.text.size();)
        if (!readLogicalLine(at)) return false;
    if (!m_out.definitions.empty() && m_out.definitions.back().end == 0) m_out.definitions.back().end = m_out.text.size();
    return true;
}

/// From the start of a line to the end of what belongs to it: brackets and backslashes go on over line breaks.
bool Reader::readLogicalLine(std::size_t& at) {
    m_line.clear();
    m_brackets.clear();
    const std::size_t begin = at;
    while (true) {
        const char c = m_out.text[at];
        if (c == '\n') {
            if (m_brackets.empty()) break;
            ++at;
            if (at == m_out.text.size()) return refuse(m_brackets.back(), 1, "This bracket is never closed.", "Close it.");
        } else if (c == '#') {
            std::size_t end = at;
            while (m_out.text[end] != '\n') ++end;
            m_out.comments.push_back({at, m_out.text.substr(at, end - at)});
            blank(at, end);
            at = end;
        } else if (c == ' ' || c == '\t') {
            ++at;
        } else if (c == '\\') {
            if (m_out.text[at + 1] != '\n') return refuse(at, 1, "A backslash stands here that is not at the end of its line.", "Delete it.");
            if (at + 2 >= m_out.text.size()) return refuse(at, 1, "The source ends after a backslash.", "Delete it.");
            blank(at, at + 1, "\\");
            at += 2;
        } else {
            if (!readToken(at)) return false;
            if (m_line.size() > m_limits.maxTokensOfLine)
                return refuse(m_line.back(), "A statement has more than " + std::to_string(m_limits.maxTokensOfLine) + " words and signs.",
                              "Part it into several statements.");
        }
    }
    ++at; // the line break
    if (m_line.empty()) {
        blank(begin, at);
        return true;
    }
    return checkIndent(begin) && checkLine();
}

bool Reader::readToken(std::size_t& at) {
    const std::string& all = m_out.text;
    const std::size_t begin = at;
    const char c = all[at];
    if (c == '"' || c == '\'') return readString(at, at);
    if (isDigit(c) || (c == '.' && isDigit(all[at + 1]))) return readNumber(at);
    if (isNameStart(c)) {
        while (isNamePart(all[at])) ++at;
        if (all[at] == '"' || all[at] == '\'') {
            const Text prefix = Text(all).substr(begin, at - begin);
            if (prefix == "f" || prefix == "F")
                return refuse(begin, at - begin + 1, "f-strings are not available.", "Write \"step {}\".format(step), or print(\"step\", step).");
            return refuse(begin, at - begin + 1, "Strings with a prefix are not available.", "Write the text in plain quotes.");
        }
        m_line.push_back({TokenKind::Name, begin, at});
        return true;
    }
    if (static_cast<unsigned char>(c) >= 0x80) {
        std::size_t end = at + 1;
        while (isContinuation(all[end])) ++end;
        const Text character = Text(all).substr(at, end - at);
        const char plain = asciiFor(character);
        return refuse(at, end - at, inQuotes(character) + " is not part of the language.",
                      plain ? "Type the plain " + (plain == ' ' ? std::string("space") : std::string(1, plain)) + " instead." : "Names and signs are plain ASCII.");
    }
    if (c == '$' || c == '?' || c == '`') return refuse(at, 1, std::string("'") + c + "' is not part of the language.");
    if (c == ';') return refuse(at, 1, "';' is not available.", "Begin a new line.");
    static constexpr Text kLong[] = {"**=", "//=", ">>=", "<<=", "...", "**", "//", "<<", ">>", "<=", ">=", "==", "!=", "->",
                                     "+=",  "-=",  "*=",  "/=",  "%=",  "&=", "|=", "^=", "@=", ":="};
    for (const Text sign : kLong)
        if (Text(all).substr(at, sign.size()) == sign) {
            if (sign == ":=") return refuse(at, 2, "':=' is not available.", "Assign in a line of its own.");
            m_line.push_back({TokenKind::Operator, at, at + sign.size()});
            at += sign.size();
            return true;
        }
    if (!readBracket(at)) return false;
    m_line.push_back({TokenKind::Operator, at, at + 1});
    ++at;
    return true;
}

bool Reader::readBracket(std::size_t at) {
    const char c = m_out.text[at];
    if (c == '(' || c == '[' || c == '{') {
        m_brackets.push_back(at);
        if (m_brackets.size() > m_limits.maxBrackets)
            return refuse(at, 1, "Brackets are nested deeper than " + std::to_string(m_limits.maxBrackets) + ".", "Give parts of it names, in lines of their own.");
    } else if (c == ')' || c == ']' || c == '}') {
        if (m_brackets.empty()) return refuse(at, 1, std::string("'") + c + "' closes no bracket.", "Delete it.");
        const char open = m_out.text[m_brackets.back()];
        if ((open == '(' && c != ')') || (open == '[' && c != ']') || (open == '{' && c != '}'))
            return refuse(at, 1, std::string("'") + c + "' closes a '" + open + "'.", "Brackets close in the order in which they were opened.");
        m_brackets.pop_back();
    }
    return true;
}

bool Reader::readString(std::size_t& at, std::size_t quote) {
    const std::string& all = m_out.text;
    const std::size_t begin = at;
    const char mark = all[quote];
    const bool isTriple = all[quote + 1] == mark && quote + 2 < all.size() && all[quote + 2] == mark;
    at = quote + (isTriple ? 3 : 1);
    for (; at < all.size(); ++at) {
        if (all[at] == '\\' && at + 1 < all.size()) {
            ++at;
            continue;
        }
        if (!isTriple && all[at] == '\n') break;
        if (all[at] != mark) continue;
        if (isTriple && !(at + 2 < all.size() && all[at + 1] == mark && all[at + 2] == mark)) continue;
        at += isTriple ? 3 : 1;
        m_line.push_back({TokenKind::String, begin, at});
        return true;
    }
    return refuse(begin, isTriple ? 3 : 1, "This text is never closed.", isTriple ? "Close it with three quotes." : "Close it with a quote on the same line.");
}

bool Reader::readNumber(std::size_t& at) {
    std::string& all = m_out.text;
    const std::size_t begin = at;
    const bool isHex = all[at] == '0' && (all[at + 1] == 'x' || all[at + 1] == 'X');
    while (isNamePart(all[at]) || all[at] == '.' ||
           (!isHex && (all[at] == '+' || all[at] == '-') && (all[at - 1] == 'e' || all[at - 1] == 'E')))
        ++at;
    if (Text word = Text(all).substr(begin, at - begin); word.find('_') != Text::npos) { // 1_000_000
        std::string plain;
        for (const char c : word)
            if (c != '_') plain += c;
        blank(begin, at, plain);
        m_line.push_back({TokenKind::Number, begin, begin + plain.size()});
    } else {
        m_line.push_back({TokenKind::Number, begin, at});
    }
    ScriptValue value;
    if (!readScriptValue(text(m_line.back()), value)) return refuse(begin, at - begin, inQuotes(text(m_line.back())) + " is not a number.");
    return true;
}

bool Reader::checkIndent(std::size_t begin) {
    const std::string& all = m_out.text;
    std::size_t at = m_line.front().begin;
    while (at > begin && (all[at - 1] == ' ' || all[at - 1] == '\t')) --at;
    const std::size_t indent = m_line.front().begin - at;
    for (std::size_t i = at; i < m_line.front().begin; ++i) {
        if (m_indentWith == 0) m_indentWith = all[i];
        if (all[i] != m_indentWith)
            return refuse(i, 1, "Tabs and spaces are mixed before the first word of lines.", "Use four spaces a level everywhere.");
    }
    if (m_opensBlock) {
        if (indent <= m_indents.back()) return refuse(m_line.front(), "This line should be indented: it follows a line that ends in ':'.", "Indent it by four spaces.");
        m_indents.push_back(indent);
        m_isClassBody.push_back(m_opensClass);
        if (m_indents.size() > m_limits.maxIndents)
            return refuse(m_line.front(), "Blocks are nested deeper than " + std::to_string(m_limits.maxIndents) + ".", "Move a part into a method of its own.");
        m_opensBlock = false;
        return true;
    }
    if (indent > m_indents.back()) return refuse(m_line.front(), "This line is indented, but no block begins here.", "Line it up with the line before.");
    while (indent < m_indents.back()) {
        m_indents.pop_back();
        m_isClassBody.pop_back();
    }
    if (indent != m_indents.back()) return refuse(m_line.front(), "This line's indentation fits no block around it.", "Line it up with the block it belongs to.");
    return true;
}

bool Reader::checkLine() {
    const bool isDefinition = is(0, "def");
    if (is(0, "@")) return refuse(m_line.front(), "Decorators are not available.", "Delete the line.");
    if (isDefinition && m_indents.size() > 1 && !m_isClassBody.back())
        return refuse(m_line.front(), "A function inside a function is not available.", "Move it to the left margin, or make it a method.");
    if (is(0, "class") && m_indents.size() > 1) return refuse(m_line.front(), "A class inside another block is not available.", "Move it to the left margin.");
    if (is(0, "elif") && ++m_elifs > m_limits.maxElifs) return refuse(m_line.front(), "There are more than " + std::to_string(m_limits.maxElifs) + " elif branches.", "Use a list or a dict.");
    if (!is(0, "import") && !is(0, "from") && !(checkWords() && checkStars(isDefinition) && checkColon() && replaceCalls())) return false;
    if (m_indents.size() == 1 && !checkTopLevel()) return false;
    if (m_indents.size() > 1 && (is(0, "import") || is(0, "from"))) {
        if (!readImport()) return false;
        blank(m_line.front().begin, m_line.back().end, "pass");
    }
    if (std::all_of(m_line.begin(), m_line.end(), [](const Token& token) { return token.kind == TokenKind::String; })) { // a docstring
        m_out.docstrings.push_back({m_line.front().begin, std::string(Text(m_out.text).substr(m_line.front().begin, m_line.back().end - m_line.front().begin))});
        blank(m_line.front().begin, m_line.back().end, m_line.back().end - m_line.front().begin >= 4 ? "pass" : "0");
    }
    m_opensBlock = text(m_line.back()) == ":";
    m_opensClass = is(0, "class");
    return true;
}

bool Reader::checkWords() {
    std::size_t prefixes = 0;
    for (std::size_t i = 0; i < m_line.size(); ++i) {
        const Token& token = m_line[i];
        const Text word = text(token);
        prefixes = word == "not" || word == "-" || word == "+" || word == "~" ? prefixes + 1 : 0;
        if (prefixes > m_limits.maxPrefixes) return refuse(token, "Too many signs in a row.", "Write one.");
        if (token.kind != TokenKind::Name) continue;
        const bool isAttribute = i > 0 && text(m_line[i - 1]) == ".";
        if (word.starts_with("__") && word != "__init__") return refuse(token, inQuotes(word) + " is not available.", "Names that begin with two underscores are Python's own.");
        if (isAttribute) continue;
        for (const Refusal& refusal : kRefusedWords)
            if (word == refusal.word) return refuse(token, std::string(refusal.message), std::string(refusal.hint));
        if (word == "import") return refuse(token, "import is not available here.", "Delete it.");
    }
    return true;
}

/// "*inputs" and "**kwargs": the first may be a method's only parameter beside self.
bool Reader::checkStars(bool isDefinition) {
    for (std::size_t i = 1; i < m_line.size(); ++i) {
        const Text before = text(m_line[i - 1]);
        if (before != "(" && before != ",") continue;
        if (is(i, "**")) return refuse(m_line[i], "'**' parameters are not available.", "Name each parameter.");
        if (!is(i, "*") || (m_isOfCells && !isDefinition)) continue;
        if (!isDefinition || !isKind(1, TokenKind::Name) || !isKind(i + 1, TokenKind::Name) || !is(i + 2, ")"))
            return refuse(m_line[i], "'*' is not available here.", "Name each parameter; a metric's update may have *inputs alone.");
        m_out.starParameters[m_line[1].begin] = std::string(text(m_line[i + 1]));
        blank(m_line[i].begin, m_line[i].end);
    }
    return true;
}

/// The compiler takes no "if x: y = 1" in one line.
bool Reader::checkColon() {
    static const std::set<Text> kOpeners{"if", "elif", "else", "for", "while", "def"};
    if (!kOpeners.contains(text(m_line.front()))) return true;
    int depth = 0;
    for (std::size_t i = 0; i + 1 < m_line.size(); ++i) {
        const Text word = text(m_line[i]);
        depth += word == "(" || word == "[" || word == "{" ? 1 : word == ")" || word == "]" || word == "}" ? -1 : 0;
        if (depth == 0 && word == ":") return refuse(m_line[i + 1], "A statement begins in the line of its ':'.", "Begin a new line after the ':' and indent it.");
    }
    return true;
}

/// super().__init__() becomes "pass", and "x.asnumpy()" becomes x: numbers and tensors are what they are here.
bool Reader::replaceCalls() {
    if (is(0, "super")) {
        std::size_t i = 1;
        if (!is(i, "(")) return refuse(m_line.front(), "super is not available here.", "Write super().__init__().");
        while (i < m_line.size() && !is(i, ")")) ++i;
        if (!is(i + 1, ".") || !is(i + 2, "__init__") || !is(i + 3, "(") || !is(i + 4, ")") || i + 5 != m_line.size())
            return refuse(m_line.front(), "super is available for __init__() without arguments alone.", "Write super().__init__().");
        blank(m_line.front().begin, m_line.back().end, "pass");
        m_line.resize(1);
        return true;
    }
    for (std::size_t i = 0; i + 3 < m_line.size(); ++i)
        if (is(i, ".") && is(i + 1, "asnumpy") && is(i + 2, "(") && is(i + 3, ")")) blank(m_line[i].begin, m_line[i + 3].end);
    return true;
}

bool Reader::checkTopLevel() {
    if (!m_out.definitions.empty() && m_out.definitions.back().end == 0) m_out.definitions.back().end = m_line.front().begin;
    if (is(0, "import") || is(0, "from")) return readImport();
    if (is(0, "class")) return readClass();
    if (is(0, "def")) {
        if (!isKind(1, TokenKind::Name)) return refuse(m_line.front(), "A function's name should follow def.");
        m_out.definitions.push_back({false, std::string(text(m_line[1])), {}, m_line.front().begin, 0});
        return true;
    }
    if (m_line.front().kind == TokenKind::String) return true; // a docstring
    return readConstant();
}

bool Reader::readImport() {
    const bool isFrom = is(0, "from");
    for (std::size_t i = 1; i < m_line.size(); ++i) {
        if (isFrom && i > 1) break;
        const bool isModule = isKind(i, TokenKind::Name) && (i == 1 || is(i - 1, ","));
        if (!isModule) continue;
        if (!m_isOfCells && !kKnownModules.contains(text(m_line[i])))
            return refuse(m_line[i], "The module " + inQuotes(text(m_line[i])) + " is not available.",
                          "Lines that import from mindspore, torch, math, numpy, time or typing are read over; there is nothing else.");
    }
    if (m_line.size() < 2) return refuse(m_line.front(), "A module's name should follow.");
    return true;
}

bool Reader::readClass() {
    if (!isKind(1, TokenKind::Name)) return refuse(m_line.front(), "A class's name should follow class.");
    ScriptDefinition definition{true, std::string(text(m_line[1])), {}, m_line.front().begin, 0};
    std::size_t i = 2;
    if (is(i, "(")) {
        for (++i; i < m_line.size() && !is(i, ")"); ++i) {
            if (is(i, ",")) return refuse(m_line[i], "A class derives from one other here.", "Delete the rest.");
            if (isKind(i, TokenKind::Name)) definition.base = std::string(text(m_line[i]));
            else if (!is(i, ".")) return refuse(m_line[i], "The name of a class should stand here.");
        }
        ++i;
    }
    if (!is(i, ":") || i + 1 != m_line.size()) return refuse(m_line.back(), "A class begins with \"class Name(Callback):\", or Metric, or nn.Cell.", "Its methods follow, indented.");
    m_out.definitions.push_back(std::move(definition));
    return true;
}

/// NAME = literal, or NAME: type = literal.
bool Reader::readConstant() {
    static constexpr Text kMessage = "Only imports, constants (name = 0.1), functions and a class stand at the left margin.";
    if (!isKind(0, TokenKind::Name)) return refuse(m_line.front(), std::string(kMessage));
    std::size_t i = 1;
    if (is(i, ":")) i += 2;
    if (!is(i, "=") || i + 1 >= m_line.size()) return refuse(m_line.front(), std::string(kMessage), "Write what should happen into a method.");
    ScriptValue value;
    const std::size_t begin = m_line[i + 1].begin;
    if (!readScriptValue(Text(m_out.text).substr(begin, m_line.back().end - begin), value))
        return refuse(begin, m_line.back().end - begin, "A constant is a number, True, False or a text here.", "Compute in __init__ and keep the result in an attribute.");
    m_out.constants[std::string(text(m_line.front()))] = value;
    return true;
}

} // namespace

ScriptResult<ScriptSource> readScriptSource(std::string_view code, const ScriptLimits& limits) {
    auto read = Reader(code, limits, false).read();
    if (!read) return tl::unexpected(std::move(read).error());
    return static_cast<ScriptSource&&>(std::move(*read));
}

ScriptResult<CodeSource> readCodeSource(std::string_view code) {
    ScriptLimits limits;
    limits.maxBytes = 512 << 10;
    limits.maxLines = 20000;
    return Reader(code, limits, true).read();
}

Error ScriptProblem::asError(const std::string& name) const {
    std::string place = name;
    if (line > 0) place += ":" + std::to_string(line) + ":" + std::to_string(column);
    return {message, hint, place};
}

ScriptProblem problemAt(std::string_view text, std::size_t offset, std::size_t bytes, std::string message, std::string hint) {
    offset = std::min(offset, text.size());
    const std::size_t lineBegin = offset == 0 ? 0 : text.rfind('\n', offset - 1) + 1; // npos + 1 is 0
    ScriptProblem problem;
    problem.message = std::move(message);
    problem.hint = std::move(hint);
    problem.line = static_cast<int>(std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(offset), '\n')) + 1;
    problem.column = charactersOf(text.substr(lineBegin, offset - lineBegin)) + 1;
    const std::size_t lineEnd = std::min(text.find('\n', offset), text.size());
    problem.length = std::max(1, charactersOf(text.substr(offset, std::min(bytes, lineEnd - offset))));
    return problem;
}

bool readScriptValue(std::string_view text, ScriptValue& value) {
    if (text == "True" || text == "False") {
        value = text == "True";
        return true;
    }
    if (text.size() >= 2 && (text.front() == '"' || text.front() == '\'') && text.back() == text.front()) {
        std::string out;
        for (std::size_t i = 1; i + 1 < text.size(); ++i) {
            if (text[i] == text.front()) return false;
            if (text[i] == '\\') {
                if (++i + 1 >= text.size()) return false;
                static constexpr std::pair<char, char> kEscapes[] = {{'n', '\n'}, {'t', '\t'}, {'\\', '\\'}, {'"', '"'}, {'\'', '\''}};
                const auto found = std::find_if(std::begin(kEscapes), std::end(kEscapes), [&](const auto& escape) { return escape.first == text[i]; });
                if (found == std::end(kEscapes)) return false;
                out += found->second;
                continue;
            }
            out += text[i];
        }
        value = std::move(out);
        return true;
    }
    const bool isNegative = text.starts_with('-');
    std::string_view digits = text.substr(isNegative ? 1 : 0);
    while (digits.starts_with(' ')) digits.remove_prefix(1);
    if (digits.empty() || !(isDigit(digits.front()) || digits.front() == '.')) return false;
    std::int64_t whole = 0;
    double number = 0;
    const bool isHex = digits.starts_with("0x") || digits.starts_with("0X");
    if (isHex) {
        if (digits.substr(2).starts_with('-')) return false; // from_chars would take it
        const auto end = std::from_chars(digits.data() + 2, digits.data() + digits.size(), whole, 16);
        if (end.ec != std::errc() || end.ptr != digits.data() + digits.size()) return false;
        value = isNegative ? -whole : whole;
        return true;
    }
    if (celloom::readNumber(digits, whole)) {
        value = isNegative ? -whole : whole;
        return true;
    }
    std::string padded(digits); // "1." and ".5" are numbers in Python
    if (!celloom::readNumber(std::string_view(padded), number)) return false;
    value = isNegative ? -number : number;
    return true;
}

std::string scriptValueText(const ScriptValue& value) {
    if (const auto* yes = std::get_if<bool>(&value)) return *yes ? "True" : "False";
    if (const auto* whole = std::get_if<std::int64_t>(&value)) return std::to_string(*whole);
    if (const auto* number = std::get_if<double>(&value)) {
        const std::string text = numberText(*number);
        return text.find_first_of(".eEnN") == std::string::npos ? text + ".0" : text;
    }
    std::string out = "\"";
    for (const char c : std::get<std::string>(value)) {
        if (c == '\n') out += "\\n";
        else if (c == '"' || c == '\\') out += std::string("\\") + c;
        else out += c;
    }
    return out + "\"";
}

} // namespace celloom::engine
