// The cell types to build with: the document's composites, My cells, the catalogue by category, the standard library. Search, drag, or Enter inserts.
#pragma once

#include "models/graph/document.h"
#include "models/library/update.h"
#include "ui/common/texts.h"

#include <QFrame>
#include <QString>

#include <cstdint>
#include <optional>
#include <vector>

class QLabel;
class QLineEdit;
class QPushButton;
class QTreeWidget;
class QTreeWidgetItem;

namespace celloom::ui {

struct Services;

/// One type that can be inserted. `type` is what addCell() takes; one of the library is copied into the document first.
struct PaletteEntry {
    QString type;
    QString group;   // "Attention", "This document", "Library"
    QString summary; // one sentence
    QString color;   // of its stripe, by name in the theme
    bool isOfLibrary = false;
    QString key = {};           // what insertRequested() says; empty: the type
    std::int64_t newest = 0;    // of a copy in the document: the newer version that its library has
    bool operator==(const PaletteEntry&) const = default;
};
/// An input or output of the graph itself, as the palette offers them.
struct PortKind {
    const char* key; // the entry's
    const char *title, *summary;
    bool isInput;
    graph::Port port; // without a shape: that of what is wired to it
};
const std::vector<PortKind>& portKinds();
/// Null where `type` is a cell's.
const PortKind* portKind(const QString& type);
/// All of them, sorted by group as they are shown. `mine`: the workspace's library.
std::vector<PaletteEntry> paletteEntries(const graph::Document* document, bool isChinese, const std::vector<library::Entry>& mine = {},
                                         const std::vector<library::CopyStatus>& copies = {});
/// Those that a search finds, the best first: names that begin with the words, names that hold them, then summaries.
std::vector<PaletteEntry> searchPalette(const std::vector<PaletteEntry>& entries, const QString& words);

class Palette : public QFrame {
    Q_OBJECT
public:
    explicit Palette(Services& services, QWidget* parent = nullptr);
    void setDocument(const graph::Document* document);
    void setMine(const std::vector<library::Entry>& entries);
    /// How the composites of the document stand to their libraries.
    void setCopies(const std::vector<library::CopyStatus>& copies);
    void focusSearch();

Q_SIGNALS:
    void insertRequested(const QString& type);      // double click or Enter
    void removeRequested(const QString& name);      // an entry of My cells
    void updateRequested(const QString& composite); // of the document

protected:
    void changeEvent(QEvent* event) override;
    bool eventFilter(QObject* watched, QEvent* event) override;

private:
    void fill();
    void insertCurrent();
    void insert(const QString& type);
    QWidget* buildNothing();
    void showNothing(const QString& words);
    void rebuild();
    void showMenu(const QPoint& position);

    Services& m_services;
    Texts m_texts;
    QLineEdit* m_search;
    QTreeWidget* m_tree;
    QWidget* m_nothing; // in the tree's place where a search finds nothing
    QLabel* m_nothingText;
    QPushButton *m_nearest, *m_script, *m_all;
    std::vector<PaletteEntry> m_entries;
    std::optional<graph::Document> m_document;
    std::vector<library::Entry> m_mine;
    std::vector<library::CopyStatus> m_copies;
};

} // namespace celloom::ui
