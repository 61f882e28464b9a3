// Under which name a composite or a Script cell goes into My cells, and what is said of that version. Stays until it is saved, or called off.
#pragma once

#include "models/base/result.h"

#include <QDialog>

#include <cstdint>
#include <functional>

class QLabel;
class QLineEdit;
class QPlainTextEdit;
class QPushButton;

namespace celloom::ui {

class SaveCellDialog : public QDialog {
    Q_OBJECT
public:
    /// `versionOf`: the newest version that the library has under a name; 0: none.
    SaveCellDialog(const QString& name, const QString& note, std::function<std::int64_t(const QString& name)> versionOf, QWidget* parent = nullptr);
    /// It could not be saved.
    void showError(const celloom::Error& error);

Q_SIGNALS:
    void saveRequested(const QString& name, const QString& note);

private:
    void refresh();

    std::function<std::int64_t(const QString&)> m_versionOf;
    QLineEdit* m_name;
    QPlainTextEdit* m_note;
    QLabel* m_about;
    QPushButton* m_save;
};

} // namespace celloom::ui
