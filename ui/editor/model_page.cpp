#include "ui/editor/model_page.h"

#include "ui/common/format.h"
#include "ui/common/recipe_document.h"
#include "ui/common/run_store.h"
#include "ui/common/theme.h"
#include "ui/common/widgets.h"
#include "ui/editor/arranger.h"
#include "ui/editor/compare_panel.h"
#include "ui/editor/document_tabs.h"
#include "ui/editor/graph_view.h"
#include "ui/editor/inspector.h"
#include "ui/editor/insight.h"
#include "ui/editor/my_cells.h"
#include "ui/editor/minimap.h"
#include "ui/editor/open_models.h"
#include "ui/editor/palette.h"
#include "ui/editor/probe.h"
#include "ui/editor/probe_panel.h"
#include "ui/editor/tool_row.h"
#include "ui/editor/weights_bar.h"
#include "ui/shell/notice.h"
#include "ui/shell/services.h"

#include <QAction>
#include <QHBoxLayout>
#include <QMenu>
#include <QPushButton>
#include <QSpinBox>
#include <QStackedWidget>
#include <QTimer>
#include <QToolButton>
#include <QVBoxLayout>

namespace celloom::ui {

namespace {
constexpr int kInspectorWidth = 308, kPaletteWidth = 196, kCompareWidth = 232;
constexpr int kSettleMs = 150; // edits closer together are analysed as one
} // namespace

ModelPage::ModelPage(Services& services, QWidget* parent) : Page(parent), m_services(services) {
    auto* layout = new QHBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->setSpacing(0);
    auto* left = new QVBoxLayout;
    left->setSpacing(0);
    m_tabs = new DocumentTabs(services.model, services.theme, this);
    left->addWidget(m_tabs);
    left->addWidget(buildToolRow());
    left->addWidget(buildTrail());
    m_notice = new Notice(services.theme, this);
    m_leftNotice = new Notice(services.theme, this);
    m_leftNotice->setObjectName(QStringLiteral("left over"));
    m_weights = new WeightsBar(services.theme, this);
    left->addWidget(m_weights);
    left->addWidget(m_notice);
    left->addWidget(m_leftNotice);
    left->addWidget(buildCanvas(), 1);
    left->addWidget(m_probe->bar());
    m_palette = new Palette(services, this);
    m_palette->setFixedWidth(kPaletteWidth);
    m_myCells = new MyCells(services.store.workspace().path, this);
    m_insight = new Insight(services, this);
    auto* above = new QHBoxLayout;
    above->addWidget(m_palette);
    m_compare = new ComparePanel(services.theme, this);
    m_compare->setFixedWidth(kCompareWidth);
    m_compare->hide();
    above->addWidget(m_compare);
    above->addLayout(left, 1);
    auto* main = new QVBoxLayout;
    main->setSpacing(0);
    main->addLayout(above, 1);
    main->addWidget(m_insight);
    layout->addLayout(main, 1);
    layout->addWidget(makeLine(this, true));
    m_inspector = new Inspector(services, this);
    m_inspector->setFixedWidth(kInspectorWidth);
    m_inspector->setFooter(m_probe->panel());
    connect(m_inspector, &Inspector::tuneRequested, this, &ModelPage::tuneRequested);
    layout->addWidget(m_inspector);

    connect(&services.analyser, &ModelAnalyser::ready, this, &ModelPage::onAnalysis);
    connect(m_view, &GraphView::boxChosen, this, [this](std::optional<std::size_t> box) {
        if (m_analysis && m_level.graph) {
            m_inspector->show(m_analysis, m_level, box);
            m_insight->setPlace(m_level, m_path, box);
            m_probe->setChosen(box);
        }
        refreshActions();
    });
    m_analysisTimer = new QTimer(this);
    m_analysisTimer->setSingleShot(true);
    m_analysisTimer->setInterval(kSettleMs);
    connect(m_analysisTimer, &QTimer::timeout, this, &ModelPage::requestAnalysis);
    connectDocuments();
    connectGestures();
    connectInsight();
    connectMyCells();
    connectCompare();
    connect(m_view, &GraphView::stepInRequested, this, &ModelPage::stepIn);
    connect(m_view, &GraphView::stepOutRequested, this, [this] {
        if (m_comparedWith.document) endComparison();
        else stepOut();
    });
    connect(m_view, &GraphView::zoomChanged, this, [this] { m_zoom->setText(QStringLiteral("%1 %").arg(m_view->zoomPercent())); });
    texts.add([this] {
        if (!m_analysis) return rebuildTrail();
        if (m_analysis->openError) return showAnalysis(m_analysis); // its message
        showLevel();                                               // badges, what the probe says
        markProblems();
    });
}

QWidget* ModelPage::buildToolRow() {
    auto* bar = new ToolRow(this);
    QHBoxLayout* layout = bar->row();
    m_open = makeQuietButton(bar);
    m_open->setPopupMode(QToolButton::InstantPopup);
    m_openMenu = new QMenu(m_open);
    connect(m_openMenu, &QMenu::aboutToShow, this, &ModelPage::fillRecent);
    m_open->setMenu(m_openMenu);
    layout->addWidget(m_open);
    QToolButton* compare = makeQuietButton(bar);
    compare->setPopupMode(QToolButton::InstantPopup);
    auto* compareMenu = new QMenu(compare);
    connect(compareMenu, &QMenu::aboutToShow, this, [this, compareMenu] { fillCompareMenu(compareMenu); });
    compare->setMenu(compareMenu);
    layout->addWidget(compare);
    layout->addStretch(1);
    buildActions();
    for (QAction* action : {m_undo, m_redo, m_save, m_picture, m_group, m_arrange}) {
        QToolButton* button = makeQuietButton(bar);
        button->setDefaultAction(action);
        button->setToolButtonStyle(Qt::ToolButtonIconOnly);
        layout->addWidget(button);
    }
    m_probeButton = makeQuietButton(bar);
    layout->addWidget(m_probeButton);
    layout->addSpacing(8);
    QToolButton* minus = makeQuietButton(bar);
    m_zoom = makeLabel("muted", bar);
    m_zoom->setMinimumWidth(46);
    m_zoom->setAlignment(Qt::AlignCenter);
    QToolButton* plus = makeQuietButton(bar);
    QToolButton* fit = makeQuietButton(bar);
    for (QWidget* widget : std::initializer_list<QWidget*>{minus, m_zoom, plus, fit}) layout->addWidget(widget);
    connect(minus, &QToolButton::clicked, this, [this] { m_view->zoomBy(1 / 1.2); });
    connect(plus, &QToolButton::clicked, this, [this] { m_view->zoomBy(1.2); });
    connect(fit, &QToolButton::clicked, this, [this] { m_view->fit(); });
    bar->setFolding({fit, compare, m_open, m_probeButton});
    const auto setIcons = [this, minus, plus, fit, compare] {
        compare->setIcon(m_services.theme.icon(QStringLiteral("compare")));
        minus->setIcon(m_services.theme.icon(QStringLiteral("minus")));
        plus->setIcon(m_services.theme.icon(QStringLiteral("plus")));
        m_open->setIcon(m_services.theme.icon(QStringLiteral("folder")));
        fit->setIcon(m_services.theme.icon(QStringLiteral("fit")));
    };
    setIcons();
    connect(&m_services.theme, &Theme::changed, this, setIcons);
    texts.add([this, minus, plus, fit, compare] {
        compare->setText(tr("Compare"));
        compare->setAccessibleName(tr("Compare with another model"));
        compare->setToolTip(tr("Shows what differs from another model, a file, or what was saved last"));
        m_open->setText(tr("Open"));
        m_open->setAccessibleName(tr("Open a model"));
        m_open->setToolTip(tr("Open a model's folder: Hugging Face layout, a checkpoint, a run. It can be dropped on the window, too."));
        minus->setToolTip(tr("Smaller (−)"));
        minus->setAccessibleName(tr("Smaller"));
        plus->setToolTip(tr("Larger (+)"));
        plus->setAccessibleName(tr("Larger"));
        fit->setText(tr("Fit"));
        fit->setAccessibleName(tr("Fit the graph into the canvas"));
        fit->setToolTip(tr("Fit the graph into the canvas, as large as its texts need (0). Shift+0 shows all of it."));
        m_fitAll->setText(tr("Show the whole graph") + QStringLiteral("\tShift+0"));
    });
    return bar;
}

/// Where one is, once one has stepped into something.
QWidget* ModelPage::buildTrail() {
    m_trailRow = new QFrame(this);
    m_trailRow->setProperty("role", QStringLiteral("bar"));
    auto* layout = new QHBoxLayout(m_trailRow);
    layout->setContentsMargins(10, 3, 10, 3);
    layout->setSpacing(8);
    m_trailHolder = new QWidget(m_trailRow);
    m_trail = new QHBoxLayout(m_trailHolder);
    m_trail->setContentsMargins(0, 0, 0, 0);
    m_trail->setSpacing(0);
    m_instanceLabel = makeLabel("muted", m_trailRow);
    m_instance = new QSpinBox(m_trailRow);
    connect(m_instance, &QSpinBox::valueChanged, this, [this](int value) {
        if (m_path.empty() || m_path.back().instance == value) return;
        m_path.back().instance = value;
        showLevel();
    });
    layout->addWidget(m_trailHolder);
    layout->addWidget(m_instanceLabel);
    layout->addWidget(m_instance);
    layout->addStretch(1);
    m_trailRow->hide();
    texts.add([this] {
        m_instanceLabel->setText(tr("instance"));
        m_instance->setAccessibleName(tr("Instance of the repeated cell"));
    });
    return m_trailRow;
}

QWidget* ModelPage::buildCanvas() {
    m_stack = new QStackedWidget(this);
    m_message = new EmptyState(m_stack);
    m_view = new GraphView(m_services.theme, m_stack);
    m_stack->addWidget(m_message);
    m_stack->addWidget(m_view);
    m_arranger = new Arranger(m_view, m_stack, texts);
    m_minimap = new Minimap(m_view, m_services.theme, m_services.settings);
    m_minimap->action()->setShortcut(Qt::Key_M);
    m_minimap->action()->setShortcutContext(Qt::WidgetWithChildrenShortcut);
    m_view->addAction(m_minimap->action());
    texts.add([this] { m_minimap->action()->setText(tr("Minimap")); });
    m_probe = new Probe(m_services, m_view, texts);
    addAction(m_probe->action());
    m_probeButton->setDefaultAction(m_probe->action());
    connect(m_probe, &Probe::placeRequested, this, &ModelPage::showPlace);
    connect(m_arranger, &Arranger::arranged, this, [this] {
        edit(tr("Arrange"), [positions = m_view->positions()](graph::Document& document, const graph::GraphName& graph) { return graph::moveCells(document, graph, positions); });
        m_view->fit();
    });
    texts.add([this] {
        m_view->setAccessibleName(tr("Graph of the model"));
        m_message->setTexts(tr("Opening the model…"), {});
    });
    return m_stack;
}

QString ModelPage::context() const {
    if (!m_analysis || m_analysis->openError) return {};
    QString text = m_services.model.current().title() + (m_services.model.isModified() ? QStringLiteral(" *") : QString());
    for (const LevelStep& step : m_path) text += QStringLiteral(" › ") + fromUtf8(step.cell);
    return text;
}

/// After an edit: the graph at once, everything else when the analysis is done.
void ModelPage::showDocument() {
    auto outline = std::make_shared<ModelAnalysis>(analyse(m_services.recipe.recipe(), m_services.model.snapshot(), AnalysisDepth::Outline));
    if (m_analysis && m_analysis->source == outline->source) outline->folder = m_analysis->folder;
    showAnalysis(outline);
    m_analysisTimer->start();
}

void ModelPage::showAnalysis(const ModelAnalysisPtr& analysis) {
    m_analysis = analysis;
    refreshWeights();
    refreshComparison();
    m_view->setEditable(!analysis->openError && recipe::trains(m_services.recipe.recipe()));
    m_insight->setEditable(!analysis->openError && recipe::trains(m_services.recipe.recipe()));
    m_palette->setDocument(analysis->openError ? nullptr : &analysis->document);
    m_palette->setVisible(recipe::trains(m_services.recipe.recipe()) && !m_comparedWith.document);
    if (analysis->openError) {
        m_path.clear();
        m_judge.reset();
        m_level = {};
        const bool wasNeverSaved = ModelDocument::isUntitledName(fromUtf8(analysis->source));
        m_message->setTexts(wasNeverSaved ? tr("This model was never saved") : tr("The model could not be opened"),
                            wasNeverSaved ? tr("Bring its unsaved edits back, above, or begin a new one (Ctrl+T).") : Format::error(*analysis->openError));
        m_stack->setCurrentIndex(0);
        m_inspector->clear();
        m_probe->setPlace(nullptr, nullptr, {}, {});
        rebuildTrail();
    } else {
        if (!isValid(*analysis, m_path)) m_path.clear();
        const std::int64_t repeat = repeatOf(*analysis, m_path);
        if (repeat > 0 && m_path.back().instance >= repeat) m_path.back().instance = repeat - 1;
        showLevel();
    }
    m_insight->setAnalysis(analysis);
    compareCopies();
    markProblems();
}

void ModelPage::showLevel() {
    m_judge.reset();
    m_level = makeLevel(*m_analysis, m_path);
    std::vector<BoxBadges> badges;
    for (const LevelBox& box : m_level.boxes) badges.push_back(treatmentBadges(*m_analysis, box.instances));
    if (m_fitNext) m_view->forget();
    m_view->setLevel(m_level, badges);
    m_stack->setCurrentIndex(1);
    markComparison();
    m_arranger->place();
    restorePlace();
    m_fitNext = false;
    m_zoom->setText(QStringLiteral("%1 %").arg(m_view->zoomPercent()));
    m_inspector->show(m_analysis, m_level, m_view->chosen());
    m_insight->setPlace(m_level, m_path, m_view->chosen());
    m_probe->setPlace(m_analysis, &m_level, m_path, m_view->chosen());
    rebuildTrail();
    refreshActions();
    Q_EMIT contextChanged();
}

void ModelPage::rebuildTrail() {
    while (QLayoutItem* item = m_trail->takeAt(0)) {
        if (item->widget()) item->widget()->deleteLater();
        delete item;
    }
    const bool hasModel = m_analysis && !m_analysis->openError;
    const auto addStep = [this](const QString& text, LevelPath path, bool isLast) {
        auto* button = makeQuietButton(m_trailHolder);
        button->setText(text);
        button->setEnabled(!isLast);
        connect(button, &QToolButton::clicked, this, [this, path] { goTo(path); });
        m_trail->addWidget(button);
        if (isLast) return;
        auto* arrow = makeLabel("muted", m_trailHolder);
        arrow->setText(QStringLiteral("›"));
        m_trail->addWidget(arrow);
    };
    if (hasModel) {
        addStep(fromUtf8(m_analysis->document.main.name), {}, m_path.empty());
        for (std::size_t i = 0; i < m_path.size(); ++i)
            addStep(fromUtf8(m_path[i].cell), {m_path.begin(), m_path.begin() + static_cast<std::ptrdiff_t>(i) + 1},
                    i + 1 == m_path.size());
    }
    m_trailRow->setVisible(!m_path.empty());
    const std::int64_t repeat = hasModel ? repeatOf(*m_analysis, m_path) : 0;
    m_instanceLabel->setVisible(repeat > 0);
    m_instance->setVisible(repeat > 0);
    if (repeat > 0) {
        const QSignalBlocker blocker(m_instance);
        m_instance->setRange(0, static_cast<int>(repeat - 1));
        m_instance->setValue(static_cast<int>(m_path.back().instance));
        m_instance->setSuffix(tr("  (0 to %1)").arg(repeat - 1));
    }
}

void ModelPage::goTo(LevelPath path) {
    m_path = std::move(path);
    showLevel();
    m_view->setFocus();
}

void ModelPage::stepIn(std::size_t box) {
    if (box >= m_level.boxes.size() || m_level.boxes[box].kind != BoxKind::Composite) return;
    LevelPath path = m_path;
    path.push_back({m_level.boxes[box].name, 0});
    goTo(std::move(path));
}

void ModelPage::stepOut() {
    if (m_path.empty()) return;
    const std::string left = m_path.back().cell;
    goTo({m_path.begin(), m_path.end() - 1});
    for (std::size_t i = 0; i < m_level.boxes.size(); ++i) {
        if (m_level.boxes[i].name == left) m_view->choose(i);
    }
}

void ModelPage::showPlace(const LevelPath& path, const std::string& box, bool isJump) {
    const bool isElsewhere = !std::equal(path.begin(), path.end(), m_path.begin(), m_path.end(),
                                         [](const LevelStep& a, const LevelStep& b) { return a.cell == b.cell && a.instance == b.instance; });
    if (isElsewhere) {
        m_path = path;
        showLevel();
    }
    if (isJump) m_view->setFocus();
    for (std::size_t i = 0; i < m_level.boxes.size(); ++i) {
        if (m_level.boxes[i].name == box && m_level.boxes[i].kind != BoxKind::Input) m_view->choose(i);
    }
}

void ModelPage::markProblems() {
    std::set<std::string> boxes; // of the level on show
    if (m_analysis && !m_analysis->openError)
        for (const graph::Problem& problem : m_analysis->expansion.problems)
            if (problem.severity == graph::Problem::Severity::Error)
                if (const auto place = locate(*m_analysis, problem.path))
                    for (std::size_t depth = 0; depth <= place->first.size(); ++depth) {
                        const bool isHere = depth == m_path.size() && std::equal(m_path.begin(), m_path.end(), place->first.begin(), [](const LevelStep& a, const LevelStep& b) { return a.cell == b.cell; });
                        if (isHere) boxes.insert(depth < place->first.size() ? place->first[depth].cell : place->second);
                    }
    m_view->setProblems(boxes);
}

} // namespace celloom::ui
