// The canvas: one level of a model. Looks, chooses, and says what the user's gestures ask for; it changes nothing itself.
#pragma once

#include "ui/editor/graph_items.h"
#include "ui/editor/graph_layout.h"

#include <QGraphicsView>

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <vector>

namespace celloom::ui {

class GraphView : public QGraphicsView {
    Q_OBJECT
public:
    explicit GraphView(Theme& theme, QWidget* parent = nullptr);

    /// The mime type under which a cell type's name is dragged here.
    static constexpr const char* kCellMime = "application/x-celloom-cell-type";

    /// Shows nothing until place() or placeByDocument() says where the boxes go. Keeps what is chosen where the names are still there.
    void setLevel(const ModelLevel& level, const std::vector<BoxBadges>& badges);
    void place(const LayoutResult& layout);
    /// Where every cell of the level has a position; ports of the graph itself go above and below them.
    void placeByDocument();
    [[nodiscard]] bool isPlacedByDocument() const;
    [[nodiscard]] LayoutInput layoutInput() const;
    /// Boxes with a problem are marked.
    void setProblems(const std::set<std::string>& boxes);

    void setEditable(bool isEditable) { m_isEditable = isEditable; }
    /// Whether a wire can be, and why not: asked for each port while a wire is dragged.
    struct Verdict {
        bool isFit = true;
        QString reason;
    };
    using Judge = std::function<Verdict(const graph::Wire& wire, bool isThorough)>;
    void setJudge(Judge judge) { m_judge = std::move(judge); }

    void choose(std::optional<std::size_t> box);
    void chooseCells(const std::set<std::string>& names);
    void chooseAll();
    [[nodiscard]] std::optional<std::size_t> chosen() const; // the one box that is chosen
    [[nodiscard]] std::set<std::string> chosenCells() const; // without the graph's own ports
    [[nodiscard]] std::optional<graph::Wire> chosenWire() const;
    [[nodiscard]] const ModelLevel& level() const { return m_level; }
    /// Where each cell is now.
    [[nodiscard]] std::map<std::string, graph::Position> positions() const;
    [[nodiscard]] QPointF middle() const { return mapToScene(viewport()->rect().center()); }

    void fit();
    void zoomBy(double factor);
    [[nodiscard]] int zoomPercent() const;

Q_SIGNALS:
    void boxChosen(std::optional<std::size_t> box);
    void stepInRequested(std::size_t box);
    void stepOutRequested();
    void zoomChanged();
    // gestures, to be carried out by the document
    void moved(const std::map<std::string, celloom::graph::Position>& positions);
    void wireDrawn(const celloom::graph::Wire& wire, const std::optional<celloom::graph::Wire>& insteadOf);
    void wireDropped(const celloom::graph::Wire& wire); // taken off its end and let go in the open
    void cellDroppedOnWire(const QString& cell, const celloom::graph::Wire& wire, const std::map<std::string, celloom::graph::Position>& positions);
    void typeDropped(const QString& type, QPointF at, const std::optional<celloom::graph::Wire>& onWire);
    void searchRequested(QPointF at);
    void menuRequested(const QPoint& globalPosition);

protected:
    void wheelEvent(QWheelEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;
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
    bool viewportEvent(QEvent* event) override;

private:
    struct PortRef {
        std::size_t box = 0;
        bool isOutput = false;
        std::size_t index = 0;
    };
    enum class Gesture { None, Pan, Band, Press, Move, Wire };

    [[nodiscard]] std::optional<std::size_t> boxAt(const QPoint& position) const;
    [[nodiscard]] std::optional<PortRef> portAt(const QPoint& position) const;
    WireItem* wireAt(const QPoint& position, const std::set<std::string>& without = {}) const;
    [[nodiscard]] graph::Endpoint endpointOf(const PortRef& port) const;
    [[nodiscard]] QPointF scenePoint(const PortRef& port) const;
    [[nodiscard]] std::optional<graph::Wire> wireBetween(const PortRef& a, const PortRef& b) const;
    void setChosen(const std::set<std::size_t>& boxes, std::optional<std::size_t> wire = {});
    void chooseNext(int direction);
    void nudge(QPointF by);
    void drawWires();
    void updateSceneRect();
    void light(WireItem* wire);
    void beginWire(const PortRef& from, std::optional<std::size_t> taken);
    void moveWire(const QPoint& position);
    void endWire(const QPoint& position);
    void endGesture();

    Theme& m_theme;
    ModelLevel m_level;
    std::vector<BoxItem*> m_items;
    std::vector<WireItem*> m_wires;
    std::vector<QPainterPath> m_curves; // Graphviz's, while they hold
    std::set<std::size_t> m_chosen;
    std::optional<std::size_t> m_chosenWire;
    bool m_isEditable = false, m_isShown = false;
    Judge m_judge;

    Gesture m_gesture = Gesture::None;
    QPoint m_pressed;
    QPointF m_pressedScene;
    std::vector<QPointF> m_before;     // positions of all boxes when a move began
    std::optional<PortRef> m_wireFrom;
    std::optional<std::size_t> m_wireTaken; // the wire whose end is being moved
    QGraphicsPathItem* m_draft = nullptr;
    QGraphicsRectItem* m_band = nullptr;
    WireItem* m_lit = nullptr;
};

} // namespace celloom::ui
