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

QString questionOf(const QStringList& models, const QString& recipe) {
    if (models.isEmpty()) return UnsavedDialog::tr("The recipe %1 has unsaved changes.").arg(recipe);
    if (!recipe.isEmpty()) return UnsavedDialog::tr("The recipe and %n model(s) have unsaved changes:", "", static_cast<int>(models.size()));
    return models.size() == 1 ? UnsavedDialog::tr("The model %1 has unsaved changes.").arg(models.front()) : UnsavedDialog::tr("%n models have unsaved changes:", "", static_cast<int>(models.size()));
}
}

UnsavedDialog::UnsavedDialog(const QStringList& models, const QString& recipe, QWidget* parent) : QDialog(parent) {
    const QStringList names = recipe.isEmpty() ? models : QStringList{tr("Recipe: %1").arg(recipe)} + models;
    setAttribute(Qt::WA_DeleteOnClose);
    setWindowTitle(tr("Unsaved changes"));
    setMinimumWidth(400);
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(18, 16, 18, 14);
    layout->setSpacing(10);
    auto* text = makeLabel("title", this);
    text->setText(questionOf(models, recipe));
    text->setWordWrap(true);
    layout->addWidget(text);
    if (names.size() > 1) {
        auto* list = new QListWidget(this);
        list->addItems(names);
        list->setAccessibleName(tr("What has unsaved changes"));
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
