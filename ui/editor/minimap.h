// The whole level in a corner of the canvas, with a frame around what is in sight; a click moves it there, and it can be dragged. Hidden while everything is in sight.
#pragma once

#include <QPixmap>
#include <QRectF>
#include <QWidget>

class QAction;
class QSettings;

namespace celloom::ui {

class GraphView;
class Theme;

class Minimap : public QWidget {
    Q_OBJECT
public:
    /// A child of the view. Whether it is wanted is kept in the settings.
    Minimap(GraphView* view, Theme& theme, QSettings& settings);

    /// Checked: it is wanted. Its text is the caller's.
    [[nodiscard]] QAction* action() const { return m_action; }

protected:
    void paintEvent(QPaintEvent* event) override;
    void mousePressEvent(QMouseEvent* event) override;
    void mouseMoveEvent(QMouseEvent* event) override;
    void mouseReleaseEvent(QMouseEvent* event) override;
    void changeEvent(QEvent* event) override;

private:
    void refresh();
    [[nodiscard]] QRectF frame() const;
    [[nodiscard]] QRectF onMap(const QRectF& sceneRect) const;
    void lookAt(QPointF position);

    GraphView* m_view;
    Theme& m_theme;
    QAction* m_action;
    QPixmap m_boxes; // drawn anew when they move
    QRectF m_whole;  // of the scene
    double m_scale = 1;
    QPointF m_grab; // of the frame, from its middle
};

} // namespace celloom::ui
