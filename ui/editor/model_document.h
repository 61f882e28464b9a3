// A model that is open in the window: a Cell graph document, the file it belongs to, and the way back through its edits. One tab of the Model page.
#pragma once

#include "models/base/result.h"
#include "models/graph/document.h"
#include "ui/common/model_analysis.h"
#include "ui/editor/model_level.h"

#include <QByteArray>
#include <QJsonObject>
#include <QObject>
#include <QPointF>
#include <QString>
#include <QStringList>
#include <QUndoStack>

#include <functional>
#include <memory>
#include <string>
#include <vector>

class QTimer;

namespace celloom::ui {

class Recovery;

/// How a model's file stands to what was read from it or written to it last.
enum class OnDisk { Same, Changed, Gone };

/// What of a recipe goes with the model: it comes back with its tab.
struct RecipePart {
    std::vector<std::string> overrides; // model.overrides
    std::string weights;                // model.weights
    bool operator==(const RecipePart&) const = default;
};

/// Where in a model one looked last.
struct ModelPlace {
    LevelPath path;
    double zoom = 0; // 0: all of it fitted
    QPointF middle;  // of the view, in the scene
};

/// Everything that changes a model goes through edit(): one gesture, one step of undo, named. Widgets read snapshots.
class ModelDocument : public QObject {
    Q_OBJECT
public:
    /// Unsaved edits are kept by `recovery` (null: nowhere), at most kRecoveryMs after each.
    explicit ModelDocument(Recovery* recovery = nullptr, QObject* parent = nullptr);
    ~ModelDocument() override;
    static constexpr int kRecoveryMs = 2000;

    /// Never changed after it was handed out, so threads may share it. Null: nothing is open yet, or it could not be opened.
    [[nodiscard]] const DocumentPtr& snapshot() const { return m_document; }
    /// What the recipe calls it: a preset's or a template's name or a path; of an untitled one the name of a file that is not there yet.
    [[nodiscard]] QString source() const { return m_source; }
    /// The .cells.json that save() writes; empty where save needs a name first (a preset, a folder with a config.json, an untitled one).
    [[nodiscard]] QString filePath() const { return m_filePath; }
    /// Made here and not saved yet: nothing can open it by its source.
    [[nodiscard]] bool isUntitled() const { return m_isUntitled; }
    [[nodiscard]] bool isModified() const { return !m_undo.isClean(); }
    /// A run reads files: whether this model has to be saved first.
    [[nodiscard]] bool needsSaving() const { return isModified() || m_isUntitled; }
    /// Reads the file where its size or time is another than last time. Same also where there is no file of its own.
    [[nodiscard]] OnDisk onDisk() const;
    /// It would be lost with this window: it has unsaved edits, or its file is gone.
    [[nodiscard]] bool isOnlyHere() const { return isModified() || onDisk() == OnDisk::Gone; }
    /// Nothing was ever done to it, so nothing is lost with it.
    [[nodiscard]] bool isUntouched() const { return !isModified() && m_undo.count() == 0; }
    /// Whether a source is the name of an untitled model, of this window or one before it.
    [[nodiscard]] static bool isUntitledName(const QString& source);
    /// Whether a recipe that names its model so means this one.
    [[nodiscard]] bool isNamedBy(const QString& source) const;
    /// For its tab: a file's or folder's name, a preset's, or the graph's own.
    [[nodiscard]] QString title() const;
    [[nodiscard]] QUndoStack& undoStack() { return m_undo; }
    [[nodiscard]] const QUndoStack& undoStack() const { return m_undo; }

    /// Another model: forgets the way back. `filePath`: the .cells.json that it came from, if it did.
    void take(graph::Document document, const QString& source, const QString& filePath = {});
    /// One that was made here. `number` tells it from others without a name.
    void takeUntitled(graph::Document document, int number);
    /// One of an earlier window, to be read when its tab comes to the front: with its name, place and part of the recipe.
    void takeLater(const QJsonObject& about);
    /// A source that could not be opened.
    void takeNothing(const QString& source);
    /// Puts edits that a crash left unsaved on top of what is open; `about` as when they were kept.
    void restore(graph::Document document, const QJsonObject& about);
    /// What its file holds by now, as a step that leads back; it then has no unsaved edits.
    void takeChanged(graph::Document document);

    /// `change` works on a copy. Refused edits change nothing and are returned; ones that change nothing leave no step. Consecutive edits with
    /// the same `gesture` (not 0) become one step: typing in one field.
    Status edit(const QString& name, const std::function<Status(graph::Document&)>& change, int gesture = 0);

    /// Writes a whole file or none; the document then belongs to it.
    Status save(const QString& path);

    /// Gives unsaved edits up, also for the next start, and what became of the file. The document stays as it is.
    void discard();

    /// What the window keeps beside a document that a crash left unsaved.
    [[nodiscard]] QJsonObject about() const;
    /// One that a window before this one left: with its name, place and part of the recipe, unsaved. `recoveryName` is adopted.
    void takeRecovered(graph::Document document, const QJsonObject& about);
    [[nodiscard]] QString recoveryName() const { return m_recoveryName; }

    RecipePart part;         // kept by the page while the recipe is this model's
    ModelPlace place;        // where one was when another tab came to the front
    int order = 0;           // of its tab
    QString codeDraft;       // text that one edits in the Code tab, while another tab is in front; null: none
    QStringList offeredUpdates; // newer versions of its composites that the user was told of
    bool isImplicit = false; // came with a recipe and was not touched: the recipe's next model may take its place
    QString folder;          // the model folder that it was opened from, also after it was saved elsewhere; empty: none

Q_SIGNALS:
    void changed();      // another content
    void replaced();     // another model
    void titleChanged(); // source, file or modified mark

private:
    class Step;
    void set(DocumentPtr document);
    void begin(DocumentPtr document, const QString& source, const QString& filePath, bool isUntitled);
    void writeRecovery();
    void forgetRecovery();
    void takeAbout(const QJsonObject& about);
    void keepFileState(const graph::Document& document);

    Recovery* m_recovery;
    QString m_recoveryName;
    DocumentPtr m_document;
    QString m_source, m_filePath;
    bool m_isUntitled = false;
    QUndoStack m_undo;
    QTimer* m_recoveryTimer;
    QByteArray m_fileHash; // of the document that its file held last; empty: not known
    struct Stamp {
        qint64 size = -1, time = 0;
        bool operator==(const Stamp&) const = default;
    };
    mutable Stamp m_sameStamp; // of the file when it last held that
};

/// What a source means, whatever way it is written: the same for a folder and its config.json, for relative and absolute paths.
QString identityOf(const QString& source);

/// Whether a model in a file of that name is called by the folder around it.
bool isNamedByFolder(const QString& fileName);

} // namespace celloom::ui
