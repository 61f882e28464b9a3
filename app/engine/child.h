// The child: the one process that works on one run. Started by the broker for each run; only it writes the run's database.
#pragma once

#include <filesystem>

namespace celloom::app {

/// Carries out folder/recipe.json; a run that was begun before goes on from its newest checkpoint that verifies. Returns the exit code.
/// SIGTERM and SIGINT mean: finish the step, save, end.
int runChild(const std::filesystem::path& folder);

} // namespace celloom::app
