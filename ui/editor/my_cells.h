// My cells: the composites and Script cells of the workspace's library, as the Model page works with them. Files are read and written on a thread.
#pragma once

#include "models/graph/edits.h"
#include "models/graph/expression.h"
#include "models/library/update.h"
#include "models/library/workspace_library.h"
#include "ui/common/background.h"
#include "ui/common/model_analysis.h"

#include <QObject>
#include <QString>

#include <functional>
#include <vector>

namespace celloom::ui {

/// A document whose composite `name` holds nothing but that Script cell, with its declared ports and the hyper-parameters that it uses: what the
/// library can keep. `scope`: values of the graph's hyper-parameters.
Result<graph::Document> wrapScript(const graph::Document& document, const graph::GraphName& graph, const std::string& cell, const std::string& name, const graph::Scope& scope);

class MyCells : public QObject {
    Q_OBJECT
public:
    explicit MyCells(const std::filesystem::path& workspace, QObject* parent = nullptr);

    /// The key under which the palette inserts an entry: what a composite of the document with the same name cannot be mistaken for.
    static QString keyOf(const std::string& name);
    [[nodiscard]] const library::Entry* findByKey(const QString& key) const;
    [[nodiscard]] const library::Entry* find(const std::string& name) const;
    [[nodiscard]] const std::vector<library::Entry>& entries() const { return m_entries; }
    [[nodiscard]] const library::WorkspaceLibrary& library() const { return m_library; }

    void refresh();
    /// Saves a composite of the document under `name`, with that note.
    void save(graph::Document document, const std::string& composite, const std::string& name, const std::string& note,
              const std::function<void(const Result<library::Saved>&)>& done);
    void remove(const std::string& name, const std::function<void(const Status&)>& done);
    /// How the copies in a document stand to their libraries; compared() answers for the newest request alone.
    void compare(const DocumentPtr& document);

Q_SIGNALS:
    void changed(); // other entries
    void compared(const celloom::ui::DocumentPtr& document, const std::vector<celloom::library::CopyStatus>& copies);

private:
    library::WorkspaceLibrary m_library;
    std::vector<library::Entry> m_entries;
    DocumentPtr m_comparing;
    Background m_background;
};

} // namespace celloom::ui
