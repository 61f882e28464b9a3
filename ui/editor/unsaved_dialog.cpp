#include "ui/editor/unsaved_dialog.h"

#include "ui/common/widgets.h"

#include <QDialogButtonBox>
#include <QListWidget>
#include <QPushButton>
#include <QVBoxLayout>

#include <algorithm>

namespace celloom::ui {

namespace {
constexpr qsizetype kShownRows = 8;
}

UnsavedDialog::UnsavedDialog(const QStringList& names, QWidget* parent) : QDialog(parent) {
    setAttribute(Qt::WA_DeleteOnClose);
    setWindowTitle(tr("Unsaved changes"));
    setMinimumWidth(400);
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(18, 16, 18, 14);
    layout->setSpacing(10);
    auto* text = makeLabel("title", this);
    text->setText(names.size() == 1 ? tr("The model %1 has unsaved changes.").arg(names.front()) : tr("%n models have unsaved changes:", "", static_cast<int>(names.size())));
    text->setWordWrap(true);
    layout->addWidget(text);
    if (names.size() > 1) {
        auto* list = new QListWidget(this);
        list->addItems(names);
        list->setAccessibleName(tr("Models with unsaved changes"));
        list->setSelectionMode(QAbstractItemView::NoSelection);
        list->setFocusPolicy(Qt::NoFocus);
        list->setFixedHeight(static_cast<int>(std::min(names.size(), kShownRows)) * (list->sizeHintForRow(0) + 1) + 8);
        layout->addWidget(list);
    }
    auto* buttons = new QDialogButtonBox(QDialogButtonBox::Save | QDialogButtonBox::Discard | QDialogButtonBox::Cancel, this);
    QPushButton* save = buttons->button(QDialogButtonBox::Save);
    save->setText(names.size() == 1 ? tr("Save") : tr("Save all"));
    setRole(save, "primary");
    save->setDefault(true);
    buttons->button(QDialogButtonBox::Discard)->setText(names.size() == 1 ? tr("Discard") : tr("Discard all"));
    buttons->button(QDialogButtonBox::Cancel)->setText(tr("Cancel"));
    connect(save, &QPushButton::clicked, this, [this] {
        accept();
        Q_EMIT saveChosen();
    });
    connect(buttons->button(QDialogButtonBox::Discard), &QPushButton::clicked, this, [this] {
        accept();
        Q_EMIT discardChosen();
    });
    connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
    layout->addWidget(buttons);
}

} // namespace celloom::ui
