#include "ui/train/kind_switch.h"

#include "ui/common/recipe_document.h"

#include <QButtonGroup>
#include <QEvent>
#include <QHBoxLayout>
#include <QPushButton>

namespace celloom::ui {

namespace {

struct KindText {
    const char *kind, *name, *meaning;
};
constexpr KindText kTexts[] = {
    {"pretrain", QT_TRANSLATE_NOOP("celloom::ui::KindSwitch", "Pretrain"), QT_TRANSLATE_NOOP("celloom::ui::KindSwitch", "Every weight learns")},
    {"finetune", QT_TRANSLATE_NOOP("celloom::ui::KindSwitch", "Fine-tune"), QT_TRANSLATE_NOOP("celloom::ui::KindSwitch", "A base goes on learning")},
    {"evaluate", QT_TRANSLATE_NOOP("celloom::ui::KindSwitch", "Evaluate"), QT_TRANSLATE_NOOP("celloom::ui::KindSwitch", "A model is measured")},
    {"predict", QT_TRANSLATE_NOOP("celloom::ui::KindSwitch", "Predict"), QT_TRANSLATE_NOOP("celloom::ui::KindSwitch", "Prompts are answered")},
};

} // namespace

KindSwitch::KindSwitch(RecipeDocument& document, QWidget* parent) : QWidget(parent), m_document(document) {
    auto* layout = new QHBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->setSpacing(10);
    auto* group = new QButtonGroup(this);
    for (const KindText& one : kTexts) {
        auto* button = new QPushButton(this);
        button->setObjectName(QStringLiteral("kind-%1").arg(QLatin1String(one.kind)));
        button->setProperty("role", QStringLiteral("kind"));
        button->setCheckable(true);
        button->setAutoDefault(false);
        button->setMinimumWidth(1); // the form's width is shared, whatever the words
        group->addButton(button);
        layout->addWidget(button, 1);
        m_buttons.push_back(button);
        connect(button, &QPushButton::clicked, this, [this, word = std::string(one.kind)] { m_document.setValue(QStringLiteral("kind"), word); });
    }
    m_texts.add([this] { retranslate(); });
    connect(&document, &RecipeDocument::valueChanged, this, [this](const QString& key) {
        if (key == QLatin1String("kind")) refresh();
    });
    connect(&document, &RecipeDocument::replaced, this, &KindSwitch::refresh);
    refresh();
}

void KindSwitch::retranslate() {
    for (std::size_t i = 0; i < m_buttons.size(); ++i) {
        m_buttons[i]->setText(tr(kTexts[i].name) + QLatin1Char('\n') + tr(kTexts[i].meaning));
        m_buttons[i]->setAccessibleName(tr(kTexts[i].name));
        m_buttons[i]->setToolTip(tr(kTexts[i].meaning));
    }
}

void KindSwitch::refresh() {
    const std::string& kind = m_document.recipe().text("kind");
    for (std::size_t i = 0; i < m_buttons.size(); ++i) {
        if (kind != kTexts[i].kind) continue;
        m_buttons[i]->setChecked(true);
        setFocusProxy(m_buttons[i]);
    }
}

void KindSwitch::changeEvent(QEvent* event) {
    QWidget::changeEvent(event);
    if (event->type() == QEvent::LanguageChange) m_texts.refresh();
}

} // namespace celloom::ui
