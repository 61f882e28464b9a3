// The child of one Try page: models that chat. Started by the broker for a client, ends with it. Requests on stdin, events on stdout.
#pragma once

#include "app/engine/chat_session.h"

#include <chrono>

namespace celloom::app {

/// Until stdin ends (at once, whatever is being computed) or nothing was asked for so long. Returns the exit code.
int runTryChild(const ChatPlace& place, std::chrono::seconds idle);

} // namespace celloom::app
