// Unix sockets of a workspace: where they are, and making them. Their folder is outside the workspace, since a socket's path may
// have 108 bytes only. No event loop here.
#pragma once

#include "models/base/result.h"
#include "models/store/run_folder.h"

#include <filesystem>

namespace celloom::protocol {

/// $XDG_RUNTIME_DIR/celloom/<hash>, or /tmp/celloom-<uid>/<hash> where that is unset, missing, not ours, or too long. Made with mode
/// 0700; fails when somebody else owns it or others may enter.
Result<std::filesystem::path> socketFolder(const store::Workspace& workspace);

/// A listening, non-blocking socket; a stale file of that name is replaced. Mode 0600.
Result<int> listenOn(const std::filesystem::path& path);
/// A connected, non-blocking socket.
Result<int> connectTo(const std::filesystem::path& path);

} // namespace celloom::protocol
