#include "ui/common/undo_order.h"

namespace celloom::ui {

namespace {

DatedStep::Time timeOf(const QUndoStack& stack, int index) { return static_cast<const DatedStep*>(stack.command(index))->when(); }

} // namespace

QUndoStack* nextToUndo(const std::vector<QUndoStack*>& stacks) {
    QUndoStack* next = nullptr;
    for (QUndoStack* stack : stacks)
        if (stack->canUndo() && (!next || timeOf(*stack, stack->index() - 1) > timeOf(*next, next->index() - 1))) next = stack;
    return next;
}

QUndoStack* nextToRedo(const std::vector<QUndoStack*>& stacks) {
    QUndoStack* next = nullptr;
    for (QUndoStack* stack : stacks)
        if (stack->canRedo() && (!next || timeOf(*stack, stack->index()) < timeOf(*next, next->index()))) next = stack;
    const QUndoStack* done = nextToUndo(stacks);
    return next && done && timeOf(*done, done->index() - 1) > timeOf(*next, next->index()) ? nullptr : next;
}

} // namespace celloom::ui
