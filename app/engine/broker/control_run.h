// Commands to a run that is going on, as the command line gives them: sent through the broker, and answered by the event that the run makes of them.
#pragma once

#include "app/engine/verbs.h"

#include <optional>
#include <string>

namespace celloom::app {

struct ControlRequest {
    std::string run;    // number, folder name, path or "last"
    std::string action; // of the protocol: "pause", "evaluate", "set_lr", …
    std::optional<double> value = {};
    bool waits = true; // for what became of it; a run obeys between two steps
};

/// Prints what happened. Refused (BadInput): a run that is not going on, a command that this run cannot obey. Failure: the run ended before.
void controlRun(const ControlRequest& request, Invocation& invocation);

/// A learning rate: a finite number above 0.
Result<double> readRate(const std::string& text);

} // namespace celloom::app
