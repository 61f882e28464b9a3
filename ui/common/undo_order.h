// Undo over several stacks in the order in which things were done: a model's edits and those of the recipe that are made beside them.
#pragma once

#include <QUndoCommand>
#include <QUndoStack>

#include <chrono>
#include <vector>

namespace celloom::ui {

/// A step that knows when it was done first.
class DatedStep : public QUndoCommand {
public:
    using Time = std::chrono::steady_clock::time_point;
    [[nodiscard]] Time when() const { return m_when; }

private:
    Time m_when = std::chrono::steady_clock::now();
};

/// The stack, all of whose steps are dated, that holds the newest step that is done; null: there is none.
QUndoStack* nextToUndo(const std::vector<QUndoStack*>& stacks);
/// The stack with the oldest step that was undone, unless something newer was done after it; null: there is none.
QUndoStack* nextToRedo(const std::vector<QUndoStack*>& stacks);

} // namespace celloom::ui
