// What the canvas is made of: boxes with their ports, and wires. They draw; graph_view.h decides.
#pragma once

#include "ui/editor/model_level.h"

#include <QFont>
#include <QGraphicsItem>
#include <QString>

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

/// How a port looks while a wire is dragged.
enum class PortLook { Plain, Fits, Unfit };

/// One box. Draws itself from the level's data.
class BoxItem : public QGraphicsItem {
public:
    BoxItem(const LevelBox& box, const BoxBadges& badges, Theme& theme, const QFont& font);

    [[nodiscard]] const LevelBox& box() const { return m_box; }
    [[nodiscard]] QSizeF size() const { return m_size; }
    [[nodiscard]] QRectF rect() const { return {-m_size.width() / 2, -m_size.height() / 2, m_size.width(), m_size.height()}; }
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
    void setPortLooks(std::vector<PortLook> inputs, std::vector<PortLook> outputs);

    [[nodiscard]] QRectF boundingRect() const override;
    void paint(QPainter* painter, const QStyleOptionGraphicsItem*, QWidget*) override;

private:
    [[nodiscard]] bool isPort() const { return m_box.kind == BoxKind::Input || m_box.kind == BoxKind::Output; }
    void paintPort(QPainter* painter, const QRectF& rect) const;
    void paintTexts(QPainter* painter, const QRectF& rect) const;
    void paintPorts(QPainter* painter) const;

    LevelBox m_box;
    BoxBadges m_badges;
    Theme& m_theme;
    QFont m_font;
    QString m_title, m_type, m_shape, m_count, m_repeat;
    QSizeF m_size;
    bool m_isChosen = false, m_hasProblem = false;
    std::vector<PortLook> m_inputLooks, m_outputLooks; // empty: all plain
};

class WireItem : public QGraphicsPathItem {
public:
    WireItem(std::size_t index, Theme& theme);
    [[nodiscard]] std::size_t index() const { return m_index; }
    void setChosen(bool isChosen);
    void setLit(bool isLit); // something can be dropped on it
    void applyLook();
    /// Wide enough to be hit.
    [[nodiscard]] QPainterPath shape() const override;

private:
    std::size_t m_index;
    Theme& m_theme;
    bool m_isChosen = false, m_isLit = false;
};

/// From an output down to an input; around `obstacles` that lie between them.
QPainterPath wireCurve(QPointF from, QPointF to, const std::vector<QRectF>& obstacles = {});

/// The colour of a category's stripe, by name in the theme.
const char* categoryColor(const std::string& category);
const char* categoryColor(const LevelBox& box);

} // namespace celloom::ui
