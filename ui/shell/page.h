// What the shell knows of a page.
#pragma once

#include "ui/common/texts.h"

#include <QEvent>
#include <QString>
#include <QWidget>

namespace celloom::ui {

class Page : public QWidget {
    Q_OBJECT
public:
    explicit Page(QWidget* parent = nullptr) : QWidget(parent) {
        setProperty("role", QStringLiteral("page"));
        setAttribute(Qt::WA_StyledBackground);
    }
    /// Shown in the top bar while the page is in front.
    [[nodiscard]] virtual QString context() const { return {}; }

Q_SIGNALS:
    void contextChanged();

protected:
    /// Pages add their texts here; they are set again when the language changes.
    Texts texts;

    void changeEvent(QEvent* event) override {
        QWidget::changeEvent(event);
        if (event->type() == QEvent::LanguageChange) texts.refresh();
    }
};

} // namespace celloom::ui
