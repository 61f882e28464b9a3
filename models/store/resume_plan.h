// Where a run would go on and what a changed recipe would mean for it, read from its folder without loading anything.
#pragma once

#include "models/recipe/resume.h"
#include "models/store/run_folder.h"

namespace celloom::store {

struct ResumePlan {
    std::string checkpoint; // "step-000200"; empty: the run starts over
    recipe::ResumeEffect effect;
};

/// `now`: the recipe that the run would go on with. Checksums are not looked at: a damaged checkpoint is found, and said, by the run itself.
/// Fails where the recipe changes what the run is made of, or asks for fewer steps than are done; changes nothing.
Result<ResumePlan> planResume(const RunFolder& folder, const recipe::Recipe& now);

} // namespace celloom::store
