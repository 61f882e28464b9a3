#include "models/graph/json_text.h"

#include "models/base/text.h"

#include <set>
#include <vector>

namespace celloom::graph {
namespace {

/// Leaves the parser early; caught in parseJson.
struct Refusal {
    std::string message;
};

std::string lineAndColumn(const std::string& text, std::size_t byte) {
    std::size_t line = 1, column = 1;
    for (std::size_t i = 0; i + 1 < byte && i < text.size(); ++i) {
        if (text[i] == '\n') {
            ++line;
            column = 1;
        } else if ((static_cast<unsigned char>(text[i]) & 0xC0) != 0x80) {
            ++column;
        }
    }
    return "line " + std::to_string(line) + ", column " + std::to_string(column);
}

/// nlohmann's "[json.exception.parse_error.101] parse error at line 1, column 2: syntax error while parsing value - unexpected '}';
/// expected …": the part between the dash and the semicolon.
std::string plainReason(const std::string& what) {
    const auto dash = what.find(" - ");
    if (dash == std::string::npos) return "it cannot be read";
    const std::string reason = what.substr(dash + 3, what.find(';', dash) - dash - 3);
    return reason == "unexpected end of input" ? "it ends too early" : reason;
}

} // namespace

Result<nlohmann::json> parseJson(const std::string& text, const std::string& place, const JsonLimits& limits) {
    if (text.size() > limits.maxBytes)
        return fail("is " + std::to_string(text.size()) + " bytes of JSON; at most " + std::to_string(limits.maxBytes) + " are read.", {},
                    place);
    if (text.find_first_not_of(" \t\r\n") == std::string::npos) return fail("is empty, expected JSON.", {}, place);
    if (!isUtf8(text)) return fail("is no UTF-8 text, expected JSON.", "Is it the right file?", place);
    std::vector<std::set<std::string>> keys; // of the objects that are open
    using Event = nlohmann::json::parse_event_t;
    const auto watch = [&](int depth, Event event, nlohmann::json& parsed) {
        if (depth > limits.maxDepth) throw Refusal{"nests deeper than " + std::to_string(limits.maxDepth) + " levels."};
        if (event == Event::object_start)
            keys.emplace_back();
        else if (event == Event::object_end)
            keys.pop_back();
        else if (event == Event::key && !keys.back().insert(parsed.get<std::string>()).second)
            throw Refusal{"the key " + inQuotes(parsed.get<std::string>()) + " is given twice in one object."};
        return true;
    };
    try {
        return nlohmann::json::parse(text, watch);
    } catch (const Refusal& refusal) {
        return fail(refusal.message, {}, place);
    } catch (const nlohmann::json::parse_error& error) {
        return fail("is not valid JSON (" + lineAndColumn(text, error.byte) + "): " + plainReason(error.what()) + ".",
                    "Check for a missing comma, quote or bracket there.", place);
    } catch (const nlohmann::json::exception&) {
        return fail("is not valid JSON: it holds a number that is too large.", {}, place);
    }
}

std::string describe(const nlohmann::json& value) {
    if (value.is_boolean()) return value.get<bool>() ? "true" : "false";
    if (value.is_string()) return "the text " + inQuotes(value.get_ref<const std::string&>(), 40);
    if (value.is_number()) return "the number " + value.dump();
    if (value.is_array()) return "a list";
    if (value.is_object()) return "an object";
    return "null";
}

} // namespace celloom::graph
