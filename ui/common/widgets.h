// Small building blocks of every page: cards, labels by role, an elided label, an empty state, lines.
#pragma once

#include <QFrame>
#include <QIcon>
#include <QLabel>
#include <QString>

class QBoxLayout;
class QHBoxLayout;
class QPushButton;
class QToolButton;
class QVBoxLayout;

namespace celloom::ui {

/// Sets the dynamic property `role`, by which the stylesheet chooses the look, and applies it.
void setRole(QWidget* widget, const char* role);
/// Sets any property that the stylesheet looks at, and re-applies the sheet to this widget if it changed.
void setLook(QWidget* widget, const char* property, const QVariant& value);

QLabel* makeLabel(const char* role, QWidget* parent = nullptr);
QFrame* makeLine(QWidget* parent = nullptr, bool isVertical = false);
QToolButton* makeQuietButton(QWidget* parent = nullptr);

/// A rounded box with a title row; add what it holds to body().
class Card : public QFrame {
    Q_OBJECT
public:
    explicit Card(QWidget* parent = nullptr);
    void setTitle(const QString& title);
    [[nodiscard]] QHBoxLayout* titleRow() const { return m_titleRow; } // after the title and a stretch
    [[nodiscard]] QVBoxLayout* body() const { return m_body; }

private:
    QLabel* m_title;
    QHBoxLayout* m_titleRow;
    QVBoxLayout* m_body;
};

/// One line that ends in "…" where it does not fit; the whole text is its tooltip then.
class ElidedLabel : public QLabel {
    Q_OBJECT
public:
    explicit ElidedLabel(Qt::TextElideMode mode = Qt::ElideRight, QWidget* parent = nullptr);
    void setText(const QString& text);
    [[nodiscard]] QString fullText() const { return m_text; }
    [[nodiscard]] QSize sizeHint() const override;
    [[nodiscard]] QSize minimumSizeHint() const override;

protected:
    void resizeEvent(QResizeEvent* event) override;
    void changeEvent(QEvent* event) override;

private:
    void elide();
    QString m_text;
    Qt::TextElideMode m_mode;
};

/// Says, in the middle of an empty place, what will be there and what to do now. Buttons may follow.
class EmptyState : public QWidget {
    Q_OBJECT
public:
    explicit EmptyState(QWidget* parent = nullptr);
    void setTexts(const QString& title, const QString& text);
    void setIcon(const QIcon& icon);
    void addButton(QPushButton* button);

private:
    QLabel* m_icon;
    QLabel* m_title;
    QLabel* m_text;
    QHBoxLayout* m_buttons;
};

} // namespace celloom::ui
