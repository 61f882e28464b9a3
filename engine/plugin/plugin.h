// Cells of libraries that a workspace trusts, at work in the engine.
#pragma once

#include "engine/cells/cell.h"

#include <filesystem>
#include <memory>

namespace celloom::engine {

/// The catalogue's cells and those of the workspace's trusted plugins, for NetworkOptions::cells. A library is looked at and loaded when a cell of it is
/// made: hash and stamp first, and then exactly the bytes that were hashed. It stays loaded until the process ends.
std::shared_ptr<const CellRegistry> cellsOf(const std::filesystem::path& workspace);

} // namespace celloom::engine
