// The line at the bottom: the engine's connection, what the model is, language and look.
#pragma once

#include "ui/common/model_analysis.h"
#include "ui/common/texts.h"

#include <QFrame>

class QLabel;
class QToolButton;

namespace celloom::ui {

class ElidedLabel;
struct Services;

class BottomBar : public QFrame {
    Q_OBJECT
public:
    explicit BottomBar(Services& services, QWidget* parent = nullptr);

protected:
    void changeEvent(QEvent* event) override;

private:
    void refreshEngine();
    void refreshModel();
    void refreshLook();

    Services& m_services;
    Texts m_texts;
    QLabel* m_dot;
    ElidedLabel* m_engine;
    ElidedLabel* m_model;
    QToolButton* m_language;
    QToolButton* m_look;
};

} // namespace celloom::ui
