// Follows a run in the terminal until it is over: progress, evaluations, samples, messages; Ctrl+C saves and stops.
#pragma once

#include "app/engine/broker/client.h"
#include "app/engine/verbs.h"
#include "models/store/run_folder.h"

#include <csignal>
#include <memory>
#include <string>

namespace celloom::app {

/// While it lives, SIGINT and SIGTERM only count, and followRun() passes them on. Made before a run is submitted: Ctrl+C in between would
/// leave a run that nobody follows.
class InterruptCounter {
public:
    InterruptCounter();
    ~InterruptCounter();
    InterruptCounter(const InterruptCounter&) = delete;
    InterruptCounter& operator=(const InterruptCounter&) = delete;

private:
    struct sigaction m_interrupt {
    }, m_terminate{};
};

/// Needs an InterruptCounter. Exit code of the run's child; Interrupted where a signal ended it. A broker that goes away is replaced. With
/// --json the final record is the result on stdout; everything else goes to stderr.
int followRun(std::unique_ptr<BrokerClient> client, const store::Workspace& workspace, const store::RunFolder& folder,
              Invocation& invocation);

} // namespace celloom::app
