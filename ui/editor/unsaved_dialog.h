// Asks what becomes of unsaved edits before models are closed: lists every one of them.
#pragma once

#include <QDialog>
#include <QStringList>

namespace celloom::ui {

class UnsavedDialog : public QDialog {
    Q_OBJECT
public:
    /// `names`: of the models, at least one.
    explicit UnsavedDialog(const QStringList& names, QWidget* parent = nullptr);

Q_SIGNALS:
    void saveChosen();
    void discardChosen(); // nothing is emitted when the user thinks better of it
};

} // namespace celloom::ui
