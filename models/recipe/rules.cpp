#include "models/recipe/rules.h"

#include "models/base/text.h"
#include "models/catalog/catalog.h"
#include "models/recipe/rule_edits.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace celloom::recipe {
// ---- the text form ----

namespace {

tl::unexpected<Error> badRule(const std::string& text, const std::string& what) {
    return fail(
        "the rule " + inQuotes(text) + " " + what + ".",
        "Rules look like \"layers.{3..5}.*.W_pack: lora r=8 alpha=16\"; settings are freeze, train, lora, train_bias, save, dtype=, "
        "recompute, stage=, lr_scale= and weight_decay=.");
}

/// "name=value" apart; value empty and hasValue false without "=".
struct Setting {
    std::string name, value;
    bool hasValue = false;
};

std::vector<Setting> settingsOf(const std::string& text) {
    std::vector<Setting> out;
    for (std::size_t at = text.find_first_not_of(" \t"); at != std::string::npos;) {
        const auto end = std::min(text.find_first_of(" \t", at), text.size());
        const std::string word = text.substr(at, end - at);
        const auto equals = word.find('=');
        if (equals == std::string::npos)
            out.push_back({word, "", false});
        else
            out.push_back({word.substr(0, equals), word.substr(equals + 1), true});
        at = text.find_first_not_of(" \t", end);
    }
    return out;
}

template <class Number>
Result<Number> numberIn(const std::string& rule, const Setting& setting, Number low, Number high, const std::string& range) {
    Number number{};
    if (!readNumber(std::string_view(setting.value), number) || !(number >= low && number <= high))
        return badRule(rule, "has " + setting.name + "=" + setting.value + ", must be " + range);
    return number;
}

Status applyLora(const std::string& text, const Setting& setting, LoraSettings& lora) {
    if (setting.name == "r") {
        CELLOOM_TRY(rank, numberIn<std::int64_t>(text, setting, 1, 65536, "1 to 65536"));
        lora.rank = rank;
    } else if (setting.name == "alpha") {
        CELLOOM_TRY(alpha, numberIn<double>(text, setting, 1e-9, 1e9, "above 0"));
        lora.alpha = alpha;
    } else {
        CELLOOM_TRY(dropout, numberIn<double>(text, setting, 0, 0.999999, "0 to below 1"));
        lora.dropout = dropout;
    }
    return {};
}

Status applySetting(const std::string& text, const Setting& setting, Rule& rule) {
    const std::string& name = setting.name;
    if (!setting.hasValue) {
        if (name == "freeze" || name == "train")
            rule.frozen = name == "freeze";
        else if (name == "lora")
            rule.lora = LoraSettings{};
        else if (name == "rslora" || name == "dora") {
            if (!rule.lora) return badRule(text, "has " + name + " without lora before it");
            (name == "dora" ? rule.lora->useDora : rule.lora->useRsLora) = true;
        } else if (name == "train_bias")
            rule.trainBias = true;
        else if (name == "save")
            rule.saveWhole = true;
        else if (name == "recompute")
            rule.recompute = true;
        else
            return badRule(text, "has the unknown setting " + inQuotes(name));
        return {};
    }
    if (name == "r" || name == "alpha" || name == "dropout") {
        if (!rule.lora) return badRule(text, "has " + name + "= without lora before it");
        return applyLora(text, setting, *rule.lora);
    }
    if (name == "dtype") {
        if (setting.value != "float32" && setting.value != "bfloat16" && setting.value != "float16")
            return badRule(text, "has dtype=" + setting.value + ", must be float32, bfloat16 or float16");
        rule.dtype = setting.value;
    } else if (name == "recompute" && (setting.value == "true" || setting.value == "false")) {
        rule.recompute = setting.value == "true";
    } else if (name == "stage") {
        CELLOOM_TRY(stage, numberIn<std::int64_t>(text, setting, 0, 4095, "0 to 4095"));
        rule.stage = stage;
    } else if (name == "lr_scale") {
        CELLOOM_TRY(scale, numberIn<double>(text, setting, 0, 1e6, "0 to 1000000"));
        rule.lrScale = scale;
    } else if (name == "weight_decay") {
        CELLOOM_TRY(decay, numberIn<double>(text, setting, 0, 100, "0 to 100"));
        rule.weightDecay = decay;
    } else {
        return badRule(text, "has the unknown setting " + inQuotes(name + "=" + setting.value));
    }
    return {};
}

} // namespace

Result<Rule> parseRule(const std::string& text) {
    const auto colon = text.find(':');
    if (colon == std::string::npos) return badRule(text, "has no colon after its pattern");
    const auto first = text.find_first_not_of(" \t");
    const auto last = colon == 0 ? std::string::npos : text.find_last_not_of(" \t", colon - 1);
    Rule rule;
    if (first < colon && last != std::string::npos) rule.pattern = text.substr(first, last - first + 1);
    CELLOOM_TRY_STATUS(PathPattern::parse(rule.pattern).map([](const PathPattern&) {}));
    const auto settings = settingsOf(text.substr(colon + 1));
    if (settings.empty()) return badRule(text, "has no setting after its pattern");
    std::set<std::string> seen;
    for (const Setting& setting : settings) {
        if (!seen.insert(setting.name == "train" ? "freeze" : setting.name).second)
            return badRule(text, "gives " + setting.name + " twice");
        CELLOOM_TRY_STATUS(applySetting(text, setting, rule));
    }
    return rule;
}

std::string toText(const Rule& rule) {
    std::string out = rule.pattern + ":";
    if (rule.frozen) out += *rule.frozen ? " freeze" : " train";
    if (rule.lora) {
        out += " lora r=" + std::to_string(rule.lora->rank) + " alpha=" + numberText(rule.lora->alpha);
        if (rule.lora->dropout != 0) out += " dropout=" + numberText(rule.lora->dropout);
        if (rule.lora->useRsLora) out += " rslora";
        if (rule.lora->useDora) out += " dora";
    }
    if (rule.trainBias) out += " train_bias";
    if (rule.saveWhole) out += " save";
    if (rule.dtype) out += " dtype=" + *rule.dtype;
    if (rule.recompute) out += *rule.recompute ? " recompute" : " recompute=false";
    if (rule.stage) out += " stage=" + std::to_string(*rule.stage);
    if (rule.lrScale) out += " lr_scale=" + numberText(*rule.lrScale);
    if (rule.weightDecay) out += " weight_decay=" + numberText(*rule.weightDecay);
    return out;
}

// ---- treatments ----

double LoraSettings::scale() const {
    const auto r = static_cast<double>(rank);
    return useRsLora ? alpha / std::sqrt(r) : alpha / r;
}

bool Treatment::trains(const std::string& weightName) const {
    if (saveWhole) return true;
    return frozen || lora ? trainBias && weightName == "bias" : true;
}

bool TreatmentTable::hasAdapters() const {
    return std::any_of(cells.begin(), cells.end(), [](const Treatment& cell) { return cell.lora.has_value(); });
}

// ---- resolution ----

bool takesAdapter(const graph::CellInstance& cell) {
    const catalog::CellType* type = catalog::find(cell.type);
    return type && type->takesAdapter;
}

std::vector<std::string> foldedNames(const graph::ExpandedModel& model, Cells which) {
    std::vector<std::string> order;
    std::map<std::string, std::vector<std::pair<std::int64_t, std::int64_t>>>
        ranges; // folded path -> lowest and highest number at each fold
    for (const auto& cell : model.cells) {
        if (which == Cells::TakingAdapters && !takesAdapter(cell)) continue;
        std::string folded;
        std::vector<std::int64_t> numbers;
        for (std::size_t from = 0; from <= cell.path.size();) {
            const auto dot = std::min(cell.path.find('.', from), cell.path.size());
            const std::string name = cell.path.substr(from, dot - from);
            from = dot + 1;
            std::int64_t number = 0;
            const bool isNumber = readNumber(name, number);
            if (isNumber) numbers.push_back(number);
            folded += (folded.empty() ? "" : ".") + (isNumber ? "{}" : name);
        }
        auto [found, isNew] = ranges.try_emplace(folded);
        if (isNew) order.push_back(folded);
        for (std::size_t i = 0; i < numbers.size(); ++i) {
            if (isNew) found->second.emplace_back(numbers[i], numbers[i]);
            found->second[i] = {std::min(found->second[i].first, numbers[i]), std::max(found->second[i].second, numbers[i])};
        }
    }
    std::vector<std::string> out;
    for (const std::string& folded : order) {
        std::string name;
        std::size_t used = 0;
        for (std::size_t i = 0; i < folded.size(); ++i) {
            if (folded.compare(i, 2, "{}") != 0) {
                name += folded[i];
                continue;
            }
            const auto [low, high] = ranges[folded][used++];
            name += low == high ? std::to_string(low) : "{" + std::to_string(low) + ".." + std::to_string(high) + "}";
            ++i;
        }
        out.push_back(std::move(name));
    }
    return out;
}

namespace {

void apply(const Rule& rule, const graph::CellInstance& cell, Treatment& treatment) {
    if (rule.frozen) treatment.frozen = *rule.frozen;
    if (rule.lora && takesAdapter(cell)) treatment.lora = rule.lora;
    if (rule.dtype) treatment.dtype = *rule.dtype;
    if (rule.recompute) treatment.recompute = *rule.recompute;
    if (rule.stage) treatment.stage = *rule.stage;
    if (rule.lrScale) treatment.lrScale = *rule.lrScale;
    if (rule.weightDecay) treatment.weightDecay = rule.weightDecay;
    if (rule.trainBias) treatment.trainBias = *rule.trainBias;
    if (rule.saveWhole) treatment.saveWhole = *rule.saveWhole;
}

} // namespace

Result<TreatmentTable> resolve(const graph::ExpandedModel& model, const std::vector<Rule>& rules) {
    TreatmentTable table;
    table.cells.resize(model.cells.size());
    CELLOOM_TRY_STATUS(resolveOnto(table, model, rules));
    return table;
}

Status resolveOnto(TreatmentTable& table, const graph::ExpandedModel& model, const std::vector<Rule>& rules) {
    CELLOOM_CHECK(table.cells.size() == model.cells.size());
    for (std::size_t r = 0; r < rules.size(); ++r) {
        const Rule& rule = rules[r];
        const std::string place = "rules[" + std::to_string(r) + "]";
        const auto reached = cellsOf(model, rule);
        if (!reached) return fail(reached.error().message, reached.error().hint, place);
        std::size_t adaptable = 0;
        for (const std::size_t i : *reached) {
            adaptable += takesAdapter(model.cells[i]) ? 1 : 0;
            apply(rule, model.cells[i], table.cells[i]);
        }
        const std::size_t matched = reached->size();
        if (matched > 0 && (!rule.lora || adaptable > 0)) continue;
        const std::string names = joined(foldedNames(model, rule.lora ? Cells::TakingAdapters : Cells::All), 40);
        const auto below = PathPattern::parse(rule.pattern + ".**");
        const bool isGroup =
            matched == 0 && std::any_of(model.cells.begin(), model.cells.end(),
                                        [&](const graph::CellInstance& cell) { return below && below->matches(cell.path); });
        if (isGroup)
            return fail("the pattern " + inQuotes(rule.pattern) + " names a group of cells, not a cell.",
                        "Write " + rule.pattern + ".** for all inside.", place);
        if (matched == 0)
            return fail("the pattern " + inQuotes(rule.pattern) + " matches no cell of the model.", "Its cells are " + names + ".", place);
        return fail("the pattern " + inQuotes(rule.pattern) + " asks for LoRA, but no cell that it matches takes an adapter.",
                    "Cells that do are " + names + ".", place);
    }
    return {};
}

} // namespace celloom::recipe
