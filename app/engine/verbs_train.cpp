// Verbs that train in this process. `run` and `resume` submit to the broker instead, which starts `child`.
#include "app/engine/child.h"
#include "app/engine/verbs.h"

namespace celloom::app {

void addTrainVerbs(CLI::App& app, Invocation& invocation) {
    const auto folder = std::make_shared<std::string>();
    CLI::App* child = app.add_subcommand("child", "Work on one run in this process (the broker calls this)");
    child->group(""); // not in the help: people use run and resume
    child->add_option("RUNFOLDER", *folder, "The run's folder, with its recipe.json")->required()->check(CLI::ExistingDirectory);
    child->callback([folder, &invocation] { invocation.exitCode = runChild(*folder); });
}

} // namespace celloom::app
