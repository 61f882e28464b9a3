// The canvas: one level of a model. Looks, chooses, and says what the user's gestures ask for; it changes nothing itself.
#pragma once

#include "ui/editor/graph_items.h"
#include "ui/editor/graph_layout.h"
#include "ui/editor/wire_routing.h"

#include <QGraphicsView>

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace celloom::ui {

class GraphView : public QGraphicsView {
    Q_OBJECT
public:
    explicit GraphView(Theme& theme, QWidget* parent = nullptr);
    ~GraphView() override;

    /// The mime type under which a cell type's name is dragged here.
    static constexpr const char* kCellMime = "application/x-celloom-cell-type";

    /// Shows nothing until place() or placeByDocument() says where the boxes go. Keeps what is chosen where the names are still there.
    void setLevel(const ModelLevel& level, const std::vector<BoxBadges>& badges);
    /// The next level has nothing to do with the one before: no choice is kept, no sight.
    void forget();
    void place(const LayoutResult& layout);
    /// Where the level is made of the same boxes and wires as the one before it, and that one was placed by a layout: as it was.
    bool placeAsBefore();
    /// Where every cell of the level has a position; ports of the graph itself go above and below them.
    void placeByDocument();
    [[nodiscard]] bool isPlacedByDocument() const;
    /// The boxes of the level are to be seen: they have their places.
    [[nodiscard]] bool isShown() const { return m_isShown; }
    [[nodiscard]] LayoutInput layoutInput() const;
    /// Boxes with a problem are marked.
    void setProblems(const std::set<std::string>& boxes);

    /// What is said beside the wires, one for each (see WireLayer), and at which box something failed. Until the next level.
    void setNotes(std::vector<WireNote> notes);
    [[nodiscard]] const std::vector<WireNote>& notes() const { return m_notes; }
    void setFailure(const std::string& box, const QString& failure);
    [[nodiscard]] QString failureAt(const std::string& box) const;
    /// Indices of the level's wires, the shortest first.
    [[nodiscard]] std::vector<std::size_t> wiresByLength() const;

    /// Something is being dragged.
    [[nodiscard]] bool isInGesture() const { return m_gesture != Gesture::None; }

    void setEditable(bool isEditable) { m_isEditable = isEditable; }
    /// Whether a wire can be, and why not: asked for each port while a wire is dragged.
    struct Verdict {
        bool isFit = true;
        QString reason;
    };
    using Judge = std::function<Verdict(const graph::Wire& wire, bool isThorough)>;
    void setJudge(Judge judge) { m_judge = std::move(judge); }
    /// Whether a cell can come between the ends of a wire, and why not: asked while it is dragged over one.
    using InsertJudge = std::function<Verdict(const std::string& cell, const graph::Wire& wire)>;
    void setInsertJudge(InsertJudge judge) { m_insertJudge = std::move(judge); }

    void choose(std::optional<std::size_t> box);
    void chooseCells(const std::set<std::string>& names);
    void chooseAll();
    [[nodiscard]] std::optional<std::size_t> chosen() const; // the one box that is chosen
    [[nodiscard]] std::set<std::string> chosenCells() const; // without the graph's own ports
    [[nodiscard]] std::optional<graph::Wire> chosenWire() const;
    [[nodiscard]] const ModelLevel& level() const { return m_level; }
    /// As many as the level has boxes, in their order; gone with the level. For what is drawn upon them.
    [[nodiscard]] const std::vector<BoxItem*>& items() const { return m_items; }
    /// Of a wire of a level that is shown.
    [[nodiscard]] const QPainterPath& curveOf(std::size_t wire) const { return m_wires->path(wire); }
    /// What stands beside the level's own boxes counts as part of it, until the next one.
    void setBeside(const QRectF& rect) { m_beside = rect; }
    /// What placed the level; nothing where the document did, or a box was moved since.
    [[nodiscard]] const std::optional<LayoutResult>& layout() const { return m_layout; }
    /// Draws in the colours of the light theme from now on: for a picture.
    void setForPaper() { m_style.setForPaper(); }
    /// Where each cell is now.
    [[nodiscard]] std::map<std::string, graph::Position> positions() const;
    /// The part of the scene that one sees.
    [[nodiscard]] QRectF sight() const { return mapToScene(viewport()->rect()).boundingRect(); }
    void lookAt(QPointF middle);
    /// Where each box is, and the colour of its kind.
    void eachBox(const std::function<void(const QRectF& rect, const QColor& color)>& tell) const;
    [[nodiscard]] QPointF middle() const { return mapToScene(viewport()->rect().center()); }

    /// Everything on the canvas, in the scene's coordinates.
    [[nodiscard]] QRectF contents() const;
    /// Everything in sight, also when the size changes, until the user pans or zooms; where texts would become too small for that, what is
    /// chosen, or the beginning.
    void fit();
    /// Everything in sight, however small.
    void fitAll();
    [[nodiscard]] bool isFitted() const { return m_isFitted; }
    /// Looks at this place. Of a level that is not placed yet: as soon as it is.
    void setSight(double zoom, QPointF middle);
    /// `around`: a point of the viewport that stays where it is; without it the middle.
    void zoomBy(double factor, std::optional<QPoint> around = {});
    [[nodiscard]] int zoomPercent() const;

Q_SIGNALS:
    void boxChosen(std::optional<std::size_t> box);
    void stepInRequested(std::size_t box);
    void stepOutRequested();
    void zoomChanged();
    void resized();
    void sightChanged(); // pan or zoom
    void placed();       // boxes came or moved
    // gestures, to be carried out by the document
    void moved(const std::map<std::string, celloom::graph::Position>& positions);
    void wireDrawn(const celloom::graph::Wire& wire, const std::optional<celloom::graph::Wire>& insteadOf);
    void wireDropped(const celloom::graph::Wire& wire); // taken off its end and let go in the open
    void refused(const QString& reason); // a cell was dropped on a wire that does not take it
    void cellDroppedOnWire(const QString& cell, const celloom::graph::Wire& wire, const std::map<std::string, celloom::graph::Position>& positions);
    void typeDropped(const QString& type, QPointF at, const std::optional<celloom::graph::Wire>& onWire);
    void searchRequested(QPointF at);
    void menuRequested(const QPoint& globalPosition);

protected:
    void wheelEvent(QWheelEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;
    bool event(QEvent* event) override;
    void focusInEvent(QFocusEvent* event) override;
    void focusOutEvent(QFocusEvent* event) override;
    void scrollContentsBy(int dx, int dy) override;
    void mousePressEvent(QMouseEvent* event) override;
    void mouseMoveEvent(QMouseEvent* event) override;
    void mouseReleaseEvent(QMouseEvent* event) override;
    void mouseDoubleClickEvent(QMouseEvent* event) override;
    void contextMenuEvent(QContextMenuEvent* event) override;
    void dragEnterEvent(QDragEnterEvent* event) override;
    void dragMoveEvent(QDragMoveEvent* event) override;
    void dragLeaveEvent(QDragLeaveEvent* event) override;
    void dropEvent(QDropEvent* event) override;
    void drawBackground(QPainter* painter, const QRectF& rect) override;
    void drawForeground(QPainter* painter, const QRectF& rect) override; // what to do on an empty canvas
    void resizeEvent(QResizeEvent* event) override;
    bool viewportEvent(QEvent* event) override;

private:
    struct PortRef {
        std::size_t box = 0;
        bool isOutput = false;
        std::size_t index = 0;
    };
    struct Target { // of a wire that is drawn by keys
        PortRef port;
        bool isFit = true;
        std::optional<QString> reason; // why not, once it was asked for
    };
    enum class Gesture { None, Pan, Band, Press, Move, Wire };

    [[nodiscard]] std::optional<std::size_t> boxAt(const QPoint& position) const;
    [[nodiscard]] std::optional<PortRef> portAt(const QPoint& position) const;
    [[nodiscard]] std::optional<std::size_t> wireAt(const QPoint& position, const std::set<std::string>& without = {}) const;
    [[nodiscard]] graph::Endpoint endpointOf(const PortRef& port) const;
    [[nodiscard]] QPointF scenePoint(const PortRef& port) const;
    [[nodiscard]] std::optional<graph::Wire> wireBetween(const PortRef& a, const PortRef& b) const;
    void setChosen(const std::set<std::size_t>& boxes, std::optional<std::size_t> wire = {});
    void chooseNext(int direction);
    void nudge(QPointF by);
    void clearItems();
    void showItems();
    [[nodiscard]] RectGrid boxGrid() const;
    [[nodiscard]] QPainterPath wirePath(std::size_t wire, const RectGrid& boxes) const;
    void drawWires();
    /// After these boxes moved from these places: their own wires and those that have them in their way now, or had.
    void redrawWires(const std::set<std::size_t>& boxes, const std::vector<QRectF>& places);
    void updateSceneRect();
    void fitAgain();
    [[nodiscard]] QRectF firstToSee() const;
    void light(std::optional<std::size_t> wire, bool isRefused = false);
    void moveBoxes(const QMouseEvent& event);
    void lookForWireUnder(const QPoint& position);
    [[nodiscard]] std::optional<graph::Wire> litWire() const;
    void beginWire(const PortRef& from, std::optional<std::size_t> taken);
    void moveWire(const QPoint& position);
    void drawDraft(QPointF end, const QString& reason);
    void endWire(const QPoint& position);
    void endGesture();

    // by keys (graph_view_keys.cpp)
    void chooseTowards(int key, bool adds);
    void chooseNextWire();
    void beginWireByKeys(bool fromInput);
    void showTarget();
    [[nodiscard]] const QString& reasonOf(Target& target);
    [[nodiscard]] QString targetList();
    bool wireKey(const QKeyEvent* event);
    void escape();
    /// `shown`: what is seen beside the box, where that is not the text itself.
    void announce(const QString& text, std::optional<std::size_t> beside = {}, const QString& shown = {});
    [[nodiscard]] QString describe(std::size_t box) const;
    [[nodiscard]] QString endText(const graph::Endpoint& end) const;

    Theme& m_theme;
    CanvasStyle m_style;
    ModelLevel m_level;
    std::vector<BoxItem*> m_items; // the scene's once they are shown
    WireLayer* m_wires = nullptr;
    std::vector<WireNote> m_notes;
    QRectF m_beside;
    std::vector<QPainterPath> m_curves; // Graphviz's, while they hold
    std::set<std::size_t> m_chosen;
    std::optional<std::size_t> m_chosenWire;
    bool m_isEditable = false, m_isShown = false;
    std::optional<LayoutResult> m_layout; // that placed the level; none: the document did
    bool m_isLayoutOfLevel = false;       // else of one like it
    bool m_keepsSight = false;            // the level is the one that was on show: pan and zoom stay
    bool m_isFitted = true;               // until the user pans or zooms
    bool m_fitsAll = false;               // however small it gets
    std::optional<std::pair<double, QPointF>> m_sight; // zoom and middle, once the level is placed
    Judge m_judge;
    InsertJudge m_insertJudge;

    Gesture m_gesture = Gesture::None;
    QPoint m_pressed;
    QPointF m_pressedScene;
    std::vector<QPointF> m_before;     // positions of all boxes when a move began
    QString m_refusal;                 // why the wire under the dragged cell does not take it
    std::optional<PortRef> m_wireFrom;
    std::optional<std::size_t> m_wireTaken; // the wire whose end is being moved
    bool m_isByKeys = false;           // the wire looks for its end among m_targets
    std::vector<Target> m_targets;     // those that fit, the nearest first, then the others
    std::size_t m_target = 0;
    std::optional<std::size_t> m_cursor; // the box from which arrows go on
    QGraphicsPathItem* m_draft = nullptr;
    QGraphicsRectItem* m_band = nullptr;
};

} // namespace celloom::ui
