// Verbs about a recipe's data: data preview.
#include "app/engine/broker/recipe_options.h"
#include "app/engine/temporary_folder.h"
#include "app/engine/verbs.h"
#include "engine/data/preview.h"
#include "engine/exec/runtime.h"

#include <cstdio>
#include <unistd.h>

namespace celloom::app {
namespace {

struct PreviewArguments {
    std::string recipe;
    std::int64_t rows = 0;
    std::unique_ptr<RecipeOptions> options;
};

void runPreview(const PreviewArguments& arguments, Invocation& invocation) {
    const auto recipe = arguments.options->load(arguments.recipe);
    if (!recipe) return invocation.fail(recipe.error(), protocol::BadInput);
    const auto folder = TemporaryFolder::create();
    if (!folder) return invocation.fail(folder.error());
    engine::setThreads(0);
    const auto preview = engine::previewData(recipe->withAbsolutePaths(), folder->path(), arguments.rows);
    if (!preview) return invocation.fail(preview.error(), protocol::BadInput);
    const std::string text = invocation.isJson ? engine::toJson(*preview) + "\n" : engine::toText(*preview, ::isatty(STDOUT_FILENO) != 0);
    std::fputs(text.c_str(), stdout);
}

} // namespace

void addDataVerbs(CLI::App& app, Invocation& invocation) {
    CLI::App* data = app.add_subcommand("data", "Looks at a recipe's data");
    data->require_subcommand(1);
    auto arguments = std::make_shared<PreviewArguments>();
    CLI::App* verb = data->add_subcommand("preview", "The first batch that a run would learn from: tokens, labels, documents, positions; and counts");
    verb->add_option("recipe", arguments->recipe, "Recipe: a JSON file")->required();
    verb->add_option("--rows", arguments->rows, "Rows to show; 0: one batch")->check(CLI::Range(0, 100000))->capture_default_str();
    arguments->options = std::make_unique<RecipeOptions>(*verb);
    verb->callback([arguments, &invocation] { runPreview(*arguments, invocation); });
}

} // namespace celloom::app
