// Exit codes of celloom-engine, the same for command line and children. Includes nothing, so that the store can read them.
#pragma once

namespace celloom::protocol {

enum ExitCode : int {
    Ok = 0,
    Failure = 1,      // something went wrong while working
    Usage = 2,        // wrong arguments
    BadInput = 3,     // recipe, graph, file or data refused
    Interrupted = 4,  // stopped by the user or a signal; saved first
    NoDevice = 5,     // the device asked for is not there
    OutOfMemory = 6,
    DiskFull = 7,
    Diverged = 8,     // NaN or Inf; stopped before the update
    Killed = 9,       // the run's process was ended by a signal before it could save; the run can be resumed
};

} // namespace celloom::protocol
