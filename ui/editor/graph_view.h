// Draws one level of a model. Chooses and steps in; changes nothing.
#pragma once

#include "ui/editor/graph_layout.h"
#include "ui/editor/model_level.h"

#include <QGraphicsView>

#include <optional>
#include <vector>

namespace celloom::ui {

class BoxItem;
class Theme;

/// What a box shows besides its name: counted for one box from the treatment table.
struct Badge {
    QString text;         // "LoRA r=8", "frozen", "bfloat16"
    bool isQuiet = false; // of what is left out, such as frozen weights
};
using BoxBadges = std::vector<Badge>;

class GraphView : public QGraphicsView {
    Q_OBJECT
public:
    explicit GraphView(Theme& theme, QWidget* parent = nullptr);

    /// Shows nothing until place() says where the boxes go.
    void setLevel(const ModelLevel& level, const std::vector<BoxBadges>& badges);
    void place(const LayoutResult& layout);
    [[nodiscard]] LayoutInput layoutInput() const;

    void choose(std::optional<std::size_t> box);
    [[nodiscard]] std::optional<std::size_t> chosen() const { return m_chosen; }
    void fit();
    void zoomBy(double factor);
    [[nodiscard]] int zoomPercent() const;

Q_SIGNALS:
    void boxChosen(std::optional<std::size_t> box);
    void stepInRequested(std::size_t box);
    void stepOutRequested();
    void zoomChanged();

protected:
    void wheelEvent(QWheelEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;
    void mousePressEvent(QMouseEvent* event) override;
    void mouseDoubleClickEvent(QMouseEvent* event) override;
    void drawBackground(QPainter* painter, const QRectF& rect) override;

private:
    [[nodiscard]] std::optional<std::size_t> boxAt(const QPoint& position) const;
    void chooseNext(int direction);

    Theme& m_theme;
    ModelLevel m_level;
    std::vector<BoxItem*> m_items;
    std::vector<QGraphicsPathItem*> m_wires;
    std::optional<std::size_t> m_chosen;
};

/// The colour of a category's stripe, by name in the theme.
const char* categoryColor(const LevelBox& box);

} // namespace celloom::ui
