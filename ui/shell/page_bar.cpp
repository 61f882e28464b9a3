#include "ui/shell/page_bar.h"

#include "ui/common/theme.h"

#include <QEvent>
#include <QToolButton>
#include <QVBoxLayout>

namespace celloom::ui {

namespace {

struct PageText {
    const char* icon;
    const char* name;
};
constexpr PageText kPages[kPageCount] = {
    {"model", QT_TRANSLATE_NOOP("celloom::ui::PageBar", "Model")},     {"data", QT_TRANSLATE_NOOP("celloom::ui::PageBar", "Data")},
    {"train", QT_TRANSLATE_NOOP("celloom::ui::PageBar", "Train")},     {"live", QT_TRANSLATE_NOOP("celloom::ui::PageBar", "Live")},
    {"history", QT_TRANSLATE_NOOP("celloom::ui::PageBar", "History")}, {"try", QT_TRANSLATE_NOOP("celloom::ui::PageBar", "Try")},
};

} // namespace

PageBar::PageBar(Theme& theme, QWidget* parent) : QFrame(parent), m_theme(theme) {
    setProperty("role", QStringLiteral("sidebar"));
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(4, 8, 4, 8);
    layout->setSpacing(4);
    for (int i = 0; i < kPageCount; ++i) {
        auto* button = new QToolButton(this);
        button->setProperty("role", QStringLiteral("page"));
        button->setToolButtonStyle(Qt::ToolButtonTextUnderIcon);
        button->setIconSize({20, 20});
        button->setCheckable(true);
        button->setFixedSize(58, 54);
        button->setFocusPolicy(Qt::StrongFocus);
        m_texts.add([button, i] {
            button->setText(tr(kPages[i].name));
            button->setAccessibleName(tr(kPages[i].name));
            button->setToolTip(QStringLiteral("%1 (Ctrl+%2)").arg(tr(kPages[i].name)).arg(i + 1));
        });
        connect(button, &QToolButton::clicked, this, [this, button, i] {
            button->setChecked(true); // stays marked when the current page is pressed again
            Q_EMIT chosen(static_cast<PageId>(i));
        });
        layout->addWidget(button);
        m_buttons.push_back(button);
    }
    layout->addStretch(1);
    refreshIcons();
    connect(&theme, &Theme::changed, this, &PageBar::refreshIcons);
}

void PageBar::setCurrent(PageId page) {
    for (int i = 0; i < kPageCount; ++i) m_buttons[static_cast<std::size_t>(i)]->setChecked(i == static_cast<int>(page));
}

void PageBar::clearCurrent() {
    for (QToolButton* button : m_buttons) button->setChecked(false);
}

void PageBar::refreshIcons() {
    for (int i = 0; i < kPageCount; ++i) m_buttons[static_cast<std::size_t>(i)]->setIcon(m_theme.icon(QLatin1String(kPages[i].icon)));
}

void PageBar::changeEvent(QEvent* event) {
    QFrame::changeEvent(event);
    if (event->type() == QEvent::LanguageChange) m_texts.refresh();
}

} // namespace celloom::ui
