// celloom-engine: registers the verbs, parses the command line, returns the documented exit code. Nothing is computed here.
#include "app/engine/verbs.h"
#include "app/engine/verbs_code.h"
#include "engine/exec/memory.h"
#include "engine/exec/network.h"
#include "engine/exec/runtime.h"
#include "models/base/text.h"

#include <cstdlib>

namespace {

constexpr const char* kFooter = R"(Exit codes: 0 done; 1 failed while working; 2 wrong arguments; 3 recipe, graph, file or data refused;
4 stopped by the user or a signal; 5 the device asked for is not there; 6 out of memory; 7 disk full;
8 diverged (NaN or Inf); 9 the run's process was killed before it could save (resume goes on).
Results go to stdout, messages to stderr.)";

/// The first word that stands where a verb should; empty where a verb was found.
std::string unknownVerb(const CLI::App& app) {
    if (!app.get_subcommands().empty()) return {};
    for (const std::string& word : app.remaining())
        if (!word.starts_with("-")) return word;
    return {};
}

celloom::Error noSuchVerb(const CLI::App& app, const std::string& word) {
    std::vector<std::string> verbs;
    for (const CLI::App* verb : app.get_subcommands([](const CLI::App*) { return true; })) verbs.push_back(verb->get_name());
    const std::vector<std::string> close = celloom::nearest(word, verbs);
    return {"there is no verb " + celloom::inQuotes(word, 40) + ".",
            close.empty() ? "celloom-engine --help lists them." : "Did you mean " + celloom::joined(close) + "?",
            {}};
}

int parseAndRun(CLI::App& app, celloom::app::Invocation& invocation, int argc, char** argv) {
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        if (const std::string verb = unknownVerb(app); !verb.empty() && error.get_exit_code() != 0) {
            invocation.fail(noSuchVerb(app, verb), celloom::protocol::Usage);
            return invocation.exitCode;
        }
        // Help and version are "errors" with code 0.
        return app.exit(error) == 0 ? celloom::protocol::Ok : celloom::protocol::Usage;
    } catch (const std::exception& exception) { // what no verb expected: memory, mostly
        const celloom::Error error = celloom::engine::errorOf(exception);
        invocation.fail(error, celloom::engine::isOutOfMemory(error) ? celloom::protocol::OutOfMemory : celloom::protocol::Failure);
    }
    return invocation.exitCode;
}

} // namespace

int main(int argc, char** argv) {
    celloom::engine::setUpAllocator();
    celloom::engine::countTensorMemory();
    CLI::App app{"Celloom's engine: trains, evaluates and predicts, and serves the workbench.", "celloom-engine"};
    celloom::app::Invocation invocation;
    const char* fromEnvironment = std::getenv("CELLOOM_WORKSPACE");
    invocation.workspace = fromEnvironment && *fromEnvironment ? fromEnvironment : "workspace";

    app.set_version_flag("--version", "celloom-engine " CELLOOM_VERSION);
    app.add_flag("--json", invocation.isJson, "Results as JSON on stdout");
    app.add_option("--workspace", invocation.workspace, "Folder with the runs (default: $CELLOOM_WORKSPACE, or ./workspace)");
    app.require_subcommand(1);
    app.fallthrough(); // global options may follow the verb
    app.footer(kFooter);

    celloom::app::addRunVerbs(app, invocation);
    celloom::app::addModelVerbs(app, invocation);
    celloom::app::addProbeVerb(app, invocation);
    celloom::app::addGenerateVerbs(app, invocation);
    celloom::app::addEvaluateVerb(app, invocation);
    celloom::app::addCheckpointVerbs(app, invocation);
    celloom::app::addDataVerbs(app, invocation);
    celloom::app::addChatVerbs(app, invocation);
    celloom::app::addAdapterVerbs(app, invocation);
    celloom::app::addMachineVerbs(app, invocation);
    celloom::app::addScriptVerbs(app, invocation);
    celloom::app::addLibraryVerbs(app, invocation);
    celloom::app::addPluginVerbs(app, invocation);
    celloom::app::addCodeVerbs(app, invocation);
    celloom::app::addTrainVerbs(app, invocation);

    return parseAndRun(app, invocation, argc, argv);
}
