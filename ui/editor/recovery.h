// Where unsaved edits of this window are kept, and those that windows before it left behind when they were killed.
#pragma once

#include "models/graph/document.h"
#include "ui/common/background.h"
#include "ui/common/model_analysis.h"

#include <QJsonObject>
#include <QString>
#include <QStringList>

#include <memory>
#include <optional>
#include <vector>

namespace celloom::ui {

/// A folder of the workspace with a folder for each window that lives, which holds a lock as long as it does; so a window knows which of them
/// belong to none. A model is two files there: NAME.cells.json and
/// NAME.json, what the window knows of it besides; the recipe is one: recipe.json.
class Recovery {
public:
    /// `root` empty: nothing is kept. Nothing is made before something is to be kept.
    explicit Recovery(const QString& root = {});
    /// Waits for what is being written.
    ~Recovery();
    Recovery(const Recovery&) = delete;
    Recovery& operator=(const Recovery&) = delete;

    [[nodiscard]] bool isKept() const { return !m_root.isEmpty(); }
    /// Away from the window's thread, in the order of the calls. What cannot be kept is tried again after the next edit: the disk's trouble shows
    /// when the user saves.
    void write(const QString& name, const DocumentPtr& document, const QJsonObject& about);
    void remove(const QString& name);
    void writeRecipe(const QJsonObject& about) { write(kRecipeName, nullptr, about); }
    void removeRecipe() { remove(kRecipeName); }

    /// Models that windows before this one left unsaved, in the order of their tabs. Damaged files are passed over, and left.
    struct Left {
        graph::Document document;
        QJsonObject about;
        QString path; // of its files, without their endings
    };
    [[nodiscard]] std::vector<Left> left() const;
    /// They belong to this window from now on, under that name.
    void adopt(const Left& left, const QString& name);
    /// The recipe that was written last by one of those windows: it belongs to this one from now on. Others wait for the next.
    [[nodiscard]] std::optional<QJsonObject> takeLeftRecipe();

private:
    static inline const QString kRecipeName = QStringLiteral("recipe");
    [[nodiscard]] bool prepare();
    void adoptFiles(const QString& from, const QString& name);
    [[nodiscard]] QStringList leftFolders() const;
    void clearAway() const;

    QString m_root, m_folder; // of all windows; of this one, once it is made
    int m_lock = -1;
    std::unique_ptr<Background> m_writer = std::make_unique<Background>();
};

} // namespace celloom::ui
