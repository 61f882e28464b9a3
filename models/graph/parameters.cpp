#include "models/graph/parameters.h"

#include "models/base/text.h"
#include "models/graph/declared_ports.h"

#include <algorithm>

namespace celloom::graph {

Result<ResolvedValue> resolveParam(const catalog::ParamDef& def, const ParamValue& given, const Scope& scope) {
    using catalog::ParamKind;
    const auto* text = std::get_if<std::string>(&given);
    const auto wrong = [&](const std::string& expected) {
        const std::string found =
            text ? inQuotes(*text, 40) : toString(std::visit([](const auto& held) { return ResolvedValue(held); }, given));
        return fail(def.name + " is " + found + ", expected " + expected + ".");
    };
    const auto inRange = [&](double number) { return number >= def.minimum && number <= def.maximum; };
    const std::string range = numberText(def.minimum) + " to " + numberText(def.maximum);
    switch (def.kind) {
    case ParamKind::Integer: {
        std::int64_t number = 0;
        if (text) {
            CELLOOM_TRY(value, evaluateInteger(*text, scope));
            number = value;
        } else if (const auto* whole = std::get_if<std::int64_t>(&given)) {
            number = *whole;
        } else {
            return wrong("a whole number");
        }
        if (!inRange(static_cast<double>(number))) return fail(def.name + " is " + std::to_string(number) + ", must be " + range + ".");
        return number;
    }
    case ParamKind::Real: {
        double number = 0;
        if (text) {
            CELLOOM_TRY(value, evaluate(*text, scope));
            if (std::holds_alternative<bool>(value)) return wrong("a number");
            number = std::holds_alternative<double>(value) ? std::get<double>(value) : static_cast<double>(std::get<std::int64_t>(value));
        } else if (std::holds_alternative<bool>(given)) {
            return wrong("a number");
        } else {
            number = std::holds_alternative<double>(given) ? std::get<double>(given) : static_cast<double>(std::get<std::int64_t>(given));
        }
        if (!inRange(number)) return fail(def.name + " is " + numberText(number) + ", must be " + range + "."); // NaN too
        return number;
    }
    case ParamKind::Flag: {
        if (std::holds_alternative<bool>(given)) return std::get<bool>(given);
        const auto named = text ? scope.find(*text) : scope.end();
        if (named != scope.end() && std::holds_alternative<bool>(named->second)) return named->second;
        return wrong("true or false, or the name of such a hyper-parameter");
    }
    case ParamKind::Text:
    case ParamKind::Code:
        return text ? Result<ResolvedValue>(*text) : wrong("a text");
    case ParamKind::Choice:
        if (text && std::find(def.choices.begin(), def.choices.end(), *text) != def.choices.end()) return *text;
        return wrong("one of " + joined(def.choices));
    case ParamKind::Ports: {
        if (!text) return wrong("ports such as x: [B, T, 512]");
        CELLOOM_TRY(ports, readDeclaredPorts(*text, scope));
        return toText(ports);
    }
    case ParamKind::IntegerList:
        break;
    }
    if (!text) return wrong("a list of whole numbers as text");
    std::string out;
    int depth = 0;
    for (std::size_t from = 0, at = 0; at <= text->size(); ++at) { // commas outside of parentheses part the items
        const char c = at < text->size() ? (*text)[at] : ',';
        depth += c == '(' ? 1 : c == ')' ? -1 : 0;
        if (c != ',' || (depth > 0 && at < text->size())) continue;
        CELLOOM_TRY(number, evaluateInteger(text->substr(from, at - from), scope));
        if (!inRange(static_cast<double>(number))) return fail(def.name + " holds " + std::to_string(number) + ", must be " + range + ".");
        out += (from ? "," : "") + std::to_string(number);
        from = at + 1;
    }
    return out;
}

std::optional<CellInstance> readCell(const Cell& cell, const Scope& scope) {
    const catalog::CellType* type = catalog::find(cell.type);
    if (!type) return std::nullopt;
    CellInstance out;
    out.path = cell.name;
    out.type = cell.type;
    for (const catalog::ParamDef& def : type->params) {
        const auto given = cell.params.find(def.name);
        if (given == cell.params.end() && !def.standard) return std::nullopt;
        auto value = resolveParam(def, given == cell.params.end() ? *def.standard : given->second, scope);
        if (!value) return std::nullopt;
        out.params[def.name] = std::move(*value);
    }
    if (type->check && !type->check(out)) return std::nullopt;
    return out;
}

} // namespace celloom::graph
