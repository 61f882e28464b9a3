#include "app/engine/child.h"

#include "engine/plugin/plugin.h"
#include "engine/script/trial.h"
#include "engine/train/llm_trainer.h"

#include <atomic>
#include <csignal>
#include <cstdio>
#include <unistd.h>

namespace celloom::app {
namespace {

std::atomic<bool> stopAsked{false}; // the one global: a signal handler can reach nothing else
static_assert(std::atomic<bool>::is_always_lock_free);

void askToStop(int) { stopAsked = true; }

/// A mapped file that somebody cut while it was read. Nothing more can be done here than to say so; the supervisor sees the signal.
void onBusError(int) {
    static constexpr char text[] = "error: a file that the run was reading became shorter (SIGBUS). Put it back as it was, then resume.\n";
    if (::write(STDERR_FILENO, text, sizeof text - 1) < 0) ::_exit(protocol::Failure);
    ::signal(SIGBUS, SIG_DFL);
    ::raise(SIGBUS);
}

void catchSignals() {
    ::signal(SIGBUS, onBusError);
    struct sigaction action {};
    action.sa_handler = askToStop;
    sigemptyset(&action.sa_mask);
    action.sa_flags = SA_RESTART;
    for (const int signal : {SIGTERM, SIGINT}) sigaction(signal, &action, nullptr);
    ::signal(SIGPIPE, SIG_IGN); // a reader that went away is no reason to end
}

int refuse(const Error& error, int code) {
    std::fprintf(stderr, "error: %s\n", error.text().c_str());
    return code;
}

Status tryScriptsOf(const std::filesystem::path& path) {
    const auto recipe = recipe::Recipe::load(path);
    return recipe ? engine::tryScripts(recipe->withAbsolutePaths()) : Status(); // a recipe that cannot be read is refused later
}

} // namespace

int runChild(const std::filesystem::path& path) {
    catchSignals();
    const store::RunFolder folder{std::filesystem::absolute(path)};
    const Status scriptsTried = tryScriptsOf(folder.recipe()); // forks: before any thread begins
    const store::Workspace workspace{folder.path.parent_path().parent_path()}; // workspace/runs/0042-name
    auto link = protocol::ChildLink::open(workspace, folder);
    if (!link) return refuse(link.error(), protocol::Failure);
    auto writer = store::RunWriter::open(folder.database());
    if (!writer) return refuse(writer.error(), protocol::Failure);
    auto recipe = recipe::Recipe::load(folder.recipe());
    if (!recipe) {
        const Error& error = recipe.error();
        (*writer)->event(0, "error", "failed", error.place.empty() ? error.message : error.place + ": " + error.message, error.hint);
        return refuse(recipe.error(), protocol::BadInput);
    }
    engine::LLMTrainer trainer({folder, workspace.cache(), **writer, link->get(), &stopAsked,
                                [](const std::string& line) {
                                    std::printf("%s\n", line.c_str());
                                    std::fflush(stdout);
                                },
                                scriptsTried,
                                {},
                                engine::cellsOf(workspace.path, engine::noteIn(**writer, link->get()))},
                               recipe->withAbsolutePaths());
    return trainer.run().code;
}

} // namespace celloom::app
