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
#include "ui/editor/model_document.h"
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
constexpr int kBytesOfWeight = 4;   // float32
constexpr int kBarHeight = 38;      // of one line, with its buttons or without

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

struct Probe::Session {
    explicit Session(const QString& engineProgram) : job(engineProgram) { job.setStreams(true); }

    enum class State { Running, Done, Cancelled, Failed } state = State::Running;
    std::shared_ptr<ProbeReport> report; // complete lines only; grows while one is running
    std::optional<Error> error;
    std::unique_ptr<QTemporaryDir> folder;
    graph::Document probed; // as it was, without what does not count
    bool hasData = false;   // with what: data of the recipe or made-up ones,
    QString weights;        // and whose weights; empty: as a run begins
    EngineJob job;

    [[nodiscard]] bool isRunning() const { return state == State::Running; }
};

Probe::Probe(Services& services, GraphView* view, Texts& texts)
    : QObject(view), m_services(services), m_view(view), m_panel(new ProbePanel(services.theme)), m_action(new QAction(this)) {
    m_action->setShortcut(Qt::Key_F9);
    m_action->setShortcutContext(Qt::WidgetWithChildrenShortcut);
    connect(m_action, &QAction::triggered, this, [this] {
        if (isRunning()) cancel();
        else start();
    });
    connect(m_panel, &ProbePanel::probeRequested, this, &Probe::start);
    connect(m_panel, &ProbePanel::cancelRequested, this, &Probe::cancel);
    buildBar(texts);
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

QWidget* Probe::bar() const {
    return m_bar;
}

void Probe::buildBar(Texts& texts) {
    m_bar = new QFrame(m_view->parentWidget());
    m_bar->setProperty("role", QStringLiteral("statusbar"));
    m_bar->setObjectName(QStringLiteral("probeBar"));
    auto* layout = new QHBoxLayout(m_bar);
    layout->setContentsMargins(14, 4, 10, 4);
    layout->setSpacing(8);
    m_bar->setMinimumHeight(kBarHeight);
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
    connect(m_cancel, &QPushButton::clicked, this, &Probe::cancel);
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
}

Probe::Session* Probe::inFront() const {
    const auto found = m_sessions.find(&m_services.model.current());
    return found == m_sessions.end() ? nullptr : found->second.get();
}

bool Probe::isRunning() const {
    const Session* session = inFront();
    return session && session->isRunning();
}

// ---- a probe ----

/// Of the model in front, in place of the one before.
Probe::Session& Probe::begin() {
    ModelDocument& model = m_services.model.current();
    const bool isKnown = m_sessions.contains(&model);
    auto& slot = m_sessions[&model];
    slot = std::make_unique<Session>(m_services.engineProgram);
    Session* session = slot.get();
    connect(&session->job, &EngineJob::line, this, [this, session](const QByteArray& line) { take(*session, line); });
    connect(&session->job, &EngineJob::finished, this, [this, session] { finish(*session); });
    connect(&session->job, &EngineJob::failed, this, [this, session](const Error& error) { fail(*session, error); });
    connect(&session->job, &EngineJob::cancelled, this, [this, session] {
        if (!session->error) session->state = Session::State::Cancelled; // else what was wrong is told
        onChanged(*session);
    });
    if (!isKnown) connect(&model, &QObject::destroyed, this, [this, gone = &model] { m_sessions.erase(gone); });
    return *session;
}

void Probe::cancel() {
    if (Session* session = inFront()) session->job.cancel();
}

void Probe::start() {
    if (!m_analysis || m_analysis->openError || !m_services.model.snapshot()) return;
    Session& session = begin();
    session.probed = bare(asInTheRecipe(*m_analysis));
    session.report = std::make_shared<ProbeReport>();
    const auto& expansion = m_analysis->expansion;
    if (!expansion.ok()) return refuse(session, expansion.firstError());
    const double needed = static_cast<double>(expansion.model.parameterCount()) * kBytesOfWeight;
    if (const auto free = static_cast<double>(machineMemory().available); free > 0 && needed > free)
        return refuse(session, {toUtf8(tr("A probe computes every cell: the weights alone need %1, and this machine has %2 of memory free.").arg(Format::bytes(needed), Format::bytes(free))),
                       toUtf8(tr("Make the model smaller, for example by fewer layers.")), {}});
    session.folder = std::make_unique<QTemporaryDir>();
    const recipe::Recipe recipe = m_services.recipe.recipe().withAbsolutePaths();
    const QString document = session.folder->filePath(QStringLiteral("model.cells.json")), recipeFile = session.folder->filePath(QStringLiteral("recipe.json"));
    if (auto status = writeFileAtomically(toPath(document), graph::toJson(asInTheRecipe(*m_analysis))); !status) return refuse(session, status.error());
    if (auto status = writeFileAtomically(toPath(recipeFile), recipe.toJson()); !status) return refuse(session, status.error());

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
    session.hasData = hasData;
    session.weights = usesWeights ? QFileInfo(fromUtf8(weights)).fileName() : QString();
    onChanged(session);
    session.job.start(arguments);
}

void Probe::refuse(Session& session, const Error& error) {
    session.error = error;
    session.state = Session::State::Failed;
    onChanged(session);
    if (!error.place.empty()) goToFailure();
}

void Probe::take(Session& session, const QByteArray& line) {
    if (!session.isRunning()) return;
    if (auto status = session.report->take({line.constData(), static_cast<std::size_t>(line.size())}); !status) {
        session.error = status.error();
        session.state = Session::State::Failed;
        session.job.cancel();
        onChanged(session);
        return;
    }
    if (&session == inFront()) show();
}

void Probe::finish(Session& session) {
    session.state = Session::State::Done;
    onChanged(session);
}

void Probe::fail(Session& session, const Error& error) {
    session.error = error;
    session.state = Session::State::Failed;
    onChanged(session);
    if (&session == inFront()) goToFailure();
}

/// Its state changed; of a model that is not in front, this is seen when that is.
void Probe::onChanged(Session& session) {
    if (!session.isRunning()) session.folder.reset();
    if (&session == inFront()) showNumbers();
}

void Probe::forget() {
    m_sessions.erase(&m_services.model.current());
    showNumbers();
}

void Probe::goToFailure() {
    const Session* session = inFront();
    if (!session || !session->error || !m_analysis) return;
    if (const auto place = locate(*m_analysis, session->error->place)) Q_EMIT placeRequested(place->first, place->second, true);
}

// ---- what is shown ----

void Probe::setPlace(const ModelAnalysisPtr& analysis, const ModelLevel* level, const LevelPath& path, std::optional<std::size_t> box) {
    m_analysis = analysis;
    m_level = analysis && !analysis->openError ? level : nullptr;
    m_path = path;
    m_box = box;
    m_action->setEnabled(m_level != nullptr);
    m_panel->setVisible(m_level != nullptr);
    showNumbers();
}

void Probe::showNumbers() {
    show();
    showOnCanvas();
    showChosen();
}

void Probe::setChosen(std::optional<std::size_t> box) {
    m_box = box;
    showChosen();
}

bool Probe::isStale(const Session& session) const {
    return m_analysis && !m_analysis->openError && !graph::isSame(session.probed, bare(asInTheRecipe(*m_analysis)));
}

QString Probe::summary(const Session& session) {
    const ProbeReport& report = *session.report;
    const QString comma = tr(", ", "between parts of a line");
    QString text = tr("%n row(s)", "", static_cast<int>(report.rows)) + comma + (session.hasData ? tr("data of the recipe") : tr("made-up data")) + comma +
                   (session.weights.isEmpty() ? tr("weights as a run begins") : tr("weights of %1").arg(session.weights));
    if (report.loss) text += comma + tr("loss %1").arg(Format::number(*report.loss));
    std::size_t bad = 0;
    for (const auto& [wire, values] : report.values) bad += values.isBad();
    if (bad > 0) text += comma + tr("%n wire(s) with NaN or infinite values", "", static_cast<int>(bad));
    return text;
}

void Probe::show() {
    const Session* session = m_level ? inFront() : nullptr;
    m_bar->setVisible(session != nullptr);
    m_panel->setRunning(session && session->isRunning());
    if (!session) {
        m_panel->setSummary({}, "muted");
        return;
    }
    using State = Session::State;
    const State state = session->state;
    const ProbeReport& report = *session->report;
    const bool isOld = !session->isRunning() && isStale(*session);
    const QString old = isOld ? QLatin1Char('\n') + tr("The model has changed since: these numbers are old.") : QString();
    const char* look = state == State::Failed ? "problem" : isOld ? "warning" : "muted";
    QString text;
    if (state == State::Running) {
        text = report.cellCount == 0 ? tr("opening the model and its data…") : tr("cell %1 of %2, %3").arg(report.done).arg(report.cellCount).arg(fromUtf8(report.newest));
        m_progress->setRange(0, static_cast<int>(std::max<std::int64_t>(1, report.cellCount)));
        m_progress->setValue(static_cast<int>(report.done));
    } else if (state == State::Failed) {
        text = Format::error(*session->error);
    } else if (state == State::Cancelled) {
        text = tr("cancelled after %1 of %2 cells").arg(report.done).arg(report.cellCount);
    } else {
        text = summary(*session);
    }
    m_panel->setSummary(text + old, look);
    text = tr("Probe: %1").arg(text) + old;
    setRole(m_text, look);
    m_text->setText(text);
    m_progress->setVisible(state == State::Running && report.done > 0);
    m_cancel->setVisible(state == State::Running);
    m_close->setVisible(state != State::Running);
    m_again->setVisible(isOld || state == State::Cancelled || state == State::Failed);
    m_jump->setVisible(state == State::Failed && m_analysis && locate(*m_analysis, session->error->place));
}

/// Each value once, on the shortest of its wires.
void Probe::showOnCanvas() {
    if (!m_level) return;
    const Session* session = inFront();
    const bool isHere = session && !session->isRunning();
    std::vector<WireNote> notes;
    if (isHere && !session->report->values.empty()) {
        const std::vector<std::string> values = valuesOnWires(*m_analysis, *m_level);
        const std::vector<std::size_t> order = m_view->wiresByLength();
        std::set<std::string> told;
        notes.resize(values.size());
        for (const std::size_t wire : order)
            if (const ProbedValues* found = session->report->valuesOn(values[wire]); found && told.insert(values[wire]).second)
                notes[wire] = {sizesText(*found), shortNumbers(*found), found->isBad()};
    }
    m_view->setNotes(std::move(notes));
    std::string failed;
    if (isHere && session->error) {
        if (const auto place = locate(*m_analysis, session->error->place))
            for (std::size_t depth = 0; depth <= place->first.size(); ++depth) // the composite that it lies in, too
                if (depth == m_path.size() && std::equal(m_path.begin(), m_path.end(), place->first.begin(), [](const LevelStep& a, const LevelStep& b) { return a.cell == b.cell; }))
                    failed = depth < place->first.size() ? place->first[depth].cell : place->second;
    }
    m_view->setFailure(failed, failed.empty() ? QString() : Format::error(*session->error));
}

void Probe::showChosen() {
    const Session* session = m_level ? inFront() : nullptr;
    if (!session || session->isRunning() || !m_box || *m_box >= m_level->boxes.size()) {
        m_panel->showValues(nullptr, {}, {});
        return;
    }
    const LevelBox& box = m_level->boxes[*m_box];
    const bool isCell = box.kind == BoxKind::Cell;
    m_panel->showValues(session->report, valuesOf(*m_analysis, *m_level, *m_box), isCell ? box.path : std::string());
}

} // namespace celloom::ui
