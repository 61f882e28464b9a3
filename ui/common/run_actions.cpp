#include "ui/common/run_actions.h"

#include "ui/common/format.h"

#include <QEvent>
#include <QPushButton>

namespace celloom::ui {

RunActions::RunActions(QBoxLayout::Direction direction, QWidget* parent)
    : QWidget(parent), m_merge(new QPushButton(this)), m_adapter(new QPushButton(this)), m_tune(new QPushButton(this)),
      m_export(new QPushButton(this)) {
    auto* layout = new QBoxLayout(direction, this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->setSpacing(direction == QBoxLayout::TopToBottom ? 6 : 8);
    const std::pair<QPushButton*, RunAction> all[] = {
        {m_merge, RunAction::Merge}, {m_adapter, RunAction::ExportAdapter}, {m_tune, RunAction::FineTune}, {m_export, RunAction::ExportModel}};
    for (const auto& [button, action] : all) {
        layout->addWidget(button);
        connect(button, &QPushButton::clicked, this, [this, what = action] { Q_EMIT requested(what, m_folder); });
    }
    m_texts.add([this] {
        m_merge->setText(tr("Merge and export…"));
        m_merge->setToolTip(tr("Adds the adapter to its base's weights and writes a model that other tools read"));
        m_adapter->setText(tr("Export adapter…"));
        m_adapter->setToolTip(tr("Copies the adapter as PEFT reads it"));
        m_tune->setText(tr("Fine-tune this"));
        m_tune->setToolTip(tr("Begins a recipe whose base is the newest checkpoint of this run"));
        m_export->setText(tr("Export model…"));
        m_export->setToolTip(tr("Writes the newest checkpoint as a model that other tools read"));
    });
    setRun(nullptr);
}

void RunActions::setRun(const store::RunRecord* run) {
    const bool isOver = run && store::isOver(run->state) && run->hasCheckpoint;
    const bool hasAdapter = isOver && run->hasAdapter;
    m_folder = run ? fromUtf8(run->folder) : QString();
    m_merge->setVisible(hasAdapter);
    m_adapter->setVisible(hasAdapter);
    m_tune->setVisible(isOver && !hasAdapter);
    m_export->setVisible(isOver && !hasAdapter);
    setVisible(isOver);
}

void RunActions::changeEvent(QEvent* event) {
    QWidget::changeEvent(event);
    if (event->type() == QEvent::LanguageChange) m_texts.refresh();
}

} // namespace celloom::ui
