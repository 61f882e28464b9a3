#include "models/families/families.h"

#include "models/base/files.h"
#include "models/base/text.h"
#include "models/families/baichuan.h"
#include "models/families/family.h"
#include "models/graph/json.h"
#include "models/graph/json_text.h"

#include <algorithm>

namespace celloom::families {
namespace fs = std::filesystem;
namespace {

const Family* findFamily(const std::string& name) {
    const auto found = std::find_if(all().begin(), all().end(), [&](const Family& family) { return family.name == name; });
    return found == all().end() ? nullptr : &*found;
}

std::vector<std::string> presetNames() {
    std::vector<std::string> names;
    for (const Preset& preset : presets()) names.push_back(preset.name);
    return names;
}

bool isBelow(const std::string& path, const std::string& name) {
    return path == name || path.starts_with(name + ".");
}

} // namespace

const std::vector<Family>& all() {
    static const std::vector<Family> list{baichuan()};
    return list;
}

const std::vector<Preset>& presets() {
    // Derivation, no biases: 2·V·h (embedding, head) + L·(h·(h + 2·h·kv/heads) + h·h + 3·h·f + 2·h) + h.
    static const std::vector<Preset> list{
        {"baichuan-tiny", "Baichuan with rotary positions, 5 M parameters: learns on a laptop in minutes",
         "Baichuan（旋转位置编码），约 500 万参数：笔记本上几分钟可见效果", 5261568, "derived: V 4096, h 256, L 4, heads 4, f 688"},
        {"baichuan-tiny-alibi", "As baichuan-tiny, with ALiBi positions as Baichuan-13B",
         "同 baichuan-tiny，位置编码为 Baichuan-13B 的 ALiBi", 5261568, "derived: V 4096, h 256, L 4, heads 4, f 688"},
        {"baichuan-tiny-gqa", "As baichuan-tiny, with two key/value heads for four query heads",
         "同 baichuan-tiny，四个查询头共享两个键值头", 4999424, "derived: V 4096, h 256, L 4, heads 4, kv heads 2, f 688"},
        {"baichuan-110m", "Baichuan, 110 M parameters: for one GPU", "Baichuan，1.1 亿参数：适合单块 GPU", 109529856,
         "derived: V 16000, h 768, L 12, heads 12, f 2048"},
        {"baichuan-7b", "Baichuan-7B as published: rotary positions, context 4096", "公开的 Baichuan-7B：旋转位置编码，上下文 4096",
         7000559616, "published: README of baichuan-inc/Baichuan-7B (7,000,559,616)"},
        {"baichuan-13b", "Baichuan-13B as published: ALiBi positions, context 4096", "公开的 Baichuan-13B：ALiBi 位置编码，上下文 4096",
         13264901120, "published: README of baichuan-inc/Baichuan-13B (13,264,901,120)"},
    };
    return list;
}

Result<graph::Document> buildPreset(const std::string& name) {
    BaichuanConfig c;
    if (name.starts_with("baichuan-tiny")) {
        c = {.vocab = 4096, .hidden = 256, .layers = 4, .heads = 4, .kvHeads = 4, .intermediate = 688, .maxPositions = 1024};
        c.isAlibi = name == "baichuan-tiny-alibi";
        if (name == "baichuan-tiny-gqa") c.kvHeads = 2;
    } else if (name == "baichuan-110m") {
        c = {.vocab = 16000, .hidden = 768, .layers = 12, .heads = 12, .kvHeads = 12, .intermediate = 2048, .maxPositions = 2048};
    } else if (name == "baichuan-13b") {
        c = {.hidden = 5120, .layers = 40, .heads = 40, .kvHeads = 40, .intermediate = 13696, .isAlibi = true};
    }
    const auto names = presetNames();
    if (std::find(names.begin(), names.end(), name) == names.end())
        return fail("There is no preset " + inQuotes(name) + ".", "Presets are " + joined(names) + ".");
    graph::Document document = buildBaichuan(c);
    document.main.name = name;
    return document;
}

Result<graph::Document> fromConfigJson(const std::string& text, const std::string& place) {
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
            if (architecture == name) return family.fromConfig(config, place);
            known.push_back(architecture);
        }
    return fail("has the architecture " + inQuotes(name) + ", which this Celloom does not know.", "Known are " + joined(known) + ".",
                place);
}

Result<std::string> toConfigJson(const graph::Document& document) {
    const Family* family = findFamily(document.family);
    if (!family)
        return fail("The graph belongs to no known family, so no config.json describes it.", "Export it as a .cells.json document.");
    CELLOOM_TRY(config, family->toConfig(document));
    return config.dump(2) + "\n";
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
    const Family* family = findFamily(familyName);
    return family && std::any_of(family->ignorable.begin(), family->ignorable.end(),
                                 [&](const auto& ending) { return name.ends_with("." + ending); });
}

Result<graph::Document> openModel(const std::string& model) {
    const auto names = presetNames();
    if (std::find(names.begin(), names.end(), model) != names.end()) return buildPreset(model);
    std::error_code error;
    fs::path path(model);
    if (fs::is_directory(path, error)) {
        const bool hasCells = fs::exists(path / "model.cells.json", error);
        if (!hasCells && !fs::exists(path / "config.json", error))
            return fail("The folder holds neither a model.cells.json nor a config.json.", "Choose the folder of a model.", model);
        path /= hasCells ? "model.cells.json" : "config.json";
    }
    if (!fs::exists(path, error))
        return fail("There is no model " + inQuotes(model) + ".",
                    "Give a preset (" + joined(names) + "), a folder with a config.json, or a .cells.json file.", model);
    if (path.filename() != "config.json") return graph::loadDocument(path);
    CELLOOM_TRY(text, readFile(path, graph::JsonLimits{}.maxBytes));
    return fromConfigJson(text, path.string());
}

} // namespace celloom::families
