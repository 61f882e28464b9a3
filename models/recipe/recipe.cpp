#include "models/recipe/recipe.h"

#include "models/base/files.h"
#include "models/base/text.h"
#include "models/families/families.h"
#include "models/graph/json_text.h"
#include "models/recipe/list_text.h"
#include "models/recipe/lora.h"
#include "models/recipe/measures.h"
#include "models/recipe/schedule.h"
#include "models/recipe/typed_script.h"

#include <algorithm>
#include <cmath>
#include <optional>

namespace celloom::recipe {
namespace fs = std::filesystem;
namespace {

using nlohmann::json;
using nlohmann::ordered_json;
using Texts = std::vector<std::string>;

constexpr int kRecipeSchema = 1;
constexpr std::int64_t kAnyNumberOfSteps = 1LL << 50; // where the length of the run is not known yet
constexpr std::size_t kMaxItems = 100000;      // of a list
constexpr std::size_t kMaxTextBytes = 1 << 20; // of one text

bool isList(FieldKind kind) {
    return kind == FieldKind::PathList || kind == FieldKind::TextList || kind == FieldKind::RuleList || kind == FieldKind::ScriptList;
}
bool isText(FieldKind kind) {
    return kind == FieldKind::Choice || kind == FieldKind::Text || kind == FieldKind::Path;
}

std::string kindName(FieldKind kind) {
    switch (kind) {
    case FieldKind::Integer:
        return "a whole number";
    case FieldKind::Real:
        return "a number";
    case FieldKind::Flag:
        return "true or false";
    case FieldKind::Choice:
        return "one of its choices";
    case FieldKind::Text:
        return "a text";
    case FieldKind::Path:
        return "a path";
    case FieldKind::PathList:
        return "a list of paths";
    case FieldKind::TextList:
        return "a list of texts";
    case FieldKind::RuleList:
        return "a list of rules";
    case FieldKind::ScriptList:
        return "a list of scripts";
    }
    return {};
}

std::string describe(const FieldValue& value) {
    if (const auto* whole = std::get_if<std::int64_t>(&value)) return std::to_string(*whole);
    if (const auto* number = std::get_if<double>(&value)) return numberText(*number);
    if (const auto* yes = std::get_if<bool>(&value)) return *yes ? "true" : "false";
    if (const auto* word = std::get_if<std::string>(&value)) return inQuotes(*word, 40);
    return "a list";
}

tl::unexpected<Error> unknownField(const std::string& key) {
    Texts names;
    for (const Field& field : fields()) names.push_back(field.key);
    Texts close = nearest(key, names);
    if (close.empty()) // the right leaf in the wrong section: "optimizer.warmup_steps"
        for (const std::string& name : names)
            if (name.substr(name.rfind('.') + 1) == key.substr(key.rfind('.') + 1)) close.push_back(name);
    return fail("is not a field of a recipe.", close.empty() ? "docs/recipe.md lists them all." : "Did you mean " + joined(close) + "?",
                key);
}

Status checkText(const Field& field, const std::string& text) {
    if (text.size() > kMaxTextBytes) return fail("is longer than " + std::to_string(kMaxTextBytes) + " bytes.", {}, field.key);
    if (!isUtf8(text) || text.find('\0') != std::string::npos) return fail("is not valid UTF-8 text.", {}, field.key);
    return {};
}

template <class Number> Status checkRange(const Field& field, Number number) {
    const double asReal = static_cast<double>(number);
    if (asReal >= field.minimum && asReal <= field.maximum) return {};
    const std::string unit = field.unit.empty() ? "" : " " + field.unit;
    return fail("is " + describe(FieldValue(number)) + ", must be " + rangeText(field) + unit + ".", {}, field.key);
}

Status checkValue(const Field& field, const FieldValue& value) {
    switch (field.kind) {
    case FieldKind::Integer:
        return checkRange(field, std::get<std::int64_t>(value));
    case FieldKind::Real:
        if (!std::isfinite(std::get<double>(value))) return fail("is " + describe(value) + ", must be a finite number.", {}, field.key);
        return checkRange(field, std::get<double>(value));
    case FieldKind::Flag:
        return {};
    case FieldKind::Choice: {
        const auto& word = std::get<std::string>(value);
        if (std::find(field.choices.begin(), field.choices.end(), word) != field.choices.end()) return {};
        const Texts close = nearest(word, field.choices, 1);
        return fail("is " + inQuotes(word, 40) + ", must be one of " + joined(field.choices) + ".",
                    close.empty() ? "" : "Did you mean " + close.front() + "?", field.key);
    }
    case FieldKind::Text:
    case FieldKind::Path:
        return checkText(field, std::get<std::string>(value));
    default:
        break;
    }
    const auto& items = std::get<Texts>(value);
    if (field.kind == FieldKind::ScriptList) {
        auto scripts = typedScripts(items);
        return scripts ? Status() : fail(scripts.error().message, scripts.error().hint, field.key + scripts.error().place);
    }
    if (items.size() > kMaxItems)
        return fail("has " + std::to_string(items.size()) + " items, at most " + std::to_string(kMaxItems) + ".", {}, field.key);
    for (std::size_t i = 0; i < items.size(); ++i) {
        CELLOOM_TRY_STATUS(checkText(field, items[i]));
        if (field.kind != FieldKind::RuleList) continue;
        if (auto rule = parseRule(items[i]); !rule) {
            Error error = std::move(rule).error();
            return fail(std::move(error.message), std::move(error.hint), field.key + "[" + std::to_string(i) + "]");
        }
    }
    return {};
}

/// The JSON value as the field's kind, or what was expected and found.
Result<FieldValue> valueFromJson(const Field& field, const json& value) {
    const auto mismatch = [&] {
        return fail("must be " + kindName(field.kind) + ", found " + graph::describe(value) + ".", {}, field.key);
    };
    if (field.kind == FieldKind::Integer) {
        if (!value.is_number_integer()) return mismatch();
        if (value.is_number_unsigned() && value.get<std::uint64_t>() > static_cast<std::uint64_t>(INT64_MAX)) return mismatch();
        return value.get<std::int64_t>();
    }
    if (field.kind == FieldKind::Real) return value.is_number() ? Result<FieldValue>(value.get<double>()) : mismatch();
    if (field.kind == FieldKind::Flag) return value.is_boolean() ? Result<FieldValue>(value.get<bool>()) : mismatch();
    if (isText(field.kind)) return value.is_string() ? Result<FieldValue>(value.get<std::string>()) : mismatch();
    if (!value.is_array()) return mismatch();
    Texts items;
    for (const json& item : value) {
        if (item.is_object() && field.kind == FieldKind::ScriptList) {
            items.push_back(item.dump(-1, ' ', false, json::error_handler_t::replace));
            continue;
        }
        if (!item.is_string()) return mismatch();
        items.push_back(item.get<std::string>());
    }
    return items;
}

Status readObject(const json& object, const std::string& prefix, Recipe& recipe) {
    for (const auto& [name, value] : object.items()) {
        const std::string key = prefix + name;
        if (const Field* field = findField(key)) {
            CELLOOM_TRY(read, valueFromJson(*field, value));
            CELLOOM_TRY_STATUS(recipe.set(key, std::move(read)));
            continue;
        }
        const bool isSection =
            std::any_of(fields().begin(), fields().end(), [&](const Field& field) { return field.key.starts_with(key + "."); });
        if (!isSection) return unknownField(key);
        if (!value.is_object()) return fail("must be an object of fields, found " + graph::describe(value) + ".", {}, key);
        CELLOOM_TRY_STATUS(readObject(value, key + ".", recipe));
    }
    return {};
}

ordered_json toJsonValue(const FieldValue& value, FieldKind kind) {
    if (kind != FieldKind::ScriptList) return std::visit([](const auto& held) { return ordered_json(held); }, value);
    ordered_json out = ordered_json::array();
    for (const std::string& item : std::get<Texts>(value)) out.push_back(item.starts_with('{') ? ordered_json::parse(item) : ordered_json(item));
    return out;
}

/// A list written as in the recipe's file: ["q_proj", "v_proj"], [0, 1].
std::optional<Texts> listFromJson(const std::string& text, FieldKind kind) {
    const json list = text.starts_with('[') ? json::parse(text, nullptr, false) : json();
    if (!list.is_array()) return {};
    Texts items;
    for (const json& one : list) {
        if (one.is_object() && kind == FieldKind::ScriptList) {
            items.push_back(one.dump(-1, ' ', false, json::error_handler_t::replace));
            continue;
        }
        if (!one.is_string() && !one.is_number()) return {};
        items.push_back(one.is_string() ? one.get<std::string>() : one.dump());
    }
    return items;
}

} // namespace

Recipe::Recipe() {
    for (const Field& field : fields()) m_values[field.key] = field.standard;
}

Result<Recipe> Recipe::fromJson(const std::string& text, const std::string& place) {
    CELLOOM_TRY(document, graph::parseJson(text, place));
    if (!document.is_object()) return fail("must hold an object of fields, found " + graph::describe(document) + ".", {}, place);
    if (const auto schema = document.find("schema"); schema != document.end()) {
        if (!schema->is_number_integer() || schema->get<std::int64_t>() != kRecipeSchema)
            return fail("has recipe schema " + schema->dump() + "; this Celloom reads " + std::to_string(kRecipeSchema) + ".",
                        "It was written by another version of Celloom.", place);
        document.erase(schema);
    }
    Recipe recipe;
    if (auto status = readObject(document, "", recipe); !status) {
        Error error = std::move(status).error();
        if (!place.empty()) error.place = place + ": " + error.place;
        return tl::unexpected(std::move(error));
    }
    return recipe;
}

Result<Recipe> Recipe::load(const fs::path& path) {
    CELLOOM_TRY(text, readFile(path, graph::JsonLimits{}.maxBytes));
    CELLOOM_TRY(recipe, fromJson(text, path.string()));
    std::error_code error;
    const fs::path full = fs::absolute(path, error);
    recipe.m_folder = (error ? path : full).parent_path();
    return recipe;
}

std::string Recipe::toJson(bool onlyChanged) const {
    ordered_json out = ordered_json::object();
    out["schema"] = kRecipeSchema;
    for (const Field& field : fields()) {
        if (onlyChanged && isDefault(field.key)) continue;
        ordered_json* at = &out;
        std::size_t from = 0;
        for (std::size_t dot = field.key.find('.'); dot != std::string::npos; from = dot + 1, dot = field.key.find('.', from))
            at = &(*at)[field.key.substr(from, dot - from)];
        (*at)[field.key.substr(from)] = toJsonValue(value(field.key), field.kind);
    }
    return out.dump(2) + "\n";
}

const FieldValue& Recipe::value(const std::string& key) const {
    const auto found = m_values.find(key);
    CELLOOM_CHECK(found != m_values.end() && "no such recipe field");
    return found->second;
}

std::int64_t Recipe::integer(const std::string& key) const {
    return std::get<std::int64_t>(value(key));
}
double Recipe::real(const std::string& key) const {
    return std::get<double>(value(key));
}
bool Recipe::flag(const std::string& key) const {
    return std::get<bool>(value(key));
}
const std::string& Recipe::text(const std::string& key) const {
    return std::get<std::string>(value(key));
}
const Texts& Recipe::list(const std::string& key) const {
    return std::get<Texts>(value(key));
}
bool Recipe::isDefault(const std::string& key) const {
    return value(key) == findField(key)->standard;
}

Result<std::vector<Rule>> Recipe::rules() const {
    std::vector<Rule> out;
    for (const std::string& text : list("rules")) {
        CELLOOM_TRY(rule, parseRule(text));
        out.push_back(std::move(rule));
    }
    return out;
}

Result<std::map<std::string, graph::ParamValue>> Recipe::modelOverrides() const {
    std::map<std::string, graph::ParamValue> out;
    for (const std::string& item : list("model.overrides")) {
        const auto equals = item.find('=');
        if (equals == std::string::npos || equals == 0)
            return fail("has " + inQuotes(item) + ", expected name=value.", "For example layers=4.", "model.overrides");
        const std::string name = item.substr(0, equals), given = item.substr(equals + 1);
        graph::ParamValue read = given;
        std::int64_t whole = 0;
        double number = 0;
        if (given == "true" || given == "false")
            read = given == "true";
        else if (readNumber(given, whole))
            read = whole;
        else if (readNumber(given, number))
            read = number;
        if (!out.emplace(name, std::move(read)).second) return fail("gives " + inQuotes(name) + " twice.", {}, "model.overrides");
    }
    return out;
}

Status Recipe::set(const std::string& key, FieldValue value) {
    const Field* field = findField(key);
    if (!field) return unknownField(key);
    if (field->kind == FieldKind::Real && std::holds_alternative<std::int64_t>(value))
        value = static_cast<double>(std::get<std::int64_t>(value));
    if (value.index() != field->standard.index())
        return fail("must be " + kindName(field->kind) + ", found " + describe(value) + ".", {}, key);
    CELLOOM_TRY_STATUS(checkValue(*field, value));
    m_values[key] = std::move(value);
    return {};
}

Status Recipe::setFromText(const std::string& key, const std::string& text) {
    const Field* field = findField(key);
    if (!field) return unknownField(key);
    const auto mismatch = [&] { return fail("must be " + kindName(field->kind) + ", found " + inQuotes(text, 40) + ".", {}, key); };
    if (field->kind == FieldKind::Integer) {
        std::int64_t number = 0;
        return readNumber(text, number) ? set(key, number) : mismatch();
    }
    if (field->kind == FieldKind::Real) {
        double number = 0;
        return readNumber(text, number) ? set(key, number) : mismatch();
    }
    if (field->kind == FieldKind::Flag) {
        const bool isTrue = text == "true" || text == "1" || text == "yes" || text == "on";
        const bool isFalse = text == "false" || text == "0" || text == "no" || text == "off";
        return isTrue || isFalse ? set(key, isTrue) : mismatch();
    }
    if (!isList(field->kind)) return set(key, text);
    if (field->kind == FieldKind::ScriptList && text.starts_with('{')) return set(key, Texts{text}); // one script as JSON
    const auto items = listFromJson(text, field->kind);
    return set(key, items ? *items : listFromText(text));
}

std::string Recipe::toText(const std::string& key) const {
    const FieldValue& held = value(key);
    if (const auto* word = std::get_if<std::string>(&held)) return *word;
    const auto* items = std::get_if<Texts>(&held);
    if (!items) return describe(held);
    const FieldKind kind = findField(key)->kind;
    if (kind == FieldKind::ScriptList) return items->empty() ? std::string() : toJsonValue(held, kind).dump();
    const std::string text = listToText(*items);
    return listFromJson(text, kind) ? json(*items).dump() : text; // so that it is read as it was written
}

namespace {

std::vector<std::string> splitAt(const std::string& text, const std::string& mark) {
    std::vector<std::string> out;
    for (std::size_t from = 0; from <= text.size();) {
        const std::size_t end = std::min(text.find(mark, from), text.size());
        out.push_back(text.substr(from, end - from));
        from = end + mark.size();
    }
    return out;
}

/// One "key=value|value" or "key!=…" of a shownWhen.
bool holds(const Recipe& recipe, const std::string& condition) {
    const auto equals = condition.find('=');
    CELLOOM_CHECK(equals != std::string::npos && equals > 0);
    const bool isNegated = condition[equals - 1] == '!';
    const std::string key = condition.substr(0, equals - (isNegated ? 1 : 0)), actual = recipe.toText(key);
    if (!recipe.isShown(*findField(key))) return false;
    const std::vector<std::string> values = splitAt(condition.substr(equals + 1), "|");
    return (std::find(values.begin(), values.end(), actual) != values.end()) != isNegated;
}

} // namespace

bool Recipe::isShown(const Field& field) const {
    if (field.shownWhen.empty()) return true;
    for (const std::string& alternative : splitAt(field.shownWhen, "||")) {
        const std::vector<std::string> conditions = splitAt(alternative, "&");
        if (std::all_of(conditions.begin(), conditions.end(), [this](const std::string& one) { return holds(*this, one); })) return true;
    }
    return false;
}

bool trains(const Recipe& recipe) {
    const std::string& kind = recipe.text("kind");
    return kind == "pretrain" || kind == "finetune";
}

fs::path Recipe::resolvePath(const std::string& path) const {
    const fs::path given(path);
    if (given.is_absolute() || path.empty()) return given;
    std::error_code error;
    const fs::path base = m_folder.empty() ? fs::current_path(error) : m_folder;
    return (base / given).lexically_normal();
}

Recipe Recipe::withAbsolutePaths() const {
    Recipe out = *this;
    for (const Field& field : fields()) {
        FieldValue& held = out.m_values[field.key];
        if (field.kind == FieldKind::Path) {
            auto& path = std::get<std::string>(held);
            if (!path.empty() && !(field.key == "model.source" && families::isBuiltIn(path))) path = resolvePath(path).string();
        } else if (field.kind == FieldKind::PathList) {
            for (std::string& path : std::get<Texts>(held)) path = resolvePath(path).string();
        } else if (field.kind == FieldKind::ScriptList) {
            for (std::string& item : std::get<Texts>(held)) item = withAbsolutePath(item);
        }
    }
    return out;
}

/// The item of a list of scripts with its path, if it has one, absolute.
std::string Recipe::withAbsolutePath(const std::string& item) const {
    auto script = typedScriptFromText(item);
    if (!script || script->path.empty()) return item;
    const bool isPathAlone = !item.starts_with('{');
    script->path = resolvePath(script->path).string();
    return isPathAlone ? script->path : recipe::toText(*script);
}

Result<Recipe> Recipe::withScriptsRead() const {
    Recipe out = *this;
    for (const Field& field : fields()) {
        if (field.kind != FieldKind::ScriptList) continue;
        auto items = recipe::withScriptsRead(list(field.key), m_folder);
        if (!items) return fail(items.error().message, items.error().hint, field.key + ": " + items.error().place);
        CELLOOM_TRY_STATUS(out.set(field.key, std::move(*items)));
    }
    return out;
}

namespace {

/// What an evaluation or a prediction needs, by the field that lacks it.
std::vector<Problem> problemsOfUse(const Recipe& recipe) {
    std::vector<Problem> out;
    const auto add = [&](const char* key, std::string message, std::string hint) {
        out.push_back({Problem::Severity::Error, key, std::move(message), std::move(hint)});
    };
    const bool isEvaluation = recipe.text("kind") == "evaluate";
    const std::string& format = recipe.text("data.format");
    if (recipe.text("model.weights").empty())
        add("model.weights", isEvaluation ? "No weights are named to measure." : "No weights are named to write with.",
            "Give a model folder, a checkpoint or a run: a preset alone has learned nothing.");
    if (isEvaluation && recipe.list("data.validation").empty()) {
        if (recipe.list("data.train").empty())
            add("data.validation", "No files are named to measure on.", "Add text, token or instruction files.");
        else if (recipe.real("data.validation_fraction") <= 0)
            add("data.validation", "Nothing is held out of the training files, so there is nothing to measure on.",
                "Name validation files, or raise data.validation_fraction.");
    }
    if (!isEvaluation && recipe.text("predict.input").empty())
        add("predict.input", "No file of prompts is named.", "Text with a prompt a line, JSON Lines with \"prompt\", or a file of instructions.");
    if (!isEvaluation && (format == "tokens" || isOnTensors(recipe)))
        add("data.format", "Prompts are text, not " + format + ".", "Choose auto, text, alpaca, sharegpt or messages.");
    for (const std::string& stop : recipe.list("predict.stop"))
        if (stop.empty()) add("predict.stop", "A stop text is empty.", "Give at least one character.");
    return out;
}

/// The first training file whose ending says neither conversations nor tokens; empty where there is none, or only folders.
std::string plainTextFile(const Recipe& recipe) {
    for (const std::string& file : recipe.list("data.train")) {
        const std::string ending = std::filesystem::path(file).extension().string();
        if (!ending.empty() && ending != ".json" && ending != ".jsonl" && ending != ".safetensors") return file;
    }
    return {};
}

} // namespace

std::vector<Problem> Recipe::validate() const {
    std::vector<Problem> out;
    using enum Problem::Severity;
    const auto add = [&](Problem::Severity severity, const char* key, std::string message, std::string hint = {}) {
        out.push_back({severity, key, std::move(message), std::move(hint)});
    };
    if (const std::string& name = text("name");
        std::any_of(name.begin(), name.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; }))
        add(Error, "name", "The name holds a line break or another control character.", "Give a name of one line.");
    if (!trains(*this)) {
        for (Problem& problem : problemsOfUse(*this)) out.push_back(std::move(problem));
        for (Problem& problem : text("kind") == "evaluate" ? checkMeasures(*this) : std::vector<Problem>())
            if (!problem.key.starts_with("callbacks.")) out.push_back(std::move(problem)); // those watch a training
        return out;
    }
    if (text("model.source").empty())
        add(Error, "model.source", "No model is chosen.", "Give a preset such as baichuan-tiny, a folder or a .cells.json file.");
    if (auto overrides = modelOverrides(); !overrides) add(Error, "model.overrides", overrides.error().message, overrides.error().hint);
    if (text("kind") == "finetune" && text("model.weights").empty())
        add(Error, "model.weights", "No weights are named to start from.", "Give the base's folder: fine-tuning goes on from its weights.");
    if (usesLora(*this))
        if (auto spec = loraSpecOf(*this); !spec) add(Error, spec.error().place.c_str(), spec.error().message, spec.error().hint);
    if (const auto given = rules(); given && text("kind") == "pretrain" && text("model.weights").empty() &&
                                    std::any_of(given->begin(), given->end(), [](const Rule& rule) { return rule.lora.has_value(); }))
        add(Warning, "rules", "A rule gives LoRA adapters, but this run begins from random weights: there is nothing yet that they could adapt.",
            "Fine-tune a base, or remove the rule.");
    if (list("data.train").empty()) add(Error, "data.train", "No training files are named.",
                                         text("kind") == "finetune" ? "Add a file of instructions: JSON or JSON Lines." : "Add a text file or a file of tokens.");
    if (const auto plain = plainTextFile(*this); text("kind") == "finetune" && text("data.format") == "auto" && !plain.empty())
        add(Warning, "data.train", inQuotes(plain) + " is read as plain text: every token is learned, there are no questions and answers.",
            "Instruction files end in .json or .jsonl. Set data.format to text where plain text is meant, to alpaca, sharegpt or messages where it is not.");
    const bool hasValidation = !list("data.validation").empty() || real("data.validation_fraction") > 0;
    if (!hasValidation && flag("checkpoint.keep_best"))
        add(Warning, "checkpoint.keep_best", "Without validation data no checkpoint can be called the best.",
            "Name validation files, or hold a part out.");
    const std::int64_t warmup = integer("schedule.warmup_steps"), steps = integer("train.max_steps");
    if (warmup > 0 && real("schedule.warmup_ratio") > 0)
        add(Error, "schedule.warmup_ratio", "Warm-up is given as steps and as a part of the run.", "Set one of the two to 0.");
    if (steps > 0 && warmup >= steps && text("schedule.unit") == "step")
        add(Error, "schedule.warmup_steps", "Warm-up takes " + std::to_string(warmup) + " steps of a run of " + std::to_string(steps) + ".",
            "Make schedule.warmup_steps smaller than train.max_steps.");
    const std::string& curve = text("schedule.type");
    if ((curve == "step" && integer("schedule.decay_steps") == 0) || curve == "piecewise")
        if (auto schedule = scheduleOf(*this, kAnyNumberOfSteps); !schedule && !schedule.error().place.starts_with("schedule.warmup"))
            add(Error, schedule.error().place.c_str(), schedule.error().message, schedule.error().hint);
    if (curve != "constant" && curve != "piecewise" && real("schedule.min_lr") > real("optimizer.lr"))
        add(Error, "schedule.min_lr", "The lowest rate " + toText("schedule.min_lr") + " is above the peak " + toText("optimizer.lr") + ".",
            "Lower schedule.min_lr or raise optimizer.lr.");
    const bool hasNesterov = flag("optimizer.nesterov") && (text("optimizer.type") == "SGD" || text("optimizer.type") == "Momentum");
    const double dampening = text("optimizer.type") == "SGD" ? real("optimizer.dampening") : 0;
    if (hasNesterov && (real("optimizer.momentum") == 0 || dampening > 0))
        add(Error, "optimizer.nesterov", "Nesterov's way needs momentum above 0 and no dampening.",
            "Raise the momentum, set the dampening to 0, or switch it off.");
    const bool isMixed = text("precision.amp_level") != "O0", isHalf = isMixed && text("precision.half_type") == "float16";
    for (const char* list : {"precision.allow", "precision.deny"})
        if (!isMixed && !isDefault(list))
            add(Warning, list, "This list has no effect at amp_level O0.", "Choose another level, or give single cells a rule with dtype=.");
    const std::string& scaling = text("precision.loss_scale");
    if (isHalf && (scaling == "none" || (scaling == "auto" && text("precision.amp_level") != "O2")))
        add(Warning, "precision.loss_scale", "Small gradients vanish in float16 without a loss scale.",
            "Choose a dynamic loss scale, or bfloat16.");
    if (integer("sample.every_steps") > 0 && list("sample.prompts").empty())
        add(Error, "sample.prompts", "Samples are asked for, but no text to continue.", "Add a prompt, or set sample.every_steps to 0.");
    if (integer("sample.every_steps") > 0 && text("data.format") == "tokens" && text("tokenizer.path").empty())
        add(Error, "sample.every_steps", "Samples need a tokenizer, and a run on token files trains none.",
            "Give tokenizer.path, or set sample.every_steps to 0.");
    if (integer("sample.every_steps") > 0 && isOnTensors(*this))
        add(Error, "sample.every_steps", "A run on named columns writes no text.", "Set sample.every_steps to 0.");
    for (Problem& problem : checkMeasures(*this)) out.push_back(std::move(problem));
    return out;
}

std::string rangeText(const Field& field, bool isChinese) {
    const auto number = [&](double value) {
        return field.kind == FieldKind::Integer ? std::to_string(static_cast<std::int64_t>(value)) : numberText(value);
    };
    const bool hasMinimum = field.minimum > -1e300, hasMaximum = field.maximum < 1e300 && field.maximum < 9007199254740991.0;
    if (hasMinimum && hasMaximum) return number(field.minimum) + (isChinese ? " 至 " : " to ") + number(field.maximum);
    if (hasMinimum) return (isChinese ? "不小于 " : "at least ") + number(field.minimum);
    if (hasMaximum) return (isChinese ? "不大于 " : "at most ") + number(field.maximum);
    return isChinese ? "任意数" : "any number";
}

} // namespace celloom::recipe
