// The Model page while it compares: against another open model, a file, or what was saved last.
#include "ui/editor/model_page.h"

#include "models/families/families.h"
#include "models/graph/comparison.h"
#include "ui/common/format.h"
#include "ui/common/recipe_document.h"
#include "ui/editor/compare_marks.h"
#include "ui/editor/compare_panel.h"
#include "ui/editor/open_models.h"
#include "ui/editor/palette.h"
#include "ui/shell/notice.h"
#include "ui/shell/services.h"

#include <QAction>
#include <QFileDialog>
#include <QFileInfo>
#include <QMenu>
#include <QShortcut>
#include <QToolButton>

#include <deque>

namespace celloom::ui {

namespace {

/// The shortest way to some cell of a composite's type. Nothing where the model does not use it.
std::optional<LevelPath> pathTo(const graph::Document& document, const std::string& composite) {
    if (composite.empty()) return LevelPath{};
    std::set<std::string> seen;
    std::deque<std::pair<std::string, LevelPath>> waiting{{std::string(), {}}};
    while (!waiting.empty()) {
        const auto [name, path] = std::move(waiting.front());
        waiting.pop_front();
        const graph::Graph* graph = graph::graphOf(document, name);
        if (!graph) continue;
        for (const graph::Cell& cell : graph->cells) {
            if (!document.composites.contains(cell.type) || !seen.insert(cell.type).second) continue;
            LevelPath inner = path;
            inner.push_back({cell.name, 0});
            if (cell.type == composite) return inner;
            waiting.emplace_back(cell.type, std::move(inner));
        }
    }
    return std::nullopt;
}

} // namespace

void ModelPage::connectCompare() {
    connect(m_compare, &ComparePanel::closeRequested, this, &ModelPage::endComparison);
    connect(m_compare, &ComparePanel::chosen, this, &ModelPage::showFinding);
    m_endComparison = new QShortcut(QKeySequence(Qt::Key_Escape), this, nullptr, nullptr, Qt::WidgetWithChildrenShortcut);
    m_endComparison->setEnabled(false);
    connect(m_endComparison, &QShortcut::activated, this, &ModelPage::endComparison);
}

/// What the model in front can be compared with.
void ModelPage::fillCompareMenu(QMenu* menu) {
    menu->clear();
    const OpenModels& models = m_services.model;
    const ModelDocument& current = models.current();
    QAction* saved = menu->addAction(tr("With what was saved last"));
    saved->setEnabled(current.isModified() && !current.isUntitled());
    connect(saved, &QAction::triggered, this, [this] { compareWithFile(m_services.model.source(), tr("what was saved")); });
    if (models.count() > 1) menu->addSeparator();
    for (int i = 0; i < models.count(); ++i) {
        ModelDocument& other = models.at(i);
        if (&other == &current || !other.snapshot()) continue;
        QString title = other.title();
        QAction* action = menu->addAction(tr("With %1").arg(title.replace(QLatin1Char('&'), QLatin1String("&&"))));
        connect(action, &QAction::triggered, this, [this, document = other.snapshot(), name = other.title()] { compareWith(document, name); });
    }
    menu->addSeparator();
    connect(menu->addAction(tr("With a file…")), &QAction::triggered, this, [this] {
        auto* dialog = new QFileDialog(window(), tr("Compare with"));
        dialog->setAttribute(Qt::WA_DeleteOnClose);
        dialog->setFileMode(QFileDialog::ExistingFile);
        dialog->setNameFilters({tr("Models (config.json *.cells.json)"), tr("All files (*)")});
        connect(dialog, &QFileDialog::fileSelected, this, [this](const QString& path) { compareWithFile(path, QFileInfo(path).fileName()); });
        dialog->open();
    });
}

void ModelPage::compareWithFile(const QString& source, const QString& name) {
    const QPointer<ModelDocument> model(&m_services.model.current());
    m_background.run([source] { return families::openModel(source.toStdString()); }, // a folder may lie on a slow disk
                     [this, model, source, name](const Result<graph::Document>& document) {
                         if (!model || model != &m_services.model.current()) return;
                         if (!document) m_notice->show(Notice::Level::Error, tr("%1 cannot be compared with.").arg(source) + QLatin1Char('\n') + Format::error(document.error()));
                         else compareWith(std::make_shared<const graph::Document>(*document), name);
                     });
}

void ModelPage::compareWith(const DocumentPtr& other, const QString& name) {
    m_comparedWith = {other, name, &m_services.model.current()};
    m_endComparison->setEnabled(true);
    refreshComparison();
    if (m_analysis && !m_analysis->openError) showLevel();
    m_compare->setFocus();
}

void ModelPage::endComparison() {
    if (!m_comparedWith.document) return;
    m_comparedWith = {};
    m_findings.clear();
    m_endComparison->setEnabled(false);
    m_compare->hide();
    m_palette->setVisible(recipe::trains(m_services.recipe.recipe()));
    if (m_analysis && !m_analysis->openError) showLevel();
    m_view->setFocus();
}

/// The list follows each edit. A comparison belongs to one tab, and ends with it.
void ModelPage::refreshComparison() {
    if (!m_comparedWith.document) return;
    if (m_comparedWith.model != &m_services.model.current() || !m_services.model.snapshot()) {
        m_comparedWith = {};
        m_findings.clear();
        m_endComparison->setEnabled(false);
        m_compare->hide();
        return;
    }
    m_findings = graph::compare(*m_comparedWith.document, *m_services.model.snapshot());
    m_palette->hide();
    m_compare->show(m_comparedWith.name, m_findings);
}

void ModelPage::markComparison() {
    if (!m_comparedWith.document || !m_services.model.snapshot()) return;
    markLevel(*m_view, m_services.theme, m_findings, graph::graphOf(*m_comparedWith.document, m_level.graphName), graph::differingComposites(*m_services.model.snapshot(), m_findings));
}

void ModelPage::showFinding(const graph::Finding& finding) {
    if (!m_analysis || m_analysis->openError) return;
    const auto path = pathTo(m_analysis->document, finding.graph);
    if (!path) return; // a composite that is gone, or that nothing uses
    std::string box = finding.wire ? (finding.wire->to.cell.empty() ? finding.wire->to.port : finding.wire->to.cell) : finding.name;
    if (finding.what == graph::Finding::What::Hyper || finding.what == graph::Finding::What::Graph) box.clear(); // the inspector shows the graph's own
    if (box.empty() || finding.what == graph::Finding::What::Composite) m_view->choose({});
    showPlace(*path, box, false);
}

} // namespace celloom::ui
