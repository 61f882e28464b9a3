#include "models/families/families.h"

#include "models/base/files.h"
#include "models/base/text.h"
#include "models/families/config_file.h"
#include "models/families/family.h"
#include "models/graph/json.h"
#include "models/graph/json_text.h"
#include "models/library/standard.h"

#include <algorithm>

namespace celloom::families {
namespace fs = std::filesystem;
namespace {

const Family* findFamily(const std::string& name) {
    const auto found = std::find_if(all().begin(), all().end(), [&](const Family& family) { return family.name == name; });
    return found == all().end() ? nullptr : &*found;
}

std::vector<std::string> builtInNames() {
    std::vector<std::string> names;
    for (const Preset& preset : presets()) names.push_back(preset.name);
    for (const library::Template& made : library::templates()) names.push_back(made.name);
    return names;
}

/// The graph, with a note on what was not read: those keys are lost when the model is written again.
Result<OpenedConfig> readWith(const Family& family, const nlohmann::json& config, const std::string& place) {
    const ConfigReader reader(config, place, family.decoder().title);
    CELLOOM_TRY_STATUS(reader.onlyKnownComputation());
    CELLOOM_TRY(c, family.fromConfig(config, reader));
    OpenedConfig out{buildDecoder(c), reader.notRead()};
    if (!out.notRead.empty()) out.document.main.note = "Celloom did not read from config.json: " + joined(out.notRead) + ".";
    return out;
}

bool isBelow(const std::string& path, const std::string& name) {
    return path == name || path.starts_with(name + ".");
}

} // namespace

const std::vector<Family>& all() {
    static const std::vector<Family> list{baichuan(), internlm(), internlm2(), internlm3(), transformer()};
    return list;
}

Result<OpenedConfig> readConfigJson(const std::string& text, const std::string& place) {
    CELLOOM_TRY(config, graph::parseJson(text, place));
    const bool hasName = config.is_object() && config.contains("architectures") && config["architectures"].is_array() &&
                         config["architectures"].size() == 1 && config["architectures"][0].is_string();
    if (!hasName)
        return fail("has no \"architectures\" with one name, so the model's family is unknown.",
                    "Is it the config.json of a language model?", place);
    const auto name = config["architectures"][0].get<std::string>();
    std::vector<std::string> known;
    for (const Family& family : all())
        for (const std::string& architecture : family.architectures) {
            if (architecture == name) return readWith(family, config, place);
            known.push_back(architecture);
        }
    return fail("has the architecture " + inQuotes(name) + ", which this Celloom does not know.", "Known are " + joined(known) + ".",
                place);
}

Result<graph::Document> fromConfigJson(const std::string& text, const std::string& place) {
    return readConfigJson(text, place).map([](OpenedConfig&& opened) { return std::move(opened.document); });
}

Result<std::string> toConfigJson(const graph::Document& document) {
    const Family* family = findFamily(document.family);
    if (!family)
        return fail("The graph belongs to no known family, so no config.json describes it.", "Export it as a .cells.json document.");
    CELLOOM_TRY(c, readDecoder(document, family->decoder()));
    const std::string written = family->toConfig(c).dump(2) + "\n";
    // Read back, it must be the same model: a variant that the family's file has no words for (biases on some projections alone, …) isn't.
    CELLOOM_TRY(again, readConfigJson(written, "config.json"));
    CELLOOM_TRY(reread, readDecoder(again.document, family->decoder()));
    if (!(reread == c))
        return fail("The config.json of " + c.title + " has no words for this variant of the graph.",
                    "Export it as a .cells.json document.");
    return written;
}

std::string checkpointName(const std::string& familyName, const std::string& path) {
    const Family* family = findFamily(familyName);
    if (!family) return path;
    const bool isOutside =
        std::any_of(family->outsideTrunk.begin(), family->outsideTrunk.end(), [&](const auto& name) { return isBelow(path, name); });
    return isOutside ? path : family->trunkPrefix + path;
}

Result<std::string> parameterPath(const std::string& familyName, const std::string& name) {
    const Family* family = findFamily(familyName);
    if (!family) return name;
    std::string path = name.starts_with(family->trunkPrefix) ? name.substr(family->trunkPrefix.size()) : name;
    if (!path.empty() && checkpointName(familyName, path) == name) return path;
    return fail("The tensor " + inQuotes(name) + " is none of a " + familyName + " checkpoint.",
                "Names begin with " + family->trunkPrefix + " or " + joined(family->outsideTrunk) + ".");
}

bool isIgnorable(const std::string& familyName, const std::string& name) {
    if (name.ends_with(".num_batches_tracked")) return true; // PyTorch's batch norms count steps; nothing computed here reads them
    const Family* family = findFamily(familyName);
    return family && std::any_of(family->ignorable.begin(), family->ignorable.end(),
                                 [&](const auto& ending) { return name.ends_with("." + ending); });
}

bool isIgnorable(const graph::ExpandedModel& model, const std::string& name) {
    if (isIgnorable(model.family, name)) return true;
    return std::any_of(model.cells.begin(), model.cells.end(), [&](const graph::CellInstance& cell) {
        return cell.type == "LMHead" && cell.text("kind") == "tied" && name == checkpointName(model.family, cell.path + ".weight");
    });
}

bool isBuiltIn(const std::string& name) {
    const auto names = builtInNames();
    return std::find(names.begin(), names.end(), name) != names.end();
}

Result<graph::Document> openModel(const std::string& model) {
    if (const library::Template* made = library::findTemplate(model)) return made->document;
    if (isBuiltIn(model)) return buildPreset(model);
    std::error_code error;
    fs::path path(model);
    if (fs::is_directory(path, error)) {
        const bool hasCells = fs::exists(path / "model.cells.json", error);
        if (!hasCells && !fs::exists(path / "config.json", error))
            return fail("The folder holds neither a model.cells.json nor a config.json.", "Choose the folder of a model.", model);
        path /= hasCells ? "model.cells.json" : "config.json";
    }
    if (!fs::exists(path, error))
        return fail("there is no model " + inQuotes(path.has_parent_path() ? model : path.string()) + ".",
                    "Give a preset or a template (" + joined(builtInNames()) + "), a folder with a config.json, or a .cells.json file.", "model.source");
    if (path.filename() != "config.json") return graph::loadDocument(path);
    CELLOOM_TRY(text, readFile(path, graph::JsonLimits{}.maxBytes));
    return fromConfigJson(text, path.string());
}

} // namespace celloom::families
