// Follows a run in the terminal until it is over: progress, evaluations, samples, messages; Ctrl+C saves and stops.
#pragma once

#include "app/engine/broker/client.h"
#include "app/engine/broker/interrupt.h"
#include "app/engine/verbs.h"
#include "models/store/run_folder.h"

#include <memory>
#include <string>

namespace celloom::app {

/// Needs an InterruptCounter, whose signals it passes on; made before the run is submitted: Ctrl+C in between would leave a run that nobody
/// follows. Exit code of the run's child; Interrupted where a signal ended it. A broker that goes away is replaced. With
/// --json the final record is the result on stdout; everything else goes to stderr.
int followRun(std::unique_ptr<BrokerClient> client, const store::Workspace& workspace, const store::RunFolder& folder,
              Invocation& invocation);

} // namespace celloom::app
