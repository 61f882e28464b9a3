// Cells of libraries that a workspace trusts, at work in the engine.
#pragma once

#include "engine/cells/cell.h"
#include "models/protocol/child_link.h"
#include "models/store/run_store.h"

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

namespace celloom::engine {

/// What was loaded: the name that graphs give it, and the hash and stamp of the very bytes.
struct LoadedPlugin {
    std::string library, sha256, stamp;
};

/// The catalogue's cells and those of the workspace's trusted plugins, for NetworkOptions::cells. A library is looked at and loaded when a cell of it is
/// made: hash and stamp first, and then exactly the bytes that were hashed. It stays loaded until the process ends; `onLoaded` is told once of each.
std::shared_ptr<const CellRegistry> cellsOf(const std::filesystem::path& workspace, std::function<void(const LoadedPlugin&)> onLoaded = {});

/// For cellsOf: notes each library in a run's events, so that its history tells which code of others was at work. Both are used, not owned; `link` may be null.
std::function<void(const LoadedPlugin&)> noteIn(store::RunWriter& writer, protocol::ChildLink* link);

} // namespace celloom::engine
