#include "ui/editor/probe.h"

#include "models/base/files.h"
#include "models/base/machine_memory.h"
#include "models/graph/difference.h"
#include "models/graph/json.h"
#include "ui/common/engine_job.h"
#include "ui/common/format.h"
#include "ui/common/recipe_document.h"
#include "ui/common/theme.h"
#include "ui/common/widgets.h"
#include "ui/editor/graph_view.h"
#include "ui/editor/open_models.h"
#include "ui/editor/probe_panel.h"
#include "ui/shell/services.h"

#include <QAction>
#include <QEvent>
#include <QFileInfo>
#include <QHBoxLayout>
#include <QProgressBar>
#include <QPushButton>
#include <QTemporaryDir>
#include <QToolButton>

#include <algorithm>
#include <set>
#include <utility>

namespace celloom::ui {

namespace {

constexpr int kRows = 2;            // of the batch
constexpr std::size_t kManyCells = 200; // beyond, attention maps are smaller
constexpr int kMargin = 14;         // between the bar and the canvas' edges
constexpr int kBytesOfWeight = 4;   // float32

/// What a probe's numbers depend on: without places and notes.
graph::Document bare(graph::Document document) {
    const auto strip = [](graph::Graph& graph) {
        graph.note.clear();
        for (graph::Cell& cell : graph.cells) {
            cell.position.reset();
            cell.note.clear();
        }
    };
    strip(document.main);
    for (auto& [name, graph] : document.composites) strip(graph);
    return document;
}

/// The document with the main graph's hyper-parameters as the recipe sets them.
graph::Document asInTheRecipe(const ModelAnalysis& analysis) {
    graph::Document document = analysis.document;
    for (graph::HyperParameter& hyper : document.main.hyper)
        if (const auto value = analysis.expansion.model.hyper.find(hyper.name); value != analysis.expansion.model.hyper.end() && !std::holds_alternative<std::string>(value->second))
            hyper.value = std::visit([](const auto& held) { return graph::ParamValue(held); }, value->second);
    return document;
}

} // namespace

Probe::Probe(Services& services, GraphView* view, QWidget* holder, Texts& texts)
    : QObject(view), m_services(services), m_view(view), m_holder(holder), m_job(new EngineJob(services.engineProgram, this)), m_panel(new ProbePanel(services.theme)), m_action(new QAction(this)) {
    m_job->setStreams(true);
    connect(m_job, &EngineJob::line, this, &Probe::take);
    connect(m_job, &EngineJob::finished, this, &Probe::finish);
    connect(m_job, &EngineJob::failed, this, &Probe::fail);
    connect(m_job, &EngineJob::cancelled, this, [this] { setState(State::Cancelled); });
    m_action->setShortcut(Qt::Key_F9);
    m_action->setShortcutContext(Qt::WidgetWithChildrenShortcut);
    connect(m_action, &QAction::triggered, this, [this] {
        if (isRunning()) m_job->cancel();
        else start();
    });
    connect(m_panel, &ProbePanel::probeRequested, this, &Probe::start);
    connect(m_panel, &ProbePanel::cancelRequested, m_job, &EngineJob::cancel);
    buildBar(holder, texts);
    texts.add([this] {
        m_action->setText(tr("Probe one batch"));
        m_action->setIconText(tr("Probe"));
        m_action->setToolTip(tr("Probe: sends one batch through the model, and shows what is on each wire (F9)"));
        show();
    });
    const auto setIcon = [this] { m_action->setIcon(m_services.theme.icon(QStringLiteral("probe"))); };
    setIcon();
    connect(&services.theme, &Theme::changed, this, setIcon);
}

Probe::~Probe() = default;

void Probe::buildBar(QWidget* holder, Texts& texts) {
    m_bar = new QFrame(holder);
    m_bar->setProperty("role", QStringLiteral("card"));
    m_bar->setObjectName(QStringLiteral("probeBar"));
    auto* layout = new QHBoxLayout(m_bar);
    layout->setContentsMargins(10, 6, 6, 6);
    layout->setSpacing(8);
    m_text = makeLabel("muted", m_bar);
    m_text->setObjectName(QStringLiteral("probeText"));
    m_text->setWordWrap(true);
    m_text->setTextInteractionFlags(Qt::TextSelectableByMouse);
    m_progress = new QProgressBar(m_bar);
    m_progress->setFixedWidth(110);
    m_progress->setTextVisible(false);
    m_cancel = new QPushButton(m_bar);
    m_again = new QPushButton(m_bar);
    m_jump = new QPushButton(m_bar);
    m_close = makeQuietButton(m_bar);
    m_close->setSizePolicy(QSizePolicy::Fixed, QSizePolicy::Fixed);
    for (QWidget* widget : std::initializer_list<QWidget*>{m_text, m_progress, m_cancel, m_jump, m_again, m_close}) layout->addWidget(widget, widget == m_text ? 1 : 0);
    connect(m_cancel, &QPushButton::clicked, m_job, &EngineJob::cancel);
    connect(m_again, &QPushButton::clicked, this, &Probe::start);
    connect(m_jump, &QPushButton::clicked, this, &Probe::goToFailure);
    connect(m_close, &QToolButton::clicked, this, [this] {
        forget();
        m_view->setFocus();
    });
    texts.add([this] {
        m_cancel->setText(tr("Cancel"));
        m_again->setText(tr("Probe again"));
        m_jump->setText(tr("Go to the cell"));
        m_progress->setAccessibleName(tr("Progress of the probe"));
        m_close->setAccessibleName(tr("Close"));
        m_close->setToolTip(tr("Takes the numbers off the canvas"));
    });
    const auto setIcon = [this] { m_close->setIcon(m_services.theme.icon(QStringLiteral("close"))); };
    setIcon();
    m_close->setMinimumSize(m_close->sizeHint());
    connect(&m_services.theme, &Theme::changed, this, setIcon);
    m_bar->hide();
    connect(m_view, &GraphView::resized, this, &Probe::placeBar);
}

bool Probe::isRunning() const {
    return m_state == State::Running;
}

// ---- a probe ----

void Probe::start() {
    if (!m_analysis || m_analysis->openError || !m_services.model.snapshot()) return;
    m_model = &m_services.model.current();
    m_probed = bare(asInTheRecipe(*m_analysis));
    m_error.reset();
    m_report = std::make_shared<ProbeReport>();
    const auto& expansion = m_analysis->expansion;
    if (!expansion.ok()) return refuse(expansion.firstError());
    const double needed = static_cast<double>(expansion.model.parameterCount()) * kBytesOfWeight;
    if (const auto free = static_cast<double>(machineMemory().available); free > 0 && needed > free)
        return refuse({toUtf8(tr("A probe computes every cell: the weights alone need %1, and this machine has %2 of memory free.").arg(Format::bytes(needed), Format::bytes(free))),
                       toUtf8(tr("Make the model smaller, for example by fewer layers.")), {}});
    m_folder = std::make_unique<QTemporaryDir>();
    const recipe::Recipe recipe = m_services.recipe.recipe().withAbsolutePaths();
    const QString document = m_folder->filePath(QStringLiteral("model.cells.json")), recipeFile = m_folder->filePath(QStringLiteral("recipe.json"));
    if (auto status = writeFileAtomically(toPath(document), graph::toJson(asInTheRecipe(*m_analysis))); !status) return refuse(status.error());
    if (auto status = writeFileAtomically(toPath(recipeFile), recipe.toJson()); !status) return refuse(status.error());

    const std::string& weights = recipe.text("model.weights");
    const bool usesWeights = !weights.empty() && !m_services.model.isModified();
    const bool hasData = m_panel->data() == ProbePanel::Data::OfRecipe && !recipe.list("data.train").empty();
    QStringList arguments{QStringLiteral("probe"), usesWeights ? fromUtf8(weights) : document, QStringLiteral("--batch"), QString::number(kRows)};
    if (hasData) arguments += {QStringLiteral("--data"), recipeFile};
    else arguments += {QStringLiteral("--length"), QString::number(recipe.integer("train.sequence_length"))};
    arguments += {QStringLiteral("--seed"), QString::number(recipe.integer("seed")), QStringLiteral("--amp-level"), fromUtf8(recipe.text("precision.amp_level")),
                  QStringLiteral("--half-type"), fromUtf8(recipe.text("precision.half_type")), QStringLiteral("--device"), fromUtf8(recipe.text("device"))};
    for (const auto& [list, option] : {std::pair("precision.allow", "--allow"), std::pair("precision.deny", "--deny")})
        for (const std::string& item : recipe.list(list)) arguments += {QLatin1String(option), fromUtf8(item)};
    if (expansion.model.cells.size() > kManyCells) arguments += {QStringLiteral("--map-size"), QStringLiteral("32")};
    if (m_panel->wantsGradients()) arguments.append(QStringLiteral("--gradients"));
    m_hasData = hasData;
    m_weights = usesWeights ? QFileInfo(fromUtf8(weights)).fileName() : QString();
    setState(State::Running);
    m_job->start(arguments);
}

void Probe::refuse(const Error& error) {
    m_error = error;
    setState(State::Failed);
    if (!error.place.empty()) goToFailure();
}

void Probe::take(const QByteArray& line) {
    if (m_state != State::Running) return;
    if (auto status = m_report->take({line.constData(), static_cast<std::size_t>(line.size())}); !status) {
        m_job->cancel();
        m_error = status.error();
        setState(State::Failed);
        return;
    }
    show();
}

void Probe::finish() {
    m_folder.reset();
    setState(State::Done);
}

void Probe::fail(const Error& error) {
    m_folder.reset();
    m_error = error;
    setState(State::Failed);
    goToFailure();
}

void Probe::setState(State state) {
    if (m_state == State::Failed && state == State::Cancelled && m_error) return; // what was wrong is told
    m_state = state;
    m_panel->setRunning(state == State::Running);
    show();
    showOnCanvas();
    showChosen();
}

void Probe::forget() {
    m_report.reset();
    m_error.reset();
    m_model = nullptr;
    setState(State::Nothing);
}

void Probe::goToFailure() {
    if (!m_error || !m_analysis || !isOfModel()) return;
    if (const auto place = locate(*m_analysis, m_error->place)) Q_EMIT placeRequested(place->first, place->second, true);
}

// ---- what is shown ----

void Probe::setPlace(const ModelAnalysisPtr& analysis, const ModelLevel* level, const LevelPath& path, std::optional<std::size_t> box) {
    m_analysis = analysis;
    m_level = analysis && !analysis->openError ? level : nullptr;
    m_path = path;
    m_box = box;
    m_action->setEnabled(m_level != nullptr);
    m_panel->setVisible(m_level != nullptr);
    show();
    showOnCanvas();
    showChosen();
}

void Probe::setChosen(std::optional<std::size_t> box) {
    m_box = box;
    showChosen();
}

bool Probe::isOfModel() const {
    return m_model && m_model == &m_services.model.current();
}

bool Probe::isStale() const {
    return m_analysis && !m_analysis->openError && !graph::isSame(m_probed, bare(asInTheRecipe(*m_analysis)));
}

QString Probe::summary() const {
    QString text = tr("%n row(s)", "", static_cast<int>(m_report->rows)) + QStringLiteral(", ") + (m_hasData ? tr("data of the recipe") : tr("made-up data")) + QStringLiteral(", ") +
                   (m_weights.isEmpty() ? tr("weights as a run begins") : tr("weights of %1").arg(m_weights));
    if (m_report->loss) text += QStringLiteral(", ") + tr("loss %1").arg(Format::number(*m_report->loss));
    std::size_t bad = 0;
    for (const auto& [wire, values] : m_report->values) bad += values.isBad();
    if (bad > 0) text += QStringLiteral(", ") + tr("%n wire(s) with NaN or infinite values", "", static_cast<int>(bad));
    return text;
}

void Probe::show() {
    const bool isHere = m_state != State::Nothing && isOfModel() && m_level;
    m_bar->setVisible(isHere);
    if (!isHere) {
        m_panel->setSummary({}, "muted");
        return;
    }
    const bool isOld = m_state != State::Running && isStale();
    const QString old = isOld ? QLatin1Char('\n') + tr("The model has changed since: these numbers are old.") : QString();
    const char* look = m_state == State::Failed ? "problem" : isOld ? "warning" : "muted";
    QString text;
    if (m_state == State::Running) {
        text = m_report->cellCount == 0 ? tr("opening the model and its data…") : tr("cell %1 of %2, %3").arg(m_report->done).arg(m_report->cellCount).arg(fromUtf8(m_report->newest));
        m_progress->setRange(0, static_cast<int>(std::max<std::int64_t>(1, m_report->cellCount)));
        m_progress->setValue(static_cast<int>(m_report->done));
    } else if (m_state == State::Failed) {
        text = Format::error(*m_error);
    } else if (m_state == State::Cancelled) {
        text = tr("cancelled after %1 of %2 cells").arg(m_report->done).arg(m_report->cellCount);
    } else {
        text = summary();
    }
    m_panel->setSummary(text + old, look);
    text = tr("Probe: %1").arg(text) + old;
    setRole(m_text, look);
    m_text->setText(text);
    m_progress->setVisible(m_state == State::Running && m_report->done > 0);
    m_cancel->setVisible(m_state == State::Running);
    m_close->setVisible(m_state != State::Running);
    m_again->setVisible(isOld || m_state == State::Cancelled || m_state == State::Failed);
    m_jump->setVisible(m_state == State::Failed && m_analysis && locate(*m_analysis, m_error->place));
    placeBar();
}

/// At the lower left, as wide as its text needs and the canvas allows.
void Probe::placeBar() {
    if (!m_bar->isVisibleTo(m_holder)) return;
    m_bar->layout()->activate(); // with the buttons that are shown now
    const int room = m_holder->width() - 2 * kMargin;
    const int wide = m_text->fontMetrics().boundingRect(QRect(0, 0, 4000, 400), Qt::TextExpandTabs, m_text->text()).width();
    const int others = m_bar->layout()->sizeHint().width() - m_text->sizeHint().width();
    const int width = std::min(room, wide + others + 8);
    const int height = m_bar->layout()->hasHeightForWidth() ? m_bar->layout()->totalHeightForWidth(width) : m_bar->layout()->sizeHint().height();
    m_bar->setGeometry(kMargin, m_holder->height() - height - kMargin, width, height);
    m_bar->raise();
}

/// Each value once, on the shortest of its wires.
void Probe::showOnCanvas() {
    if (!m_level) return;
    const bool isHere = m_report && isOfModel() && m_state != State::Running && m_state != State::Nothing;
    std::vector<WireNote> notes;
    if (isHere && !m_report->values.empty()) {
        const std::vector<std::string> values = valuesOnWires(*m_analysis, *m_level);
        const std::vector<std::size_t> order = m_view->wiresByLength();
        std::set<std::string> told;
        notes.resize(values.size());
        for (const std::size_t wire : order)
            if (const ProbedValues* found = m_report->valuesOn(values[wire]); found && told.insert(values[wire]).second)
                notes[wire] = {sizesText(*found), shortNumbers(*found), found->isBad()};
    }
    m_view->setNotes(std::move(notes));
    std::string failed;
    if (isHere && m_error) {
        if (const auto place = locate(*m_analysis, m_error->place))
            for (std::size_t depth = 0; depth <= place->first.size(); ++depth) // the composite that it lies in, too
                if (depth == m_path.size() && std::equal(m_path.begin(), m_path.end(), place->first.begin(), [](const LevelStep& a, const LevelStep& b) { return a.cell == b.cell; }))
                    failed = depth < place->first.size() ? place->first[depth].cell : place->second;
    }
    m_view->setFailure(failed, m_error ? Format::error(*m_error) : QString());
}

void Probe::showChosen() {
    const bool isHere = m_report && isOfModel() && m_level && m_state != State::Running && m_state != State::Nothing;
    if (!isHere || !m_box || *m_box >= m_level->boxes.size()) {
        m_panel->showValues(nullptr, {}, {});
        return;
    }
    const LevelBox& box = m_level->boxes[*m_box];
    const bool isCell = box.kind == BoxKind::Cell;
    m_panel->showValues(m_report, valuesOf(*m_analysis, *m_level, *m_box), isCell ? box.path : std::string());
}

} // namespace celloom::ui
