#include "ui/train/kind_switch.h"

#include "ui/common/recipe_document.h"

#include <QButtonGroup>
#include <QEvent>
#include <QHBoxLayout>
#include <QPushButton>

namespace celloom::ui {

KindSwitch::KindSwitch(RecipeDocument& document, QWidget* parent) : QWidget(parent), m_document(document) {
    auto* layout = new QHBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->setSpacing(10);
    m_pretrain = new QPushButton(this);
    m_finetune = new QPushButton(this);
    auto* group = new QButtonGroup(this);
    const std::pair<QPushButton*, const char*> choices[] = {{m_pretrain, "pretrain"}, {m_finetune, "finetune"}};
    for (const auto& [button, kind] : choices) {
        button->setProperty("role", QStringLiteral("kind"));
        button->setCheckable(true);
        button->setAutoDefault(false);
        group->addButton(button);
        layout->addWidget(button, 1);
        connect(button, &QPushButton::clicked, this, [this, word = std::string(kind)] { m_document.setValue(QStringLiteral("kind"), word); });
    }
    m_texts.add([this] {
        m_pretrain->setText(tr("Pretrain") + QLatin1Char('\n') + tr("Every weight learns, from text"));
        m_pretrain->setAccessibleName(tr("Pretrain"));
        m_finetune->setText(tr("Fine-tune") + QLatin1Char('\n') + tr("A base goes on learning, by LoRA or whole"));
        m_finetune->setAccessibleName(tr("Fine-tune"));
    });
    connect(&document, &RecipeDocument::valueChanged, this, [this](const QString& key) {
        if (key == QLatin1String("kind")) refresh();
    });
    connect(&document, &RecipeDocument::replaced, this, &KindSwitch::refresh);
    setFocusProxy(m_pretrain);
    refresh();
}

void KindSwitch::refresh() {
    const bool isTuning = m_document.recipe().text("kind") == "finetune";
    m_finetune->setChecked(isTuning);
    m_pretrain->setChecked(!isTuning);
    setFocusProxy(isTuning ? m_finetune : m_pretrain);
}

void KindSwitch::changeEvent(QEvent* event) {
    QWidget::changeEvent(event);
    if (event->type() == QEvent::LanguageChange) m_texts.refresh();
}

} // namespace celloom::ui
