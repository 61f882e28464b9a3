#include "models/recipe/lora.h"

#include "models/base/text.h"
#include "models/families/families.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <regex>

namespace celloom::recipe {
namespace {

constexpr std::size_t kMaxRegexBytes = 1024;
constexpr const char* kAllLinear = "all-linear"; // PEFT's word

// ---- names ----

/// "self_attn.q_proj" is an end of "model.layers.0.self_attn.q_proj"; "proj" is none.
bool endsWithNames(const std::string& module, const std::string& names) {
    return module == names || module.ends_with("." + names);
}

/// Compiled so that no pattern takes more than polynomial time: adapter files bring their own.
Result<std::regex> compile(const std::string& pattern, const std::string& place) {
    const std::string hint = "Groups, alternatives, classes and repetitions are understood; back references and look-around are not.";
    if (pattern.size() > kMaxRegexBytes)
        return fail("the regular expression has " + std::to_string(pattern.size()) + " bytes, at most 1024 are read.", {}, place);
    try {
        return std::regex(pattern, std::regex::ECMAScript | std::regex_constants::__polynomial);
    } catch (const std::regex_error&) {
        return fail("the regular expression " + inQuotes(pattern) + " is not understood.", hint, place);
    }
}

bool isPathPattern(const std::string& text) { return text.find_first_of("*{") != std::string::npos; }

/// A test of one cell: its module name in checkpoints, and its path.
using Matcher = std::function<bool(const std::string& module, const std::string& path)>;

Result<Matcher> matcherOf(const std::string& item, const std::string& place) {
    if (item.find_first_of("\\|()[]^$+?") != std::string::npos)
        return fail(inQuotes(item) + " looks like a regular expression.", "Give it as lora.target_regex; lora.targets holds names and path patterns.",
                    place);
    if (!isPathPattern(item))
        return Matcher([item](const std::string& module, const std::string& path) { return endsWithNames(module, item) || endsWithNames(path, item); });
    const auto pattern = PathPattern::parse(item);
    if (!pattern) return fail(pattern.error().message, pattern.error().hint, place);
    return Matcher([pattern = *pattern](const std::string&, const std::string& path) { return pattern.matches(path); });
}

Result<Matcher> regexMatcher(const std::string& text, const std::string& place) {
    CELLOOM_TRY(expression, compile(text, place));
    return Matcher([expression](const std::string& module, const std::string& path) {
        return std::regex_match(module, expression) || std::regex_match(path, expression);
    });
}

// ---- layers ----

/// The number that layers_to_transform means: after one of the given names, else the last one that a name follows.
std::optional<std::int64_t> layerOf(const std::string& module, const std::vector<std::string>& after) {
    std::optional<std::int64_t> found;
    std::string before;
    for (std::size_t from = 0; from < module.size();) {
        const auto dot = module.find('.', from);
        if (dot == std::string::npos) break;
        const std::string name = module.substr(from, dot - from);
        std::int64_t number = 0;
        const bool isNamed = after.empty() || std::find(after.begin(), after.end(), before) != after.end();
        if (isNamed && readNumber(std::string_view(name), number)) found = number;
        before = name;
        from = dot + 1;
    }
    return found;
}

// ---- resolution ----

class Resolver {
public:
    Resolver(const graph::ExpandedModel& model, const LoraSpec& spec) : m_model(model), m_spec(spec) {
        for (const graph::CellInstance& cell : model.cells) m_modules.push_back(families::checkpointName(model.family, cell.path));
        m_table.cells.resize(model.cells.size());
        for (Treatment& treatment : m_table.cells) treatment.frozen = true;
    }

    Result<TreatmentTable> run() {
        CELLOOM_TRY_STATUS(checkLayers());
        CELLOOM_TRY_STATUS(chooseTargets());
        CELLOOM_TRY_STATUS(chooseRanks());
        CELLOOM_TRY_STATUS(chooseSaved());
        for (std::size_t i = 0; i < m_model.cells.size(); ++i) {
            const auto& weights = m_model.cells[i].weights;
            const bool hasBias = std::any_of(weights.begin(), weights.end(), [](const auto& weight) { return weight.name == "bias"; });
            Treatment& treatment = m_table.cells[i];
            treatment.trainBias = hasBias && (m_spec.bias == LoraSpec::Bias::All || (m_spec.bias == LoraSpec::Bias::LoraOnly && treatment.lora));
        }
        return std::move(m_table);
    }

private:
    [[nodiscard]] std::string names(Cells which) const { return joined(foldedNames(m_model, which), 40); }

    [[nodiscard]] bool isInLayers(std::size_t cell) const {
        const auto& wanted = m_spec.layersToTransform;
        if (wanted.empty()) return true;
        const auto layer = layerOf(m_modules[cell], m_spec.layersPattern);
        return layer && std::find(wanted.begin(), wanted.end(), *layer) != wanted.end();
    }

    Status checkLayers() const {
        std::int64_t last = -1;
        for (const std::string& module : m_modules) last = std::max(last, layerOf(module, m_spec.layersPattern).value_or(-1));
        for (const std::int64_t layer : m_spec.layersToTransform)
            if (layer < 0 || layer > last)
                return fail("there is no layer " + std::to_string(layer) + "; " +
                                (last < 0 ? "the model repeats nothing" : "the model has layers 0 to " + std::to_string(last)) + ".",
                            {}, "lora.layers_to_transform");
        return {};
    }

    /// Marks the adaptable cells that a matcher means, and counts them.
    Result<std::size_t> mark(const Matcher& matches, const std::string& said, const std::string& place) {
        std::size_t matched = 0, adaptable = 0, chosen = 0;
        for (std::size_t i = 0; i < m_model.cells.size(); ++i) {
            if (!matches(m_modules[i], m_model.cells[i].path) || m_isExcluded(m_modules[i], m_model.cells[i].path)) continue;
            ++matched;
            if (!takesAdapter(m_model.cells[i])) continue;
            ++adaptable;
            if (!isInLayers(i)) continue;
            ++chosen;
            m_table.cells[i].lora = m_spec.standard;
        }
        if (chosen > 0 || !m_spec.everyNameMustMatch) return chosen;
        if (matched == 0) return fail(inQuotes(said) + " matches no cell of the model.", "Cells that take an adapter are " + names(Cells::TakingAdapters) + ".", place);
        if (adaptable == 0) return fail("no cell that " + inQuotes(said) + " matches takes an adapter.", "Those that do are " + names(Cells::TakingAdapters) + ".", place);
        return fail(inQuotes(said) + " matches cells, but none in the chosen layers.", {}, "lora.layers_to_transform");
    }

    Status chooseExcluded() {
        std::vector<Matcher> all;
        for (const std::string& item : m_spec.excluded) {
            CELLOOM_TRY(matches, matcherOf(item, "exclude_modules"));
            all.push_back(std::move(matches));
        }
        if (!m_spec.excludedRegex.empty()) {
            CELLOOM_TRY(matches, regexMatcher(m_spec.excludedRegex, "exclude_modules"));
            all.push_back(std::move(matches));
        }
        m_isExcluded = [all](const std::string& module, const std::string& path) {
            return std::any_of(all.begin(), all.end(), [&](const Matcher& matches) { return matches(module, path); });
        };
        return {};
    }

    Status chooseTargets() {
        CELLOOM_TRY_STATUS(chooseExcluded());
        std::size_t chosen = 0;
        if (!m_spec.targetRegex.empty()) {
            CELLOOM_TRY(matches, regexMatcher(m_spec.targetRegex, "lora.target_regex"));
            CELLOOM_TRY(count, mark(matches, m_spec.targetRegex, "lora.target_regex"));
            chosen += count;
        }
        for (const std::string& item : m_spec.targets) {
            if (item == kAllLinear) {
                chosen += markAll();
                continue;
            }
            CELLOOM_TRY(matches, matcherOf(item, "lora.targets"));
            CELLOOM_TRY(count, mark(matches, item, "lora.targets"));
            chosen += count;
        }
        if (chosen > 0) return {};
        const std::string said = m_spec.targetRegex.empty() ? joined(m_spec.targets, 8) : m_spec.targetRegex;
        return fail(said.empty() ? "no cell is chosen to get an adapter." : inQuotes(said) + " matches no cell that takes an adapter.",
                    "Cells that take one are " + names(Cells::TakingAdapters) + ".", "lora.targets");
    }

    std::size_t markAll() {
        std::size_t chosen = 0;
        for (std::size_t i = 0; i < m_model.cells.size(); ++i) {
            if (!takesAdapter(m_model.cells[i]) || !isInLayers(i) || m_isExcluded(m_modules[i], m_model.cells[i].path)) continue;
            m_table.cells[i].lora = m_spec.standard;
            ++chosen;
        }
        return chosen;
    }

    /// Calls `set` with the value of the first pattern that matches, for every cell with an adapter.
    template <class Value, class Set>
    Status choosePattern(const std::vector<std::pair<std::string, Value>>& patterns, const std::string& place, Set set) {
        std::vector<std::regex> compiled;
        for (const auto& [pattern, value] : patterns) {
            CELLOOM_TRY(expression, compile("(.*\\.)?(" + pattern + ")", place));
            compiled.push_back(std::move(expression));
        }
        std::vector<bool> isUsed(patterns.size());
        for (std::size_t i = 0; i < m_table.cells.size(); ++i)
            for (std::size_t p = 0; m_table.cells[i].lora && p < patterns.size(); ++p)
                if (std::regex_match(m_modules[i], compiled[p])) {
                    set(*m_table.cells[i].lora, patterns[p].second);
                    isUsed[p] = true;
                    break;
                }
        for (std::size_t p = 0; p < patterns.size() && m_spec.everyNameMustMatch; ++p)
            if (!isUsed[p]) return fail(inQuotes(patterns[p].first) + " matches no cell with an adapter that an earlier pattern left.", {}, place);
        return {};
    }

    Status chooseRanks() {
        CELLOOM_TRY_STATUS(choosePattern(m_spec.rankPattern, "lora.rank_pattern", [](LoraSettings& lora, std::int64_t rank) { lora.rank = rank; }));
        return choosePattern(m_spec.alphaPattern, "lora.alpha_pattern", [](LoraSettings& lora, double alpha) { lora.alpha = alpha; });
    }

    Status chooseSaved() {
        for (const std::string& item : m_spec.modulesToSave) {
            CELLOOM_TRY(matches, matcherOf(item, "lora.modules_to_save"));
            std::size_t matched = 0;
            for (std::size_t i = 0; i < m_model.cells.size(); ++i) {
                if (m_model.cells[i].weights.empty() || !matches(m_modules[i], m_model.cells[i].path)) continue;
                if (m_table.cells[i].lora)
                    return fail(m_model.cells[i].path + " cannot both get an adapter and be saved whole.", {}, "lora.modules_to_save");
                m_table.cells[i].saveWhole = true;
                ++matched;
            }
            if (matched == 0 && m_spec.everyNameMustMatch)
                return fail(inQuotes(item) + " matches no cell with weights.", "The model's cells are " + names(Cells::All) + ".", "lora.modules_to_save");
        }
        return {};
    }

    const graph::ExpandedModel& m_model;
    const LoraSpec& m_spec;
    std::vector<std::string> m_modules; // by cell
    Matcher m_isExcluded;
    TreatmentTable m_table;
};

// ---- the recipe's section ----

/// "v_proj=2" as a pair.
template <class Number>
Result<std::pair<std::string, Number>> patternItem(const std::string& item, const std::string& key, Number low, Number high, const std::string& range) {
    const auto equals = item.rfind('=');
    Number number{};
    if (equals == std::string::npos || equals == 0 || !readNumber(std::string_view(item).substr(equals + 1), number) ||
        !(number >= low && number <= high))
        return fail(inQuotes(item) + " is no pattern with a number " + range + ".", "Write the end of a module's name and its number: v_proj=2.", key);
    return std::pair(item.substr(0, equals), number);
}

/// "3" or "0..5".
Status addLayers(const std::string& item, std::vector<std::int64_t>& layers) {
    constexpr std::int64_t kMost = 100000;
    const auto dots = item.find("..");
    const std::string_view first = std::string_view(item).substr(0, dots);
    const std::string_view last = dots == std::string::npos ? first : std::string_view(item).substr(dots + 2);
    std::int64_t low = 0, high = 0;
    if (!readNumber(first, low) || !readNumber(last, high) || low < 0 || high < low || high > kMost)
        return fail(inQuotes(item) + " is neither a layer's number nor a range such as 0..5.", {}, "lora.layers_to_transform");
    for (std::int64_t layer = low; layer <= high; ++layer) layers.push_back(layer);
    return {};
}

bool isInRepeatedCell(const std::string& path) { return layerOf(path, {}).has_value(); }

} // namespace

Result<TreatmentTable> resolveLora(const graph::ExpandedModel& model, const LoraSpec& spec) { return Resolver(model, spec).run(); }

bool usesLora(const Recipe& recipe) { return recipe.text("kind") == "finetune" && recipe.flag("lora.enabled"); }

Result<LoraSpec> loraSpecOf(const Recipe& recipe) {
    LoraSpec spec;
    spec.targetRegex = recipe.text("lora.target_regex");
    if (spec.targetRegex.empty() || !recipe.isDefault("lora.targets")) spec.targets = recipe.list("lora.targets");
    if (!spec.targetRegex.empty() && !spec.targets.empty())
        return fail("Targets are given as a list and as a regular expression.", "Empty one of the two.", "lora.target_regex");
    spec.standard = {recipe.integer("lora.rank"), recipe.real("lora.alpha"), recipe.real("lora.dropout"), recipe.flag("lora.rslora"), recipe.flag("lora.dora")};
    const std::string& bias = recipe.text("lora.bias");
    spec.bias = bias == "none" ? LoraSpec::Bias::None : bias == "all" ? LoraSpec::Bias::All : LoraSpec::Bias::LoraOnly;
    for (const std::string& item : recipe.list("lora.rank_pattern")) {
        CELLOOM_TRY(pair, patternItem<std::int64_t>(item, "lora.rank_pattern", 1, 65536, "from 1 to 65536"));
        spec.rankPattern.push_back(std::move(pair));
    }
    for (const std::string& item : recipe.list("lora.alpha_pattern")) {
        CELLOOM_TRY(pair, patternItem<double>(item, "lora.alpha_pattern", 1e-9, 1e9, "above 0"));
        spec.alphaPattern.push_back(std::move(pair));
    }
    for (const std::string& item : recipe.list("lora.layers_to_transform")) CELLOOM_TRY_STATUS(addLayers(item, spec.layersToTransform));
    spec.modulesToSave = recipe.list("lora.modules_to_save");
    return spec;
}

Result<TreatmentTable> treatmentOf(const Recipe& recipe, const graph::ExpandedModel& model) {
    TreatmentTable table;
    table.cells.resize(model.cells.size());
    if (usesLora(recipe)) {
        CELLOOM_TRY(spec, loraSpecOf(recipe));
        CELLOOM_TRY(resolved, resolveLora(model, spec));
        table = std::move(resolved);
    }
    if (recipe.flag("train.recompute"))
        for (std::size_t i = 0; i < model.cells.size(); ++i) table.cells[i].recompute = isInRepeatedCell(model.cells[i].path);
    CELLOOM_TRY(rules, recipe.rules());
    CELLOOM_TRY_STATUS(resolveOnto(table, model, rules));
    return table;
}

} // namespace celloom::recipe
