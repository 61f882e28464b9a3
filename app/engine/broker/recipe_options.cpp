#include "app/engine/broker/recipe_options.h"

#include "models/base/text.h"

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

std::string pathOfRun(const std::string& text, const store::Workspace& workspace) {
    std::error_code code;
    if (text.empty() || std::filesystem::exists(text, code)) return text;
    const auto run = workspace.findRun(text);
    return run ? run->path.string() : text;
}

/// Runs by number, name or "last" in a field that names models become their folders.
Status replaceRuns(recipe::Recipe& recipe, const std::string& key, const store::Workspace& workspace) {
    if (key == "model.weights" || key == "lora.adapter") return recipe.set(key, pathOfRun(recipe.text(key), workspace));
    if (key != "model.adapters") return {};
    std::vector<std::string> paths = recipe.list(key);
    for (std::string& path : paths) path = pathOfRun(path, workspace);
    return recipe.set(key, std::move(paths));
}

} // namespace

RecipeOptions::RecipeOptions(CLI::App& verb) {
    verb.add_option("--set", m_set,
                    "Sets a field of the recipe: --set optimizer.lr=1e-3; may be given many times. --optimizer.lr 1e-3 says the same.")
        ->type_name("key=value")
        ->expected(1)
        ->take_all();
    for (const recipe::Field& field : recipe::fields())
        m_options[field.key] =
            verb.add_option("--" + field.key, m_given[field.key], helpOf(field))->group("Recipe: " + labelOf(field))->type_name("");
}

Result<std::vector<std::pair<std::string, std::string>>> RecipeOptions::given() const {
    std::vector<std::pair<std::string, std::string>> all;
    for (const std::string& item : m_set) {
        const std::size_t equals = item.find('=');
        if (equals == std::string::npos || equals == 0)
            return fail("is " + inQuotes(item, 40) + ", expected key=value.", "For example --set optimizer.lr=1e-3.", "--set");
        all.emplace_back(item.substr(0, equals), item.substr(equals + 1));
    }
    for (const recipe::Field& field : recipe::fields())
        if (m_options.at(field.key)->count() > 0) all.emplace_back(field.key, m_given.at(field.key));
    return all;
}

Result<recipe::Recipe> RecipeOptions::load(const std::string& path, const store::Workspace* workspace) const {
    CELLOOM_TRY(fromFile, recipe::Recipe::load(path));
    recipe::Recipe recipe = fromFile.withAbsolutePaths(); // the file's paths are meant from its folder
    recipe.setFolder({});                                 // and those given here from the current one
    CELLOOM_TRY(all, given());
    for (const auto& [key, text] : all) {
        CELLOOM_TRY_STATUS(recipe.setFromText(key, text));
        if (workspace) CELLOOM_TRY_STATUS(replaceRuns(recipe, key, *workspace));
    }
    return recipe.withAbsolutePaths().withScriptsRead(); // files lie here, where the command is given, and not where the run takes place
}

Result<nlohmann::json> RecipeOptions::changes() const {
    nlohmann::json changes = nlohmann::json::object();
    CELLOOM_TRY(all, given());
    for (const auto& [key, text] : all) {
        recipe::Recipe alone; // finds what is wrong, and makes paths absolute here, where the current folder is the user's
        CELLOOM_TRY_STATUS(alone.setFromText(key, text));
        if (recipe::findField(key)->kind == recipe::FieldKind::ScriptList) {
            CELLOOM_TRY(read, alone.withScriptsRead());
            changes[key] = read.toText(key);
            continue;
        }
        changes[key] = isPath(*recipe::findField(key)) ? alone.withAbsolutePaths().toText(key) : text;
    }
    return changes;
}

} // namespace celloom::app
