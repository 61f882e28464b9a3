#include "ui/playground/sampling_panel.h"

#include "ui/common/widgets.h"

#include <QCoreApplication>
#include <QDoubleSpinBox>
#include <QEvent>
#include <QLineEdit>
#include <QSettings>
#include <QSpinBox>
#include <QVBoxLayout>

#include <climits>

namespace celloom::ui {

namespace {

constexpr int kWidth = 220;
constexpr const char* kContext = "celloom::ui::SamplingPanel";

QDoubleSpinBox* makeReal(double low, double high, double step, QWidget* parent) {
    auto* box = new QDoubleSpinBox(parent);
    box->setDecimals(2);
    box->setRange(low, high);
    box->setSingleStep(step);
    return box;
}

QSpinBox* makeWhole(int low, int high, QWidget* parent) {
    auto* box = new QSpinBox(parent);
    box->setRange(low, high);
    return box;
}

/// "\n" in the field stands for a line's end, "|" parts the strings.
QStringList stopsOf(const QString& text) {
    QStringList out;
    for (QString stop : text.split(QLatin1Char('|'), Qt::SkipEmptyParts)) out.append(stop.replace(QLatin1String("\\n"), QLatin1String("\n")));
    return out;
}

} // namespace

SamplingPanel::SamplingPanel(Playground& playground, QSettings& settings, QWidget* parent)
    : QFrame(parent), m_playground(playground), m_settings(settings) {
    setProperty("role", QStringLiteral("card"));
    setFixedWidth(kWidth);
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(14, 10, 14, 12);
    column->setSpacing(4);
    auto* title = makeLabel("title", this);
    column->addWidget(title);
    m_texts.add([title] { title->setText(tr("Sampling")); });
    m_temperature = makeReal(0, 5, 0.05, this);
    m_topK = makeWhole(0, 1000000, this);
    m_topP = makeReal(0.01, 1, 0.01, this);
    m_penalty = makeReal(0.1, 5, 0.05, this);
    m_longest = makeWhole(1, 1000000, this);
    m_seed = makeWhole(0, INT_MAX, this);
    m_stops = new QLineEdit(this);
    addRow(column, m_temperature, QT_TRANSLATE_NOOP("celloom::ui::SamplingPanel", "Temperature"),
           QT_TRANSLATE_NOOP("celloom::ui::SamplingPanel", "0: always the likeliest token. Higher: more varied."));
    addRow(column, m_topK, QT_TRANSLATE_NOOP("celloom::ui::SamplingPanel", "Top-k"),
           QT_TRANSLATE_NOOP("celloom::ui::SamplingPanel", "Only the k likeliest tokens are drawn from. 0: all."));
    addRow(column, m_topP, QT_TRANSLATE_NOOP("celloom::ui::SamplingPanel", "Top-p"),
           QT_TRANSLATE_NOOP("celloom::ui::SamplingPanel", "Only the fewest tokens whose probabilities reach this sum. 1: all."));
    addRow(column, m_penalty, QT_TRANSLATE_NOOP("celloom::ui::SamplingPanel", "Repetition penalty"),
           QT_TRANSLATE_NOOP("celloom::ui::SamplingPanel", "Above 1: tokens that are there already become less likely. 1: off."));
    addRow(column, m_longest, QT_TRANSLATE_NOOP("celloom::ui::SamplingPanel", "Most tokens"),
           QT_TRANSLATE_NOOP("celloom::ui::SamplingPanel", "An answer ends after so many."));
    addRow(column, m_seed, QT_TRANSLATE_NOOP("celloom::ui::SamplingPanel", "Seed"),
           QT_TRANSLATE_NOOP("celloom::ui::SamplingPanel", "The same seed gives the same answer. Asking again takes the next one."));
    addRow(column, m_stops, QT_TRANSLATE_NOOP("celloom::ui::SamplingPanel", "Stop strings"),
           QT_TRANSLATE_NOOP("celloom::ui::SamplingPanel", "An answer ends before the first of these. | parts them, \\n is a line's end."));
    column->addStretch(1);
    load();
    for (QDoubleSpinBox* box : {m_temperature, m_topP, m_penalty})
        connect(box, &QDoubleSpinBox::valueChanged, this, &SamplingPanel::take);
    for (QSpinBox* box : {m_topK, m_longest, m_seed}) connect(box, &QSpinBox::valueChanged, this, &SamplingPanel::take);
    connect(m_stops, &QLineEdit::textChanged, this, &SamplingPanel::take);
}

void SamplingPanel::addRow(QVBoxLayout* column, QWidget* field, const char* name, const char* help) {
    auto* label = makeLabel("small", this);
    label->setBuddy(field);
    column->addSpacing(2);
    column->addWidget(label);
    column->addWidget(field);
    m_texts.add([label, field, name, help] {
        label->setText(QCoreApplication::translate(kContext, name));
        field->setAccessibleName(QCoreApplication::translate(kContext, name));
        for (QWidget* widget : {static_cast<QWidget*>(label), field}) widget->setToolTip(QCoreApplication::translate(kContext, help));
    });
}

void SamplingPanel::load() {
    const Sampling standard;
    const auto value = [this](const char* key, auto otherwise) {
        return m_settings.value(QStringLiteral("try/") + QLatin1String(key), otherwise).template value<decltype(otherwise)>();
    };
    m_temperature->setValue(value("temperature", standard.temperature));
    m_topK->setValue(value("topK", standard.topK));
    m_topP->setValue(value("topP", standard.topP));
    m_penalty->setValue(value("repetitionPenalty", standard.repetitionPenalty));
    m_longest->setValue(value("maxNewTokens", standard.maxNewTokens));
    m_seed->setValue(value("seed", static_cast<int>(standard.seed)));
    m_stops->setText(value("stops", QString()));
    take();
}

void SamplingPanel::take() {
    Sampling& sampling = m_playground.sampling;
    sampling.temperature = m_temperature->value();
    sampling.topK = m_topK->value();
    sampling.topP = m_topP->value();
    sampling.repetitionPenalty = m_penalty->value();
    sampling.maxNewTokens = m_longest->value();
    sampling.seed = m_seed->value();
    sampling.stops = stopsOf(m_stops->text());
    const auto keep = [this](const char* key, const QVariant& value) { m_settings.setValue(QStringLiteral("try/") + QLatin1String(key), value); };
    keep("temperature", m_temperature->value());
    keep("topK", m_topK->value());
    keep("topP", m_topP->value());
    keep("repetitionPenalty", m_penalty->value());
    keep("maxNewTokens", m_longest->value());
    keep("seed", m_seed->value());
    keep("stops", m_stops->text());
}

void SamplingPanel::changeEvent(QEvent* event) {
    QFrame::changeEvent(event);
    if (event->type() == QEvent::LanguageChange) m_texts.refresh();
}

} // namespace celloom::ui
