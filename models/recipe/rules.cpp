#include "models/recipe/rules.h"

#include "models/base/text.h"
#include "models/catalog/catalog.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <set>

namespace celloom::recipe {
namespace {

constexpr std::size_t kMaxPatternBytes = 1024;

tl::unexpected<Error> badPattern(const std::string& pattern, const std::string& what) {
    return fail("the pattern " + inQuotes(pattern) + " " + what + ".", "Patterns look like layers.{3..5}.*.W_pack or **.norm.");
}

template <class Number> bool readNumber(std::string_view text, Number& number) {
    const auto end = std::from_chars(text.data(), text.data() + text.size(), number);
    return end.ec == std::errc() && end.ptr == text.data() + text.size();
}

/// Splits at `separator` outside of braces.
std::vector<std::string> splitOutsideBraces(const std::string& text, char separator) {
    std::vector<std::string> out(1);
    bool isInside = false;
    for (const char c : text) {
        if (c == '{' || c == '}') isInside = c == '{';
        if (c == separator && !isInside) out.emplace_back();
        else out.back() += c;
    }
    return out;
}

bool isWholeNumber(std::string_view text) {
    return !text.empty() && text.size() <= 18 && text.find_first_not_of("0123456789") == std::string_view::npos && (text.size() == 1 || text[0] != '0');
}

} // namespace

// ---- patterns ----

Result<PathPattern::Name> PathPattern::parseName(const std::string& name, const std::string& whole) {
    Name out;
    if (name.empty()) return badPattern(whole, "has an empty name");
    if (name == "**") {
        out.isAnyNumber = true;
        return out;
    }
    for (std::size_t i = 0; i < name.size();) {
        Piece piece;
        if (name[i] == '*') {
            if (i + 1 < name.size() && name[i + 1] == '*') return badPattern(whole, "joins ** with other text in one name");
            piece.isStar = true;
            ++i;
        } else if (name[i] == '{') {
            const auto close = name.find('}', i);
            if (close == std::string::npos) return badPattern(whole, "has a { without its }");
            for (const std::string& item : splitOutsideBraces(name.substr(i + 1, close - i - 1), ',')) {
                Alternative alternative{item};
                const auto dots = item.find("..");
                if (item.empty() || item.find_first_of("{*") != std::string::npos) return badPattern(whole, "has braces that hold no plain name or range");
                if (dots != std::string::npos) {
                    const bool isRange = readNumber(std::string_view(item).substr(0, dots), alternative.low) &&
                                         readNumber(std::string_view(item).substr(dots + 2), alternative.high);
                    if (!isRange || alternative.low < 0 || alternative.low > alternative.high)
                        return badPattern(whole, "has " + inQuotes(item) + ", which is no range such as 3..5");
                } else if (item.find('.') != std::string::npos) {
                    return badPattern(whole, "has a dot inside braces");
                }
                piece.alternatives.push_back(std::move(alternative));
            }
            i = close + 1;
        } else {
            const auto end = std::min(name.find_first_of("*{", i), name.size());
            piece.alternatives.push_back({name.substr(i, end - i)});
            if (piece.alternatives.back().text.find('}') != std::string::npos) return badPattern(whole, "has a } without its {");
            i = end;
        }
        out.pieces.push_back(std::move(piece));
    }
    return out;
}

Result<PathPattern> PathPattern::parse(const std::string& text) {
    if (text.empty()) return fail("the pattern is empty.", "** matches every cell.");
    if (text.size() > kMaxPatternBytes) return fail("the pattern is longer than " + std::to_string(kMaxPatternBytes) + " bytes.");
    if (text.find_first_of(" \t\r\n:") != std::string::npos) return badPattern(text, "has a space or a colon");
    PathPattern out;
    for (const std::string& name : splitOutsideBraces(text, '.')) {
        CELLOOM_TRY(parsed, parseName(name, text));
        out.m_names.push_back(std::move(parsed));
    }
    return out;
}

/// All positions that the pieces so far can reach, moved on piece by piece: polynomial whatever the pattern.
bool PathPattern::matchesName(const Name& name, std::string_view text) {
    std::vector<bool> reached(text.size() + 1);
    reached[0] = true;
    for (const Piece& piece : name.pieces) {
        std::vector<bool> next(text.size() + 1);
        for (std::size_t at = 0; at <= text.size(); ++at) {
            if (!reached[at]) continue;
            if (piece.isStar) {
                std::fill(next.begin() + static_cast<std::ptrdiff_t>(at), next.end(), true);
                break;
            }
            for (const Alternative& alternative : piece.alternatives) {
                if (alternative.low > alternative.high) {
                    if (text.substr(at).starts_with(alternative.text)) next[at + alternative.text.size()] = true;
                    continue;
                }
                std::int64_t number = 0;
                for (std::size_t length = 1; at + length <= text.size() && isWholeNumber(text.substr(at, length)); ++length)
                    if (readNumber(text.substr(at, length), number) && number >= alternative.low && number <= alternative.high) next[at + length] = true;
            }
        }
        reached = std::move(next);
    }
    return reached[text.size()];
}

bool PathPattern::matches(const std::string& path) const {
    std::vector<bool> reached(m_names.size() + 1); // names of the pattern that the path so far has used up
    const auto skipAnyNumber = [&] {
        for (std::size_t i = 0; i < m_names.size(); ++i)
            if (reached[i] && m_names[i].isAnyNumber) reached[i + 1] = true;
    };
    reached[0] = true;
    skipAnyNumber();
    for (std::size_t from = 0; from <= path.size();) {
        const auto dot = std::min(path.find('.', from), path.size());
        const auto name = std::string_view(path).substr(from, dot - from);
        std::vector<bool> next(m_names.size() + 1);
        for (std::size_t i = 0; i < m_names.size(); ++i) {
            if (!reached[i]) continue;
            if (m_names[i].isAnyNumber) next[i] = true;
            else if (matchesName(m_names[i], name)) next[i + 1] = true;
        }
        reached = std::move(next);
        skipAnyNumber();
        from = dot + 1;
    }
    return reached[m_names.size()];
}

bool matches(const std::string& pattern, const std::string& path) {
    const auto parsed = PathPattern::parse(pattern);
    return parsed && parsed->matches(path);
}

// ---- the text form ----

namespace {

tl::unexpected<Error> badRule(const std::string& text, const std::string& what) {
    return fail("the rule " + inQuotes(text) + " " + what + ".",
                "Rules look like \"layers.{3..5}.*.W_pack: lora r=8 alpha=16\"; settings are freeze, train, lora, dtype=, recompute, stage=, "
                "lr_scale= and weight_decay=.");
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
        if (equals == std::string::npos) out.push_back({word, "", false});
        else out.push_back({word.substr(0, equals), word.substr(equals + 1), true});
        at = text.find_first_not_of(" \t", end);
    }
    return out;
}

template <class Number> Result<Number> numberIn(const std::string& rule, const Setting& setting, Number low, Number high, const std::string& range) {
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
        if (name == "freeze" || name == "train") rule.frozen = name == "freeze";
        else if (name == "lora") rule.lora = LoraSettings{};
        else if (name == "recompute") rule.recompute = true;
        else return badRule(text, "has the unknown setting " + inQuotes(name));
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
        if (!seen.insert(setting.name == "train" ? "freeze" : setting.name).second) return badRule(text, "gives " + setting.name + " twice");
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
    }
    if (rule.dtype) out += " dtype=" + *rule.dtype;
    if (rule.recompute) out += *rule.recompute ? " recompute" : " recompute=false";
    if (rule.stage) out += " stage=" + std::to_string(*rule.stage);
    if (rule.lrScale) out += " lr_scale=" + numberText(*rule.lrScale);
    if (rule.weightDecay) out += " weight_decay=" + numberText(*rule.weightDecay);
    return out;
}

// ---- resolution ----

namespace {

bool takesAdapter(const graph::CellInstance& cell) {
    const catalog::CellType* type = catalog::find(cell.type);
    return type && type->takesAdapter;
}

/// The model's cell paths with repeats folded: "layers.{0..39}.self_attn.W_pack".
std::vector<std::string> realNames(const graph::ExpandedModel& model, bool withAdaptersOnly) {
    std::vector<std::string> order;
    std::map<std::string, std::vector<std::pair<std::int64_t, std::int64_t>>> ranges; // folded path -> lowest and highest number at each fold
    for (const auto& cell : model.cells) {
        if (withAdaptersOnly && !takesAdapter(cell)) continue;
        std::string folded;
        std::vector<std::int64_t> numbers;
        for (const std::string& name : splitOutsideBraces(cell.path, '.')) {
            std::int64_t number = 0;
            const bool isNumber = isWholeNumber(name) && readNumber(std::string_view(name), number);
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

void apply(const Rule& rule, const graph::CellInstance& cell, Treatment& treatment) {
    if (rule.frozen) treatment.frozen = *rule.frozen;
    if (rule.lora && takesAdapter(cell)) treatment.lora = rule.lora;
    if (rule.dtype) treatment.dtype = *rule.dtype;
    if (rule.recompute) treatment.recompute = *rule.recompute;
    if (rule.stage) treatment.stage = *rule.stage;
    if (rule.lrScale) treatment.lrScale = *rule.lrScale;
    if (rule.weightDecay) treatment.weightDecay = rule.weightDecay;
}

} // namespace

Result<TreatmentTable> resolve(const graph::ExpandedModel& model, const std::vector<Rule>& rules) {
    TreatmentTable table;
    table.cells.resize(model.cells.size());
    for (std::size_t r = 0; r < rules.size(); ++r) {
        const Rule& rule = rules[r];
        const std::string place = "rules[" + std::to_string(r) + "]";
        const auto pattern = PathPattern::parse(rule.pattern);
        if (!pattern) return fail(pattern.error().message, pattern.error().hint, place);
        std::size_t matched = 0, adaptable = 0;
        for (std::size_t i = 0; i < model.cells.size(); ++i) {
            if (!pattern->matches(model.cells[i].path)) continue;
            ++matched;
            adaptable += takesAdapter(model.cells[i]) ? 1 : 0;
            apply(rule, model.cells[i], table.cells[i]);
        }
        if (matched > 0 && (!rule.lora || adaptable > 0)) continue;
        const std::string names = joined(realNames(model, rule.lora.has_value()), 40);
        const bool isGroup = matched == 0 && std::any_of(model.cells.begin(), model.cells.end(), [&, below = PathPattern::parse(rule.pattern + ".**")](
                                                                                                     const auto& cell) { return below && below->matches(cell.path); });
        if (isGroup) return fail("the pattern " + inQuotes(rule.pattern) + " names a group of cells, not a cell.", "Write " + rule.pattern + ".** for all inside.", place);
        if (matched == 0) return fail("the pattern " + inQuotes(rule.pattern) + " matches no cell of the model.", "Its cells are " + names + ".", place);
        return fail("the pattern " + inQuotes(rule.pattern) + " asks for LoRA, but no cell that it matches takes an adapter.",
                    "Cells that do are " + names + ".", place);
    }
    return table;
}

} // namespace celloom::recipe
