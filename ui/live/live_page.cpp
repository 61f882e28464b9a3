#include "ui/live/live_page.h"

#include "models/recipe/recipe.h"
#include "ui/common/engine_client.h"
#include "ui/common/format.h"
#include "ui/common/theme.h"
#include "ui/common/widgets.h"
#include "ui/history/runs_model.h"
#include "ui/history/runs_view.h"
#include "ui/live/events_model.h"
#include "ui/live/metric_card.h"
#include "ui/live/results_card.h"
#include "ui/live/run_header.h"
#include "ui/live/run_samples.h"
#include "ui/shell/services.h"

#include <QActionGroup>
#include <QDialogButtonBox>
#include <QGridLayout>
#include <QHeaderView>
#include <QInputDialog>
#include <QMenu>
#include <QPushButton>
#include <QScrollArea>
#include <QScrollBar>
#include <QSettings>
#include <QStackedWidget>
#include <QTableView>
#include <QTextBrowser>
#include <QTimer>
#include <QToolButton>
#include <QVBoxLayout>

#include <cmath>

namespace celloom::ui {

namespace {

constexpr int kPollMs = 250; // at most four reads a second
constexpr int kHeartbeatMs = 2000;
constexpr std::size_t kMostSamples = 60; // shown; the database keeps all
constexpr int kComparedRuns = 6;
constexpr int kChartRows = 2; // of the grid, above samples and events

struct Smoothing {
    double weight;
    const char* name;
};
constexpr Smoothing kSmoothings[] = {
    {0, QT_TRANSLATE_NOOP("celloom::ui::LivePage", "Not smoothed")},
    {0.9, QT_TRANSLATE_NOOP("celloom::ui::LivePage", "Smoothed")},
    {0.98, QT_TRANSLATE_NOOP("celloom::ui::LivePage", "Smoothed strongly")},
};
constexpr const char* kAxes[] = {
    QT_TRANSLATE_NOOP("celloom::ui::LivePage", "By step"),
    QT_TRANSLATE_NOOP("celloom::ui::LivePage", "By epoch"),
    QT_TRANSLATE_NOOP("celloom::ui::LivePage", "By time"),
};

/// A small button in a card's title row, shown while the run can obey it.
QToolButton* makeLink(Card* card) {
    QToolButton* button = makeQuietButton(card);
    button->setProperty("role", QStringLiteral("link"));
    button->ensurePolished(); // to have the sheet's font
    button->setMaximumHeight(button->fontMetrics().height() + 2); // with its border; the cards beside it keep the same title row
    button->setVisible(false);
    card->titleRow()->insertWidget(1, button);
    return button;
}

} // namespace

LivePage::LivePage(Services& services, QWidget* parent) : Page(parent), m_services(services) {
    m_smoothing = services.settings.value(QStringLiteral("live/smoothing"), 0.9).toDouble();
    m_curves.setSmoothing(m_smoothing);
    m_runs = new RunsModel(this);
    m_events = new EventsModel(services.theme, this);
    m_stack = new QStackedWidget(this);
    m_stack->addWidget(buildEmpty());
    m_stack->addWidget(buildContent());
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->addWidget(m_stack);
    m_pollTimer = new QTimer(this);
    m_pollTimer->setSingleShot(true);
    m_pollTimer->setInterval(kPollMs);
    connect(m_pollTimer, &QTimer::timeout, this, [this] { m_services.store.poll(); });
    m_heartbeat = new QTimer(this);
    m_heartbeat->setInterval(kHeartbeatMs);
    connect(m_heartbeat, &QTimer::timeout, this, [this] {
        if (!m_folder.isEmpty() && !store::isOver(m_header->state())) m_services.store.poll();
    });
    connectServices();
}

QWidget* LivePage::buildEmpty() {
    m_empty = new EmptyState(this);
    auto* start = new QPushButton(m_empty);
    m_empty->addButton(start);
    connect(start, &QPushButton::clicked, this, &LivePage::welcomeRequested);
    texts.add([this, start] {
        m_empty->setTexts(
            tr("No run is open"),
            tr("Start one with Run, or open one in the History: its curves, samples and events are shown here as they come."));
        start->setText(tr("To the start page"));
    });
    return m_empty;
}

QWidget* LivePage::buildContent() {
    auto* scroll = new QScrollArea(this);
    scroll->setProperty("role", QStringLiteral("page"));
    scroll->setWidgetResizable(true);
    scroll->setFocusPolicy(Qt::NoFocus);
    scroll->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    auto* content = new QWidget(scroll);
    scroll->setWidget(content);
    auto* layout = new QVBoxLayout(content);
    layout->setContentsMargins(14, 14, 14, 14);
    layout->setSpacing(12);
    m_header = new RunHeader(content);
    connect(m_header, &RunHeader::actionRequested, this, [this](const QString& action) { act(action); });
    connect(m_header, &RunHeader::resumeRequested, this, [this] { Q_EMIT resumeRequested(m_folder); });
    connect(m_header, &RunHeader::tryRequested, this, [this] { Q_EMIT tryRequested(m_folder); });
    connect(m_header, &RunHeader::runActionRequested, this, &LivePage::runActionRequested);
    layout->addWidget(m_header);
    layout->addWidget(buildCharts(), 5);
    layout->addWidget(buildCompare(), 1);
    return scroll;
}

QWidget* LivePage::buildCharts() {
    const auto plain = [](double value) { return Format::number(value); };
    auto* holder = new QWidget(this);
    auto* grid = m_grid = new QGridLayout(holder);
    grid->setContentsMargins(0, 0, 0, 0);
    grid->setSpacing(12);
    Theme& theme = m_services.theme;
    const auto withPerplexity = [](double value) {
        return tr("%1 (perplexity %2)").arg(Format::number(value), Format::number(std::exp(value), 3));
    };
    m_loss = new MetricCard(theme,
                            {{"train/loss", "blue", plain, true},
                             {"eval/loss", "orange", withPerplexity, false, true},
                             {RunCurves::kBaselineLoss, "slate", withPerplexity, false, false, true}},
                            holder);
    auto* rate = new MetricCard(theme, {{"train/lr", "blue", [](double value) { return Format::rate(value); }}}, holder);
    auto* speed = new MetricCard(
        theme, {{"train/tokens_per_s", "teal", [](double value) { return tr("%1 tokens/s").arg(Format::count(std::llround(value))); }}},
        holder);
    auto* norm = new MetricCard(theme, {{"train/grad_norm", "violet", plain}}, holder);
    auto* memory = new MetricCard(
        theme, {{"system/memory_bytes", "brown", [](double value) { return Format::number(value, 3) + QStringLiteral(" GiB"); }}}, holder);
    m_cards = {m_loss, rate, speed, norm, memory};
    rate->plot().setFloor(0);
    speed->plot().setFloor(0);
    memory->plot().setFloor(0);
    m_setRate = makeLink(rate);
    m_evaluate = makeLink(m_loss);
    connect(m_setRate, &QToolButton::clicked, this, &LivePage::askRate);
    connect(m_evaluate, &QToolButton::clicked, this, [this] { act(QStringLiteral("evaluate")); });
    connect(m_header, &RunHeader::stateChanged, this, &LivePage::showAbilities);
    m_results = new ResultsCard(holder);
    grid->addWidget(m_results, 0, 0, 1, 3);
    grid->addWidget(m_loss, 0, 0, 2, 1);
    grid->addWidget(rate, 0, 1);
    grid->addWidget(speed, 0, 2);
    grid->addWidget(norm, 1, 1);
    grid->addWidget(memory, 1, 2);
    grid->addWidget(buildSamples(), 2, 0);
    grid->addWidget(buildEvents(), 2, 1, 1, 2);
    grid->setRowStretch(2, 5);
    grid->setColumnStretch(0, 2);
    grid->setColumnStretch(1, 1);
    grid->setColumnStretch(2, 1);
    for (MetricCard* card : m_cards) card->setMinimumWidth(180);
    for (MetricCard* card : {rate, speed, norm, memory}) card->setMinimumHeight(128);
    buildChartControls(m_loss);
    texts.add([this, rate, speed, norm, memory] {
        m_loss->setTitle(tr("Loss"));
        m_loss->setNames({tr("train"), tr("validation"), tr("bigram")});
        rate->setTitle(tr("Learning rate"));
        m_setRate->setText(tr("Change…"));
        m_setRate->setToolTip(tr("Change the learning rate of this run"));
        m_evaluate->setText(tr("Evaluate now"));
        m_results->retranslate();
        speed->setTitle(tr("Throughput"));
        norm->setTitle(tr("Gradient norm"));
        memory->setTitle(tr("Memory, GiB"));
        for (MetricCard* card : m_cards) card->plot().setToolTip(tr("Ctrl+wheel zooms, dragging moves, a double click shows all"));
        setAxis(m_axis);
    });
    return holder;
}

void LivePage::buildChartControls(Card* card) {
    m_axisButton = makeQuietButton(card);
    m_smoothButton = makeQuietButton(card);
    m_logButton = makeQuietButton(card);
    m_logButton->setCheckable(true);
    for (QToolButton* button : {m_axisButton, m_smoothButton}) {
        button->setPopupMode(QToolButton::InstantPopup);
        button->setMenu(new QMenu(button));
    }
    for (QToolButton* button : {m_axisButton, m_smoothButton, m_logButton}) card->titleRow()->addWidget(button);
    for (int i = 0; i < 3; ++i) {
        QAction* axis = m_axisButton->menu()->addAction(QString());
        connect(axis, &QAction::triggered, this, [this, i] { setAxis(static_cast<XAxis>(i)); });
        QAction* smooth = m_smoothButton->menu()->addAction(QString());
        connect(smooth, &QAction::triggered, this, [this, i] { setSmoothing(kSmoothings[i].weight); });
        texts.add([axis, smooth, i] {
            axis->setText(tr(kAxes[i]));
            smooth->setText(tr(kSmoothings[i].name));
        });
    }
    connect(m_logButton, &QToolButton::toggled, this, [this](bool isOn) { m_loss->plot().setLogarithmic(isOn); });
    texts.add([this] {
        m_logButton->setText(tr("Log"));
        m_logButton->setToolTip(tr("Logarithmic axis"));
        m_axisButton->setToolTip(tr("What runs along the bottom of the charts"));
        m_axisButton->setAccessibleName(tr("Axis of the charts"));
        m_smoothButton->setAccessibleName(tr("Smoothing of the loss"));
        setSmoothing(m_smoothing);
    });
}

QWidget* LivePage::buildSamples() {
    auto* card = new Card(this);
    m_sampleStack = new QStackedWidget(card);
    m_sampleView = new QTextBrowser(card);
    m_sampleView->setOpenLinks(false);
    m_sampleView->setFrameShape(QFrame::NoFrame);
    m_sampleView->setStyleSheet(QStringLiteral("QTextBrowser { border: none; padding: 0; background: transparent; }"));
    m_noSamples = new EmptyState(card);
    m_sampleStack->addWidget(m_noSamples);
    m_sampleStack->addWidget(m_sampleView);
    m_sampleStack->setMinimumHeight(110);
    m_sampleStack->setSizePolicy(QSizePolicy::Preferred, QSizePolicy::Ignored);
    card->body()->addWidget(m_sampleStack, 1);
    m_samplesCard = card;
    m_sample = makeLink(card);
    connect(m_sample, &QToolButton::clicked, this, [this] { act(QStringLiteral("sample")); });
    connect(&m_services.theme, &Theme::changed, this, &LivePage::showSamples);
    texts.add([this] {
        m_sample->setText(tr("Write now"));
        showAbilities();
        showSamples();
    });
    return card;
}

QWidget* LivePage::buildEvents() {
    auto* card = new Card(this);
    m_eventView = new QTableView(card);
    m_eventView->setModel(m_events);
    m_eventView->setShowGrid(false);
    m_eventView->setSelectionBehavior(QAbstractItemView::SelectRows);
    m_eventView->setEditTriggers(QAbstractItemView::NoEditTriggers);
    m_eventView->setTabKeyNavigation(false);
    m_eventView->setWordWrap(true);
    m_eventView->horizontalHeader()->hide();
    m_eventView->horizontalHeader()->setStretchLastSection(true);
    m_eventView->verticalHeader()->hide();
    m_eventView->verticalHeader()->setSectionResizeMode(QHeaderView::ResizeToContents); // a long message is read whole
    m_eventView->verticalHeader()->setMinimumSectionSize(26);
    m_eventView->verticalHeader()->setResizeContentsPrecision(0); // only what is seen
    m_eventView->setColumnWidth(0, 78);
    m_eventView->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    m_eventView->setMinimumHeight(110);
    m_eventView->setSizePolicy(QSizePolicy::Preferred, QSizePolicy::Ignored);
    card->body()->addWidget(m_eventView, 1);
    texts.add([this, card] {
        card->setTitle(tr("Events"));
        m_eventView->setAccessibleName(tr("Events"));
        m_events->retranslate();
    });
    return card;
}

QWidget* LivePage::buildCompare() {
    auto* card = new Card(this);
    m_compareFilter = new RunsFilter(this);
    m_compareFilter->setSourceModel(m_runs);
    m_compareFilter->setOnlyNewest(kComparedRuns, {});
    m_compare = makeRunsView(m_services.theme, card);
    m_compare->setModel(m_compareFilter);
    m_compare->setColumnHidden(RunsModel::Kind, true);
    m_compare->setColumnHidden(RunsModel::Steps, true);
    m_compare->setColumnHidden(RunsModel::Created, true);
    m_compare->setColumnHidden(RunsModel::Tags, true);
    m_compare->horizontalHeader()->setSectionResizeMode(QHeaderView::Stretch);
    m_compare->verticalHeader()->setDefaultSectionSize(26);
    m_compare->setMinimumHeight(112);
    m_compare->setSizePolicy(QSizePolicy::Preferred, QSizePolicy::Ignored);
    m_compare->horizontalHeader()->setSectionResizeMode(RunsModel::Number, QHeaderView::Fixed);
    m_compare->setColumnWidth(RunsModel::Number, 52);
    m_compare->horizontalHeader()->setSectionResizeMode(RunsModel::Name, QHeaderView::ResizeToContents);
    card->body()->addWidget(m_compare, 1);
    connect(m_compare, &QTableView::activated, this,
            [this](const QModelIndex& index) { Q_EMIT runChosen(index.data(RunsModel::FolderRole).toString()); });
    texts.add([this, card] {
        card->setTitle(tr("Compared with"));
        m_compare->setAccessibleName(tr("Compared with"));
        m_runs->retranslate();
    });
    return card;
}

void LivePage::connectServices() {
    connect(&m_services.store, &RunStore::runRead, this, &LivePage::onRead);
    connect(&m_services.store, &RunStore::runsLoaded, this, &LivePage::onRuns);
    connect(&m_services.engine, &EngineClient::progressed, this, [this](const RunProgress& progress) {
        m_runs->setProgress(progress.run, progress.step, progress.totalSteps, progress.elapsedSeconds);
        if (progress.run != m_folder) return;
        m_header->setProgress(progress);
        pollSoon();
    });
    connect(&m_services.engine, &EngineClient::messageArrived, this, [this](const RunMessage& message) {
        if (message.run == m_folder) pollSoon();
        if (message.kind == QLatin1String("checkpoint")) m_services.store.refreshRuns(); // a run can be tried from its first one on
    });
    connect(&m_services.engine, &EngineClient::runChanged, this, [this](const QString& run) {
        if (run == m_folder) pollSoon();
    });
}

QString LivePage::context() const {
    const store::RunRecord* run = m_runs->find(m_folder);
    if (!run) return m_folder;
    return tr("%1 · run %2").arg(fromUtf8(run->name)).arg(run->number);
}

void LivePage::open(const QString& folder) {
    if (folder == m_folder) {
        m_services.store.poll();
        return;
    }
    m_folder = folder;
    m_curves.clear();
    showCurves();
    m_samples.clear();
    showSamples();
    m_events->clear();
    m_header->clear();
    m_results->clear();
    readRecipe();
    m_runs->setCurrent(folder);
    m_compareFilter->setOnlyNewest(kComparedRuns, folder);
    if (const store::RunRecord* record = m_runs->find(folder)) m_header->setRecord(*record);
    m_stack->setCurrentIndex(1);
    m_services.store.follow(folder);
    m_heartbeat->start();
    Q_EMIT contextChanged();
}

void LivePage::onRead(const RunDeltaPtr& delta) {
    if (delta->folder != m_folder || m_folder.isEmpty()) return;
    m_header->setError(delta->error);
    if (!delta->error.isEmpty()) return;
    if (delta->startsOver) {
        m_curves.clear();
        m_events->clear();
        m_samples.clear();
        m_results->clear();
        readRecipe(); // a resume may have changed it
    }
    m_curves.add(delta->metrics);
    m_results->add(delta->metrics);
    m_events->add(delta->events);
    for (const store::SampleRow& sample : delta->samples) m_samples.push_front(sample);
    if (m_samples.size() > kMostSamples) m_samples.resize(kMostSamples);
    if (delta->hasProgress) m_header->setProgress(delta->progress);
    if (delta->startsOver || !delta->metrics.empty()) showCurves();
    if (delta->startsOver || !delta->samples.empty()) showSamples();
}

void LivePage::onRuns(const RunListPtr& runs) {
    m_runs->setRuns(runs);
    if (const store::RunRecord* record = m_runs->find(m_folder)) {
        m_header->setRecord(*record);
    } else if (!m_folder.isEmpty() && !runs->empty() && store::isOver(m_header->state())) { // it was deleted
        m_folder.clear();
        m_heartbeat->stop();
        m_stack->setCurrentIndex(0);
    }
    Q_EMIT contextChanged();
}

/// The button that agrees is there only for a number above 0.
void LivePage::askRate() {
    auto* dialog = new QInputDialog(this);
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    dialog->setWindowTitle(tr("Change the learning rate"));
    dialog->setLabelText(tr("Learning rate from the next step to the end of the run, in place of the recipe's schedule:"));
    dialog->setOkButtonText(tr("Change"));
    dialog->setCancelButtonText(tr("Cancel"));
    const Curve& rates = m_curves.curve("train/lr");
    dialog->setTextValue(rates.isEmpty() ? QString() : QString::number(rates.last(), 'g', 3));
    const auto isRate = [](const QString& text) {
        bool isNumber = false;
        const double rate = text.trimmed().toDouble(&isNumber);
        return isNumber && std::isfinite(rate) && rate > 0;
    };
    auto* buttons = dialog->findChild<QDialogButtonBox*>();
    connect(dialog, &QInputDialog::textValueChanged, dialog, [buttons, isRate](const QString& text) {
        if (buttons) buttons->button(QDialogButtonBox::Ok)->setEnabled(isRate(text));
    });
    connect(dialog, &QInputDialog::textValueSelected, this, [this, isRate](const QString& text) {
        if (isRate(text)) act(QStringLiteral("set_lr"), text.trimmed().toDouble());
    });
    dialog->open();
}

void LivePage::act(const QString& action, std::optional<double> value) {
    m_header->setBusy(true);
    m_services.engine.control(m_folder, action, value, [this](const Status& status) {
        m_header->setBusy(false);
        if (!status) Q_EMIT failed(Format::error(status.error()));
        pollSoon();
    });
}

/// What the run can be asked for follows from its recipe; whether it has a tokenizer, from its folder.
void LivePage::readRecipe() {
    const store::RunFolder run{m_services.store.workspace().runs() / toUtf8(m_folder)};
    const auto recipe = recipe::Recipe::load(run.recipe());
    m_kind = recipe ? recipe->text("kind") : std::string("pretrain");
    m_hasValidation = recipe && (!recipe->list("data.validation").empty() || recipe->real("data.validation_fraction") > 0);
    m_results->setPlace(m_kind == "predict" ? tr("The texts are in %1.").arg(pathText(run.path / "predictions.jsonl")) : QString());
    m_header->setKind(m_kind);
    showAbilities();
}

/// Buttons for what can be done now, with the reason where one cannot; charts for runs that make steps, numbers for the others.
void LivePage::showAbilities() {
    const bool isTraining = m_kind != "evaluate" && m_kind != "predict";
    const store::RunState now = m_header->state();
    const bool isGoing = isTraining && (now == store::RunState::Running || now == store::RunState::Paused);
    for (QToolButton* button : {m_setRate, m_evaluate, m_sample}) button->setVisible(isGoing);
    m_evaluate->setEnabled(m_hasValidation);
    m_evaluate->setToolTip(m_hasValidation ? tr("Measure the validation data after the current step")
                                           : tr("This run has no validation data: its recipe names none and holds none out"));
    std::error_code code;
    const store::RunFolder run{m_services.store.workspace().runs() / toUtf8(m_folder)};
    const bool canWrite = !isGoing || std::filesystem::exists(run.tokenizer(), code);
    m_sample->setEnabled(canWrite);
    m_sample->setToolTip(canWrite ? tr("Let the model write after the current step")
                                  : tr("This run has no tokenizer: it learns from token files, and its recipe names none"));
    for (MetricCard* card : m_cards) card->setVisible(isTraining);
    m_results->setVisible(!isTraining);
    for (int row = 0; row < kChartRows; ++row) m_grid->setRowStretch(row, isTraining ? 4 : 0); // numbers take no more height than they need
    const QString title = isTraining ? tr("Samples while training") : m_kind == "evaluate" ? tr("Answers") : tr("What the model wrote");
    m_samplesCard->setTitle(title);
    m_sampleView->setAccessibleName(title);
    m_noSamples->setTexts({}, isTraining ? tr("Text that the model writes appears here, every so many steps as the recipe says.")
                              : m_kind == "evaluate" ? tr("Answers to questions appear here, where the recipe has some checked.")
                                                     : tr("The first texts appear here; all of them are in the file of results."));
}

void LivePage::pollSoon() {
    if (!m_pollTimer->isActive()) m_pollTimer->start();
}

void LivePage::showCurves() {
    for (MetricCard* card : m_cards) card->show(m_curves);
    if (store::isOver(m_header->state()) || m_curves.curve("train/loss").isEmpty()) return; // the index knows better
    const auto last = [this](const char* name) { return m_curves.curve(name).last(); };
    m_runs->setLatest(m_folder, {last("train/loss"), last("eval/perplexity"), last("train/tokens_per_s")});
}

void LivePage::showSamples() {
    m_sampleStack->setCurrentIndex(m_samples.empty() ? 0 : 1);
    const QString muted = m_services.theme.color("muted").name(), text = m_services.theme.color("text").name();
    const bool isTraining = m_kind != "evaluate" && m_kind != "predict";
    const std::set<std::size_t> superseded = isTraining ? supersededSamples(m_samples) : std::set<std::size_t>();
    QString html;
    for (std::size_t i = 0; i < m_samples.size(); ++i) {
        const store::SampleRow& sample = m_samples[i];
        const bool isOld = superseded.contains(i);
        const QString step = isOld ? tr("step %1, before it was run again") : tr("step %1");
        html += QStringLiteral("<p style=\"margin:0 0 10px 0\"><span style=\"color:%1;font-size:8.5pt\">%2</span><br/>"
                               "<span style=\"color:%1\">%3</span><span style=\"color:%4\">%5</span></p>")
                    .arg(muted, isTraining ? step.arg(Format::count(sample.step)) : QString(), fromUtf8(sample.prompt).toHtmlEscaped(), isOld ? muted : text,
                         fromUtf8(sample.text).toHtmlEscaped().replace(QLatin1Char('\n'), QLatin1String("<br/>")));
    }
    const int kept = m_sampleView->verticalScrollBar()->value();
    m_sampleView->setHtml(html);
    m_sampleView->verticalScrollBar()->setValue(kept);
}

void LivePage::setAxis(XAxis axis) {
    m_axis = axis;
    m_axisButton->setText(tr(kAxes[static_cast<int>(axis)]) + QStringLiteral(" ▾"));
    const QString title = axis == XAxis::Step ? tr("step") : axis == XAxis::Epoch ? tr("epoch") : tr("seconds");
    // One title for all: the small charts need their height.
    for (MetricCard* card : m_cards) card->setXAxis(axis, card == m_loss ? title : QString());
}

void LivePage::setSmoothing(double weight) {
    m_smoothing = weight;
    m_services.settings.setValue(QStringLiteral("live/smoothing"), weight);
    for (const Smoothing& one : kSmoothings) {
        if (one.weight == weight) m_smoothButton->setText(tr(one.name) + QStringLiteral(" ▾"));
    }
    m_curves.setSmoothing(weight);
    if (!m_folder.isEmpty()) showCurves();
}

} // namespace celloom::ui
