// What the canvas is made of: boxes with their ports, and the wires together. They draw; graph_view.h decides.
// From afar both are drawn plainly, so that thousands of them pan and zoom smoothly.
#pragma once

#include "ui/editor/model_level.h"

#include <QColor>
#include <QFont>
#include <QFontMetricsF>
#include <QGraphicsItem>
#include <QHash>
#include <QPainterPath>
#include <QPolygonF>
#include <QString>

#include <functional>
#include <optional>
#include <vector>

namespace celloom::ui {

class Theme;

/// What a box shows besides its name: counted for one box from the treatment table.
struct Badge {
    QString text;         // "LoRA r=8", "frozen", "bfloat16"
    bool isQuiet = false; // of what is left out, such as frozen weights
};
using BoxBadges = std::vector<Badge>;

/// What is said beside a wire: what a probe found on it.
struct WireNote {
    QString first, second; // two lines: the shape, the numbers
    bool isBad = false;    // it has NaN or infinite values
};

/// How a port looks while a wire is drawn.
enum class PortLook { Plain, Fits, Unfit };

/// What all items of a canvas share: fonts with the widths of what was measured, and the theme's colours.
class CanvasStyle {
public:
    CanvasStyle(Theme& theme, const QFont& font);
    /// After the theme has changed.
    void refresh();
    /// In the colours of the light theme, whichever is on.
    void setForPaper();

    /// A font and the widths of texts in it; types and shapes come again and again.
    class Text {
    public:
        explicit Text(const QFont& font) : m_font(font), m_metrics(font) {}
        [[nodiscard]] const QFont& font() const { return m_font; }
        [[nodiscard]] double width(const QString& text) const;
        [[nodiscard]] double height() const { return m_metrics.height(); }
        [[nodiscard]] QString elided(const QString& text, double room) const;

    private:
        QFont m_font;
        QFontMetricsF m_metrics;
        mutable QHash<QString, double> m_widths;
    };
    Text bold, plain, code, note;
    QColor window, surface, sunken, border, text, muted, accent, accentSoft, pressed, bad, badSoft, good, wire;
    [[nodiscard]] QColor category(const LevelBox& box) const;

    static constexpr double kDetail = 0.4; // scales below it show neither texts nor ports

private:
    [[nodiscard]] QColor color(const char* name) const;

    Theme& m_theme;
    bool m_isForPaper = false;
    mutable QHash<QByteArray, QColor> m_categories;
};

/// One box. Draws itself from the level's data.
class BoxItem : public QGraphicsItem {
public:
    BoxItem(const LevelBox& box, const BoxBadges& badges, const CanvasStyle& style);

    [[nodiscard]] const LevelBox& box() const { return m_box; }
    [[nodiscard]] QSizeF size() const { return m_size; }
    [[nodiscard]] QRectF rect() const { return {-m_size.width() / 2, -m_size.height() / 2, m_size.width(), m_size.height()}; }
    [[nodiscard]] QRectF sceneRect() const { return rect().translated(pos()); }
    /// In the item's coordinates: inputs along the upper edge, outputs along the lower one.
    [[nodiscard]] QPointF portAt(bool isOutput, std::size_t index) const;
    /// The port within reach of a point of the item, the nearest first.
    struct Port {
        bool isOutput = false;
        std::size_t index = 0;
    };
    [[nodiscard]] std::optional<Port> portNear(QPointF point, double reach) const;

    void setChosen(bool isChosen);
    [[nodiscard]] bool isChosen() const { return m_isChosen; }
    void setProblem(bool hasProblem);
    /// Something went wrong when it was computed: marked, and said in its tooltip. Empty: nothing.
    void setFailure(const QString& failure);
    [[nodiscard]] const QString& failure() const { return m_failure; }
    void setPortLooks(std::vector<PortLook> inputs, std::vector<PortLook> outputs);

    [[nodiscard]] QRectF boundingRect() const override;
    void paint(QPainter* painter, const QStyleOptionGraphicsItem* option, QWidget*) override;

private:
    [[nodiscard]] bool isPort() const { return m_box.kind == BoxKind::Input || m_box.kind == BoxKind::Output; }
    void paintPlainly(QPainter* painter, double scale) const;
    void paintPort(QPainter* painter, const QRectF& rect) const;
    void paintTexts(QPainter* painter, const QRectF& rect) const;
    void paintPorts(QPainter* painter) const;
    void paintFailure(QPainter* painter) const;
    [[nodiscard]] bool isMarked() const { return m_hasProblem || !m_failure.isEmpty(); }

    LevelBox m_box;
    BoxBadges m_badges;
    const CanvasStyle& m_style;
    QString m_title, m_type, m_shape, m_count, m_repeat, m_failure;
    QSizeF m_size;
    bool m_isChosen = false, m_hasProblem = false;
    std::vector<PortLook> m_inputLooks, m_outputLooks; // empty: all plain
};

/// All wires of a level, in one item.
class WireLayer : public QGraphicsItem {
public:
    explicit WireLayer(const CanvasStyle& style);

    void setPaths(std::vector<QPainterPath> paths);
    void setPath(std::size_t wire, QPainterPath path);
    [[nodiscard]] const QPainterPath& path(std::size_t wire) const { return m_wires[wire].path; }
    [[nodiscard]] const QRectF& bounds(std::size_t wire) const { return m_wires[wire].bounds; }
    [[nodiscard]] double length(std::size_t wire) const;
    [[nodiscard]] std::size_t count() const { return m_wires.size(); }
    /// The nearest within reach, of those that are wanted.
    [[nodiscard]] std::optional<std::size_t> near(QPointF point, double reach, const std::function<bool(std::size_t)>& isWanted = {}) const;

    /// One for each wire; where several carry the same value, one of them has the note. Empty: none at all. Those that would lie on others are
    /// left out: bad ones come first, and the chosen wire always has its own.
    void setNotes(std::vector<WireNote> notes);
    [[nodiscard]] const std::vector<WireNote>& notes() const { return m_notes; }

    [[nodiscard]] bool isNoteShown(std::size_t wire) const { return !m_noteRects[wire].isEmpty(); }

    void setChosen(std::optional<std::size_t> wire);
    /// Something would be dropped on it; refused, it says so by its colour.
    void setLit(std::optional<std::size_t> wire, bool isRefused = false);
    void setHidden(std::optional<std::size_t> wire) { change(m_hidden, wire); }
    [[nodiscard]] std::optional<std::size_t> lit() const { return m_lit; }

    [[nodiscard]] QRectF boundingRect() const override { return m_bounds; }
    void paint(QPainter* painter, const QStyleOptionGraphicsItem* option, QWidget*) override;

private:
    struct Wire {
        QPainterPath path;
        QPolygonF line;
        QRectF bounds;
    };
    static Wire wireOf(QPainterPath path);
    void change(std::optional<std::size_t>& member, std::optional<std::size_t> wire);
    void updateBounds();
    void paintOne(QPainter* painter, std::size_t wire, bool isDetailed) const;
    void paintNote(QPainter* painter, std::size_t wire) const;
    void placeNotes();
    void placeNote(std::size_t wire);
    [[nodiscard]] QRectF noteRect(std::size_t wire, double part) const;

    const CanvasStyle& m_style;
    std::vector<Wire> m_wires;
    std::vector<WireNote> m_notes;
    std::vector<QRectF> m_noteRects; // beside m_notes; empty: no room for it
    QRectF m_bounds;
    bool m_isRefused = false;
    std::optional<std::size_t> m_chosen, m_lit, m_hidden;
};

/// The colour of a category's stripe, by name in the theme.
const char* categoryColor(const std::string& category);
const char* categoryColor(const LevelBox& box);

} // namespace celloom::ui
