// code, import-code.
#pragma once

#include "app/engine/verbs.h"

namespace celloom::app {

void addCodeVerbs(CLI::App& app, Invocation& invocation);

} // namespace celloom::app
