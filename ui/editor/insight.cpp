#include "ui/editor/insight.h"

#include "models/graph/edits.h"
#include "ui/common/format.h"
#include "ui/editor/open_models.h"
#include "ui/editor/problems_tab.h"
#include "ui/shell/services.h"

#include <algorithm>
#include <map>
#include <set>

namespace celloom::ui {

namespace {

const QString kProblems = QStringLiteral("problems"), kCode = QStringLiteral("code");

} // namespace

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
    : BottomPanel(services, parent), m_services(services), m_problems(new ProblemsTab(services, this)), m_code(new CodeTab(services, this)) {
    addTab(kProblems, m_problems);
    addTab(kCode, m_code, m_code->tools());
    connect(m_problems, &ProblemsTab::jumpRequested, this, &Insight::jump);
    connect(m_code, &CodeTab::cellChosen, this, &Insight::chooseCell);
    connect(m_code, &CodeTab::importReady, this, &Insight::importReady);
    connect(m_code, &CodeTab::attentionWanted, this, [this] { showTab(kCode); });
    const auto refreshFront = [this] { m_code->setInFront(isShown(kCode)); };
    connect(this, &BottomPanel::shown, this, refreshFront);
    refreshFront();
    m_texts.add([this] {
        setTitle(kCode, tr("Model as code"));
        refreshProblems();
    });
}

void Insight::setAnalysis(const ModelAnalysisPtr& analysis) {
    m_analysis = analysis;
    const bool isOpen = analysis && !analysis->openError;
    m_code->setDocument(isOpen ? m_services.model.snapshot() : nullptr);
    refreshProblems();
}

void Insight::setPlace(const ModelLevel& level, const LevelPath& path, std::optional<std::size_t> box) {
    m_graph = level.graphName;
    m_path = path;
    const bool isCell = box && (level.boxes[*box].kind == BoxKind::Cell || level.boxes[*box].kind == BoxKind::Composite);
    m_box = isCell ? level.boxes[*box].name : std::string();
    m_boxPath = isCell ? level.prefix + m_box : std::string();
    m_code->setChosen(m_graph, m_box);
}

void Insight::setEditable(bool isEditable) {
    m_isEditable = isEditable;
    m_code->setEditable(isEditable);
}

// ---- problems ----

void Insight::refreshProblems() {
    std::vector<ProblemRow> rows;
    if (m_analysis && !m_analysis->openError) {
        for (const graph::Problem& problem : m_analysis->expansion.problems)
            rows.push_back({problem.severity == graph::Problem::Severity::Error, fromUtf8(problem.message), fromUtf8(problem.hint),
                            problem.path.empty() ? fromUtf8(m_analysis->document.main.name) : fromUtf8(problem.path), problem.path, {}});
        if (m_analysis->ruleError) rows.push_back({true, fromUtf8(m_analysis->ruleError->message), fromUtf8(m_analysis->ruleError->hint), tr("Rules"), {}, {}});
        if (m_analysis->precisionError)
            rows.push_back({true, fromUtf8(m_analysis->precisionError->message), fromUtf8(m_analysis->precisionError->hint), tr("Precision"), {}, {}});
    }
    const auto count = static_cast<int>(rows.size());
    m_problems->setRows(std::move(rows));
    setTitle(kProblems, count == 0 ? tr("Problems") : tr("Problems %1").arg(count), tr("What is wrong with the model; F8 goes from one to the next"));
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
    if (const auto place = locate(*m_analysis, path)) Q_EMIT placeRequested(place->first, place->second, true);
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
