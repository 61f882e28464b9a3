// The verbs of celloom-engine. main() owns the CLI::App and one Invocation; each group of verbs is one file with one add…Verbs().
// Results go to stdout, messages to stderr. A callback sets invocation.exitCode (protocol::ExitCode) and never calls exit().
#pragma once

#include "models/base/result.h"
#include "models/protocol/protocol.h"

#include <CLI/CLI.hpp>

#include <string>

namespace celloom::app {

/// What the command line as a whole said, and what the program will return. Outlives every callback.
struct Invocation {
    bool isJson = false;   // --json: results as JSON on stdout, errors as {"error": {message, hint, place}} on stderr
    std::string workspace; // --workspace, $CELLOOM_WORKSPACE or ./workspace
    int exitCode = protocol::Ok;

    /// Says the error on stderr (text, or JSON with --json) and sets the exit code: `code`, or DiskFull where that is what happened.
    void fail(const Error& error, int code = protocol::Failure);
};

void addRunVerbs(CLI::App& app,
                 Invocation& invocation); // serve, run, resume, list, show, stop, pause … set-lr, delete, export-metrics
void addModelVerbs(CLI::App& app, Invocation& invocation);      // forward
void addProbeVerb(CLI::App& app, Invocation& invocation);       // probe
void addGenerateVerbs(CLI::App& app, Invocation& invocation);   // predict, perplexity
void addEvaluateVerb(CLI::App& app, Invocation& invocation);    // evaluate
void addCheckpointVerbs(CLI::App& app, Invocation& invocation); // import, export-model, verify
void addDataVerbs(CLI::App& app, Invocation& invocation);       // data preview
void addChatVerbs(CLI::App& app, Invocation& invocation);       // chat, try-child
void addAdapterVerbs(CLI::App& app, Invocation& invocation);    // merge
void addMachineVerbs(CLI::App& app, Invocation& invocation);    // estimate, selftest, doctor
void addScriptVerbs(CLI::App& app, Invocation& invocation);     // check-script
void addLibraryVerbs(CLI::App& app, Invocation& invocation);    // library …, new
void addPluginVerbs(CLI::App& app, Invocation& invocation);     // plugin trust, list, untrust
void addTrainVerbs(CLI::App& app, Invocation& invocation);      // child

} // namespace celloom::app
