// The recipe's fields as options of a verb, generated from the registry: --optimizer.lr 1e-3. A new field appears by itself.
#pragma once

#include "models/base/result.h"
#include "models/recipe/recipe.h"
#include "models/store/run_folder.h"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace celloom::app {

class RecipeOptions {
public:
    /// Adds --set key=value and one option a field to `verb`, which must not outlive this.
    explicit RecipeOptions(CLI::App& verb);

    /// The recipe file with the options that were given on top. Paths given as options are meant from the current folder; with a workspace, a field that
    /// names a model takes a run of it too: its number, its name or "last".
    [[nodiscard]] Result<recipe::Recipe> load(const std::string& path, const store::Workspace* workspace = nullptr) const;
    /// Only what was given, as {"key": "text"}.
    [[nodiscard]] Result<nlohmann::json> changes() const;

private:
    /// What was given, in order: first every --set, then the fields' own options.
    [[nodiscard]] Result<std::vector<std::pair<std::string, std::string>>> given() const;

    std::vector<std::string> m_set;             // "key=value"
    std::map<std::string, std::string> m_given; // by key; empty: not given
    std::map<std::string, const CLI::Option*> m_options;
};

} // namespace celloom::app
