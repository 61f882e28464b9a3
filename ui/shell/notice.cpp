#include "ui/shell/notice.h"

#include "ui/common/theme.h"
#include "ui/common/widgets.h"

#include <QEvent>
#include <QHBoxLayout>
#include <QPushButton>
#include <QTimer>
#include <QToolButton>

namespace celloom::ui {

namespace {
constexpr int kInfoMs = 8000;
}

Notice::Notice(Theme& theme, QWidget* parent) : QFrame(parent), m_theme(theme) {
    setProperty("role", QStringLiteral("notice"));
    auto* layout = new QHBoxLayout(this);
    layout->setContentsMargins(14, 6, 8, 6);
    layout->setSpacing(10);
    m_icon = new QLabel(this);
    m_text = makeLabel("value", this);
    m_text->setTextFormat(Qt::PlainText); // it tells names that users typed
    m_text->setWordWrap(true);
    m_text->setTextInteractionFlags(Qt::TextSelectableByMouse);
    m_action = new QPushButton(this);
    m_action->setProperty("role", QStringLiteral("link"));
    m_close = makeQuietButton(this);
    layout->addWidget(m_icon);
    layout->addWidget(m_text, 1);
    layout->addWidget(m_action);
    layout->addWidget(m_close);
    m_timer = new QTimer(this);
    m_timer->setSingleShot(true);
    connect(m_timer, &QTimer::timeout, this, &QWidget::hide);
    connect(m_close, &QToolButton::clicked, this, &QWidget::hide);
    connect(m_action, &QPushButton::clicked, this, [this] {
        hide();
        if (const auto act = m_words.act) act();
    });
    m_action->hide();
    m_texts.add([this] { m_close->setAccessibleName(tr("Close this message")); });
    hide();
}

void Notice::show(Level level, const QString& text) {
    show(level, text, {}, {});
}

void Notice::show(Level level, const QString& text, const QString& action, std::function<void()> act) {
    setLook(this, "level",
            level == Level::Error     ? QStringLiteral("error")
            : level == Level::Warning ? QStringLiteral("warning")
                                      : QStringLiteral("info"));
    const char* color = level == Level::Error ? "bad" : level == Level::Warning ? "warning" : "accent";
    m_icon->setPixmap(m_theme.icon(level == Level::Info || level == Level::Result ? QStringLiteral("check") : QStringLiteral("warning"), color).pixmap(18, 18));
    m_close->setIcon(m_theme.icon(QStringLiteral("close")));
    m_text->setText(text);
    m_action->setText(action);
    m_action->setVisible(!action.isEmpty());
    m_words = {level, text, action, std::move(act)};
    setVisible(true);
    if (level == Level::Info) {
        m_timer->start(kInfoMs);
    } else {
        m_timer->stop();
    }
}

std::optional<Notice::Words> Notice::words() const {
    if (isHidden() || m_words.level == Level::Info) return std::nullopt;
    return m_words;
}

void Notice::changeEvent(QEvent* event) {
    QFrame::changeEvent(event);
    if (event->type() == QEvent::LanguageChange) m_texts.refresh();
}

} // namespace celloom::ui
