#include "models/graph/declared_ports.h"

#include "models/base/text.h"

#include <algorithm>

namespace celloom::graph {
namespace {

/// Every name in a dimension that is no hyper-parameter stands for itself.
Symbols symbolsOf(const std::string& dim, const Scope& scope) {
    Symbols out;
    for (const std::string& name : namesIn(dim))
        if (!scope.contains(name)) out.emplace(name, Dim{1, name});
    return out;
}

/// Parts at `separators` outside of parentheses and brackets.
std::vector<std::string> parted(const std::string& text, const std::string& separators) {
    std::vector<std::string> out(1);
    int depth = 0;
    for (const char c : text) {
        depth += c == '(' || c == '[' ? 1 : c == ')' || c == ']' ? -1 : 0;
        if (depth <= 0 && separators.find(c) != std::string::npos) out.emplace_back();
        else out.back() += c;
    }
    return out;
}

Result<DeclaredPort> readPort(const std::string& text, const Scope& scope) {
    const auto wrong = [&](const std::string& why) {
        return fail("The port " + inQuotes(text, 60) + " " + why, "Write it as x: [B, T, 512], with int64 or bool behind it where it is not float.");
    };
    const auto colon = text.find(':'), open = text.find('['), close = text.rfind(']');
    if (colon == std::string::npos || open == std::string::npos || close == std::string::npos || colon > open || close < open)
        return wrong("is not a name, a colon and a shape in brackets.");
    DeclaredPort out{trimmed(text.substr(0, colon)), {}, trimmed(text.substr(close + 1))};
    if (out.dtype.empty()) out.dtype = "float";
    if (!isIdentifier(out.name)) return wrong("has no name of letters, digits and _.");
    if (!trimmed(text.substr(colon + 1, open - colon - 1)).empty()) return wrong("has something between the colon and the bracket.");
    if (out.dtype != "float" && out.dtype != "int64" && out.dtype != "bool") return wrong("has the dtype " + inQuotes(out.dtype, 20) + ".");
    const std::string inside = trimmed(text.substr(open + 1, close - open - 1));
    if (inside.empty()) return out;
    for (const std::string& dim : parted(inside, ",")) {
        auto value = evaluateDim(trimmed(dim), scope, symbolsOf(dim, scope));
        if (!value) return fail("The port " + inQuotes(out.name) + ": " + value.error().message, value.error().hint);
        out.shape.push_back(*value);
    }
    if (out.shape.size() > kMaxDeclaredDims) return wrong("has more than " + std::to_string(kMaxDeclaredDims) + " dimensions.");
    return out;
}

} // namespace

Result<std::vector<DeclaredPort>> readDeclaredPorts(const std::string& text, const Scope& scope) {
    std::vector<DeclaredPort> out;
    for (const std::string& piece : parted(text, ";\n")) {
        if (trimmed(piece).empty()) continue;
        CELLOOM_TRY(port, readPort(trimmed(piece), scope));
        if (std::any_of(out.begin(), out.end(), [&](const DeclaredPort& other) { return other.name == port.name; }))
            return fail("Two ports have the name " + inQuotes(port.name) + ".", "Rename one.");
        if (out.size() == kMaxDeclaredPorts) return fail("More than " + std::to_string(kMaxDeclaredPorts) + " ports are declared.");
        out.push_back(std::move(port));
    }
    return out;
}

std::string toText(const std::vector<DeclaredPort>& ports) {
    std::string out;
    for (const DeclaredPort& port : ports) {
        out += (out.empty() ? "" : "; ") + port.name + ": " + toString(port.shape);
        if (port.dtype != "float") out += " " + port.dtype;
    }
    return out;
}

} // namespace celloom::graph
