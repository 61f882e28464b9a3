// Asks what becomes of unsaved edits before models or the recipe are closed: lists every one of them.
#pragma once

#include <QDialog>
#include <QStringList>

namespace celloom::ui {

class UnsavedDialog : public QDialog {
    Q_OBJECT
public:
    /// Names of the models, and of the recipe where it has unsaved edits; at least one of all.
    UnsavedDialog(const QStringList& models, const QString& recipe, QWidget* parent = nullptr);

Q_SIGNALS:
    void saveChosen();
    void discardChosen(); // nothing is emitted when the user thinks better of it
};

} // namespace celloom::ui
