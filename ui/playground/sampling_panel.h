// How tokens are chosen, as a form. What is set here is kept from one start to the next.
#pragma once

#include "ui/common/texts.h"
#include "ui/playground/playground.h"

#include <QFrame>

class QDoubleSpinBox;
class QLineEdit;
class QSettings;
class QSpinBox;
class QVBoxLayout;

namespace celloom::ui {

class SamplingPanel : public QFrame {
    Q_OBJECT
public:
    SamplingPanel(Playground& playground, QSettings& settings, QWidget* parent = nullptr);

protected:
    void changeEvent(QEvent* event) override;

private:
    void addRow(QVBoxLayout* column, QWidget* field, const char* name, const char* help);
    void load();
    void take();

    Playground& m_playground;
    QSettings& m_settings;
    Texts m_texts;
    QDoubleSpinBox* m_temperature;
    QSpinBox* m_topK;
    QDoubleSpinBox* m_topP;
    QDoubleSpinBox* m_penalty;
    QSpinBox* m_longest;
    QSpinBox* m_seed;
    QLineEdit* m_stops;
};

} // namespace celloom::ui
