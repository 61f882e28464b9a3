// The models that are open in the window, one a tab, and the one in front: the recipe's model. What is said of "the model" is said of that one.
#pragma once

#include "ui/editor/model_document.h"
#include "ui/editor/recovery.h"

#include <QObject>
#include <QUndoGroup>

#include <memory>
#include <vector>

namespace celloom::ui {

class OpenModels : public QObject {
    Q_OBJECT
public:
    /// Begins with one model that is empty until something is taken into it. Unsaved edits of all are kept in `recoveryFolder` (empty: nowhere).
    explicit OpenModels(const QString& recoveryFolder = {}, QObject* parent = nullptr);
    ~OpenModels() override;

    /// There always is one.
    [[nodiscard]] ModelDocument& current() { return *m_current; }
    [[nodiscard]] const ModelDocument& current() const { return *m_current; }
    [[nodiscard]] int count() const { return static_cast<int>(m_models.size()); }
    [[nodiscard]] ModelDocument& at(int index) const { return *m_models[static_cast<std::size_t>(index)]; }
    [[nodiscard]] int indexOf(const ModelDocument& model) const;
    /// By what a source means; the one in front is preferred. Null: it is not open.
    [[nodiscard]] ModelDocument* find(const QString& source) const;
    /// Those that would be lost with the window.
    [[nodiscard]] std::vector<ModelDocument*> onlyHere() const;
    /// A number that no untitled model has.
    [[nodiscard]] int freeNumber() const;

    /// A new last one; it does not come to the front by itself.
    ModelDocument& add();
    /// Forgets it with its unsaved edits. The one beside it comes to the front; after the last one an empty one.
    void remove(ModelDocument& model);
    void setCurrent(ModelDocument& model);
    void move(int from, int to);
    /// Those that windows before this one left unsaved; each comes back as a model of its own, or on top of the same one if that is open as it
    /// was saved. Returns them.
    [[nodiscard]] std::vector<Recovery::Left> left() const { return m_recovery.left(); }
    std::vector<ModelDocument*> bringBack(const std::vector<Recovery::Left>& left);

    /// Where unsaved edits of this window are kept, the recipe's too.
    [[nodiscard]] Recovery& recovery() { return m_recovery; }

    // of the one in front
    [[nodiscard]] const DocumentPtr& snapshot() const { return m_current->snapshot(); }
    [[nodiscard]] QString source() const { return m_current->source(); }
    [[nodiscard]] QString filePath() const { return m_current->filePath(); }
    [[nodiscard]] bool isModified() const { return m_current->isModified(); }
    [[nodiscard]] QUndoStack& undoStack() { return m_current->undoStack(); }
    Status edit(const QString& name, const std::function<Status(graph::Document&)>& change, int gesture = 0) { return m_current->edit(name, change, gesture); }
    /// Undo and redo of whichever is in front.
    [[nodiscard]] QUndoGroup& undoGroup() { return m_undo; }

Q_SIGNALS:
    void changed();        // the one in front has another content
    void currentChanged(); // another one is in front
    void listChanged();    // one came, went or moved
    void titleChanged();   // of one of them

private:
    Recovery m_recovery; // outlives the models
    QUndoGroup m_undo;
    std::vector<std::unique_ptr<ModelDocument>> m_models;
    ModelDocument* m_current = nullptr;
};

} // namespace celloom::ui
