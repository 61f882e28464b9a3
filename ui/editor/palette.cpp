#include "ui/editor/palette.h"

#include "models/base/text.h"
#include "models/catalog/catalog.h"
#include "models/library/standard.h"
#include "ui/common/format.h"
#include "ui/common/theme.h"
#include "ui/common/widgets.h"
#include "ui/editor/graph_view.h"
#include "ui/editor/my_cells.h"
#include "ui/shell/language.h"
#include "ui/shell/services.h"

#include <QCoreApplication>
#include <QDrag>
#include <QEvent>
#include <QKeyEvent>
#include <QLineEdit>
#include <QMenu>
#include <QMimeData>
#include <QPainter>
#include <QPushButton>
#include <QTreeWidget>
#include <QVBoxLayout>

#include <algorithm>

namespace celloom::ui {

namespace {

constexpr int kTypeRole = Qt::UserRole, kMineRole = Qt::UserRole + 1, kUpdateRole = Qt::UserRole + 2; // what to insert; the entry's, the composite's name
constexpr const char* kScript = "Script";

QString translated(const char* text) {
    return QCoreApplication::translate("celloom::ui::Palette", text);
}

/// The catalogue's categories, for the window's language.
QString groupName(const std::string& category) {
    static const std::vector<const char*> known{
        QT_TRANSLATE_NOOP("celloom::ui::Palette", "Dense and embedding"), QT_TRANSLATE_NOOP("celloom::ui::Palette", "Attention"),
        QT_TRANSLATE_NOOP("celloom::ui::Palette", "Normalisation"),       QT_TRANSLATE_NOOP("celloom::ui::Palette", "Activation"),
        QT_TRANSLATE_NOOP("celloom::ui::Palette", "Structure"),           QT_TRANSLATE_NOOP("celloom::ui::Palette", "Output"),
        QT_TRANSLATE_NOOP("celloom::ui::Palette", "Image"),               QT_TRANSLATE_NOOP("celloom::ui::Palette", "Arithmetic"),
        QT_TRANSLATE_NOOP("celloom::ui::Palette", "Routing"),             QT_TRANSLATE_NOOP("celloom::ui::Palette", "Custom")};
    for (const char* name : known)
        if (category == name) return translated(name);
    return fromUtf8(category);
}

/// A type can be dragged onto the canvas.
class TypeTree : public QTreeWidget {
public:
    using QTreeWidget::QTreeWidget;

protected:
    void startDrag(Qt::DropActions) override {
        const QTreeWidgetItem* item = currentItem();
        const QString type = item ? item->data(0, kTypeRole).toString() : QString();
        if (type.isEmpty()) return;
        auto* data = new QMimeData;
        data->setData(QLatin1String(GraphView::kCellMime), type.toUtf8());
        auto* drag = new QDrag(this);
        drag->setMimeData(data);
        drag->exec(Qt::CopyAction);
    }
};

} // namespace

const std::vector<PortKind>& portKinds() {
    static const std::vector<PortKind> kinds{
        {"input:token ids", QT_TRANSLATE_NOOP("celloom::ui::Palette", "Input: token ids"),
         QT_TRANSLATE_NOOP("celloom::ui::Palette", "Texts as numbers of tokens, [B, T]: what a language model reads."), true, {"input_ids", {"B", "T"}, "int64"}},
        {"input:features", QT_TRANSLATE_NOOP("celloom::ui::Palette", "Input: features"),
         QT_TRANSLATE_NOOP("celloom::ui::Palette", "Rows of numbers, [B, 16]; set the size on the right."), true, {"features", {"B", "16"}, "float"}},
        {"input:image", QT_TRANSLATE_NOOP("celloom::ui::Palette", "Input: image"),
         QT_TRANSLATE_NOOP("celloom::ui::Palette", "Pictures, [B, channels, height, width]; set the sizes on the right."), true, {"image", {"B", "3", "32", "32"}, "float"}},
        {"input", QT_TRANSLATE_NOOP("celloom::ui::Palette", "Input"),
         QT_TRANSLATE_NOOP("celloom::ui::Palette", "Any tensor; set its name, shape and type on the right. A composite's input takes any shape while it declares none."), true, {"x", {}, "float"}},
        {"output", QT_TRANSLATE_NOOP("celloom::ui::Palette", "Output"),
         QT_TRANSLATE_NOOP("celloom::ui::Palette", "What the model gives: the chosen cell's output, under a name that a loss can ask for."), false, {"logits", {}, "float"}}};
    return kinds;
}

const PortKind* portKind(const QString& type) {
    for (const PortKind& kind : portKinds())
        if (type == QLatin1String(kind.key)) return &kind;
    return nullptr;
}

std::vector<PaletteEntry> paletteEntries(const graph::Document* document, bool isChinese, const std::vector<library::Entry>& mine,
                                         const std::vector<library::CopyStatus>& copies) {
    std::vector<PaletteEntry> out;
    if (document)
        for (const auto& [name, graph] : document->composites) {
            PaletteEntry entry{fromUtf8(name), translated(QT_TRANSLATE_NOOP("celloom::ui::Palette", "In this model")), fromUtf8(graph.note), QStringLiteral("accent")};
            for (const library::CopyStatus& copy : copies)
                if (copy.composite == name && !copy.isInsideOthers && (copy.state == library::CopyState::Newer || copy.state == library::CopyState::EditedAndNewer)) entry.newest = copy.newest;
            out.push_back(std::move(entry));
        }
    const QString myCells = translated(QT_TRANSLATE_NOOP("celloom::ui::Palette", "My cells"));
    for (const library::Entry& entry : mine)
        out.push_back({fromUtf8(entry.name), myCells, fromUtf8(entry.summary()) + QLatin1Char('\n') + translated(QT_TRANSLATE_NOOP("celloom::ui::Palette", "Version %1")).arg(entry.version),
                       QStringLiteral("accent"), true, MyCells::keyOf(entry.name)});
    const catalog::CellType* script = catalog::find(kScript);
    out.push_back({translated(QT_TRANSLATE_NOOP("celloom::ui::Palette", "Script cell…")), myCells, fromUtf8(isChinese ? script->summaryZh : script->summary), QStringLiteral("slate"), false,
                   QLatin1String(kScript)});
    for (const PortKind& kind : portKinds())
        out.push_back({translated(kind.title), translated(QT_TRANSLATE_NOOP("celloom::ui::Palette", "Inputs and outputs")), translated(kind.summary), QStringLiteral("muted"), false, QLatin1String(kind.key)});
    for (const catalog::CellType& type : catalog::all())
        out.push_back({fromUtf8(type.name), groupName(type.category),
                       fromUtf8(isChinese && !type.summaryZh.empty() ? type.summaryZh : type.summary), QLatin1String(categoryColor(type.category))});
    for (const library::Entry& entry : library::standard()) {
        if (document && document->composites.contains(entry.name)) continue;
        out.push_back({fromUtf8(entry.name), translated(QT_TRANSLATE_NOOP("celloom::ui::Palette", "Library")),
                       fromUtf8(isChinese && !entry.summaryZh.empty() ? entry.summaryZh : entry.summary()), QStringLiteral("accent"), true});
    }
    return out;
}

std::vector<PaletteEntry> searchPalette(const std::vector<PaletteEntry>& entries, const QString& text) {
    const QStringList words = text.simplified().split(QLatin1Char(' '), Qt::SkipEmptyParts);
    if (words.isEmpty()) return entries;
    std::vector<std::pair<int, const PaletteEntry*>> found;
    for (const PaletteEntry& entry : entries) {
        int rank = 0;
        for (const QString& word : words) {
            const int of = entry.type.startsWith(word, Qt::CaseInsensitive)    ? 0
                           : entry.type.contains(word, Qt::CaseInsensitive) || entry.key.contains(word, Qt::CaseInsensitive) ? 1
                           : entry.summary.contains(word, Qt::CaseInsensitive) ? 2
                           : entry.group.contains(word, Qt::CaseInsensitive)   ? 3
                                                                               : 99;
            rank = std::max(rank, of);
        }
        if (rank < 99) found.emplace_back(rank, &entry);
    }
    std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<PaletteEntry> out;
    for (const auto& [rank, entry] : found) out.push_back(*entry);
    return out;
}

Palette::Palette(Services& services, QWidget* parent) : QFrame(parent), m_services(services) {
    setProperty("role", QStringLiteral("sidebar"));
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(10, 10, 8, 8);
    layout->setSpacing(8);
    m_search = new QLineEdit(this);
    m_search->setClearButtonEnabled(true);
    m_search->installEventFilter(this);
    m_tree = new TypeTree(this);
    m_tree->installEventFilter(this);
    m_tree->setContextMenuPolicy(Qt::CustomContextMenu);
    connect(m_tree, &QWidget::customContextMenuRequested, this, &Palette::showMenu);
    m_tree->setHeaderHidden(true);
    m_tree->setIndentation(10);
    m_tree->setRootIsDecorated(false);
    m_tree->setDragEnabled(true);
    m_tree->setDragDropMode(QAbstractItemView::DragOnly);
    m_tree->setUniformRowHeights(true);
    m_tree->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    layout->addWidget(m_search);
    layout->addWidget(m_tree, 1);
    layout->addWidget(buildNothing(), 1);
    connect(m_search, &QLineEdit::textChanged, this, &Palette::fill);
    connect(m_search, &QLineEdit::returnPressed, this, &Palette::insertCurrent);
    connect(m_tree, &QTreeWidget::itemActivated, this, &Palette::insertCurrent);
    connect(&services.theme, &Theme::changed, this, &Palette::fill);
    m_texts.add([this] {
        m_search->setPlaceholderText(tr("Search cells"));
        m_search->setAccessibleName(tr("Search cells"));
        m_search->setToolTip(tr("Ctrl+K. Enter inserts the first one found."));
        m_tree->setAccessibleName(tr("Cells to insert"));
    });
}

/// Says that nothing was found, and what one can do now.
QWidget* Palette::buildNothing() {
    m_nothing = new QWidget(this);
    auto* layout = new QVBoxLayout(m_nothing);
    layout->setContentsMargins(2, 4, 2, 0);
    layout->setSpacing(6);
    m_nothingText = makeLabel("muted", m_nothing);
    m_nothingText->setWordWrap(true);
    m_nothingText->setContentsMargins(6, 0, 0, 0); // as the links' texts begin
    layout->addWidget(m_nothingText);
    for (QPushButton** button : {&m_nearest, &m_script, &m_all}) {
        *button = new QPushButton(m_nothing);
        setRole(*button, "link");
        layout->addWidget(*button, 0, Qt::AlignLeft);
    }
    layout->addStretch(1);
    connect(m_nearest, &QPushButton::clicked, this, [this] {
        m_search->setText(m_nearest->property("type").toString());
        focusSearch();
    });
    connect(m_script, &QPushButton::clicked, this, [this] { insert(QLatin1String(kScript)); });
    connect(m_all, &QPushButton::clicked, this, [this] {
        m_search->clear();
        m_search->setFocus();
    });
    m_texts.add([this] {
        m_script->setText(tr("Write it as a Script cell"));
        m_script->setToolTip(tr("Inserts a cell whose code you type"));
        m_all->setText(tr("Show all cells"));
    });
    m_nearest->hide();
    m_nothing->hide();
    return m_nothing;
}

void Palette::showNothing(const QString& words) {
    std::vector<std::string> names;
    for (const PaletteEntry& entry : m_entries)
        if (portKind(entry.key) == nullptr) names.push_back(toUtf8(entry.type));
    const auto close = nearest(toUtf8(words), names, 1);
    m_nothingText->setText(tr("No cell fits “%1”.").arg(words));
    m_nearest->setVisible(!close.empty());
    if (close.empty()) return;
    m_nearest->setProperty("type", fromUtf8(close.front()));
    m_nearest->setText(tr("Did you mean %1?").arg(fromUtf8(close.front())));
}

void Palette::setDocument(const graph::Document* document) {
    m_document = document ? std::optional(*document) : std::nullopt;
    rebuild();
}

void Palette::setMine(const std::vector<library::Entry>& entries) {
    m_mine = entries;
    rebuild();
}

void Palette::setCopies(const std::vector<library::CopyStatus>& copies) {
    m_copies = copies;
    rebuild();
}

void Palette::rebuild() {
    auto entries = paletteEntries(m_document ? &*m_document : nullptr, m_services.language.isChinese(), m_mine, m_copies);
    if (entries == m_entries) return; // one may be walking through the list
    m_entries = std::move(entries);
    fill();
}

void Palette::focusSearch() {
    m_search->setFocus(Qt::ShortcutFocusReason);
    m_search->selectAll();
}

void Palette::fill() {
    const QString words = m_search->text();
    const bool isSearching = !words.trimmed().isEmpty();
    const QVariant chosen = m_tree->currentItem() ? m_tree->currentItem()->data(0, kTypeRole) : QVariant();
    m_tree->clear();
    QTreeWidgetItem* group = nullptr;
    for (const PaletteEntry& entry : searchPalette(m_entries, words)) {
        if (!isSearching && (!group || group->text(0) != entry.group)) {
            group = new QTreeWidgetItem(m_tree, {entry.group});
            group->setFlags(Qt::ItemIsEnabled);
            QFont font = m_tree->font();
            font.setBold(true);
            group->setFont(0, font);
            group->setForeground(0, m_services.theme.color("muted"));
        }
        auto* item = isSearching ? new QTreeWidgetItem(m_tree) : new QTreeWidgetItem(group);
        item->setText(0, entry.newest > 0 ? tr("%1 ↑ version %2").arg(entry.type).arg(entry.newest) : entry.type);
        item->setToolTip(0, entry.newest > 0 ? tr("The library has version %1: right button, Update").arg(entry.newest) : entry.summary);
        item->setData(0, kTypeRole, entry.key.isEmpty() ? entry.type : entry.key);
        if (entry.isOfLibrary && !entry.key.isEmpty()) item->setData(0, kMineRole, entry.type);
        if (entry.newest > 0) item->setData(0, kUpdateRole, entry.type);
        if (chosen.isValid() && !isSearching && item->data(0, kTypeRole) == chosen) m_tree->setCurrentItem(item);
        item->setFlags(Qt::ItemIsEnabled | Qt::ItemIsSelectable | Qt::ItemIsDragEnabled);
        QPixmap stripe(6, 14);
        stripe.fill(m_services.theme.color(entry.color.toLatin1().constData()));
        item->setIcon(0, QIcon(stripe));
    }
    m_tree->expandAll();
    const bool isFound = m_tree->topLevelItemCount() > 0;
    if (isSearching && isFound) m_tree->setCurrentItem(m_tree->topLevelItem(0));
    m_tree->setVisible(isFound || !isSearching);
    m_nothing->setVisible(!isFound && isSearching);
    if (m_nothing->isVisibleTo(this)) showNothing(words.trimmed());
}

void Palette::insertCurrent() {
    const QTreeWidgetItem* item = m_tree->currentItem();
    const QString type = item ? item->data(0, kTypeRole).toString() : QString();
    if (!type.isEmpty()) insert(type);
}

void Palette::insert(const QString& type) {
    Q_EMIT insertRequested(type);
    m_search->clear();
}

void Palette::showMenu(const QPoint& position) {
    const QTreeWidgetItem* item = m_tree->itemAt(position);
    if (!item || item->data(0, kTypeRole).toString().isEmpty()) return;
    auto* menu = new QMenu(this);
    menu->setAttribute(Qt::WA_DeleteOnClose);
    connect(menu->addAction(tr("Insert")), &QAction::triggered, this, &Palette::insertCurrent);
    if (const QString name = item->data(0, kMineRole).toString(); !name.isEmpty())
        connect(menu->addAction(tr("Remove from My cells…")), &QAction::triggered, this, [this, name] { Q_EMIT removeRequested(name); });
    if (const QString name = item->data(0, kUpdateRole).toString(); !name.isEmpty())
        connect(menu->addAction(tr("Update to the library's version")), &QAction::triggered, this, [this, name] { Q_EMIT updateRequested(name); });
    menu->popup(m_tree->viewport()->mapToGlobal(position));
}

/// Up and down walk through what was found without leaving the search line.
bool Palette::eventFilter(QObject* watched, QEvent* event) {
    const bool isKey = event->type() == QEvent::KeyPress || event->type() == QEvent::ShortcutOverride;
    if (watched == m_tree && isKey && static_cast<QKeyEvent*>(event)->key() == Qt::Key_Delete) {
        event->accept(); // and not the canvas' shortcut
        if (event->type() == QEvent::ShortcutOverride) return true;
        const QString name = m_tree->currentItem() ? m_tree->currentItem()->data(0, kMineRole).toString() : QString();
        if (!name.isEmpty()) Q_EMIT removeRequested(name);
        return true;
    }
    if (watched == m_search && event->type() == QEvent::KeyPress) {
        const int key = static_cast<QKeyEvent*>(event)->key();
        if (key == Qt::Key_Escape && !m_search->text().isEmpty()) {
            m_search->clear();
            return true;
        }
        if (key == Qt::Key_Down || key == Qt::Key_Up) {
            QCoreApplication::sendEvent(m_tree, event);
            return true;
        }
    }
    return QFrame::eventFilter(watched, event);
}

void Palette::changeEvent(QEvent* event) {
    QFrame::changeEvent(event);
    if (event->type() != QEvent::LanguageChange) return;
    m_texts.refresh();
    rebuild();
    fill(); // also what is said where nothing is found
}

} // namespace celloom::ui
