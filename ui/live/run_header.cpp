#include "ui/live/run_header.h"

#include "ui/common/engine_client.h"
#include "ui/common/format.h"
#include "ui/common/run_texts.h"

#include <QEvent>
#include <QHBoxLayout>
#include <QProgressBar>
#include <QPushButton>
#include <QVBoxLayout>

#include <cmath>

namespace celloom::ui {

using store::RunState;

RunHeader::RunHeader(QWidget* parent) : QFrame(parent) {
    setProperty("role", QStringLiteral("card"));
    auto* layout = new QHBoxLayout(this);
    layout->setContentsMargins(16, 12, 14, 12);
    layout->setSpacing(16);
    auto* column = new QVBoxLayout;
    column->setSpacing(8);
    auto* line = new QHBoxLayout;
    line->setSpacing(12);
    m_state = new QLabel(this);
    m_facts = new ElidedLabel(Qt::ElideRight, this);
    line->addWidget(m_state);
    line->addWidget(m_facts, 1);
    m_bar = new QProgressBar(this);
    m_bar->setTextVisible(false);
    m_reason = makeLabel("value", this);
    m_reason->setWordWrap(true);
    m_reason->setTextInteractionFlags(Qt::TextSelectableByMouse);
    m_reason->hide();
    column->addLayout(line);
    column->addWidget(m_reason);
    column->addWidget(m_bar);
    layout->addLayout(column, 1);
    m_pause = new QPushButton(this);
    m_save = new QPushButton(this);
    m_stop = new QPushButton(this);
    m_resume = new QPushButton(this);
    m_try = new QPushButton(this);
    auto* buttons = new QHBoxLayout;
    buttons->setSpacing(8);
    for (QPushButton* button : {m_try, m_pause, m_save, m_stop, m_resume}) {
        button->setMinimumWidth(84);
        buttons->addWidget(button);
    }
    m_actions = new RunActions(QBoxLayout::LeftToRight, this);
    buttons->addWidget(m_actions);
    connect(m_actions, &RunActions::requested, this, &RunHeader::runActionRequested);
    layout->addLayout(buttons);
    connect(m_pause, &QPushButton::clicked, this,
            [this] { Q_EMIT actionRequested(state() == RunState::Paused ? QStringLiteral("continue") : QStringLiteral("pause")); });
    connect(m_save, &QPushButton::clicked, this, [this] { Q_EMIT actionRequested(QStringLiteral("save")); });
    connect(m_stop, &QPushButton::clicked, this, [this] { Q_EMIT actionRequested(QStringLiteral("stop")); });
    connect(m_resume, &QPushButton::clicked, this, &RunHeader::resumeRequested);
    connect(m_try, &QPushButton::clicked, this, &RunHeader::tryRequested);
    m_texts.add([this] {
        m_save->setText(tr("Save now"));
        m_save->setToolTip(tr("Write a checkpoint after the current step"));
        m_resume->setToolTip(tr("Go on from the last checkpoint, with the same settings or others"));
        m_try->setText(tr("Try"));
        m_try->setToolTip(tr("Write text with its newest checkpoint"));
        m_bar->setAccessibleName(tr("Progress of the run"));
        refresh();
    });
}

void RunHeader::clear() {
    m_progress = {};
    m_record = {};
    m_hasProgress = m_hasRecord = m_isBusy = false;
    m_error.clear();
    refresh();
}

void RunHeader::setProgress(const store::Progress& progress) {
    m_progress = progress;
    m_hasProgress = true;
    refresh();
}

void RunHeader::setProgress(const RunProgress& progress) {
    m_progress.step = progress.step;
    m_progress.totalSteps = progress.totalSteps;
    m_progress.stage = toUtf8(progress.stage);
    m_progress.remainingSeconds = progress.remainingSeconds;
    m_progress.elapsedSeconds = progress.elapsedSeconds;
    refresh();
}

void RunHeader::setRecord(const store::RunRecord& record) {
    m_record = record;
    m_hasRecord = true;
    refresh();
}

void RunHeader::setKind(const std::string& kind) {
    m_kind = kind;
    refresh();
}

void RunHeader::setError(const QString& text) {
    m_error = text;
    refresh();
}

void RunHeader::setBusy(bool isBusy) {
    m_isBusy = isBusy;
    refresh();
}

RunState RunHeader::state() const {
    if (m_hasRecord && store::isOver(m_record.state)) return m_record.state;
    if (m_hasProgress) return m_progress.state;
    return m_hasRecord ? m_record.state : RunState::Queued;
}

/// The engine's stages, in the language shown; one that is not known here is shown as it came.
QString RunHeader::stageText() const {
    const std::string& stage = m_progress.stage;
    if (stage == "reading text") return tr("reading text");
    if (stage == "training the tokenizer") return tr("training the tokenizer");
    if (stage == "tokenising") return tr("tokenising");
    if (stage == "building the network") return tr("building the network");
    if (stage == "bigram baseline") return tr("measuring the bigram baseline");
    if (stage == "training") return tr("training");
    if (stage == "evaluating") return tr("evaluating");
    if (stage == "answering") return tr("answering held-out questions");
    if (stage == "writing a sample") return tr("writing a sample");
    if (stage == "saving") return tr("saving");
    if (stage == "paused") return tr("paused");
    if (stage == "loading the model") return tr("loading the model");
    if (stage == "reading prompts") return tr("reading prompts");
    if (stage == "predicting") return tr("writing");
    return fromUtf8(stage);
}

QString RunHeader::facts() const {
    if (!m_error.isEmpty()) return m_error;
    const RunState now = state();
    QStringList parts;
    if (!store::isOver(now) && !m_progress.stage.empty() && m_progress.stage != "training" && m_progress.stage != "paused")
        parts.append(stageText());
    const std::int64_t step = m_hasProgress ? m_progress.step : m_record.step,
                       total = m_hasProgress ? m_progress.totalSteps : m_record.totalSteps;
    const QString counted = isTraining() ? tr("step %1 / %2") : m_kind == "evaluate" ? tr("batch %1 / %2") : tr("prompt %1 / %2");
    if (total > 0) parts.append(counted.arg(Format::count(step), Format::count(total)));
    if (m_hasProgress && m_progress.totalEpochs > 0) {
        // A run of a number of steps may end anywhere in an epoch: only whole epochs are counted out.
        const double epochs = m_progress.totalEpochs, shown = std::min(std::floor(m_progress.epoch) + 1, epochs);
        const bool isWhole = std::abs(epochs - std::round(epochs)) < 1e-6;
        parts.append(isWhole ? tr("epoch %1 of %2").arg(shown).arg(std::round(epochs))
                             : tr("epoch %1").arg(QString::number(m_progress.epoch, 'f', 2)));
    }
    const double elapsed = m_hasProgress ? m_progress.elapsedSeconds : m_record.elapsedSeconds;
    if (elapsed > 0) parts.append(tr("%1 elapsed").arg(Format::duration(elapsed)));
    if (now == RunState::Running && m_progress.remainingSeconds >= 0)
        parts.append(tr("about %1 left").arg(Format::duration(m_progress.remainingSeconds)));
    if (parts.isEmpty() && !store::isOver(now)) parts.append(isTraining() ? tr("waiting for the first step") : tr("waiting for the run to begin"));
    return parts.join(QStringLiteral(" · "));
}

void RunHeader::refresh() {
    const RunState now = state();
    if (now != m_said) Q_EMIT stateChanged(m_said = now);
    m_state->setText(Format::runState(now));
    setLook(m_state, "state", QString::fromLatin1(Format::stateLook(now)));
    m_facts->setText(facts());
    const bool hasReason = m_hasRecord && (now == RunState::Failed || now == RunState::Interrupted);
    m_reason->setText(hasReason ? RunTexts::reason(m_record) : QString());
    m_reason->setVisible(hasReason);
    const std::int64_t step = m_hasProgress ? m_progress.step : m_record.step,
                       total = m_hasProgress ? m_progress.totalSteps : m_record.totalSteps;
    const bool isUnknown = total <= 0 && !store::isOver(now);
    m_bar->setRange(0, isUnknown ? 0 : 1000);
    m_bar->setValue(isUnknown || total <= 0 ? 0 : static_cast<int>(std::min<std::int64_t>(1000, 1000 * step / total)));
    const bool isGoing = now == RunState::Running || now == RunState::Paused;
    m_pause->setText(now == RunState::Paused ? tr("Continue") : tr("Pause"));
    m_pause->setVisible(isGoing);
    m_save->setVisible(isGoing && isTraining());
    m_stop->setText(isTraining() ? tr("Stop and save") : tr("Stop"));
    m_stop->setToolTip(isTraining()            ? tr("Write a checkpoint and end the run; it can be resumed")
                       : m_kind == "predict" ? tr("End the run; resumed, it goes on after the last text that is written")
                                             : tr("End the run; resumed, it measures anew"));
    m_stop->setVisible(!store::isOver(now) && now != RunState::Stopping);
    m_resume->setText(m_kind == "predict" ? tr("Go on") : m_kind == "evaluate" ? tr("Measure anew") : now == RunState::Finished ? tr("Train on…") : tr("Resume…"));
    m_resume->setVisible(now == RunState::Finished ? m_hasRecord && m_record.hasCheckpoint : store::isOver(now));
    m_try->setVisible(m_hasRecord && m_record.hasCheckpoint);
    m_actions->setRun(m_hasRecord ? &m_record : nullptr);
    for (QPushButton* button : {m_pause, m_save, m_stop, m_resume}) button->setEnabled(!m_isBusy);
}

void RunHeader::changeEvent(QEvent* event) {
    QFrame::changeEvent(event);
    if (event->type() == QEvent::LanguageChange) m_texts.refresh();
}

} // namespace celloom::ui
