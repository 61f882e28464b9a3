// The graph's JSON form: docs/file-formats.md. Written in one order, read strictly: an unknown key is an error at its place.
#include "models/graph/json.h"

#include "models/base/files.h"
#include "models/base/text.h"
#include "models/graph/json_text.h"

#include <algorithm>
#include <cmath>
#include <functional>

namespace celloom::graph {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr const char* kFormat = "celloom-cells";
constexpr std::size_t kMaxItems = 20000; // cells, wires, ports of one graph; composites of a document
constexpr std::size_t kMaxTextBytes = 65536;
constexpr std::size_t kMostKeysNamed = 4, kMostKeyBytes = 40; // of an object that is no document

// ---- migrations: kMigrations[n] turns a document of schema n + 1 into one of schema n + 2 ----

using Migration = std::function<Status(json&)>;
const std::vector<Migration>& migrations() {
    static const std::vector<Migration> steps{}; // schema 1 is the first
    return steps;
}

// ---- writing ----

ordered_json paramToJson(const ParamValue& value) {
    return std::visit([](const auto& held) { return ordered_json(held); }, value);
}

std::string toText(const Endpoint& end) {
    return end.cell.empty() ? end.port : end.cell + "." + end.port;
}

ordered_json portToJson(const Port& port) {
    ordered_json out{{"name", port.name}};
    if (!port.shape.empty()) out["shape"] = port.shape;
    if (port.dtype != "float") out["dtype"] = port.dtype;
    return out;
}

ordered_json cellToJson(const Cell& cell) {
    ordered_json out{{"name", cell.name}, {"type", cell.type}};
    for (const auto& [name, value] : cell.params) out["params"][name] = paramToJson(value);
    if (!cell.repeat.empty()) out["repeat"] = cell.repeat;
    if (!cell.note.empty()) out["note"] = cell.note;
    if (cell.position) out["position"] = {{"x", cell.position->x}, {"y", cell.position->y}};
    return out;
}

ordered_json graphToJson(const Graph& graph) {
    ordered_json out = ordered_json::object();
    if (!graph.name.empty()) out["name"] = graph.name;
    if (!graph.note.empty()) out["note"] = graph.note;
    if (graph.origin)
        out["origin"] = {{"library", graph.origin->library}, {"name", graph.origin->name}, {"version", graph.origin->version}};
    for (const HyperParameter& parameter : graph.hyper) {
        ordered_json entry{{"name", parameter.name}, {"value", paramToJson(parameter.value)}};
        if (!parameter.help.empty()) entry["help"] = parameter.help;
        out["hyper"].push_back(std::move(entry));
    }
    for (const Port& port : graph.inputs) out["inputs"].push_back(portToJson(port));
    for (const Port& port : graph.outputs) out["outputs"].push_back(portToJson(port));
    for (const Cell& cell : graph.cells) out["cells"].push_back(cellToJson(cell));
    for (const Wire& wire : graph.wires) out["wires"].push_back(toText(wire.from) + " -> " + toText(wire.to));
    return out;
}

// ---- reading ----

class Reader {
public:
    explicit Reader(std::string file) : m_file(std::move(file)) {}

    Result<Document> document(const json& value) {
        Document out;
        CELLOOM_TRY_STATUS(object(value, "", {"format", "schema", "family", "main", "composites"}));
        CELLOOM_TRY_STATUS(text(value, "", "family", out.family, false));
        if (!value.contains("main")) return wrong("main", "is missing.");
        CELLOOM_TRY_STATUS(graph(value["main"], "main", out.main));
        if (!value.contains("composites")) return out;
        const json& composites = value["composites"];
        if (!composites.is_object()) return wrong("composites", "must be an object, found " + describe(composites) + ".");
        if (composites.size() > kMaxItems) return wrong("composites", "holds more than " + std::to_string(kMaxItems) + " graphs.");
        for (const auto& [name, inner] : composites.items()) CELLOOM_TRY_STATUS(graph(inner, "composites." + name, out.composites[name]));
        return out;
    }

    tl::unexpected<Error> wrong(const std::string& at, const std::string& message, const std::string& hint = {}) const {
        return fail(message, hint, m_file.empty() ? at : at.empty() ? m_file : m_file + ": " + at);
    }

    /// What it is instead, as far as its keys tell.
    tl::unexpected<Error> noDocument(const json& value) const {
        const std::string hint = "One begins with \"format\": \"" + std::string(kFormat) + "\".";
        if (!value.is_object()) return wrong("", "is no Cell graph document but " + describe(value) + ".", hint);
        if (value.contains("format")) return wrong("", "is no Cell graph document: its format is " + describe(value["format"]) + ".", hint);
        if (value.contains("model_type") || value.contains("architectures"))
            return wrong("", "is no Cell graph document but reads like a config.json.", "Give it that name, and open it or its folder.");
        if (value.contains("weight_map")) return wrong("", "is no Cell graph document but reads like an index of weights.", "Open the folder that it lies in.");
        if (value.contains("model") && (value.contains("train") || value.contains("data"))) return wrong("", "is no Cell graph document but reads like a recipe.", "Open it on the Train page.");
        std::vector<std::string> keys;
        for (const auto& [key, inner] : value.items())
            keys.push_back(inQuotes(key, kMostKeyBytes));
        if (keys.empty()) return wrong("", "is no Cell graph document but an empty object.", hint);
        return wrong("", "is no Cell graph document but an object with " + joined(keys, kMostKeysNamed) + ".", hint);
    }

private:
    Status object(const json& value, const std::string& at, const std::vector<std::string>& known) {
        if (!value.is_object()) return wrong(at, "must be an object, found " + describe(value) + ".");
        for (const auto& [key, inner] : value.items()) {
            if (std::find(known.begin(), known.end(), key) != known.end()) continue;
            const auto close = nearest(key, known, 1);
            return wrong(at, "has the unknown key " + inQuotes(key) + ".",
                         close.empty() ? "Keys here are " + joined(known) + "." : "Did you mean " + close.front() + "?");
        }
        return {};
    }

    Status text(const json& value, const std::string& at, const char* key, std::string& out, bool isNeeded) {
        const std::string place = at.empty() ? key : at + "." + key;
        const auto found = value.find(key);
        if (found == value.end()) return isNeeded ? Status(wrong(at, "lacks " + inQuotes(key) + ".")) : Status();
        if (!found->is_string()) return wrong(place, "must be text, found " + describe(*found) + ".");
        out = found->get<std::string>();
        if (out.size() > kMaxTextBytes) return wrong(place, "is longer than " + std::to_string(kMaxTextBytes) + " bytes.");
        return {};
    }

    template <class Item, class Read>
    Status list(const json& value, const std::string& at, const char* key, std::vector<Item>& out, Read read) {
        const auto found = value.find(key);
        if (found == value.end()) return {};
        const std::string place = at + "." + key;
        if (!found->is_array()) return wrong(place, "must be a list, found " + describe(*found) + ".");
        if (found->size() > kMaxItems) return wrong(place, "has more than " + std::to_string(kMaxItems) + " entries.");
        for (std::size_t i = 0; i < found->size(); ++i) {
            out.emplace_back();
            CELLOOM_TRY_STATUS(read((*found)[i], place + "[" + std::to_string(i) + "]", out.back()));
        }
        return {};
    }

    Status param(const json& value, const std::string& at, ParamValue& out) {
        if (value.is_boolean())
            out = value.get<bool>();
        else if (value.is_number_unsigned() && value.get<std::uint64_t>() > static_cast<std::uint64_t>(INT64_MAX))
            return wrong(at, "is larger than 64 bits hold.");
        else if (value.is_number_integer())
            out = value.get<std::int64_t>();
        else if (value.is_number())
            out = value.get<double>();
        else if (value.is_string()) {
            if (value.get_ref<const std::string&>().size() > kMaxTextBytes) return wrong(at, "is longer than " + std::to_string(kMaxTextBytes) + " bytes.");
            out = value.get<std::string>();
        } else
            return wrong(at, "must be a number, text, true or false, found " + describe(value) + ".");
        return {};
    }

    Status graph(const json& value, const std::string& at, Graph& out) {
        CELLOOM_TRY_STATUS(object(value, at, {"name", "note", "origin", "hyper", "inputs", "outputs", "cells", "wires"}));
        CELLOOM_TRY_STATUS(text(value, at, "name", out.name, false));
        CELLOOM_TRY_STATUS(text(value, at, "note", out.note, false));
        if (const auto given = value.find("origin"); given != value.end())
            CELLOOM_TRY_STATUS(origin(*given, at + ".origin", out.origin.emplace()));
        CELLOOM_TRY_STATUS(
            list(value, at, "hyper", out.hyper, [&](const json& v, const std::string& p, HyperParameter& h) { return hyper(v, p, h); }));
        const auto readPort = [&](const json& v, const std::string& p, Port& o) { return port(v, p, o); };
        CELLOOM_TRY_STATUS(list(value, at, "inputs", out.inputs, readPort));
        CELLOOM_TRY_STATUS(list(value, at, "outputs", out.outputs, readPort));
        CELLOOM_TRY_STATUS(
            list(value, at, "cells", out.cells, [&](const json& v, const std::string& p, Cell& c) { return cell(v, p, c); }));
        return list(value, at, "wires", out.wires, [&](const json& v, const std::string& p, Wire& w) { return wire(v, p, w); });
    }

    Status origin(const json& value, const std::string& at, Origin& out) {
        CELLOOM_TRY_STATUS(object(value, at, {"library", "name", "version"}));
        CELLOOM_TRY_STATUS(text(value, at, "library", out.library, true));
        CELLOOM_TRY_STATUS(text(value, at, "name", out.name, true));
        const auto version = value.find("version");
        if (version == value.end() || !version->is_number_integer() || version->get<double>() < 1 || version->get<double>() > 1e9)
            return wrong(at, "needs \"version\", a whole number of 1 or more.");
        out.version = version->get<std::int64_t>();
        return {};
    }

    Status hyper(const json& value, const std::string& at, HyperParameter& out) {
        CELLOOM_TRY_STATUS(object(value, at, {"name", "value", "help"}));
        CELLOOM_TRY_STATUS(text(value, at, "name", out.name, true));
        CELLOOM_TRY_STATUS(text(value, at, "help", out.help, false));
        if (!value.contains("value")) return wrong(at, "lacks \"value\".");
        return param(value["value"], at + ".value", out.value);
    }

    Status port(const json& value, const std::string& at, Port& out) {
        CELLOOM_TRY_STATUS(object(value, at, {"name", "shape", "dtype"}));
        CELLOOM_TRY_STATUS(text(value, at, "name", out.name, true));
        CELLOOM_TRY_STATUS(text(value, at, "dtype", out.dtype, false));
        return list(value, at, "shape", out.shape, [&](const json& v, const std::string& p, std::string& dim) -> Status {
            if (v.is_number_integer())
                dim = v.dump();
            else if (v.is_string())
                dim = v.get<std::string>();
            else
                return wrong(p, "must be a number or an expression, found " + describe(v) + ".");
            return {};
        });
    }

    Status cell(const json& value, const std::string& at, Cell& out) {
        CELLOOM_TRY_STATUS(object(value, at, {"name", "type", "params", "repeat", "note", "position"}));
        CELLOOM_TRY_STATUS(text(value, at, "name", out.name, true));
        CELLOOM_TRY_STATUS(text(value, at, "type", out.type, true));
        CELLOOM_TRY_STATUS(text(value, at, "note", out.note, false));
        if (const auto repeat = value.find("repeat"); repeat != value.end() && repeat->is_number_integer())
            out.repeat = repeat->dump();
        else
            CELLOOM_TRY_STATUS(text(value, at, "repeat", out.repeat, false));
        if (const auto params = value.find("params"); params != value.end()) {
            if (!params->is_object()) return wrong(at + ".params", "must be an object, found " + describe(*params) + ".");
            for (const auto& [name, given] : params->items()) CELLOOM_TRY_STATUS(param(given, at + ".params." + name, out.params[name]));
        }
        return value.contains("position") ? position(value["position"], at + ".position", out.position.emplace()) : Status();
    }

    Status position(const json& value, const std::string& at, Position& out) {
        CELLOOM_TRY_STATUS(object(value, at, {"x", "y"}));
        for (const auto& [key, target] : {std::pair("x", &out.x), std::pair("y", &out.y)}) {
            if (!value.contains(key) || !value[key].is_number()) return wrong(at, "needs the number " + inQuotes(key) + ".");
            *target = value[key].get<double>();
        }
        return {};
    }

    Status wire(const json& value, const std::string& at, Wire& out) {
        if (!value.is_string()) return wrong(at, "must be text such as \"norm.out -> lm_head.x\", found " + describe(value) + ".");
        const auto& given = value.get_ref<const std::string&>();
        const auto arrow = given.find(" -> ");
        if (arrow == std::string::npos || !endpoint(given.substr(0, arrow), out.from) || !endpoint(given.substr(arrow + 4), out.to))
            return wrong(at, "is " + inQuotes(given) + ", expected \"cell.port -> cell.port\"; a graph's own port stands without a cell.");
        return {};
    }

    static bool endpoint(const std::string& given, Endpoint& out) {
        const auto dot = given.find('.');
        if (dot == std::string::npos)
            out.port = given;
        else
            out = {given.substr(0, dot), given.substr(dot + 1)};
        const bool isPlain = out.port.find_first_of(". ") == std::string::npos && out.cell.find(' ') == std::string::npos;
        return isPlain && !out.port.empty() && dot != 0;
    }

    std::string m_file;
};

} // namespace

std::string toJson(const Document& document) {
    ordered_json out;
    out["format"] = kFormat;
    out["schema"] = kSchemaVersion;
    if (!document.family.empty()) out["family"] = document.family;
    out["main"] = graphToJson(document.main);
    for (const auto& [name, graph] : document.composites) out["composites"][name] = graphToJson(graph);
    return out.dump(1) + "\n";
}

bool isMeantAsDocument(const std::string& text) {
    return text.find(kFormat) != std::string::npos;
}

Result<Document> fromJson(const std::string& text, const std::string& place) {
    CELLOOM_TRY(value, parseJson(text, place));
    Reader reader(place);
    if (!value.is_object() || !value.contains("format") || value["format"] != kFormat) return reader.noDocument(value);
    const auto schema = value.find("schema");
    if (schema == value.end() || !schema->is_number_integer() || schema->get<double>() < 1)
        return reader.wrong("schema", "must be a whole number of 1 or more.");
    if (schema->get<double>() > kSchemaVersion)
        return reader.wrong("schema", "is " + schema->dump() + "; this Celloom reads up to " + std::to_string(kSchemaVersion) + ".",
                            "It was written by a newer Celloom: update.");
    for (auto step = schema->get<std::size_t>() - 1; step < migrations().size(); ++step) CELLOOM_TRY_STATUS(migrations()[step](value));
    return reader.document(value);
}

Result<Document> loadDocument(const std::filesystem::path& path) {
    CELLOOM_TRY(text, readFile(path, JsonLimits{}.maxBytes));
    return fromJson(text, path.string());
}

} // namespace celloom::graph
