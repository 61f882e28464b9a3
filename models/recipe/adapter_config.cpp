#include "models/recipe/adapter_config.h"

#include "models/base/shape_text.h"
#include "models/base/text.h"
#include "models/families/families.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

namespace celloom::recipe {
namespace {

using Json = nlohmann::ordered_json; // the order of rank_pattern decides

// ---- reading ----

/// What a key may hold without changing anything here.
enum class Kind {
    Read,      // below
    Harmless,  // names, ways to begin training: told as not used
    Always,    // PEFT writes it into every file: not worth a word
    OnlyEmpty, // changes the computation unless null, false or empty
};

const std::map<std::string, Kind>& knownKeys() {
    using enum Kind;
    static const std::map<std::string, Kind> keys{
        {"peft_type", Read},         {"r", Read},
        {"lora_alpha", Read},        {"lora_dropout", Read},
        {"target_modules", Read},    {"exclude_modules", Read},
        {"use_rslora", Read},        {"use_dora", Read},
        {"bias", Read},              {"rank_pattern", Read},
        {"alpha_pattern", Read},     {"layers_to_transform", Read},
        {"layers_pattern", Read},    {"modules_to_save", Read},
        {"task_type", Read},         {"init_lora_weights", Read},
        {"base_model_name_or_path", Read},
        {"auto_mapping", Harmless},  {"inference_mode", Always},
        {"revision", Harmless},      {"peft_version", Always},
        {"megatron_core", Always},   {"qalora_group_size", Always},
        {"runtime_config", Harmless}, {"corda_config", Harmless},
        {"eva_config", Harmless},    {"lora_ga_config", Harmless},
        {"loftq_config", OnlyEmpty}, {"fan_in_fan_out", OnlyEmpty},
    };
    return keys;
}

bool isEmpty(const Json& value) {
    return value.is_null() || value == false || ((value.is_array() || value.is_object() || value.is_string()) && value.empty());
}

std::string shown(const Json& value) { return inQuotes(value.dump(-1, ' ', false, Json::error_handler_t::replace), 60); }

class Reader {
public:
    Reader(const Json& document, const std::string& place) : m_document(document), m_place(place) {}

    Result<AdapterConfig> read() {
        CELLOOM_TRY_STATUS(checkKeys());
        CELLOOM_TRY_STATUS(onlyWord("peft_type", {"LORA"}, true));
        CELLOOM_TRY_STATUS(onlyWord("task_type", {"CAUSAL_LM"}, false));
        CELLOOM_TRY_STATUS(checkInit());
        AdapterConfig out;
        LoraSpec& spec = out.spec;
        spec.everyNameMustMatch = false;
        CELLOOM_TRY(rank, number<std::int64_t>("r", std::nullopt, 1, 65536, "a whole number from 1 to 65536"));
        CELLOOM_TRY(alpha, number<double>("lora_alpha", std::nullopt, 1e-9, 1e9, "a number above 0"));
        CELLOOM_TRY(dropout, number<double>("lora_dropout", 0.0, 0, 0.999999, "a number from 0 to below 1"));
        CELLOOM_TRY(rsLora, flag("use_rslora"));
        CELLOOM_TRY(dora, flag("use_dora"));
        spec.standard = {rank, alpha, dropout, rsLora, dora};
        CELLOOM_TRY_STATUS(names("target_modules", spec.targets, &spec.targetRegex));
        if (spec.targets.empty() && spec.targetRegex.empty()) return wrong("target_modules", "names of modules, or a regular expression");
        if (spec.targetRegex == "all-linear") spec.targets = {std::exchange(spec.targetRegex, {})};
        CELLOOM_TRY_STATUS(names("exclude_modules", spec.excluded, &spec.excludedRegex));
        CELLOOM_TRY_STATUS(names("modules_to_save", spec.modulesToSave, nullptr));
        std::string pattern;
        CELLOOM_TRY_STATUS(names("layers_pattern", spec.layersPattern, &pattern));
        if (!pattern.empty()) spec.layersPattern = {pattern};
        CELLOOM_TRY_STATUS(layers(spec.layersToTransform));
        CELLOOM_TRY_STATUS(bias(spec.bias));
        CELLOOM_TRY_STATUS(patterns("rank_pattern", spec.rankPattern, std::int64_t(1), std::int64_t(65536)));
        CELLOOM_TRY_STATUS(patterns("alpha_pattern", spec.alphaPattern, 1e-9, 1e9));
        if (const Json* name = value("base_model_name_or_path"); name && name->is_string()) out.baseName = name->get<std::string>();
        out.notUsed = std::move(m_notUsed);
        return out;
    }

private:
    [[nodiscard]] const Json* value(const char* key) const {
        const auto found = m_document.find(key);
        return found == m_document.end() || found->is_null() ? nullptr : &*found;
    }
    [[nodiscard]] tl::unexpected<Error> wrong(const char* key, const std::string& expected) const {
        const Json* held = value(key);
        return fail(std::string(key) + (held ? " is " + shown(*held) : " is missing") + ", expected " + expected + ".", {}, m_place);
    }

    Status checkKeys() {
        for (const auto& [key, held] : m_document.items()) {
            const auto known = knownKeys().find(key);
            const Kind kind = known == knownKeys().end() ? Kind::OnlyEmpty : known->second;
            if (kind == Kind::Read || kind == Kind::Always || isEmpty(held)) continue;
            if (kind == Kind::OnlyEmpty)
                return fail(inQuotes(key, 40) + " is " + shown(held) + ", which changes what an adapter computes in a way that is not known here.",
                            "Save the adapter without it.", m_place);
            m_notUsed.push_back(key + " = " + held.dump(-1, ' ', false, Json::error_handler_t::replace));
        }
        return {};
    }

    Status onlyWord(const char* key, const std::vector<std::string>& known, bool mustBeThere) const {
        const Json* held = value(key);
        if (!held && !mustBeThere) return {};
        if (!held || !held->is_string() || std::find(known.begin(), known.end(), held->get<std::string>()) == known.end())
            return wrong(key, inQuotes(known.front()));
        return {};
    }

    /// Some ways to begin change the base as well (pissa, olora, corda, loftq): such an adapter fits no unchanged base.
    Status checkInit() const {
        const Json* held = value("init_lora_weights");
        if (!held || held->is_boolean() || *held == "gaussian" || *held == "orthogonal" || *held == "eva") return {};
        return fail("init_lora_weights is " + shown(*held) + ", which changes the base's weights too.",
                    "Convert the adapter to a plain LoRA where it was trained.", m_place);
    }

    template <class Number>
    Result<Number> number(const char* key, std::optional<Number> otherwise, Number low, Number high, const std::string& expected) const {
        const Json* held = value(key);
        if (!held && otherwise) return *otherwise;
        const bool fits = held && (std::is_integral_v<Number> ? held->is_number_integer() : held->is_number());
        if (!fits || !(held->get<Number>() >= low && held->get<Number>() <= high)) return wrong(key, expected);
        return held->get<Number>();
    }

    Result<bool> flag(const char* key) const {
        const Json* held = value(key);
        if (held && !held->is_boolean()) return wrong(key, "true or false");
        return held && held->get<bool>();
    }

    /// A list of names, or (where `single` is given) one text.
    Status names(const char* key, std::vector<std::string>& list, std::string* single) const {
        const Json* held = value(key);
        if (!held) return {};
        if (held->is_string() && single) {
            *single = held->get<std::string>();
            return {};
        }
        if (!held->is_array() || held->size() > 100000) return wrong(key, "a list of names");
        for (const Json& item : *held) {
            if (!item.is_string() || item.get_ref<const std::string&>().empty()) return wrong(key, "a list of names");
            list.push_back(item.get<std::string>());
        }
        return {};
    }

    Status layers(std::vector<std::int64_t>& list) const {
        const Json* held = value("layers_to_transform");
        if (!held) return {};
        const Json items = held->is_array() ? *held : Json::array({*held});
        for (const Json& item : items) {
            if (!item.is_number_integer() || list.size() >= 100000) return wrong("layers_to_transform", "whole numbers");
            list.push_back(item.get<std::int64_t>());
        }
        return {};
    }

    Status bias(LoraSpec::Bias& bias) const {
        CELLOOM_TRY_STATUS(onlyWord("bias", {"none", "lora_only", "all"}, false));
        const Json* held = value("bias");
        bias = !held || *held == "none" ? LoraSpec::Bias::None : *held == "all" ? LoraSpec::Bias::All : LoraSpec::Bias::LoraOnly;
        return {};
    }

    template <class Number>
    Status patterns(const char* key, std::vector<std::pair<std::string, Number>>& list, Number low, Number high) const {
        const Json* held = value(key);
        if (!held) return {};
        if (!held->is_object()) return wrong(key, "patterns with numbers");
        for (const auto& [pattern, item] : held->items()) {
            const bool fits = std::is_integral_v<Number> ? item.is_number_integer() : item.is_number();
            if (!fits || !(item.template get<Number>() >= low && item.template get<Number>() <= high)) return wrong(key, "patterns with numbers");
            list.emplace_back(pattern, item.template get<Number>());
        }
        return {};
    }

    const Json& m_document;
    const std::string& m_place;
    std::vector<std::string> m_notUsed;
};

Result<Json> parseObject(const std::string& text, const std::string& place) {
    Json document = Json::parse(text, nullptr, false);
    if (!document.is_object()) return fail("is no JSON object.", "Is the file complete?", place);
    return document;
}

// ---- describing ----

std::string lastName(const std::string& path) { return path.substr(path.rfind('.') + 1); }

/// The value that most of the cells have.
template <class Value> Value mostOf(const std::map<std::string, Value>& byModule) {
    std::map<Value, int> counts;
    for (const auto& item : byModule) ++counts[item.second];
    return std::max_element(counts.begin(), counts.end(), [](const auto& a, const auto& b) { return a.second < b.second; })->first;
}

std::string asRegex(const std::string& module) {
    std::string out;
    for (const char c : module) out += c == '.' ? std::string("\\.") : std::string(1, c);
    return out;
}

/// Patterns for the modules that differ from `standard`: last names where all of that name agree, else whole names.
template <class Value> std::vector<std::pair<std::string, Value>> patternsOf(const std::map<std::string, Value>& byModule, Value standard) {
    std::map<std::string, std::set<Value>> byLast;
    for (const auto& [module, value] : byModule) byLast[lastName(module)].insert(value);
    std::vector<std::pair<std::string, Value>> out;
    std::set<std::string> done;
    for (const auto& [module, value] : byModule) {
        if (value == standard) continue;
        const std::string last = lastName(module);
        if (byLast[last].size() > 1) out.emplace_back(asRegex(module), value);
        else if (done.insert(last).second) out.emplace_back(last, value);
    }
    return out;
}

} // namespace

Result<AdapterConfig> adapterConfigFromJson(const std::string& text, const std::string& place) {
    CELLOOM_TRY(document, parseObject(text, place));
    return Reader(document, place).read();
}

std::string toJson(const AdapterConfig& config) {
    const LoraSpec& spec = config.spec;
    const auto orNull = [](const auto& list) { return list.empty() ? Json() : Json(list); };
    Json ranks = Json::object(), alphas = Json::object();
    for (const auto& [pattern, rank] : spec.rankPattern) ranks[pattern] = rank;
    for (const auto& [pattern, alpha] : spec.alphaPattern) alphas[pattern] = alpha;
    const char* bias = spec.bias == LoraSpec::Bias::None ? "none" : spec.bias == LoraSpec::Bias::All ? "all" : "lora_only";
    const bool isWhole = spec.standard.alpha == static_cast<double>(static_cast<std::int64_t>(spec.standard.alpha));
    const Json document{
        {"alpha_pattern", alphas},
        {"base_model_name_or_path", config.baseName.empty() ? Json() : Json(config.baseName)},
        {"bias", bias},
        {"exclude_modules", spec.excludedRegex.empty() ? orNull(spec.excluded) : Json(spec.excludedRegex)},
        {"fan_in_fan_out", false},
        {"inference_mode", true},
        {"init_lora_weights", true},
        {"layers_pattern", orNull(spec.layersPattern)},
        {"layers_to_transform", orNull(spec.layersToTransform)},
        {"lora_alpha", isWhole ? Json(static_cast<std::int64_t>(spec.standard.alpha)) : Json(spec.standard.alpha)},
        {"lora_dropout", spec.standard.dropout},
        {"modules_to_save", orNull(spec.modulesToSave)},
        {"peft_type", "LORA"},
        {"r", spec.standard.rank},
        {"rank_pattern", ranks},
        {"target_modules", spec.targetRegex.empty() ? Json(spec.targets) : Json(spec.targetRegex)},
        {"task_type", "CAUSAL_LM"},
        {"use_dora", spec.standard.useDora},
        {"use_rslora", spec.standard.useRsLora},
    };
    return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

LoraSpec describe(const graph::ExpandedModel& model, const TreatmentTable& treatment) {
    CELLOOM_CHECK(treatment.hasAdapters() && treatment.cells.size() == model.cells.size());
    LoraSpec spec;
    std::map<std::string, std::int64_t> ranks;
    std::map<std::string, double> alphas;
    std::set<std::string> lastNames, left; // of cells with and without an adapter
    std::vector<std::string> modules;
    for (std::size_t i = 0; i < model.cells.size(); ++i) {
        const Treatment& treated = treatment.cells[i];
        const std::string module = families::checkpointName(model.family, model.cells[i].path);
        if (treated.saveWhole && !model.cells[i].weights.empty()) spec.modulesToSave.push_back(module);
        if (treated.trainBias) spec.bias = treated.lora && spec.bias != LoraSpec::Bias::All ? LoraSpec::Bias::LoraOnly : LoraSpec::Bias::All;
        (treated.lora ? lastNames : left).insert(lastName(module));
        if (!treated.lora) continue;
        spec.standard = *treated.lora;
        modules.push_back(module);
        ranks[module] = treated.lora->rank;
        alphas[module] = treated.lora->alpha;
    }
    spec.standard.rank = mostOf(ranks);
    spec.standard.alpha = mostOf(alphas);
    spec.rankPattern = patternsOf(ranks, spec.standard.rank);
    spec.alphaPattern = patternsOf(alphas, spec.standard.alpha);
    const bool lastNamesSuffice = std::none_of(lastNames.begin(), lastNames.end(), [&](const auto& name) { return left.contains(name); });
    spec.targets = lastNamesSuffice ? std::vector<std::string>(lastNames.begin(), lastNames.end()) : modules;
    return spec;
}

Result<AdapterNotes> adapterNotesFromJson(const std::string& text, const std::string& place) {
    CELLOOM_TRY(document, parseObject(text, place));
    try {
        if (document.at("schema") != 1) return fail("has schema " + shown(document.at("schema")) + "; this Celloom reads 1.", {}, place);
        const Json& base = document.at("base");
        AdapterNotes notes;
        notes.base = {base.at("model"), base.at("family"), base.at("path"), base.at("fingerprint"), base.at("shapes")};
        notes.chatTemplate = document.at("chat_template");
        return notes;
    } catch (const nlohmann::json::exception& error) {
        return fail(std::string("is damaged: ") + error.what() + ".", {}, place);
    }
}

std::string toJson(const AdapterNotes& notes) {
    const BaseIdentity& base = notes.base;
    const Json document{{"schema", 1},
                        {"base",
                         {{"model", base.model}, {"family", base.family}, {"path", base.path}, {"fingerprint", base.fingerprint}, {"shapes", base.shapes}}},
                        {"chat_template", notes.chatTemplate}};
    return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

Status checkBase(const BaseIdentity& trainedOn, const BaseIdentity& here) {
    const std::string hint = "It was trained on " + inQuotes(trainedOn.model) + (trainedOn.path.empty() ? "" : " (" + trainedOn.path + ")") + "; choose that base.";
    for (const auto& [name, dims] : trainedOn.shapes) {
        const auto found = here.shapes.find(name);
        if (found == here.shapes.end()) return fail("the adapter belongs to a base with the tensor " + name + " " + shapeText(dims) + ", which this one lacks.", hint);
        if (found->second != dims)
            return fail("the adapter belongs to another base: its " + name + " is " + shapeText(dims) + ", this one's is " + shapeText(found->second) + ".", hint);
    }
    for (const auto& [name, dims] : here.shapes)
        if (!trainedOn.shapes.contains(name)) return fail("the adapter belongs to a base without the tensor " + name + " " + shapeText(dims) + ".", hint);
    if (trainedOn.fingerprint != here.fingerprint)
        return fail("the adapter belongs to a base of the same shape with other weights (" + trainedOn.fingerprint.substr(0, 12) + ", here " +
                        here.fingerprint.substr(0, 12) + ").",
                    hint);
    return {};
}

} // namespace celloom::recipe
