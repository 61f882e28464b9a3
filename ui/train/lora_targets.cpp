#include "ui/train/lora_targets.h"

#include "models/base/text.h"
#include "models/catalog/catalog.h"
#include "models/families/families.h"

#include <algorithm>
#include <array>
#include <map>
#include <functional>
#include <numeric>
#include <set>

namespace celloom::ui {

namespace {

constexpr const char* kAllLinear = "all-linear";
constexpr const char* kNumber = "{}"; // stands for a number in a folded name

std::vector<bool> withAdapter(const recipe::TreatmentTable& table) {
    std::vector<bool> out;
    for (const recipe::Treatment& treatment : table.cells) out.push_back(treatment.lora.has_value());
    return out;
}

/// Fills `possible` and `values`: what the cells would get if all were chosen.
void measureAll(const graph::ExpandedModel& model, recipe::LoraSpec spec, LoraChoice& choice) {
    spec.targets = {kAllLinear};
    spec.targetRegex.clear();
    spec.modulesToSave.clear();
    spec.everyNameMustMatch = false;
    auto table = recipe::resolveLora(model, spec);
    if (!table) { // layers that the model does not have: chooseLora says so
        spec.layersToTransform.clear();
        table = recipe::resolveLora(model, spec);
    }
    if (!table) return;
    choice.possible = withAdapter(*table);
    for (const recipe::ParameterRow& row : recipe::parameterTable(model, *table)) {
        const bool isItsBias = spec.bias == recipe::LoraSpec::Bias::LoraOnly && row.isTrainable;
        if (!row.isAdapter && !isItsBias) continue;
        choice.values[static_cast<std::size_t>(row.cell)] +=
            std::accumulate(row.dims.begin(), row.dims.end(), std::int64_t{1}, std::multiplies<>());
    }
}

bool endsWithNames(const std::string& whole, const std::string& names) {
    return whole == names || whole.ends_with("." + names);
}

std::vector<std::string> namesOf(const std::string& path) {
    std::vector<std::string> out(1);
    for (const char c : path) {
        if (c == '.')
            out.emplace_back();
        else
            out.back() += c;
    }
    return out;
}

std::string joinedNames(const std::vector<std::string>& names) {
    std::string out;
    for (const std::string& name : names) out += (out.empty() ? "" : ".") + name;
    return out;
}

/// Turns ticks into targets.
class Namer {
public:
    Namer(const graph::ExpandedModel& model, const std::vector<bool>& possible, const std::vector<bool>& ticked)
        : m_model(model), m_possible(possible), m_ticked(ticked), m_isCovered(model.cells.size()) {
        for (std::size_t i = 0; i < model.cells.size(); ++i) {
            m_modules.push_back(possible[i] ? families::checkpointName(model.family, model.cells[i].path) : std::string());
            if (!possible[i]) continue;
            const std::string folded = joinedNames(foldedPath(model.cells[i].path).names);
            if (m_groups.find(folded) == m_groups.end()) m_order.push_back(folded);
            m_groups[folded].push_back(i);
        }
    }

    std::vector<std::string> run() {
        if (std::find(m_ticked.begin(), m_ticked.end(), true) == m_ticked.end()) return {};
        if (m_ticked == m_possible) return {kAllLinear};
        for (const std::string& folded : m_order) nameGroup(m_groups[folded]);
        for (const auto& [head, lasts] : m_patterns) m_out.push_back(head + (lasts.size() == 1 ? lasts[0] : "{" + joinedBy(lasts) + "}"));
        return m_out;
    }

private:
    static std::string joinedBy(const std::vector<std::string>& items) {
        std::string out;
        for (const std::string& item : items) out += (out.empty() ? "" : ",") + item;
        return out;
    }

    void nameGroup(const std::vector<std::size_t>& cells) {
        std::vector<std::size_t> chosen;
        for (const std::size_t cell : cells)
            if (m_ticked[cell] && !m_isCovered[cell]) chosen.push_back(cell);
        if (chosen.empty()) return;
        const bool isWhole = std::all_of(cells.begin(), cells.end(), [this](std::size_t cell) { return m_ticked[cell]; });
        if (isWhole && nameByEnd(cells.front())) return;
        const FoldedPath first = foldedPath(m_model.cells[chosen.front()].path);
        if (first.numbers.size() == 1) {
            addPattern(first, chosen);
        } else {
            for (const std::size_t cell : chosen) addOne(m_model.cells[cell].path);
        }
    }

    /// The shortest end of the module's name that chooses ticked cells only.
    bool nameByEnd(std::size_t cell) {
        const std::vector<std::string> names = namesOf(m_modules[cell]);
        std::string end;
        for (auto name = names.rbegin(); name != names.rend(); ++name) {
            std::int64_t number = 0;
            if (readNumber(std::string_view(*name), number)) return false;
            end = end.empty() ? *name : *name + "." + end;
            if (choosesOnlyTicked(end)) {
                cover(end);
                m_out.push_back(end);
                return true;
            }
        }
        return false;
    }

    [[nodiscard]] bool isMeant(std::size_t cell, const std::string& end) const {
        return m_possible[cell] && (endsWithNames(m_modules[cell], end) || endsWithNames(m_model.cells[cell].path, end));
    }

    [[nodiscard]] bool choosesOnlyTicked(const std::string& end) const {
        for (std::size_t i = 0; i < m_ticked.size(); ++i)
            if (!m_ticked[i] && isMeant(i, end)) return false;
        return true;
    }

    void cover(const std::string& end) {
        for (std::size_t i = 0; i < m_ticked.size(); ++i)
            if (isMeant(i, end)) m_isCovered[i] = true;
    }

    /// "layers.{3..5}.self_attn." and the last name, so that cells of the same layers share a pattern.
    void addPattern(const FoldedPath& path, const std::vector<std::size_t>& cells) {
        std::vector<std::int64_t> numbers;
        for (const std::size_t cell : cells) numbers.push_back(foldedPath(m_model.cells[cell].path).numbers[0]);
        std::sort(numbers.begin(), numbers.end());
        std::string text = joinedNames(path.names);
        text.replace(text.find(kNumber), std::string_view(kNumber).size(), rangesOf(numbers));
        const auto dot = text.rfind('.'); // before the last name, or inside of a range
        const bool isSplit = dot != std::string::npos && text.find('}', dot) == std::string::npos;
        if (numbers.size() == 1 || !isSplit) return addOne(text);
        const std::string head = text.substr(0, dot + 1);
        auto found = std::find_if(m_patterns.begin(), m_patterns.end(), [&](const auto& pattern) { return pattern.first == head; });
        if (found == m_patterns.end()) found = m_patterns.insert(m_patterns.end(), {head, {}});
        found->second.push_back(text.substr(dot + 1));
    }

    /// A path as it stands is the end of a name; where that means others too, braces make it a pattern of the whole path.
    void addOne(const std::string& path) {
        if (path.find('{') != std::string::npos || choosesOnlyTicked(path)) return m_out.push_back(path);
        const auto dot = path.rfind('.') + 1; // 0 where there is none
        m_out.push_back(path.substr(0, dot) + "{" + path.substr(dot) + "}");
    }

    const graph::ExpandedModel& m_model;
    const std::vector<bool>& m_possible;
    const std::vector<bool>& m_ticked;
    std::vector<bool> m_isCovered;
    std::vector<std::string> m_modules, m_order, m_out;
    std::map<std::string, std::vector<std::size_t>> m_groups; // by folded path
    std::vector<std::pair<std::string, std::vector<std::string>>> m_patterns;
};

} // namespace

FoldedPath foldedPath(const std::string& path) {
    FoldedPath out;
    for (const std::string& name : namesOf(path)) {
        std::int64_t number = 0;
        if (!readNumber(std::string_view(name), number)) {
            out.names.push_back(name);
            continue;
        }
        out.numbers.push_back(number);
        if (out.names.empty())
            out.names.emplace_back(kNumber);
        else
            out.names.back() += std::string(".") + kNumber;
    }
    return out;
}

std::string rangesOf(const std::vector<std::int64_t>& numbers) {
    if (numbers.size() == 1) return std::to_string(numbers[0]);
    std::string out;
    for (std::size_t from = 0; from < numbers.size();) {
        std::size_t to = from;
        while (to + 1 < numbers.size() && numbers[to + 1] == numbers[to] + 1) ++to;
        out += (out.empty() ? "" : ",") + std::to_string(numbers[from]);
        if (to > from) out += (to == from + 1 ? "," : "..") + std::to_string(numbers[to]);
        from = to + 1;
    }
    return "{" + out + "}";
}

LoraChoice chooseLora(const recipe::Recipe& recipe, const graph::ExpandedModel& model) {
    LoraChoice choice;
    choice.possible.resize(model.cells.size());
    choice.values.resize(model.cells.size());
    choice.ticked.resize(model.cells.size());
    auto spec = recipe::loraSpecOf(recipe);
    if (!spec) {
        choice.error = spec.error();
        measureAll(model, {}, choice);
        return choice;
    }
    measureAll(model, *spec, choice);
    auto resolved = recipe::resolveLora(model, *spec);
    if (!resolved) {
        choice.error = resolved.error();
        spec->everyNameMustMatch = false;
        resolved = recipe::resolveLora(model, *spec);
    }
    if (!resolved) return choice;
    choice.ticked = withAdapter(*resolved);
    const auto whole = choice.error ? Result<recipe::TreatmentTable>(*resolved) : recipe::treatmentOf(recipe, model);
    choice.counts = recipe::countParameters(recipe::parameterTable(model, whole ? *whole : *resolved));
    return choice;
}

std::vector<std::string> targetsFor(const graph::ExpandedModel& model, const std::vector<bool>& possible, const std::vector<bool>& ticked) {
    return Namer(model, possible, ticked).run();
}

std::vector<bool> quickTargets(const graph::ExpandedModel& model, const std::vector<bool>& possible, QuickTargets which) {
    if (which == QuickTargets::AllLinear) return possible;
    const auto parentOf = [](const std::string& path) { return path.substr(0, std::min(path.rfind('.'), path.size())); };
    std::set<std::string> attentions; // composites that hold an attention cell
    for (const graph::CellInstance& cell : model.cells) {
        const catalog::CellType* type = catalog::find(cell.type);
        if (type && type->category == "Attention") attentions.insert(parentOf(cell.path));
    }
    // The names of q and v, and of matrices that hold them, in the families and in what most other decoders call them.
    static constexpr std::array<std::string_view, 9> queryAndValue{"q_proj",   "v_proj", "W_pack",   "wqkv",           "wq",
                                                                   "wv",       "qkv",    "qkv_proj", "query_key_value"};
    std::vector<bool> out(model.cells.size());
    for (std::size_t i = 0; i < model.cells.size(); ++i) {
        const std::string& path = model.cells[i].path;
        if (!possible[i] || attentions.count(parentOf(path)) == 0) continue;
        const std::string_view name = std::string_view(path).substr(path.rfind('.') + 1);
        out[i] = which == QuickTargets::Attention || std::find(queryAndValue.begin(), queryAndValue.end(), name) != queryAndValue.end();
    }
    return out;
}

} // namespace celloom::ui
