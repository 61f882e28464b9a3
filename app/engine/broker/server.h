// The broker's clients: sessions on its socket, numbered events, and the end of a broker that nobody needs.
#pragma once

#include "models/base/result.h"
#include "models/store/run_folder.h"

#include <chrono>
#include <filesystem>

namespace celloom::app {

struct ServeOptions {
    std::filesystem::path workspace;
    std::filesystem::path program;  // started for each run: program child RUNFOLDER
    int parallel = 1;               // runs on the processor at a time
    std::chrono::seconds idle{600}; // without clients, runs and queue for so long, the broker ends; 0: never
    int readyDescriptor = -1;       // gets "ready\n", or the reason why not, and is closed
};

/// Serves until it is idle, told to shut down, or gets SIGINT or SIGTERM. Runs go on in every case. Fails when the workspace cannot be
/// written or another broker serves it.
Status serve(const ServeOptions& options);

} // namespace celloom::app
