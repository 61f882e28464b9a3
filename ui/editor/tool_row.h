// A row of tools whose texts give way to icons where its width does not suffice for all of them, one button after the other.
#pragma once

#include <QFrame>

#include <vector>

class QHBoxLayout;
class QToolButton;

namespace celloom::ui {

class ToolRow : public QFrame {
    Q_OBJECT
public:
    explicit ToolRow(QWidget* parent = nullptr);

    /// Add buttons, labels and stretches here.
    [[nodiscard]] QHBoxLayout* row() const { return m_row; }
    /// Those that show their texts while there is room; the first gives way first. Each needs an icon and a tooltip.
    void setFolding(std::vector<QToolButton*> buttons);
    [[nodiscard]] QSize minimumSizeHint() const override;

protected:
    bool event(QEvent* event) override;

private:
    void fold();

    QHBoxLayout* m_row;
    std::vector<QToolButton*> m_folding;
};

} // namespace celloom::ui
