// Does this installation compute right on this device? Kernels against their references, one training step against PyTorch's numbers.
#pragma once

#include "models/base/result.h"

#include <c10/core/Device.h>

#include <string>
#include <vector>

namespace celloom::engine {

struct SelfTestCheck {
    enum class Outcome { Passed, Failed, Skipped } outcome = Outcome::Passed;
    std::string name;
    std::string detail; // the error measured and the tolerance, or why it was skipped
};

/// Takes a second or two. A check that throws is a failed check.
std::vector<SelfTestCheck> selfTest(at::Device device);

} // namespace celloom::engine
