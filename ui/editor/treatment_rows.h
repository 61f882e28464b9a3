// The inspector's rows on how the recipe treats the chosen cells: the rules that reach them, each to be changed or removed, and a new one for
// one instance, for all repeats, or for a pattern. Writes the recipe's "rules"; there is no other mechanism.
#pragma once

#include "models/recipe/rule_edits.h"
#include "ui/common/model_analysis.h"

#include <QCoreApplication>
#include <QString>

#include <functional>
#include <string>
#include <vector>

class QVBoxLayout;
class QWidget;

namespace celloom::ui {

class RecipeDocument;
class Theme;

class TreatmentRows {
    Q_DECLARE_TR_FUNCTIONS(celloom::ui::TreatmentRows)
public:
    /// `rows` belongs to `holder`. Changes go to the recipe from the event loop, since they may rebuild the rows.
    TreatmentRows(QWidget* holder, QVBoxLayout* rows, const ModelAnalysisPtr& analysis, RecipeDocument& recipe, const Theme& theme)
        : m_holder(holder), m_rows(rows), m_analysis(analysis), m_recipe(recipe), m_theme(theme) {}

    /// The object name of what a new rule is put together in.
    static constexpr const char* kForm = "rule form";

    /// Where the treatment comes from beside the rules: the recipe's "lora" section, train.recompute.
    void addSources(const std::vector<std::size_t>& cells);
    void addRules(const std::vector<std::size_t>& cells);
    /// `path` of the instance that is chosen; empty: the whole model.
    void addNewRule(const std::string& path, const std::vector<std::size_t>& cells);

private:
    void addRule(const recipe::RuleBearing& bearing, const std::string& text);

    QWidget* m_holder;
    QVBoxLayout* m_rows;
    ModelAnalysisPtr m_analysis;
    RecipeDocument& m_recipe;
    const Theme& m_theme;
};

/// The rules with which the model's treatment can be resolved; else what is wrong with them.
Status checkRules(const recipe::Recipe& recipe, const graph::ExpandedModel& model, const std::vector<std::string>& rules);

} // namespace celloom::ui
