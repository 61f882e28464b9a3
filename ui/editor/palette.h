// The cell types to build with: the catalogue by category, the document's composites, the standard library. Search, drag, or Enter inserts.
#pragma once

#include "models/graph/document.h"
#include "ui/common/texts.h"

#include <QFrame>
#include <QString>

#include <vector>

class QLineEdit;
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
};
/// All of them, sorted by group as they are shown.
std::vector<PaletteEntry> paletteEntries(const graph::Document* document, bool isChinese);
/// Those that a search finds, the best first: names that begin with the words, names that hold them, then summaries.
std::vector<PaletteEntry> searchPalette(const std::vector<PaletteEntry>& entries, const QString& words);

class Palette : public QFrame {
    Q_OBJECT
public:
    explicit Palette(Services& services, QWidget* parent = nullptr);
    void setDocument(const graph::Document* document);
    void focusSearch();

Q_SIGNALS:
    void insertRequested(const QString& type); // double click or Enter

protected:
    void changeEvent(QEvent* event) override;
    bool eventFilter(QObject* watched, QEvent* event) override;

private:
    void fill();
    void insertCurrent();

    Services& m_services;
    Texts m_texts;
    QLineEdit* m_search;
    QTreeWidget* m_tree;
    std::vector<PaletteEntry> m_entries;
};

} // namespace celloom::ui
