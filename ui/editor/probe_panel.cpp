#include "ui/editor/probe_panel.h"

#include "ui/common/format.h"
#include "ui/common/widgets.h"
#include "ui/editor/probe_charts.h"

#include <QCheckBox>
#include <QComboBox>
#include <QCoreApplication>
#include <QEvent>
#include <QHBoxLayout>
#include <QPushButton>
#include <QSpinBox>
#include <QVBoxLayout>

#include <algorithm>
#include <cmath>

namespace celloom::ui {

QString sizesText(const ProbedValues& values) {
    QStringList sizes;
    for (const std::int64_t size : values.shape) sizes.append(QString::number(size));
    return QLatin1Char('[') + sizes.join(QStringLiteral(", ")) + QLatin1Char(']');
}

namespace {

QString badText(const ProbedValues& values) {
    QStringList parts;
    if (values.nan > 0) parts.append(QStringLiteral("NaN %1").arg(Format::count(values.nan)));
    if (values.infinite() > 0) parts.append(QStringLiteral("Inf %1").arg(Format::count(values.infinite())));
    return parts.join(QStringLiteral("  "));
}

/// Two digits that count, also of what is near 0.
QString brief(double value) {
    return value != 0 && std::abs(value) < 0.1 ? QString::number(value, 'g', 2) : Format::number(value, 3);
}

} // namespace

QString shortNumbers(const ProbedValues& values) {
    if (values.isBad()) return badText(values);
    if (!values.mean) return {};
    return QStringLiteral("%1 ± %2").arg(brief(*values.mean), brief(values.deviation.value_or(0)));
}

ProbePanel::ProbePanel(Theme& theme, QWidget* parent)
    : QWidget(parent), m_theme(theme), m_title(makeLabel("title", this)), m_summary(makeLabel("muted", this)), m_probe(new QPushButton(this)), m_data(new QComboBox(this)),
      m_gradients(new QCheckBox(this)), m_holder(new QVBoxLayout(this)) {
    m_holder->setContentsMargins(0, 6, 0, 0);
    m_holder->setSpacing(5);
    m_holder->addWidget(makeLine(this));
    auto* top = new QHBoxLayout;
    top->addWidget(m_title);
    top->addStretch(1);
    setRole(m_probe, "link");
    m_probe->setObjectName(QStringLiteral("probe"));
    top->addWidget(m_probe);
    m_holder->addLayout(top);
    auto* choices = new QHBoxLayout;
    m_data->setObjectName(QStringLiteral("probeData"));
    m_data->addItems({QString(), QString()});
    m_gradients->setObjectName(QStringLiteral("probeGradients"));
    choices->addWidget(m_data, 1);
    choices->addWidget(m_gradients);
    m_holder->addLayout(choices);
    m_summary->setObjectName(QStringLiteral("probeSummary"));
    m_summary->setWordWrap(true);
    m_summary->setTextInteractionFlags(Qt::TextSelectableByMouse);
    m_summary->hide();
    m_holder->addWidget(m_summary);
    connect(m_probe, &QPushButton::clicked, this, [this] {
        if (m_isRunning) Q_EMIT cancelRequested();
        else Q_EMIT probeRequested();
    });
    m_texts.add([this] {
        m_title->setText(tr("Last probe"));
        m_probe->setText(m_isRunning ? tr("Cancel") : tr("Probe one batch"));
        m_probe->setToolTip(tr("Sends one batch through the model as it is edited, and shows what is on each wire (F9)"));
        m_data->setItemText(0, tr("Data of the recipe"));
        m_data->setItemText(1, tr("Made-up data"));
        m_data->setAccessibleName(tr("Batch of the probe"));
        m_data->setToolTip(tr("The first batch that the recipe's training would see, or numbers drawn from its seed"));
        m_gradients->setText(tr("Gradients"));
        m_gradients->setToolTip(tr("Runs the batch as a training step does, and tells of the loss's gradient on each wire"));
    });
}

ProbePanel::Data ProbePanel::data() const {
    return m_data->currentIndex() == 0 ? Data::OfRecipe : Data::MadeUp;
}

bool ProbePanel::wantsGradients() const {
    return m_gradients->isChecked();
}

void ProbePanel::setRunning(bool isRunning) {
    if (isRunning == m_isRunning) return;
    m_isRunning = isRunning;
    m_data->setEnabled(!isRunning);
    m_gradients->setEnabled(!isRunning);
    m_texts.refresh();
}

void ProbePanel::setSummary(const QString& text, const char* look) {
    setRole(m_summary, look);
    m_summary->setText(text);
    m_summary->setVisible(!text.isEmpty());
}

void ProbePanel::showValues(const std::shared_ptr<const ProbeReport>& report, const std::vector<std::string>& wires, const std::string& cell) {
    m_report = report;
    m_wires = wires;
    m_cell = cell;
    rebuild();
}

QLabel* ProbePanel::addText(const char* role, const QString& text) {
    auto* label = makeLabel(role, m_content);
    label->setText(text);
    label->setWordWrap(true);
    label->setTextInteractionFlags(Qt::TextSelectableByMouse);
    m_rows->addWidget(label);
    return label;
}

void ProbePanel::rebuild() {
    const bool hadHead = m_content && m_content->focusWidget() && m_content->focusWidget()->hasFocus();
    delete m_content;
    m_content = new QWidget(this);
    m_rows = new QVBoxLayout(m_content);
    m_rows->setContentsMargins(0, 0, 0, 0);
    m_rows->setSpacing(4);
    m_holder->addWidget(m_content);
    if (!m_report) return;
    if (m_report->notComputed.contains(m_cell)) addText("muted", tr("This batch did not reach the cell."));
    for (const std::string& wire : m_wires) {
        if (const ProbedValues* values = m_report->valuesOn(wire)) addValues(*values, false);
        if (const ProbedValues* values = m_report->gradientOn(wire)) addValues(*values, true);
    }
    const auto cell = m_report->cells.find(m_cell);
    if (cell != m_report->cells.end() && cell->second.attention && !cell->second.attention->heads.empty()) addAttention(*cell->second.attention);
    if (hadHead)
        if (auto* head = m_content->findChild<QSpinBox*>()) head->setFocus();
}

void ProbePanel::addValues(const ProbedValues& values, bool isGradient) {
    addText("mono", isGradient ? tr("gradient of %1").arg(fromUtf8(values.port)) : fromUtf8(values.port) + QStringLiteral("  ") + sizesText(values) + QStringLiteral("  ") + fromUtf8(values.type));
    if (values.isBad()) addText("problem", tr("%1 of %2 values").arg(badText(values), Format::count(values.count)));
    if (!values.mean) return;
    auto* chart = new HistogramChart(m_theme, m_content);
    chart->setValues(values);
    m_rows->addWidget(chart);
    auto* ends = new QHBoxLayout;
    for (const double end : {*values.minimum, *values.maximum}) {
        auto* label = makeLabel("small", m_content);
        label->setText(Format::number(end, 3));
        ends->addWidget(label);
        if (ends->count() == 1) ends->addStretch(1);
    }
    m_rows->addLayout(ends);
    addText("muted", tr("mean %1   std %2   zeros %3   NaN %4")
                         .arg(brief(*values.mean), brief(values.deviation.value_or(0)), Format::count(values.zeros), Format::count(values.nan)));
}

void ProbePanel::addAttention(const ProbedAttention& attention) {
    auto* row = new QHBoxLayout;
    auto* label = makeLabel("title", m_content);
    label->setText(tr("Attention, head"));
    auto* head = new QSpinBox(m_content);
    head->setObjectName(QStringLiteral("probeHead"));
    head->setAccessibleName(tr("Head of the attention"));
    const int last = static_cast<int>(attention.heads.size()) - 1;
    head->setRange(0, last);
    head->setSuffix(tr("  (0 to %1)").arg(last));
    head->setValue(std::min(m_head, last));
    row->addWidget(label);
    row->addStretch(1);
    row->addWidget(head);
    m_rows->addLayout(row);
    auto* chart = new AttentionChart(m_theme, m_content);
    chart->setMap(attention, head->value());
    m_rows->addWidget(chart);
    addText("small", tr("Row %1 of the batch. The stronger the colour, the more a query looks at a key.").arg(attention.batchRow));
    connect(head, &QSpinBox::valueChanged, chart, [this, chart, report = m_report, cell = m_cell](int value) {
        m_head = value;
        chart->setMap(*report->cells.at(cell).attention, value);
    });
}

void ProbePanel::changeEvent(QEvent* event) {
    QWidget::changeEvent(event);
    if (event->type() != QEvent::LanguageChange) return;
    m_texts.refresh();
    rebuild();
}

} // namespace celloom::ui
