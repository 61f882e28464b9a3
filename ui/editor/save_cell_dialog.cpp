#include "ui/editor/save_cell_dialog.h"

#include "ui/common/format.h"
#include "ui/common/widgets.h"

#include <QDialogButtonBox>
#include <QFormLayout>
#include <QLineEdit>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QVBoxLayout>

namespace celloom::ui {

namespace {
constexpr int kNoteHeight = 64;
}

SaveCellDialog::SaveCellDialog(const QString& name, const QString& note, std::function<std::int64_t(const QString&)> versionOf, QWidget* parent)
    : QDialog(parent), m_versionOf(std::move(versionOf)) {
    setAttribute(Qt::WA_DeleteOnClose);
    setWindowTitle(tr("Save to My cells"));
    setMinimumWidth(440);
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(18, 16, 18, 14);
    layout->setSpacing(10);
    auto* form = new QFormLayout;
    form->setFieldGrowthPolicy(QFormLayout::ExpandingFieldsGrow);
    m_name = new QLineEdit(name, this);
    m_note = new QPlainTextEdit(note, this);
    m_note->setFixedHeight(kNoteHeight);
    m_note->setTabChangesFocus(true);
    m_note->setPlaceholderText(tr("What it does, or what is new in this version"));
    form->addRow(tr("Name"), m_name);
    form->addRow(tr("Note"), m_note);
    m_name->setAccessibleName(tr("Name"));
    m_note->setAccessibleName(tr("Note"));
    layout->addLayout(form);
    m_about = makeLabel("muted", this);
    m_about->setWordWrap(true);
    layout->addWidget(m_about);
    auto* buttons = new QDialogButtonBox(QDialogButtonBox::Save | QDialogButtonBox::Cancel, this);
    m_save = buttons->button(QDialogButtonBox::Save);
    m_save->setText(tr("Save"));
    setRole(m_save, "primary");
    buttons->button(QDialogButtonBox::Cancel)->setText(tr("Cancel"));
    layout->addWidget(buttons);
    connect(m_name, &QLineEdit::textChanged, this, &SaveCellDialog::refresh);
    connect(buttons, &QDialogButtonBox::accepted, this, [this] {
        m_save->setEnabled(false);
        Q_EMIT saveRequested(m_name->text().trimmed(), m_note->toPlainText().trimmed());
    });
    connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
    refresh();
    m_name->selectAll();
    m_name->setFocus();
}

void SaveCellDialog::refresh() {
    const QString name = m_name->text().trimmed();
    const std::int64_t version = m_versionOf(name);
    setRole(m_about, "muted");
    m_about->setText(version == 0 ? tr("A new entry; all models of this workspace can use it.")
                                  : tr("Version %1 of %2. Version %3 is kept, and models that have a copy of it keep that until they are updated.").arg(version + 1).arg(name).arg(version));
    m_save->setEnabled(!name.isEmpty());
}

void SaveCellDialog::showError(const Error& error) {
    setRole(m_about, "problem");
    m_about->setText(Format::error(error));
    m_save->setEnabled(true);
    m_name->setFocus();
}

} // namespace celloom::ui
