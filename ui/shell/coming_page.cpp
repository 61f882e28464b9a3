#include "ui/shell/coming_page.h"

#include "ui/common/theme.h"
#include "ui/common/widgets.h"

#include <QPushButton>
#include <QVBoxLayout>

namespace celloom::ui {

ComingPage::ComingPage(Theme& theme, QWidget* parent) : Page(parent), m_state(new EmptyState(this)) {
    auto* layout = new QVBoxLayout(this);
    layout->addWidget(m_state);
    const auto setIcon = [this, &theme] { m_state->setIcon(theme.icon(QStringLiteral("data"))); };
    setIcon();
    connect(&theme, &Theme::changed, this, setIcon);
    auto* button = new QPushButton(this);
    connect(button, &QPushButton::clicked, this, &ComingPage::trainRequested);
    m_state->addButton(button);
    texts.add([this, button] {
        m_state->setTexts(tr("The Data page is not built yet"),
                          tr("It will bring data sets in and show their rows, their encoding, the tokens that a sample becomes and which of them "
                             "are learned, how long samples are and how they are packed. Until then, name files and tokenizer in the Train "
                             "page; its preview shows the first batch."));
        button->setText(tr("Open the Train page"));
    });
}

} // namespace celloom::ui
