#include "ui/editor/tool_row.h"

#include <QEvent>
#include <QHBoxLayout>
#include <QToolButton>

#include <algorithm>

namespace celloom::ui {

namespace {
constexpr int kHeight = 44;
} // namespace

ToolRow::ToolRow(QWidget* parent) : QFrame(parent), m_row(new QHBoxLayout(this)) {
    setProperty("role", QStringLiteral("bar"));
    setFixedHeight(kHeight);
    m_row->setContentsMargins(14, 4, 10, 4);
    m_row->setSpacing(8);
}

void ToolRow::setFolding(std::vector<QToolButton*> buttons) {
    m_folding = std::move(buttons);
    fold();
}

void ToolRow::fold() {
    for (QToolButton* button : m_folding) button->setToolButtonStyle(Qt::ToolButtonTextBesideIcon);
    for (QToolButton* button : m_folding) {
        if (m_row->sizeHint().width() <= width()) return;
        button->setToolButtonStyle(Qt::ToolButtonIconOnly);
    }
}

/// With all texts folded: the page may be as narrow as that.
QSize ToolRow::minimumSizeHint() const {
    int spare = 0;
    for (const QToolButton* button : m_folding)
        if (button->toolButtonStyle() != Qt::ToolButtonIconOnly) spare += button->fontMetrics().horizontalAdvance(button->text());
    return {std::max(0, QFrame::minimumSizeHint().width() - spare), kHeight};
}

bool ToolRow::event(QEvent* event) {
    const bool isDone = QFrame::event(event);
    switch (event->type()) {
        case QEvent::Resize:
        case QEvent::Show:
        case QEvent::LanguageChange:
        case QEvent::StyleChange:
        case QEvent::FontChange:
            fold();
            break;
        default:
            break;
    }
    return isDone;
}

} // namespace celloom::ui
