#include "models/code/script_class.h"

#include "models/base/text.h"

namespace celloom::code {
namespace {

bool isPart(char c) {
    return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/// Every word `from` that is no attribute and no part of a longer one becomes `to`.
std::string withWord(std::string line, const std::string& from, const std::string& to) {
    for (std::size_t at = line.find(from); at != std::string::npos; at = line.find(from, at)) {
        const bool isWhole =
            (at == 0 || (!isPart(line[at - 1]) && line[at - 1] != '.')) &&
            !(at + from.size() < line.size() && from.back() != '.' && from.back() != '(' && isPart(line[at + from.size()]));
        if (isWhole) line.replace(at, from.size(), to);
        at += isWhole ? to.size() : from.size();
    }
    return line;
}

std::string inDialect(Dialect dialect, std::string line) {
    if (dialect == Dialect::MindSpore) {
        for (const char* module : {"torch.nn.functional.", "F.", "torch.", "mint."}) line = withWord(line, module, "ops.");
        return withWord(line, "def forward(", "def construct(");
    }
    for (const char* module : {"ops.", "mint."}) line = withWord(line, module, "torch.");
    line = withWord(line, "F.", "nn.functional.");
    return withWord(withWord(line, "def construct(", "def forward("), "self.construct(", "self.forward(");
}

std::vector<std::string> linesOf(const std::string& text) {
    std::vector<std::string> out;
    for (std::size_t from = 0; from < text.size();) {
        const auto end = std::min(text.find('\n', from), text.size());
        std::string line = text.substr(from, end - from);
        while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.pop_back();
        out.push_back(std::move(line));
        from = end + 1;
    }
    return out;
}

std::string weightLine(Dialect dialect, const ScriptWeight& weight) {
    const std::string kind = weight.isOnes ? "ones" : weight.isZeros ? "zeros" : "";
    const std::string shape = "(" + weight.shape + ",)";
    if (dialect == Dialect::PyTorch)
        return "self." + weight.name + " = nn.Parameter(" +
               (kind.empty() ? "torch.randn(" + shape + ") * 0.02" : "torch." + kind + "(" + shape + ")") + ")";
    return "self." + weight.name + " = Parameter(Tensor(" +
           (kind.empty() ? "np.random.normal(0, 0.02, " + shape + ")" : "np." + kind + "(" + shape + ")") + ", ms.float32))";
}

} // namespace

std::vector<std::string> scriptClass(Dialect dialect, const std::string& className, const std::string& code,
                                     const std::vector<ScriptWeight>& weights, const std::string& parameters) {
    std::vector<std::string> before, body;
    bool hasClass = false, hasInit = false;
    const std::vector<std::string> lines = linesOf(code);
    for (const std::string& line : lines) hasClass = hasClass || line.starts_with("class ");
    bool isInside = false;
    const auto addWeights = [&](const std::string& indent) {
        for (const ScriptWeight& weight : weights) body.push_back(indent + weightLine(dialect, weight));
    };
    for (const std::string& line : lines) {
        const bool isAtMargin = !line.empty() && line[0] != ' ' && line[0] != '\t' && line[0] != '#';
        if (isAtMargin) isInside = line.starts_with("class ") || (!hasClass && line.starts_with("def "));
        if (line.starts_with("import ") || line.starts_with("from ") || line.starts_with("class ")) continue;
        const std::string plain = inDialect(dialect, line);
        if (!isInside) {
            if (!trimmed(line).empty()) before.push_back(plain);
            continue;
        }
        const std::string indent = hasClass ? "" : "    ";
        const std::string word = trimmed(line);
        if (word.starts_with("def __init__(")) hasInit = true;
        if (word.starts_with("super(")) { // the weights follow it
            body.push_back(line.substr(0, line.find("super(")) + "super().__init__()");
            addWeights(line.substr(0, line.find("super(")));
            continue;
        }
        body.push_back(line.empty() ? line : indent + plain);
    }
    std::vector<std::string> out = std::move(before);
    if (!out.empty()) out.insert(out.end(), 2, "");
    out.push_back("class " + className + "(nn." + (dialect == Dialect::MindSpore ? "Cell" : "Module") + "):");
    if (!hasInit) {
        out.push_back("    def __init__(self" + (parameters.empty() ? "" : ", " + parameters) + "):");
        out.push_back("        super().__init__()");
        for (const ScriptWeight& weight : weights) out.push_back("        " + weightLine(dialect, weight));
        out.emplace_back();
    }
    while (!body.empty() && trimmed(body.back()).empty()) body.pop_back();
    for (std::string& line : body)
        if (hasInit && trimmed(line).starts_with("def __init__(self") && !parameters.empty())
            line.insert(line.find("(self") + 5, ", " + parameters);
    out.insert(out.end(), body.begin(), body.end());
    return out;
}

} // namespace celloom::code
