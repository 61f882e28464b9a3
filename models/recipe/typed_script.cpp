#include "models/recipe/typed_script.h"

#include "models/base/files.h"
#include "models/base/text.h"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace celloom::recipe {
namespace fs = std::filesystem;
using nlohmann::json;
using nlohmann::ordered_json;
namespace {

constexpr std::size_t kMaxCodeBytes = 64 << 10;
constexpr std::size_t kMaxNameBytes = 64;
constexpr std::size_t kMaxScripts = 64;

Result<graph::ParamValue> valueFrom(const json& value, const std::string& name) {
    if (value.is_boolean()) return value.get<bool>();
    if (value.is_number_integer()) return value.get<std::int64_t>();
    if (value.is_number_float()) return value.get<double>();
    if (value.is_string()) return value.get<std::string>();
    return fail("gives " + inQuotes(name) + " a value that is no number, text, true or false.", {}, "values");
}

Status checkName(const std::string& name) {
    if (name.size() > kMaxNameBytes) return fail("has a name of more than " + std::to_string(kMaxNameBytes) + " bytes.", {}, "name");
    if (std::any_of(name.begin(), name.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f || c == '/'; }))
        return fail("has a name with a line break, a slash or another control character.", {}, "name");
    return {};
}

Result<std::string> textOf(const json& object, const char* key) {
    const auto found = object.find(key);
    if (found == object.end()) return std::string();
    if (!found->is_string()) return fail("should be a text.", {}, key);
    return found->get<std::string>();
}

Result<TypedScript> fromObject(const json& object) {
    static const std::vector<std::string> kKeys{"name", "code", "path", "values"};
    for (const auto& [key, value] : object.items())
        if (std::find(kKeys.begin(), kKeys.end(), key) == kKeys.end()) {
            const auto close = nearest(key, kKeys, 1);
            return fail("has " + inQuotes(key) + ", which a script has not.", close.empty() ? "It has name, code or path, and values." : "Did you mean " + close.front() + "?");
        }
    TypedScript script;
    CELLOOM_TRY(name, textOf(object, "name"));
    CELLOOM_TRY(code, textOf(object, "code"));
    CELLOOM_TRY(path, textOf(object, "path"));
    script.name = std::move(name);
    script.code = std::move(code);
    script.path = std::move(path);
    if (const auto values = object.find("values"); values != object.end()) {
        if (!values->is_object()) return fail("should be an object of names and values.", "For example {\"initial_lr\": 0.001}.", "values");
        for (const auto& [key, value] : values->items()) {
            CELLOOM_TRY(held, valueFrom(value, key));
            script.values[key] = std::move(held);
        }
    }
    return script;
}

} // namespace

std::string TypedScript::shownName() const {
    if (!name.empty()) return name;
    const std::string stem = fs::path(path).stem().string();
    return stem.empty() ? "script" : stem;
}

Result<TypedScript> typedScriptFromText(const std::string& item) {
    TypedScript script;
    if (item.starts_with('{')) {
        const json object = json::parse(item, nullptr, false);
        if (!object.is_object()) return fail("is no JSON object.", "Write {\"name\": …, \"code\": …}, or the path of a .py file.");
        CELLOOM_TRY(read, fromObject(object));
        script = std::move(read);
    } else {
        script.path = item;
    }
    if (script.code.empty() == script.path.empty())
        return fail(script.code.empty() ? "has neither code nor a path." : "has code and a path.", "Give one of the two.");
    if (script.code.size() > kMaxCodeBytes) return fail("has code of more than " + std::to_string(kMaxCodeBytes >> 10) + " KiB.", "Callbacks and metrics are short.", "code");
    CELLOOM_TRY_STATUS(checkName(script.name));
    return script;
}

std::string toText(const TypedScript& script) {
    ordered_json out = ordered_json::object();
    if (!script.name.empty()) out["name"] = script.name;
    if (!script.path.empty()) out["path"] = script.path;
    if (!script.code.empty()) out["code"] = script.code;
    for (const auto& [name, value] : script.values)
        std::visit([&, &key = name](const auto& held) { out["values"][key] = held; }, value);
    return out.dump();
}

Result<std::vector<TypedScript>> typedScripts(const std::vector<std::string>& items) {
    if (items.size() > kMaxScripts) return fail("has " + std::to_string(items.size()) + " scripts, at most " + std::to_string(kMaxScripts) + ".");
    std::vector<TypedScript> out;
    for (std::size_t i = 0; i < items.size(); ++i) {
        const std::string place = "[" + std::to_string(i) + "]";
        auto script = typedScriptFromText(items[i]);
        if (!script) {
            Error error = script.error();
            error.place = place + (error.place.empty() ? "" : "." + error.place);
            return tl::unexpected(std::move(error));
        }
        for (const TypedScript& other : out)
            if (other.shownName() == script->shownName()) return fail("has the name " + inQuotes(script->shownName()) + " again.", "Give each script a name of its own.", place);
        out.push_back(std::move(*script));
    }
    return out;
}

Result<std::vector<std::string>> withScriptsRead(const std::vector<std::string>& items, const fs::path& folder) {
    CELLOOM_TRY(scripts, typedScripts(items));
    std::vector<std::string> out;
    for (TypedScript& script : scripts) {
        if (!script.path.empty()) {
            const fs::path path = fs::path(script.path).is_absolute() || folder.empty() ? fs::path(script.path) : folder / script.path;
            CELLOOM_TRY(code, readFile(path, kMaxCodeBytes));
            if (!isUtf8(code) || code.find('\0') != std::string::npos) return fail("is not valid UTF-8 text.", {}, path.string());
            script.name = script.shownName();
            script.code = std::move(code);
            script.path.clear();
            if (script.code.empty()) return fail("is empty.", {}, path.string());
        }
        out.push_back(toText(script));
    }
    return out;
}

} // namespace celloom::recipe
