// A typed source tried before a run relies on it: read, compiled and called with made-up numbers in a child process whose memory, time and
// files are limited, since a hostile source can make the compiler itself run away.
#pragma once

#include "engine/script/script.h"
#include "models/recipe/recipe.h"

#include <optional>

namespace celloom::engine {

struct TrialLimits {
    std::int64_t memoryBytes = 256ll << 20; // beyond what the process has when it begins
    int processorSeconds = 2, seconds = 30;
};

struct Trial {
    ScriptReport report;
    std::optional<ScriptProblem> error;
};

/// Forks: call it before the process has started threads. What went wrong while the methods ran with made-up numbers is a warning, unless a
/// limit was exceeded.
Trial tryScript(const ScriptSpec& spec, const TrialLimits& limits = {});

/// All that a recipe holds: the first that cannot run, with its place.
Status tryScripts(const recipe::Recipe& recipe);

/// The answer of check-script --json: docs/file-formats.md.
std::string toJson(const Trial& trial);

} // namespace celloom::engine
