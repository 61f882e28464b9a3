#include "ui/common/widgets.h"

#include <QEvent>
#include <QHBoxLayout>
#include <QPushButton>
#include <QStyle>
#include <QToolButton>
#include <QVBoxLayout>
#include <QVariant>

namespace celloom::ui {

void setLook(QWidget* widget, const char* property, const QVariant& value) {
    if (widget->property(property) == value) return;
    widget->setProperty(property, value);
    widget->style()->unpolish(widget);
    widget->style()->polish(widget);
    widget->update();
}

void setRole(QWidget* widget, const char* role) {
    setLook(widget, "role", QString::fromLatin1(role));
}

QLabel* makeLabel(const char* role, QWidget* parent) {
    auto* label = new QLabel(parent);
    label->setProperty("role", QString::fromLatin1(role));
    return label;
}

QFrame* makeLine(QWidget* parent, bool isVertical) {
    auto* line = new QFrame(parent);
    line->setProperty("role", isVertical ? QStringLiteral("vline") : QStringLiteral("line"));
    return line;
}

QToolButton* makeQuietButton(QWidget* parent) {
    auto* button = new QToolButton(parent);
    button->setProperty("role", QStringLiteral("quiet"));
    button->setFocusPolicy(Qt::StrongFocus);
    return button;
}

Card::Card(QWidget* parent) : QFrame(parent) {
    setProperty("role", QStringLiteral("card"));
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(14, 10, 14, 12);
    layout->setSpacing(8);
    m_titleRow = new QHBoxLayout;
    m_titleRow->setSpacing(8);
    m_title = makeLabel("title", this);
    m_title->hide();
    m_titleRow->addWidget(m_title);
    m_titleRow->addStretch(1);
    layout->addLayout(m_titleRow);
    m_body = new QVBoxLayout;
    m_body->setSpacing(6);
    layout->addLayout(m_body, 1);
}

void Card::setTitle(const QString& title) {
    m_title->setText(title);
    m_title->setVisible(!title.isEmpty());
}

ElidedLabel::ElidedLabel(Qt::TextElideMode mode, QWidget* parent) : QLabel(parent), m_mode(mode) {
    setSizePolicy(QSizePolicy::Preferred, QSizePolicy::Fixed);
}

void ElidedLabel::setText(const QString& text) {
    m_text = text;
    setAccessibleName(text);
    updateGeometry();
    elide();
}

QSize ElidedLabel::sizeHint() const {
    return {fontMetrics().horizontalAdvance(m_text) + 2, QLabel::sizeHint().height()};
}

QSize ElidedLabel::minimumSizeHint() const {
    return {fontMetrics().horizontalAdvance(QStringLiteral("…")) * 3, QLabel::minimumSizeHint().height()};
}

void ElidedLabel::resizeEvent(QResizeEvent* event) {
    QLabel::resizeEvent(event);
    elide();
}

void ElidedLabel::changeEvent(QEvent* event) {
    QLabel::changeEvent(event);
    if (event->type() == QEvent::FontChange || event->type() == QEvent::StyleChange) elide();
}

void ElidedLabel::elide() {
    const QString shown = fontMetrics().elidedText(m_text, m_mode, std::max(0, width()));
    if (shown != QLabel::text()) QLabel::setText(shown);
    setToolTip(shown == m_text ? QString() : m_text);
}

EmptyState::EmptyState(QWidget* parent) : QWidget(parent) {
    auto* layout = new QVBoxLayout(this);
    layout->setSpacing(8);
    layout->addStretch(2);
    m_icon = new QLabel(this);
    m_icon->setAlignment(Qt::AlignCenter);
    m_icon->hide();
    m_title = makeLabel("title", this);
    m_title->setAlignment(Qt::AlignCenter);
    m_text = makeLabel("muted", this);
    m_text->setAlignment(Qt::AlignHCenter | Qt::AlignTop);
    m_text->setWordWrap(true);
    m_text->setMaximumWidth(560);
    m_buttons = new QHBoxLayout;
    m_buttons->addStretch(1);
    m_buttons->addStretch(1);
    layout->addWidget(m_icon);
    layout->addWidget(m_title);
    auto* row = new QHBoxLayout; // keeps the text's height for its width while it stays in the middle
    row->addStretch(1);
    row->addWidget(m_text, 100);
    row->addStretch(1);
    layout->addLayout(row);
    layout->addLayout(m_buttons);
    layout->addStretch(3);
}

void EmptyState::setTexts(const QString& title, const QString& text) {
    m_title->setText(title);
    m_title->setVisible(!title.isEmpty());
    m_text->setText(text);
}

void EmptyState::setIcon(const QIcon& icon) {
    m_icon->setPixmap(icon.pixmap(36, 36));
    m_icon->show();
}

void EmptyState::addButton(QPushButton* button) {
    m_buttons->insertWidget(m_buttons->count() - 1, button);
}

} // namespace celloom::ui
