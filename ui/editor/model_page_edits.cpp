// The Model page's gestures: what each asks the document to do.
#include "ui/editor/model_page.h"

#include "models/catalog/catalog.h"
#include "models/graph/bring_in.h"
#include "models/graph/fit.h"
#include "models/graph/fixes.h"
#include "models/graph/json.h"
#include "models/graph/parameters.h"
#include "models/library/standard.h"
#include "ui/common/format.h"
#include "ui/common/messages.h"
#include "ui/common/recipe_document.h"
#include "ui/common/undo_order.h"
#include "ui/common/theme.h"
#include "ui/editor/arranger.h"
#include "ui/editor/inspector.h"
#include "ui/editor/insight.h"
#include "ui/editor/my_cells.h"
#include "ui/editor/open_models.h"
#include "ui/editor/minimap.h"
#include "ui/editor/palette.h"
#include "ui/shell/notice.h"
#include "ui/shell/services.h"

#include <QAction>
#include <QApplication>
#include <QClipboard>
#include <QLineEdit>
#include <QMenu>
#include <QMimeData>
#include <QShortcut>
#include <QTimer>
#include <QUndoGroup>
#include <QUndoStack>

#include <algorithm>
#include <cmath>

namespace celloom::ui {

namespace {

constexpr double kBelow = 96; // a cell that follows another one stands this far under it
constexpr double kWide = 180, kTall = 70; // closer to each other than this, boxes overlap
constexpr double kPasteOffset = 32;
constexpr const char* kScript = "Script";

const LevelBox* boxOf(const ModelLevel& level, const graph::Endpoint& end, BoxKind kind) {
    for (const LevelBox& box : level.boxes) {
        const bool isOwnPort = box.kind == BoxKind::Input || box.kind == BoxKind::Output;
        if (end.cell.empty() ? box.kind == kind && box.name == end.port : !isOwnPort && box.name == end.cell) return &box;
    }
    return nullptr;
}

/// What a wire that begins at `from` feeds to `port`, as far as it is known.
std::map<std::string, graph::Shape> fedBy(const ModelLevel& level, const graph::Endpoint& from, const std::string& port) {
    const LevelBox* box = boxOf(level, from, BoxKind::Input);
    if (!box) return {};
    for (const LevelPort& output : box->outputs)
        if ((from.cell.empty() || output.name == from.port) && output.shape) return {{port, *output.shape}};
    return {};
}

/// A cell comes between the ends of a wire. Where it stood between two others, these are joined.
Status putOnWire(graph::Document& document, const ModelLevel& level, const std::string& cell, const graph::Wire& wire) {
    const LevelBox* box = boxOf(level, {cell, {}}, BoxKind::Cell);
    if (!box || box->inputs.empty()) return fail(toUtf8(ModelPage::tr("%1 has no input that the wire could feed.").arg(fromUtf8(cell))));
    if (box->outputs.empty()) return fail(toUtf8(ModelPage::tr("%1 has no output that could go on from there.").arg(fromUtf8(cell))));
    const graph::Endpoint in{cell, box->inputs.front().name}, out{cell, box->outputs.front().name};
    std::optional<graph::Wire> before;
    std::vector<graph::Wire> after;
    for (const LevelWire& other : level.wires) {
        if (other.wire.to == in) before = other.wire;
        if (other.wire.from == out) after.push_back(other.wire);
    }
    if (before && !after.empty()) {
        CELLOOM_TRY_STATUS(graph::removeWire(document, level.graphName, *before));
        for (const graph::Wire& old : after) CELLOOM_TRY_STATUS(graph::removeWire(document, level.graphName, old));
        for (const graph::Wire& old : after) CELLOOM_TRY_STATUS(graph::addWire(document, level.graphName, {before->from, old.to}));
    }
    graph::fitToInputs(document, level.graphName, cell, fedBy(level, wire.from, in.port), level.hyper);
    return graph::insertOnWire(document, level.graphName, wire, cell, in.port, out.port);
}

} // namespace

void ModelPage::buildActions() {
    QUndoGroup& group = m_services.model.undoGroup();
    const auto add = [this](const QKeySequence& keys, auto slot) {
        auto* action = new QAction(this);
        action->setShortcut(keys);
        action->setShortcutContext(Qt::WidgetWithChildrenShortcut);
        addAction(action);
        connect(action, &QAction::triggered, this, slot);
        return action;
    };
    m_undo = add(QKeySequence::Undo, [this] {
        if (QUndoStack* stack = nextToUndo(undoStacks())) stack->undo();
    });
    m_redo = add(QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_Z), [this] {
        if (QUndoStack* stack = nextToRedo(undoStacks())) stack->redo();
    });
    m_save = add({}, [this] { save(); }); // Ctrl+S is the window's: it saves what one looks at
    m_saveAs = add(QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_S), [this] { saveAs(); });
    m_cut = add(QKeySequence::Cut, [this] { copyChosen(true); });
    m_copy = add(QKeySequence::Copy, [this] { copyChosen(false); });
    m_paste = add(QKeySequence::Paste, &ModelPage::paste);
    m_duplicate = add(QKeySequence(Qt::CTRL | Qt::Key_D), &ModelPage::duplicate);
    m_delete = add(QKeySequence::Delete, &ModelPage::removeChosen);
    m_delete->setShortcuts({QKeySequence(Qt::Key_Delete), QKeySequence(Qt::Key_Backspace)});
    m_group = add(QKeySequence(Qt::CTRL | Qt::Key_G), &ModelPage::group);
    m_ungroup = add(QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_G), &ModelPage::ungroup);
    m_rename = add(QKeySequence(Qt::Key_F2), &ModelPage::rename);
    m_arrange = add(QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_L), &ModelPage::arrange);
    m_selectAll = add(QKeySequence::SelectAll, [this] { m_view->chooseAll(); });
    m_alignRow = add({}, [this] { align(false); });
    m_alignColumn = add({}, [this] { align(true); });
    m_new = add(QKeySequence(Qt::CTRL | Qt::Key_T), &ModelPage::newModel);
    m_close = add(QKeySequence(Qt::CTRL | Qt::Key_W), [this] { closeTab(m_services.model.indexOf(m_services.model.current())); });
    add(QKeySequence(Qt::CTRL | Qt::Key_Tab), [this] { stepTabs(1); });
    add(QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_Tab), [this] { stepTabs(-1); })->setShortcuts({QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_Tab), QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_Backtab)});
    m_saveCell = add({}, &ModelPage::saveCell);
    m_picture = add(QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_E), &ModelPage::savePicture);
    m_find = add(QKeySequence(Qt::CTRL | Qt::Key_K), [this] { m_palette->focusSearch(); });
    m_fitAll = add({}, [this] { m_view->fitAll(); }); // its keys are the canvas' alone
    const auto setIcons = [this] {
        for (const auto& [action, icon] : {std::pair(m_undo, "undo"), std::pair(m_redo, "redo"), std::pair(m_save, "save"), std::pair(m_group, "group"), std::pair(m_arrange, "arrange"), std::pair(m_picture, "picture")})
            action->setIcon(m_services.theme.icon(QLatin1String(icon)));
    };
    setIcons();
    connect(&m_services.theme, &Theme::changed, this, setIcons);
    for (auto changed : {&QUndoGroup::canUndoChanged, &QUndoGroup::canRedoChanged}) connect(&group, changed, this, &ModelPage::refreshActions);
    for (auto changed : {&QUndoGroup::undoTextChanged, &QUndoGroup::redoTextChanged}) connect(&group, changed, this, &ModelPage::refreshActions);
    connect(&group, &QUndoGroup::indexChanged, this, &ModelPage::refreshActions);
    connect(&m_services.recipe.rulesStack(), &QUndoStack::indexChanged, this, &ModelPage::refreshActions);
    connect(QApplication::clipboard(), &QClipboard::dataChanged, this, &ModelPage::refreshActions);
    texts.add([this] {
        for (const auto& [action, text] : {std::pair(m_undo, tr("Undo")), std::pair(m_redo, tr("Redo")), std::pair(m_save, tr("Save the model")), std::pair(m_saveAs, tr("Save the model as…")), std::pair(m_cut, tr("Cut")),
                                           std::pair(m_copy, tr("Copy")), std::pair(m_paste, tr("Paste")), std::pair(m_duplicate, tr("Duplicate")), std::pair(m_delete, tr("Delete")),
                                           std::pair(m_group, tr("Group into a composite")), std::pair(m_ungroup, tr("Expand the composite")), std::pair(m_rename, tr("Rename")),
                                           std::pair(m_arrange, tr("Arrange")), std::pair(m_selectAll, tr("Select all")), std::pair(m_alignRow, tr("Align in a row")),
                                           std::pair(m_alignColumn, tr("Align in a column")), std::pair(m_find, tr("Insert a cell…")), std::pair(m_new, tr("New model…")), std::pair(m_close, tr("Close the model")), std::pair(m_saveCell, tr("Save to My cells…")), std::pair(m_picture, tr("Save a picture…"))})
            action->setText(text);
        refreshActions();
    });
}

/// What one does here goes back in its order: edits of the model in front and of the recipe's rules.
std::vector<QUndoStack*> ModelPage::undoStacks() {
    return {&m_services.model.undoStack(), &m_services.recipe.rulesStack()};
}

void ModelPage::refreshActions() {
    if (!m_find || !m_view) return; // not built yet
    const QUndoStack *undone = nextToUndo(undoStacks()), *redone = nextToRedo(undoStacks());
    const auto nameOf = [this](const QUndoStack* stack, const QString& name) { return stack == &m_services.recipe.rulesStack() ? tr("a rule of the recipe") : name; };
    const bool canEdit = m_analysis && !m_analysis->openError && recipe::trains(m_services.recipe.recipe());
    m_undo->setEnabled(undone && canEdit);
    m_redo->setEnabled(redone && canEdit);
    m_undo->setText(undone ? tr("Undo: %1").arg(nameOf(undone, undone->undoText())) : tr("Undo"));
    m_redo->setText(redone ? tr("Redo: %1").arg(nameOf(redone, redone->redoText())) : tr("Redo"));
    for (QAction* action : {m_undo, m_redo, m_group, m_arrange, m_picture})
        action->setToolTip(action->text() + QStringLiteral(" (%1)").arg(action->shortcut().toString(QKeySequence::NativeText)));
    m_save->setToolTip(m_save->text() + QStringLiteral(" (Ctrl+S)"));
    m_save->setEnabled(m_services.model.current().needsSaving());
    m_saveAs->setEnabled(canEdit);
    const auto cells = canEdit ? m_view->chosenCells() : std::set<std::string>{};
    for (QAction* action : {m_cut, m_copy, m_duplicate, m_group}) action->setEnabled(!cells.empty());
    for (QAction* action : {m_alignRow, m_alignColumn}) action->setEnabled(cells.size() > 1);
    const auto box = m_view->chosen();
    const bool isPort = box && cells.empty();
    m_delete->setEnabled(canEdit && (!cells.empty() || isPort || m_view->chosenWire()));
    m_ungroup->setEnabled(canEdit && box && m_level.boxes[*box].kind == BoxKind::Composite);
    m_rename->setEnabled(canEdit && box);
    m_picture->setEnabled(m_analysis && !m_analysis->openError && !m_level.boxes.empty());
    m_saveCell->setEnabled(canEdit && canSaveCell());
    m_paste->setEnabled(canEdit && QApplication::clipboard()->mimeData() && QApplication::clipboard()->mimeData()->hasText()); // what cannot be pasted says why
    for (QAction* action : {m_arrange, m_selectAll, m_find}) action->setEnabled(canEdit);
    for (QAction* action : {m_new, m_close}) action->setEnabled(recipe::trains(m_services.recipe.recipe()));
}

void ModelPage::connectGestures() {
    connect(m_view, &GraphView::moved, this, [this](const std::map<std::string, graph::Position>& positions) {
        edit(tr("Move"), [positions](graph::Document& document, const graph::GraphName& graph) { return graph::moveCells(document, graph, positions); });
    });
    connect(m_view, &GraphView::wireDrawn, this, [this](const graph::Wire& wire, const std::optional<graph::Wire>& insteadOf) {
        edit(tr("Wire"), [&](graph::Document& document, const graph::GraphName& graph) -> Status {
            if (insteadOf) CELLOOM_TRY_STATUS(graph::removeWire(document, graph, *insteadOf));
            CELLOOM_TRY_STATUS(graph::addWire(document, graph, wire));
            graph::fitToInputs(document, graph, wire.to.cell, fedBy(m_level, wire.from, wire.to.port), m_level.hyper);
            return {};
        });
    });
    connect(m_view, &GraphView::wireDropped, this, [this](const graph::Wire& wire) {
        edit(tr("Remove a wire"), [wire](graph::Document& document, const graph::GraphName& graph) { return graph::removeWire(document, graph, wire); });
    });
    m_view->setInsertJudge([this](const std::string& cell, const graph::Wire& wire) -> GraphView::Verdict {
        graph::Document trial = *m_services.model.snapshot();
        const Status status = putOnWire(trial, m_level, cell, wire);
        return status ? GraphView::Verdict{} : GraphView::Verdict{false, Format::error(status.error())};
    });
    connect(m_view, &GraphView::refused, this, [this](const QString& reason) { m_notice->show(Notice::Level::Warning, reason); });
    connect(m_view, &GraphView::cellDroppedOnWire, this, [this](const QString& cell, const graph::Wire& wire, const std::map<std::string, graph::Position>& positions) {
        edit(tr("Insert %1 on a wire").arg(cell), [&](graph::Document& document, const graph::GraphName& graph) -> Status {
            CELLOOM_TRY_STATUS(graph::moveCells(document, graph, positions));
            return putOnWire(document, m_level, toUtf8(cell), wire);
        });
    });
    connect(m_view, &GraphView::typeDropped, this,
            [this](const QString& type, QPointF at, const std::optional<graph::Wire>& wire) { insert(type, at, wire); });
    connect(m_view, &GraphView::searchRequested, this, [this](QPointF at) {
        m_insertAt = at;
        m_palette->focusSearch();
    });
    connect(m_view, &GraphView::menuRequested, this, &ModelPage::showMenu);
    m_view->setJudge([this](const graph::Wire& wire, bool isThorough) { return judge(wire, isThorough); });
    connect(m_palette, &Palette::insertRequested, this, [this](const QString& type) {
        insert(type, std::exchange(m_insertAt, std::nullopt), {});
        m_view->setFocus();
    });
    connect(m_inspector, &Inspector::left, this, [this] { m_view->setFocus(); });
    connect(m_inspector, &Inspector::edited, this, [this](const QString& name, const GraphEdit& change) { edit(name, change); });
}

/// In the middle of what one sees, or beside what stands there.
QPointF ModelPage::freePlace() const {
    QPointF place = m_view->middle();
    const auto positions = m_view->positions();
    const auto isTaken = [&] {
        return std::any_of(positions.begin(), positions.end(), [&](const auto& one) { return std::abs(one.second.x - place.x()) < kWide && std::abs(one.second.y - place.y()) < kTall; });
    };
    while (isTaken()) place.rx() += kWide;
    return place;
}

/// The panel under the canvas, and the keys that reach it from everywhere on the page.
void ModelPage::connectInsight() {
    const auto onKey = [this](const QKeySequence& keys, auto slot) {
        auto* shortcut = new QShortcut(keys, this, nullptr, nullptr, Qt::WidgetWithChildrenShortcut);
        connect(shortcut, &QShortcut::activated, this, slot);
    };
    onKey(QKeySequence(Qt::CTRL | Qt::Key_QuoteLeft), [this] {
        m_insight->toggle();
        if (!m_insight->isOpen()) m_view->setFocus();
    });
    onKey(QKeySequence(Qt::CTRL | Qt::Key_Period), [this] { m_insight->mend(); });
    onKey(QKeySequence(Qt::Key_F8), [this] { m_insight->goToNextProblem(1); });
    onKey(QKeySequence(Qt::SHIFT | Qt::Key_F8), [this] { m_insight->goToNextProblem(-1); });
    connect(m_insight, &Insight::placeRequested, this, &ModelPage::showPlace);
    connect(m_insight, &Insight::fieldRequested, this, &ModelPage::fieldRequested);
    connect(m_insight, &Insight::fixRefused, this, [this](const Error& error) { m_notice->show(Notice::Level::Error, Format::error(error)); });
    connect(m_insight, &Insight::importReady, this, [this](const ImportedCode& code, CodeTab::Target target) {
        std::string added;
        const bool isWhole = target == CodeTab::Target::Model;
        const QPointF place = freePlace();
        const QString name = isWhole ? tr("Model from code") : tr("Insert %1 from code").arg(code.className);
        const bool isDone = edit(name, [&](graph::Document& document, const graph::GraphName& graph) -> Status {
            if (isWhole) {
                graph::replaceBy(document, code.document);
                return {};
            }
            CELLOOM_TRY(cell, graph::insertDocument(document, graph, code.document, toUtf8(code.className), graph::Position{std::round(place.x()), std::round(place.y())}));
            added = cell;
            return {};
        });
        if (!isDone) return;
        if (isWhole) {
            m_path.clear();
            m_fitNext = true;
            showDocument();
        } else {
            m_view->chooseCells({added});
        }
    });
}

bool ModelPage::edit(const QString& name, const GraphEdit& change, int gesture) {
    if (!m_analysis || m_analysis->openError) return false;
    const graph::GraphName graph = m_level.graphName;
    const auto shown = m_view->positions();
    const Status status = m_services.model.edit(
        name,
        [&](graph::Document& document) -> Status {
            for (graph::Cell& cell : graph::graphOf(document, graph)->cells) // from now on the layout is the user's
                if (const auto at = shown.find(cell.name); at != shown.end() && !cell.position) cell.position = at->second;
            return change(document, graph);
        },
        gesture);
    if (status) {
        m_notice->hide();
        return true;
    }
    m_notice->show(Notice::Level::Error, Format::error(status.error()));
    showDocument(); // what was dragged goes back
    return false;
}

Result<std::string> ModelPage::bringIn(graph::Document& document, const QString& key) const {
    if (const library::Entry* mine = m_myCells->findByKey(key)) {
        CELLOOM_TRY(copied, library::copyInto(document, *mine));
        return copied.type;
    }
    const std::string type = toUtf8(key);
    if (document.composites.contains(type) || catalog::find(type)) return type;
    CELLOOM_TRY(copied, library::copyInto(document, type));
    return copied.type;
}

namespace {

/// What stands where a new cell is to stand, and below it, moves down.
void makeRoom(graph::Graph& graph, const graph::Position& at, const std::string& above) {
    const bool isTaken = std::any_of(graph.cells.begin(), graph.cells.end(), [&](const graph::Cell& cell) {
        return cell.name != above && cell.position && std::abs(cell.position->x - at.x) < kWide && std::abs(cell.position->y - at.y) < kTall;
    });
    if (!isTaken) return;
    for (graph::Cell& cell : graph.cells)
        if (cell.name != above && cell.position && cell.position->y > at.y - kTall) cell.position->y += kBelow;
}

/// A Script cell begins as one that hands on what it gets, of the shape that is wired to it.
void beginScript(graph::Cell& cell, const std::map<std::string, graph::Shape>& fed) {
    static const char* const letters[]{"B", "T", "C", "D", "E", "F", "G", "H"};
    const std::size_t rank = fed.empty() ? 3 : std::min(fed.begin()->second.size(), std::size(letters));
    std::string shape;
    for (std::size_t i = 0; i < rank; ++i) shape += (i ? ", " : "") + std::string(letters[i]);
    cell.params["inputs"] = "x: [" + shape + "]";
    cell.params["outputs"] = "out: [" + shape + "]";
    cell.params["code"] = std::string("def construct(self, x):\n    return x\n");
}

} // namespace

/// An input or output of the graph: an input is chosen, so that the next cell follows it; an output reads the chosen cell.
void ModelPage::insertPort(const PortKind& kind) {
    const auto side = kind.isInput ? graph::PortSide::Input : graph::PortSide::Output;
    graph::Port port = kind.port;
    std::optional<graph::Endpoint> source;
    if (const auto box = m_view->chosen(); !kind.isInput && box && m_level.boxes[*box].kind != BoxKind::Input && !m_level.boxes[*box].outputs.empty()) {
        const LevelPort& output = m_level.boxes[*box].outputs.front();
        source = graph::Endpoint{m_level.boxes[*box].name, output.name};
        port.dtype = output.dtype;
    }
    if (!kind.isInput && !m_level.graphName.empty()) port.name = "out";
    const auto& taken = kind.isInput ? m_level.graph->inputs : m_level.graph->outputs;
    const std::string wanted = port.name;
    for (int number = 2; std::any_of(taken.begin(), taken.end(), [&](const graph::Port& other) { return other.name == port.name; }); ++number)
        port.name = wanted + "_" + std::to_string(number);
    const bool isDone = edit(tr("Add the port %1").arg(fromUtf8(port.name)), [&](graph::Document& document, const graph::GraphName& graph) -> Status {
        CELLOOM_TRY_STATUS(graph::addPort(document, graph, side, port));
        return source ? graph::addWire(document, graph, {*source, {"", port.name}}) : Status();
    });
    if (!isDone) return;
    for (std::size_t i = 0; i < m_level.boxes.size(); ++i)
        if (m_level.boxes[i].kind == (kind.isInput ? BoxKind::Input : BoxKind::Output) && m_level.boxes[i].name == port.name) m_view->choose(i);
}

/// Without a place it follows the chosen cell, on its wire where it has one alone, or stands in the middle of what one sees.
void ModelPage::insert(const QString& type, std::optional<QPointF> at, std::optional<graph::Wire> onWire) {
    if (const PortKind* kind = portKind(type)) return insertPort(*kind);
    std::optional<graph::Endpoint> source;
    std::optional<graph::Wire> wire = onWire;
    if (!at && !wire) {
        if (const auto chosenWire = m_view->chosenWire()) {
            wire = chosenWire;
            const auto positions = m_view->positions();
            if (const auto place = positions.find(wire->from.cell); place != positions.end()) at = QPointF(place->second.x, place->second.y + kBelow);
        } else if (const auto box = m_view->chosen(); box && !m_level.boxes[*box].outputs.empty()) {
            const LevelBox& before = m_level.boxes[*box];
            source = before.kind == BoxKind::Input ? graph::Endpoint{"", before.name} : graph::Endpoint{before.name, before.outputs.front().name};
            const auto positions = m_view->positions();
            if (const auto place = positions.find(before.name); place != positions.end()) at = QPointF(place->second.x, place->second.y + kBelow);
            std::vector<graph::Wire> onward;
            for (const graph::Wire& other : m_level.graph->wires)
                if (other.from == *source) onward.push_back(other);
            if (onward.size() == 1) wire = onward.front();
        }
    }
    const std::string above = wire ? wire->from.cell : source ? source->cell : std::string();
    const bool isInLine = wire || source;
    const QPointF place = at ? *at : freePlace();
    std::string added;
    const bool isDone = edit(tr("Insert %1").arg(type.section(QLatin1Char('/'), -1)), [&](graph::Document& document, const graph::GraphName& graph) -> Status {
        CELLOOM_TRY(known, bringIn(document, type));
        const graph::Position position{std::round(place.x()), std::round(place.y())};
        if (isInLine) makeRoom(*graph::graphOf(document, graph), position, above);
        CELLOOM_TRY(name, graph::addCell(document, graph, known, position));
        added = name;
        std::string in, out;
        if (const graph::Graph* inner = graph::graphOf(document, known)) {
            if (!inner->inputs.empty()) in = inner->inputs.front().name;
            if (!inner->outputs.empty()) out = inner->outputs.front().name;
        } else if (const catalog::CellType* about = catalog::find(known)) {
            if (!about->inputs.empty()) in = about->inputs.front().name;
            if (!about->outputs.empty()) out = about->outputs.front().name;
        }
        if (known == kScript) beginScript(*graph::findCell(*graph::graphOf(document, graph), name), isInLine ? fedBy(m_level, wire ? wire->from : *source, in) : std::map<std::string, graph::Shape>{});
        if (in.empty() || !isInLine) return {};
        graph::fitToInputs(document, graph, name, fedBy(m_level, wire ? wire->from : *source, in), m_level.hyper);
        if (wire && !out.empty()) return graph::insertOnWire(document, graph, *wire, name, in, out);
        if (source) return graph::addWire(document, graph, {*source, {name, in}});
        return {};
    });
    if (isDone) m_view->chooseCells({added});
}

void ModelPage::removeChosen() {
    if (const auto wire = m_view->chosenWire()) {
        edit(tr("Remove a wire"), [&](graph::Document& document, const graph::GraphName& graph) { return graph::removeWire(document, graph, *wire); });
        return;
    }
    const auto cells = m_view->chosenCells();
    const auto box = m_view->chosen();
    if (!cells.empty()) {
        edit(tr("Delete %n cell(s)", "", static_cast<int>(cells.size())), [&](graph::Document& document, const graph::GraphName& graph) { return graph::removeCells(document, graph, cells); });
    } else if (box) {
        const LevelBox about = m_level.boxes[*box];
        const auto side = about.kind == BoxKind::Input ? graph::PortSide::Input : graph::PortSide::Output;
        edit(tr("Delete the port %1").arg(fromUtf8(about.name)), [&](graph::Document& document, const graph::GraphName& graph) { return graph::removePort(document, graph, side, about.name); });
    }
}

void ModelPage::copyChosen(bool andRemove) {
    const auto cells = m_view->chosenCells();
    const auto text = graph::copyCells(*m_services.model.snapshot(), m_level.graphName, cells);
    if (!text) return;
    QApplication::clipboard()->setText(fromUtf8(*text));
    if (andRemove) edit(tr("Cut"), [&](graph::Document& document, const graph::GraphName& graph) { return graph::removeCells(document, graph, cells); });
}

void ModelPage::paste() {
    const QString source = QApplication::clipboard()->text();
    if (looksLikeCode(source)) {
        m_insight->pasteCode(source);
        return;
    }
    const std::string text = toUtf8(source);
    std::vector<std::string> names;
    const bool isDone = edit(tr("Paste"), [&](graph::Document& document, const graph::GraphName& graph) -> Status {
        CELLOOM_TRY(pasted, graph::pasteCells(document, graph, text, {kPasteOffset, kPasteOffset}));
        names = pasted;
        return {};
    });
    if (isDone) m_view->chooseCells({names.begin(), names.end()});
}

void ModelPage::duplicate() {
    const auto cells = m_view->chosenCells();
    std::vector<std::string> names;
    const bool isDone = edit(tr("Duplicate"), [&](graph::Document& document, const graph::GraphName& graph) -> Status {
        CELLOOM_TRY(copies, graph::duplicateCells(document, graph, cells, {kPasteOffset * 6, 0}));
        names = copies;
        return {};
    });
    if (isDone) m_view->chooseCells({names.begin(), names.end()});
}

void ModelPage::group() {
    const auto cells = m_view->chosenCells();
    std::string name;
    const bool isDone = edit(tr("Group"), [&](graph::Document& document, const graph::GraphName& graph) -> Status {
        CELLOOM_TRY(made, graph::groupCells(document, graph, cells, "Block"));
        name = made;
        return {};
    });
    if (isDone) m_view->chooseCells({name});
}

void ModelPage::ungroup() {
    const auto box = m_view->chosen();
    if (!box) return;
    const std::string cell = m_level.boxes[*box].name;
    std::vector<std::string> names;
    const bool isDone = edit(tr("Expand %1").arg(fromUtf8(cell)), [&](graph::Document& document, const graph::GraphName& graph) -> Status {
        CELLOOM_TRY(inside, graph::ungroupCell(document, graph, cell));
        names = inside;
        return {};
    });
    if (isDone) m_view->chooseCells({names.begin(), names.end()});
}

void ModelPage::rename() {
    if (auto* field = m_inspector->findChild<QLineEdit*>(QStringLiteral("name"))) {
        field->setFocus(Qt::ShortcutFocusReason);
        field->selectAll();
    }
}

/// Graphviz's layout becomes the document's, as one step.
void ModelPage::arrange() {
    m_arranger->arrange();
}

void ModelPage::align(bool isVertical) {
    auto positions = m_view->positions();
    const auto cells = m_view->chosenCells();
    double sum = 0;
    for (const std::string& cell : cells) sum += isVertical ? positions.at(cell).x : positions.at(cell).y;
    const double at = std::round(sum / static_cast<double>(cells.size()));
    for (const std::string& cell : cells) (isVertical ? positions.at(cell).x : positions.at(cell).y) = at;
    edit(tr("Align"), [positions](graph::Document& document, const graph::GraphName& graph) { return graph::moveCells(document, graph, positions); });
}

void ModelPage::showMenu(const QPoint& position) {
    auto* menu = new QMenu(this);
    menu->setAttribute(Qt::WA_DeleteOnClose);
    refreshActions();
    menu->addAction(m_find);
    QMenu* ports = menu->addMenu(tr("Add a port"));
    for (const PortKind& kind : portKinds())
        connect(ports->addAction(QCoreApplication::translate("celloom::ui::Palette", kind.title)), &QAction::triggered, this, [this, &kind] { insertPort(kind); });
    menu->addSeparator();
    for (QAction* action : {m_cut, m_copy, m_paste, m_duplicate, m_delete, m_rename}) menu->addAction(action);
    menu->addSeparator();
    for (QAction* action : {m_group, m_ungroup, m_alignRow, m_alignColumn, m_arrange, m_selectAll, m_fitAll, m_minimap->action()}) menu->addAction(action);
    menu->addSeparator();
    menu->addAction(m_saveCell);
    if (const library::CopyStatus* copy = newerThan(chosenComposite()))
        connect(menu->addAction(tr("Update %1 to version %2").arg(fromUtf8(copy->composite)).arg(copy->newest)), &QAction::triggered, this, [this, name = copy->composite] { updateCopy(name); });
    menu->addSeparator();
    for (QAction* action : {m_undo, m_redo, m_save, m_saveAs, m_picture}) menu->addAction(action);
    menu->popup(position);
}

/// Quickly, from what is known of the cell at the wire's end; thoroughly, by trying the wire on a copy.
GraphView::Verdict ModelPage::judge(const graph::Wire& wire, bool isThorough) {
    if (isThorough) {
        graph::Document trial = *m_services.model.snapshot();
        if (Status status = graph::addWire(trial, m_level.graphName, wire); !status) return {false, Format::error(status.error())};
        const auto edited = std::make_shared<const graph::Document>(std::move(trial));
        const ModelAnalysis after = analyse(m_services.recipe.recipe(), edited, AnalysisDepth::Outline);
        const std::string target = m_level.prefix + wire.to.cell;
        for (const graph::Problem& problem : after.expansion.problems) {
            const bool isHere = problem.severity == graph::Problem::Severity::Error && problem.path.compare(0, target.size(), target) == 0;
            const bool isOld = std::any_of(m_analysis->expansion.problems.begin(), m_analysis->expansion.problems.end(),
                                           [&](const graph::Problem& old) { return old.path == problem.path && old.message == problem.message; });
            if (isHere && !isOld && !graph::isStillMissing(problem)) return {false, said(problem.message)}; // other ports still wait
        }
        return {};
    }
    if (!m_judge) m_judge = std::make_unique<WireJudge>(m_level);
    return {m_judge->isFit(wire), {}};
}

} // namespace celloom::ui
