// The bar at the top: what is open, the device, Validate and Run. The run button never moves.
#pragma once

#include "ui/common/texts.h"

#include <QFrame>

class QPushButton;
class QToolButton;

namespace celloom::ui {

class ElidedLabel;
struct Services;

class TopBar : public QFrame {
    Q_OBJECT
public:
    explicit TopBar(Services& services, QWidget* parent = nullptr);
    /// What the page in front is about: a breadcrumb, a run's name.
    void setContext(const QString& text);
    void setRunEnabled(bool isEnabled, const QString& reason);

Q_SIGNALS:
    void homeRequested();
    void validateRequested();
    void runRequested();

protected:
    void changeEvent(QEvent* event) override;

private:
    void refreshDocument();
    void refreshDevice();
    void fillDeviceMenu();

    Services& m_services;
    Texts m_texts;
    QToolButton* m_home;
    ElidedLabel* m_document;
    ElidedLabel* m_context;
    QToolButton* m_device;
    QPushButton* m_validate;
    QPushButton* m_run;
    QString m_runReason;
};

} // namespace celloom::ui
