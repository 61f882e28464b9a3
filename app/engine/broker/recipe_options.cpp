#include "app/engine/broker/recipe_options.h"

namespace celloom::app {
namespace {

std::string labelOf(const recipe::Field& field) {
    for (const recipe::Section& section : recipe::sections())
        if (section.key == field.section) return section.label;
    return field.section;
}

std::string helpOf(const recipe::Field& field) {
    const std::string standard = recipe::Recipe().toText(field.key);
    std::string help = field.help;
    if (field.kind == recipe::FieldKind::Integer || field.kind == recipe::FieldKind::Real)
        help += " Range: " + recipe::rangeText(field) + (field.unit.empty() ? "" : " " + field.unit) + ".";
    if (field.kind == recipe::FieldKind::Choice) {
        help += " One of:";
        for (const std::string& choice : field.choices) help += " " + choice;
        help += ".";
    }
    return help + (standard.empty() ? "" : " Default: " + standard + ".");
}

bool isPath(const recipe::Field& field) {
    return field.kind == recipe::FieldKind::Path || field.kind == recipe::FieldKind::PathList;
}

} // namespace

RecipeOptions::RecipeOptions(CLI::App& verb) {
    for (const recipe::Field& field : recipe::fields())
        m_options[field.key] =
            verb.add_option("--" + field.key, m_given[field.key], helpOf(field))->group("Recipe: " + labelOf(field))->type_name("");
}

Result<recipe::Recipe> RecipeOptions::load(const std::string& path) const {
    CELLOOM_TRY(fromFile, recipe::Recipe::load(path));
    recipe::Recipe recipe = fromFile.withAbsolutePaths(); // the file's paths are meant from its folder
    recipe.setFolder({});                                 // and those given here from the current one
    for (const auto& [key, option] : m_options)
        if (option->count() > 0) CELLOOM_TRY_STATUS(recipe.setFromText(key, m_given.at(key)));
    return recipe.withAbsolutePaths();
}

nlohmann::json RecipeOptions::changes() const {
    nlohmann::json changes = nlohmann::json::object();
    for (const recipe::Field& field : recipe::fields()) {
        if (m_options.at(field.key)->count() == 0) continue;
        std::string text = m_given.at(field.key);
        recipe::Recipe alone; // makes paths absolute here, where the current folder is the user's; what is wrong is said by the broker
        if (isPath(field) && alone.setFromText(field.key, text)) text = alone.withAbsolutePaths().toText(field.key);
        changes[field.key] = text;
    }
    return changes;
}

} // namespace celloom::app
