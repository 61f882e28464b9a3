#include "models/recipe/measures.h"

#include "models/base/text.h"
#include "models/recipe/typed_script.h"

#include <algorithm>
#include <set>

namespace celloom::recipe {
namespace {

constexpr const char* kForm = "Write \"output -> label: Type weight=1\", as in \"logits -> label: SoftmaxCrossEntropyWithLogits weight=0.3\".";

bool isIn(const std::vector<std::string>& list, const std::string& name) { return std::find(list.begin(), list.end(), name) != list.end(); }

bool hasValidation(const Recipe& recipe) { return !recipe.list("data.validation").empty() || recipe.real("data.validation_fraction") > 0; }

void checkMonitor(const Recipe& recipe, const std::string& key, std::vector<Problem>& out) {
    const std::string& monitor = recipe.text(key);
    if (monitor != "loss" && !hasValidation(recipe))
        out.push_back({Problem::Severity::Error, key, "\"" + monitor + "\" is watched, but there is no validation data.", "Name validation files, or hold a part out."});
    else if (const auto known = monitorsOf(recipe); !isIn(known, monitor))
        out.push_back({Problem::Severity::Error, key, "\"" + monitor + "\" is watched, which no evaluation measures.",
                       "It can be " + joined(known) + "; add a metric to evaluate.metrics to watch it."});
}

void checkMetrics(const Recipe& recipe, std::vector<Problem>& out) {
    std::set<std::string> seen;
    for (const std::string& name : recipe.list("evaluate.metrics")) {
        if (!isIn(metricNames(), name)) {
            const auto near = nearest(name, metricNames(), 1);
            out.push_back({Problem::Severity::Error, "evaluate.metrics", inQuotes(name) + " is no metric.",
                           (near.empty() ? std::string() : "Did you mean \"" + near[0] + "\"? ") + "There are " + joined(metricNames()) + "."});
        } else if (!seen.insert(name).second) {
            out.push_back({Problem::Severity::Error, "evaluate.metrics", "The metric \"" + name + "\" is named twice.", "Name it once."});
        } else if (isTextMetric(name) && ((recipe.text("kind") != "finetune" && recipe.text("kind") != "evaluate") || recipe.integer("evaluate.generate") == 0)) {
            out.push_back({Problem::Severity::Error, "evaluate.metrics", "\"" + name + "\" compares answers, but none are asked for.",
                           "Set evaluate.generate, on questions and answers."});
        }
    }
}

} // namespace

const std::vector<std::string>& lossTypes() {
    static const std::vector<std::string> types{"SoftmaxCrossEntropyWithLogits", "MSELoss", "L1Loss", "BCELoss", "BCEWithLogitsLoss"};
    return types;
}

Result<LossTermSpec> parseLossTerm(const std::string& text) {
    const auto wrong = [&](const std::string& what) { return fail("The loss term " + inQuotes(text) + " " + what, kForm, "loss.terms"); };
    const std::size_t arrow = text.find("->"), colon = text.find(':');
    if (arrow == std::string::npos || colon == std::string::npos || colon < arrow) return wrong("is not in this form.");
    LossTermSpec out;
    out.output = trimmed(text.substr(0, arrow));
    out.label = trimmed(text.substr(arrow + 2, colon - arrow - 2));
    std::string rest = trimmed(text.substr(colon + 1));
    if (out.output.empty() || out.label.empty()) return wrong("names no output or no label.");
    const std::size_t space = rest.find_first_of(" \t");
    out.type = rest.substr(0, space);
    if (!isIn(lossTypes(), out.type)) {
        const auto near = nearest(out.type, lossTypes(), 1);
        return fail("The loss " + inQuotes(out.type) + " is not known.", (near.empty() ? std::string() : "Did you mean " + near[0] + "? ") + "There are " + joined(lossTypes()) + ".",
                    "loss.terms");
    }
    rest = space == std::string::npos ? std::string() : trimmed(rest.substr(space));
    if (rest.empty()) return out;
    if (!rest.starts_with("weight=") || !readNumber(std::string_view(rest).substr(7), out.weight) || !(out.weight > 0) || out.weight > 1e9)
        return wrong("ends in " + inQuotes(rest) + ", which is no weight above 0.");
    return out;
}

bool isOnTensors(const Recipe& recipe) { return recipe.text("data.format") == "tensors" || recipe.text("data.format") == "images"; }

Result<std::vector<LossTermSpec>> lossTermsOf(const Recipe& recipe) {
    std::vector<LossTermSpec> out;
    for (const std::string& text : recipe.list("loss.terms")) {
        CELLOOM_TRY(term, parseLossTerm(text));
        out.push_back(std::move(term));
    }
    if (!out.empty()) return out;
    if (!isIn(lossTypes(), recipe.text("loss.type")))
        return fail("The loss of a run on named columns is not chosen.", "Choose one of " + joined(lossTypes()) + ", or write loss.terms.", "loss.type");
    return std::vector{LossTermSpec{{}, {}, recipe.text("loss.type")}};
}

const std::vector<std::string>& metricNames() {
    static const std::vector<std::string> names{"accuracy", "top_1_accuracy", "top_5_accuracy", "precision", "recall", "F1", "mae", "mse", "bleu", "rouge_l"};
    return names;
}

bool isTextMetric(const std::string& name) { return name == "bleu" || name == "rouge_l"; }

std::vector<std::string> monitorsOf(const Recipe& recipe) {
    std::vector<std::string> out{"loss", "eval_loss"};
    if (!isOnTensors(recipe)) out.emplace_back("eval_perplexity");
    for (const std::string& name : recipe.list("evaluate.metrics"))
        if (!isTextMetric(name)) out.push_back("eval_" + name);
    if (const auto scripts = typedScripts(recipe.list("callbacks.scripts")))
        for (const TypedScript& script : *scripts)
            if (script.code.find("Metric)") != std::string::npos) out.push_back("eval_" + script.shownName()); // class X(Metric)
    return out;
}

std::vector<Problem> checkMeasures(const Recipe& recipe) {
    std::vector<Problem> out;
    if (isOnTensors(recipe)) {
        if (auto terms = lossTermsOf(recipe); !terms) out.push_back({Problem::Severity::Error, terms.error().place, terms.error().message, terms.error().hint});
        if (recipe.text("kind") == "finetune")
            out.push_back({Problem::Severity::Error, "data.format", "A fine-tuning learns from texts, not from named columns.", "Set kind to pretrain."});
    } else if (!recipe.list("loss.terms").empty() || recipe.text("loss.type") != "LanguageModel") {
        out.push_back({Problem::Severity::Error, "loss.type", "This loss compares named columns, but the data are tokens.",
                       "Set data.format to tensors, or leave the loss at LanguageModel."});
    }
    checkMetrics(recipe, out);
    if (recipe.integer("callbacks.early_stopping_patience") > 0) checkMonitor(recipe, "callbacks.early_stopping_monitor", out);
    if (recipe.integer("callbacks.reduce_lr_patience") > 0) {
        checkMonitor(recipe, "callbacks.reduce_lr_monitor", out);
        if (recipe.text("schedule.type") != "constant")
            out.push_back({Problem::Severity::Warning, "callbacks.reduce_lr_patience", "From the first reduction on, the learning rate's schedule counts no longer.",
                           "A constant schedule goes best with a plateau."});
    }
    return out;
}

} // namespace celloom::recipe
