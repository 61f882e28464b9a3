#include "models/recipe/rule_edits.h"

#include "models/base/text.h"

#include <algorithm>
#include <set>

namespace celloom::recipe {
namespace {

/// Recomputation is a matter of whole layers, so that such a rule may name one.
bool saysOnlyRecompute(const Rule& rule) {
    Rule bare;
    bare.pattern = rule.pattern;
    bare.recompute = rule.recompute;
    return rule.recompute && bare == rule;
}

/// Visits each setting of a rule beside the same of another.
template <class Visit> void eachSetting(Rule& a, const Rule& b, const Visit& visit) {
    visit(a.frozen, b.frozen);
    visit(a.lora, b.lora);
    visit(a.dtype, b.dtype);
    visit(a.recompute, b.recompute);
    visit(a.stage, b.stage);
    visit(a.lrScale, b.lrScale);
    visit(a.weightDecay, b.weightDecay);
    visit(a.trainBias, b.trainBias);
    visit(a.saveWhole, b.saveWhole);
}

/// Takes away what `other` says too.
void takeAway(Rule& rule, const Rule& other) {
    eachSetting(rule, other, [](auto& mine, const auto& theirs) {
        if (theirs) mine.reset();
    });
}

bool isBare(const Rule& rule) {
    Rule bare;
    bare.pattern = rule.pattern;
    return rule == bare;
}

} // namespace

Result<std::vector<std::size_t>> cellsOf(const graph::ExpandedModel& model, const Rule& rule) {
    CELLOOM_TRY(pattern, PathPattern::parse(rule.pattern));
    const auto below = saysOnlyRecompute(rule) ? PathPattern::parse(rule.pattern + ".**") : Result<PathPattern>(fail("none"));
    std::vector<std::size_t> out;
    for (std::size_t i = 0; i < model.cells.size(); ++i)
        if (pattern.matches(model.cells[i].path) || (below && below->matches(model.cells[i].path))) out.push_back(i);
    return out;
}

std::vector<RuleBearing> bearingsOn(const graph::ExpandedModel& model, const std::vector<Rule>& rules, const std::vector<std::size_t>& cells) {
    const std::set<std::size_t> looked(cells.begin(), cells.end());
    struct Reached {
        std::size_t rule;
        std::set<std::size_t> here;
    };
    std::vector<RuleBearing> out;
    std::vector<Reached> reached;
    for (std::size_t r = 0; r < rules.size(); ++r) {
        const auto all = cellsOf(model, rules[r]);
        if (!all) continue;
        Reached one{r, {}};
        for (const std::size_t cell : *all)
            if (looked.contains(cell)) one.here.insert(cell);
        if (one.here.empty()) continue;
        out.push_back({r, all->size(), one.here.size(), false});
        reached.push_back(std::move(one));
    }
    for (std::size_t i = 0; i < out.size(); ++i) {
        Rule left = rules[out[i].rule];
        for (std::size_t later = i + 1; later < out.size(); ++later)
            if (std::includes(reached[later].here.begin(), reached[later].here.end(), reached[i].here.begin(), reached[i].here.end()))
                takeAway(left, rules[out[later].rule]);
        out[i].isOverridden = isBare(left);
    }
    return out;
}

std::string patternFor(const graph::ExpandedModel& model, const std::string& path, Reach reach) {
    if (path.empty()) return "**";
    std::string pattern;
    for (std::size_t from = 0; from <= path.size();) {
        const auto dot = std::min(path.find('.', from), path.size());
        const std::string name = path.substr(from, dot - from);
        std::int64_t number = 0;
        const bool isInstance = !pattern.empty() && readNumber(std::string_view(name), number);
        pattern += (pattern.empty() ? "" : ".") + (isInstance && reach == Reach::AllRepeats ? std::string("*") : name);
        from = dot + 1;
    }
    const bool isCell = std::any_of(model.cells.begin(), model.cells.end(), [&](const graph::CellInstance& cell) { return cell.path == path; });
    return isCell ? pattern : pattern + ".**";
}

Result<std::vector<std::string>> withRule(const std::vector<std::string>& rules, const Rule& rule) {
    std::vector<std::string> out;
    for (const std::string& text : rules) {
        CELLOOM_TRY(old, parseRule(text));
        if (old.pattern != rule.pattern) {
            out.push_back(text);
            continue;
        }
        Rule left = old;
        takeAway(left, rule);
        if (!isBare(left)) out.push_back(left == old ? text : toText(left));
    }
    out.push_back(toText(rule));
    return out;
}

} // namespace celloom::recipe
