// What the disk says, told apart.
#pragma once

#include "models/base/result.h"

namespace celloom {

/// Whether the disk, or the user's share of it, was full: strerror's and SQLite's sentences, as they arrive in an error's message.
bool isDiskFull(const Error& error);

} // namespace celloom
