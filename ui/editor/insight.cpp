#include "ui/editor/insight.h"

#include "models/base/machine_memory.h"
#include "models/graph/edits.h"
#include "models/recipe/fit_memory.h"
#include "ui/common/format.h"
#include "ui/common/messages.h"
#include "ui/common/recipe_document.h"
#include "ui/editor/open_models.h"
#include "ui/editor/problems_tab.h"
#include "ui/shell/services.h"

#include <algorithm>
#include <map>
#include <set>

namespace celloom::ui {

namespace {

constexpr std::size_t kMostMended = 40; // problems for which fixes are looked for
const QString kProblems = QStringLiteral("problems"), kCode = QStringLiteral("code"), kCost = QStringLiteral("cost");

} // namespace

QString titleOf(const graph::Fix& fix) {
    using Kind = graph::Fix::Kind;
    const auto word = [&fix](std::size_t i) { return i < fix.words.size() ? fromUtf8(fix.words[i]) : QString(); };
    switch (fix.kind) {
    case Kind::AddWire:
        return Insight::tr("Wire %1 to %2").arg(word(0), word(1));
    case Kind::RemoveWire:
        return Insight::tr("Remove the wire from %1 to %2").arg(word(0), word(1));
    case Kind::MoveWireEnd:
        return Insight::tr("Move the wire from %1 to %2").arg(word(0), word(1));
    case Kind::JoinByAdd:
        return Insight::tr("Join both with an Add");
    case Kind::SetValue:
        return Insight::tr("Set %1 to %2").arg(word(0), word(1));
    case Kind::RemoveValue:
        return Insight::tr("Remove %1").arg(word(0));
    case Kind::RenameValue:
        return Insight::tr("Write %2 for %1").arg(word(0), word(1));
    case Kind::SetType:
        return Insight::tr("Make %1 of type %2").arg(word(0), word(1));
    case Kind::TakeFromLibrary:
        return Insight::tr("Take %1 from the library").arg(word(0));
    case Kind::RemoveCell:
        return Insight::tr("Remove %1").arg(word(0));
    case Kind::Rename:
        return Insight::tr("Rename %1 to %2").arg(word(0), word(1));
    case Kind::NoRepeat:
        return Insight::tr("Do not repeat %1").arg(word(0));
    case Kind::DeclareShape:
    case Kind::DeclareType:
        return Insight::tr("Declare %1 as %2").arg(word(0), word(1));
    case Kind::RemovePort:
        return Insight::tr("Remove the port %1").arg(word(0));
    case Kind::PutBetween:
        return Insight::tr("Put %1 between %2 and %3").arg(word(0), word(1), word(2));
    }
    return {};
}

std::optional<LevelPath> pathToGraph(const graph::Document& document, const std::string& graphName) {
    std::map<std::string, LevelPath> ways{{"", {}}};
    std::vector<std::string> waiting{""}; // breadth first: the shortest way
    for (std::size_t i = 0; i < waiting.size(); ++i) {
        const std::string at = waiting[i];
        if (at == graphName) return ways.at(at);
        const graph::Graph* graph = graph::graphOf(document, at);
        if (!graph) continue;
        for (const graph::Cell& cell : graph->cells) {
            if (!document.composites.contains(cell.type) || ways.contains(cell.type)) continue;
            LevelPath way = ways.at(at);
            way.push_back({cell.name, 0});
            ways.emplace(cell.type, std::move(way));
            waiting.push_back(cell.type);
        }
    }
    return {};
}

Insight::Insight(Services& services, QWidget* parent)
    : BottomPanel(services, parent), m_services(services), m_problems(new ProblemsTab(services, this)), m_code(new CodeTab(services, this)), m_cost(new CostTab(services, this)) {
    addTab(kProblems, m_problems);
    addTab(kCode, m_code, m_code->tools());
    addTab(kCost, m_cost, m_cost->tools());
    connect(m_problems, &ProblemsTab::jumpRequested, this, &Insight::jump);
    connect(m_cost, &CostTab::cellChosen, this, [this](const std::string& path) { choosePath(path, false); });
    connect(m_code, &CodeTab::cellChosen, this, &Insight::chooseCell);
    connect(m_code, &CodeTab::importReady, this, &Insight::importReady);
    connect(m_code, &CodeTab::attentionWanted, this, [this] { showTab(kCode); });
    const auto refreshFront = [this] {
        m_code->setInFront(isShown(kCode));
        m_cost->setInFront(isShown(kCost));
    };
    connect(this, &BottomPanel::shown, this, refreshFront);
    refreshFront();
    connect(m_problems, &ProblemsTab::fieldRequested, this, &Insight::fieldRequested);
    connect(&services.model, &OpenModels::currentChanged, this, [this] { // what was said of the one before
        m_memory.reset();
        m_code->changeModel();
        m_cost->setAnalysis(nullptr);
    });
    m_texts.add([this] {
        setTitle(kCode, tr("Model as code"), tr("The model as MindSpore or PyTorch, and classes back into it"));
        setTitle(kCost, tr("Cost"), tr("Where parameters, FLOPs and memory sit"));
        m_fixedDocument.reset(); // the fixes' titles
        refreshProblems();
    });
}

/// Nobody waits for fixes any more, and quitting does not either.
Insight::~Insight() {
    if (m_isGivenUp) m_isGivenUp->store(true);
}

void Insight::setAnalysis(const ModelAnalysisPtr& analysis) {
    m_analysis = analysis;
    const bool isOpen = analysis && !analysis->openError;
    m_code->setDocument(isOpen ? m_services.model.snapshot() : nullptr);
    m_cost->setAnalysis(analysis);
    if (!isOpen) m_memory.reset();
    refreshProblems();
    checkMemory();
}

void Insight::changeEvent(QEvent* event) {
    BottomPanel::changeEvent(event);
    if (event->type() != QEvent::LanguageChange) return;
    m_texts.refresh();
    checkMemory();
}

void Insight::setPlace(const ModelLevel& level, const LevelPath& path, std::optional<std::size_t> box) {
    m_graph = level.graphName;
    m_path = path;
    const bool isCell = box && (level.boxes[*box].kind == BoxKind::Cell || level.boxes[*box].kind == BoxKind::Composite);
    m_box = isCell ? level.boxes[*box].name : std::string();
    m_boxPath = isCell ? level.prefix + m_box : std::string();
    m_code->setChosen(m_graph, m_box);
    m_cost->setChosen(m_boxPath);
}

void Insight::setEditable(bool isEditable) {
    if (isEditable == m_isEditable) return;
    m_isEditable = isEditable;
    m_code->setEditable(isEditable);
    m_fixedDocument.reset(); // buttons come or go with the next analysis
}

// ---- problems ----

void Insight::refreshProblems() {
    std::vector<ProblemRow> rows;
    std::vector<graph::Problem> shown;
    if (m_analysis && !m_analysis->openError) {
        shown = m_analysis->expansion.problems;
        std::stable_partition(shown.begin(), shown.end(), [](const graph::Problem& problem) { return problem.severity == graph::Problem::Severity::Error; });
        for (const graph::Problem& problem : shown)
            rows.push_back({problem.severity == graph::Problem::Severity::Error, said(problem.message), said(problem.hint),
                            problem.path.empty() ? fromUtf8(m_analysis->document.main.name) : fromUtf8(problem.path), problem.path, {}});
        if (m_analysis->ruleError) rows.push_back(ruleRow(*m_analysis->ruleError));
        for (ProblemRow& row : warningsOfRules()) rows.push_back(std::move(row));
        if (m_analysis->precisionError)
            rows.push_back({true, said(m_analysis->precisionError->message), said(m_analysis->precisionError->hint), tr("Precision"), {}, {}, QStringLiteral("precision.amp_level")});
    }
    if (m_memory && !shown.empty() && !m_analysis->expansion.ok()) m_memory.reset(); // not known while there are errors
    if (m_memory) rows.push_back(*m_memory);
    const bool isKnown = m_fixedDocument == m_services.model.snapshot() && std::equal(shown.begin(), shown.end(), m_shown.begin(), m_shown.end(), [](const auto& a, const auto& b) {
                             return a.path == b.path && a.message == b.message;
                         });
    for (std::size_t i = 0; isKnown && i < shown.size(); ++i) rows[i].remedies = m_problems->rows()[i].remedies; // found already, or being looked for
    const auto count = static_cast<int>(rows.size());
    m_problems->setRows(std::move(rows));
    setTitle(kProblems, count == 0 ? tr("Problems") : tr("Problems %1").arg(count), tr("What is wrong with the model; F8 goes from one to the next, Ctrl+. mends"));
    m_shown = std::move(shown);
    if (!isKnown) findFixes();
}

void Insight::removeRules(const std::function<bool(std::size_t, const std::string&)>& isMeant) {
    std::vector<std::string> kept;
    const auto& rules = m_services.recipe.recipe().list("rules");
    for (std::size_t i = 0; i < rules.size(); ++i)
        if (!isMeant(i, rules[i])) kept.push_back(rules[i]);
    m_services.recipe.setValue(QStringLiteral("rules"), kept);
}

/// What is wrong with one rule, "rules[2]", or with another field that treats cells. Where a model is only looked at, it is no error of it.
ProblemRow Insight::ruleRow(const Error& error) {
    ProblemRow row{true, said(error.message), said(error.hint), tr("Rules"), {}, {}, QStringLiteral("rules")};
    const auto& rules = m_services.recipe.recipe().list("rules");
    const QString place = fromUtf8(error.place);
    bool isNumber = false;
    const std::size_t at = place.mid(6).chopped(place.endsWith(QLatin1Char(']')) ? 1 : 0).toULongLong(&isNumber);
    if (!place.startsWith(QLatin1String("rules[")) || !isNumber || at >= rules.size()) {
        if (recipe::findField(error.place)) row.field = place;
        return row;
    }
    row.place = tr("Rule %1").arg(at + 1);
    if (const QString meant = m_services.recipe.ruledModel(); !m_services.model.current().isNamedBy(meant)) {
        row.isError = false;
        row.hint = tr("The recipe's rules are for %1; a run with the model in front would refuse this one.").arg(meant);
    }
    row.remedies = {{tr("Remove the rule"), [this, at, rule = rules[at]] { removeRules([&](std::size_t i, const std::string& text) { return i == at && text == rule; }); }},
                    {tr("Edit the rule"), [this] { Q_EMIT fieldRequested(QStringLiteral("rules")); }}};
    return row;
}

/// What the recipe itself finds doubtful about its rules.
std::vector<ProblemRow> Insight::warningsOfRules() {
    const auto isLora = [](std::size_t, const std::string& text) {
        const auto rule = recipe::parseRule(text);
        return rule && rule->lora;
    };
    std::vector<ProblemRow> rows;
    for (const recipe::Problem& problem : m_services.recipe.recipe().validate()) {
        if (problem.key != "rules" || problem.severity != recipe::Problem::Severity::Warning) continue;
        rows.push_back({false, said(problem.message), said(problem.hint), tr("Rules"), {}, {}, QStringLiteral("rules")});
        rows.back().remedies = {{tr("Make it a fine-tuning"), [this] {
                                     m_services.recipe.setValue(QStringLiteral("kind"), std::string("finetune"));
                                     Q_EMIT fieldRequested(QStringLiteral("model.weights"));
                                 }},
                                {tr("Remove the LoRA rules"), [this, isLora] { removeRules(isLora); }}};
    }
    return rows;
}

/// Each fix is tried on a copy, so that what is offered helps: on another thread, row by row, until the next edit.
void Insight::findFixes() {
    if (m_isGivenUp) m_isGivenUp->store(true);
    m_fixedDocument = m_services.model.snapshot();
    if (!m_isEditable || m_shown.empty() || !m_analysis) return;
    m_isGivenUp = std::make_shared<std::atomic<bool>>(false);
    m_background.run([this, analysis = m_analysis, problems = m_shown, isGivenUp = m_isGivenUp] {
        for (std::size_t row = 0; row < problems.size() && row < kMostMended && !isGivenUp->load(); ++row) {
            auto fixes = graph::fixesFor(analysis->document, problems[row], analysis->overrides);
            if (fixes.empty()) continue;
            m_background.tell([this, isGivenUp, row, fixes = std::move(fixes)] {
                if (!isGivenUp->load()) m_problems->setRemedies(row, remediesOf(fixes));
            });
        }
    });
}

/// What a run needs against what this machine has; smaller batches with accumulation, where these fit.
void Insight::checkMemory() {
    if (!m_analysis || !m_analysis->estimate) return; // an outline says nothing of it
    const recipe::Recipe& recipe = m_services.recipe.recipe();
    const std::int64_t free = recipe.text("device") == "cuda" ? 0 : machineMemory().available, needed = m_analysis->estimate->peakBytes;
    if (free <= 0 || needed <= free || !m_isEditable) {
        if (m_memory) {
            m_memory.reset();
            refreshProblems();
        }
        return;
    }
    m_memory = ProblemRow{false,
                          tr("Batch %1 × sequence %2 needs about %3 of memory; this machine has %4 free.")
                              .arg(m_analysis->batch)
                              .arg(m_analysis->sequence)
                              .arg(Format::bytes(static_cast<double>(needed)), Format::bytes(static_cast<double>(free))),
                          tr("Smaller batches, accumulated, give the same steps."), tr("Train"), {}, {}, QStringLiteral("train.batch_size")};
    refreshProblems();
    m_background.run([analysis = m_analysis, recipe, free] { return recipe::fitMemory(recipe, analysis->expansion.model, free); },
                     [this, analysis = m_analysis](const auto& fit) {
                         if (!fit || m_analysis != analysis || !m_memory) return;
                         m_memory->remedies = {{tr("Accumulate %1 × batch %2").arg(fit->accumulation).arg(fit->batch), [this, fit = *fit] {
                                                    m_services.recipe.asOneStep([&] {
                                                        m_services.recipe.setValue(QStringLiteral("train.accumulation"), fit.accumulation);
                                                        m_services.recipe.setValue(QStringLiteral("train.batch_size"), fit.batch);
                                                    });
                                                }}};
                         refreshProblems();
                     });
}

std::vector<Remedy> Insight::remediesOf(const std::vector<graph::Fix>& fixes) {
    std::vector<Remedy> out;
    for (const graph::Fix& fix : fixes)
        out.push_back({titleOf(fix), [this, fix] {
                           if (const Status status = m_services.model.edit(titleOf(fix), fix.apply); !status) Q_EMIT fixRefused(status.error());
                       }});
    return out;
}

void Insight::jump(const std::string& path) {
    if (!m_analysis || m_analysis->openError) return;
    if (const auto slash = path.find('/'); slash != std::string::npos) { // in a composite that the model does not use
        chooseCell(path.substr(0, slash), path.substr(slash + 1));
        return;
    }
    if (path.empty()) {
        Q_EMIT placeRequested({}, {}, true);
        return;
    }
    choosePath(path, true);
}

void Insight::choosePath(const std::string& path, bool isJump) {
    if (!m_analysis || m_analysis->openError) return;
    if (const auto place = locate(*m_analysis, path)) Q_EMIT placeRequested(place->first, place->second, isJump);
}

void Insight::chooseCell(const std::string& graphName, const std::string& cell) {
    if (!m_analysis || m_analysis->openError) return;
    if (graphName == m_graph) {
        Q_EMIT placeRequested(m_path, cell, false);
        return;
    }
    if (const auto path = pathToGraph(m_analysis->document, graphName)) Q_EMIT placeRequested(*path, cell, false);
}

void Insight::mend() {
    m_problems->mend(m_boxPath);
}

void Insight::goToNextProblem(int direction) {
    showTab(kProblems);
    m_problems->goToNext(direction);
}

void Insight::pasteCode(const QString& source) {
    const DocumentPtr& document = m_services.model.snapshot();
    const bool isEmpty = document && document->main.cells.empty();
    m_code->bringIn(source, isEmpty ? CodeTab::Target::Model : CodeTab::Target::Cell);
}

} // namespace celloom::ui
