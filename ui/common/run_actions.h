// What can be done with a run that is over, besides looking at it: its adapter merged or taken out, its model exported or tuned on.
#pragma once

#include "models/store/index.h"
#include "ui/common/texts.h"

#include <QBoxLayout>
#include <QString>
#include <QWidget>

class QPushButton;

namespace celloom::ui {

enum class RunAction { Merge, ExportAdapter, ExportModel, FineTune };

/// The buttons that fit the run; nothing where none do.
class RunActions : public QWidget {
    Q_OBJECT
public:
    explicit RunActions(QBoxLayout::Direction direction, QWidget* parent = nullptr);
    void setRun(const store::RunRecord* run);

Q_SIGNALS:
    void requested(celloom::ui::RunAction action, const QString& folder);

protected:
    void changeEvent(QEvent* event) override;

private:
    Texts m_texts;
    QString m_folder;
    QPushButton* m_merge;
    QPushButton* m_adapter;
    QPushButton* m_tune;
    QPushButton* m_export;
};

} // namespace celloom::ui
