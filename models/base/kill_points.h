// Places where a test may ask for the process to die, so that recovery is tested at that very place.
// CELLOOM_TEST_KILL_AT="commit:37" in the environment raises SIGKILL the 37th time killPoint("commit") is reached.
// Several orders are separated by commas: the first that comes true counts. "killed at commit" goes to stderr first. Unset, a kill point
// costs one comparison.
#pragma once

#include <string_view>

namespace celloom {

/// Points in use: "commit" (inside a transaction of run.db), "step", "evaluation", "checkpoint-write" (before the final rename),
/// "before-first-checkpoint". Any thread may call; a place counts its own calls only.
void killPoint(std::string_view place);

} // namespace celloom
