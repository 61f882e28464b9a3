// Rows of tokens as a batch has them: each token a tinted box, what is learned in full colour, the rest grey, marks framed, borders of
// conversations as bars. The mouse or the arrow keys choose a token, and the view says which.
#pragma once

#include "ui/train/preview_data.h"

#include <QAbstractScrollArea>

#include <optional>
#include <vector>

namespace celloom::ui {

class Theme;

class TokenView : public QAbstractScrollArea {
    Q_OBJECT
public:
    struct Place {
        std::size_t row = 0, token = 0;
        bool operator==(const Place&) const = default;
    };

    explicit TokenView(Theme& theme, QWidget* parent = nullptr);
    void setRows(std::vector<PreviewRow> rows);
    [[nodiscard]] std::optional<Place> current() const { return m_current; }
    /// What the view says about a token: text, number, position, whether it is learned.
    [[nodiscard]] QString describe(const Place& place) const;
    /// In the viewport, as it is scrolled now; empty when there is none.
    [[nodiscard]] QRect rectOf(const Place& place) const;

Q_SIGNALS:
    void described(const QString& text); // of the token under the mouse, else of the current one

protected:
    void paintEvent(QPaintEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;
    void changeEvent(QEvent* event) override;
    void mouseMoveEvent(QMouseEvent* event) override;
    void mousePressEvent(QMouseEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;
    void focusInEvent(QFocusEvent* event) override;
    bool viewportEvent(QEvent* event) override;

private:
    struct Box {
        QRect rect; // in the content
        QString text;
        Place place;
        bool beginsSegment = false;
    };
    struct Heading {
        QRect rect;
        std::size_t row = 0;
    };
    void arrange();
    void arrangeRow(std::size_t row, int& y, int width);
    void paintBox(QPainter& painter, const Box& box) const;
    [[nodiscard]] QString headingText(const PreviewRow& row, std::size_t index) const;
    [[nodiscard]] const Box* boxAt(const QPoint& inViewport) const;
    [[nodiscard]] std::size_t boxIndex(const Place& place) const;
    void setCurrent(std::size_t box);
    void moveVertically(int direction);
    void moveBy(int step);

    Theme& m_theme;
    std::vector<PreviewRow> m_rows;
    std::vector<Box> m_boxes; // from top to bottom
    std::vector<Heading> m_headings;
    std::optional<Place> m_current;
};

} // namespace celloom::ui
