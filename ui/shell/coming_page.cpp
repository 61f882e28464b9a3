#include "ui/shell/coming_page.h"

#include "ui/common/theme.h"
#include "ui/common/widgets.h"

#include <QPushButton>
#include <QVBoxLayout>

namespace celloom::ui {

ComingPage::ComingPage(Theme& theme, Kind kind, QWidget* parent) : Page(parent), m_state(new EmptyState(this)) {
    auto* layout = new QVBoxLayout(this);
    layout->addWidget(m_state);
    const bool isData = kind == Kind::Data;
    const auto setIcon = [this, &theme, isData] { m_state->setIcon(theme.icon(isData ? QStringLiteral("data") : QStringLiteral("try"))); };
    setIcon();
    connect(&theme, &Theme::changed, this, setIcon);
    texts.add([this, isData] {
        if (isData) {
            m_state->setTexts(tr("The Data page is not built yet"),
                              tr("It will show the rows of a data set, their encoding, the tokens a sample becomes, and the lengths. Until "
                                 "then, name the "
                                 "text files and the tokenizer in the Train page; the run reports encodings and token counts as events."));
        } else {
            m_state->setTexts(tr("The Try page is not built yet"),
                              tr("It will stream text from any checkpoint, base and adapters side by side. Until then, the Live page shows "
                                 "samples while a run "
                                 "trains, and the command line writes text: celloom-engine predict --model RUN --prompt TEXT."));
        }
    });
    if (isData) {
        auto* button = new QPushButton(this);
        connect(button, &QPushButton::clicked, this, &ComingPage::trainRequested);
        texts.add([button] { button->setText(tr("Open the Train page")); });
        m_state->addButton(button);
    }
}

} // namespace celloom::ui
