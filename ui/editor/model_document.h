// The model that is open in the window: a Cell graph document, the file it belongs to, and the way back through its edits.
#pragma once

#include "models/base/result.h"
#include "models/graph/document.h"
#include "ui/common/model_analysis.h"

#include <QObject>
#include <QString>
#include <QUndoStack>

#include <functional>
#include <memory>
#include <optional>

class QTimer;

namespace celloom::ui {

/// Everything that changes a model goes through edit(): one gesture, one step of undo, named. Widgets read snapshots.
class ModelDocument : public QObject {
    Q_OBJECT
public:
    /// Unsaved edits are kept in `recoveryFolder` (empty: nowhere), written at most kRecoveryMs after each.
    explicit ModelDocument(const QString& recoveryFolder = {}, QObject* parent = nullptr);
    ~ModelDocument() override;
    static constexpr int kRecoveryMs = 2000;

    /// Never changed after it was handed out, so threads may share it. Null: nothing is open.
    [[nodiscard]] const DocumentPtr& snapshot() const { return m_document; }
    /// What the recipe calls it: a preset's name or a path; empty for one that has none yet.
    [[nodiscard]] QString source() const { return m_source; }
    /// The .cells.json that save() writes; empty where save needs a name first (a preset, a folder with a config.json).
    [[nodiscard]] QString filePath() const { return m_filePath; }
    [[nodiscard]] bool isModified() const { return !m_undo.isClean(); }
    [[nodiscard]] QUndoStack& undoStack() { return m_undo; }

    /// Another model: forgets the way back. `filePath`: the .cells.json that it came from, if it did.
    void take(graph::Document document, const QString& source, const QString& filePath = {});
    /// Puts edits that a crash left unsaved on top of what is open.
    void restore(graph::Document document);

    /// `change` works on a copy. Refused edits change nothing and are returned; ones that change nothing leave no step. Consecutive edits with
    /// the same `gesture` (not 0) become one step: typing in one field.
    Status edit(const QString& name, const std::function<Status(graph::Document&)>& change, int gesture = 0);

    /// Writes a whole file or none; the document then belongs to it.
    Status save(const QString& path);

    /// Edits that were not saved when the window before this one ended: the document and what it was called. Read when this one began.
    struct Recovered {
        graph::Document document;
        QString source, filePath;
    };
    [[nodiscard]] std::optional<Recovered> recovered() const;
    /// Gives unsaved edits up, also for the next start. The document stays as it is.
    void discard();

Q_SIGNALS:
    void changed();      // another content
    void replaced();     // another model
    void titleChanged(); // source, file or modified mark

private:
    class Step;
    void set(DocumentPtr document);
    void writeRecovery();
    void forgetRecovery();

    DocumentPtr m_document;
    QString m_source, m_filePath, m_recoveryFolder;
    std::optional<Recovered> m_recovered;
    QUndoStack m_undo;
    QTimer* m_recoveryTimer;
};

} // namespace celloom::ui
