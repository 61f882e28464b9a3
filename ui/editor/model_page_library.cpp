// The Model page and the libraries: what is saved to My cells, and what the library has in a newer version than the model.
#include "ui/editor/model_page.h"

#include "models/graph/problems.h"
#include "ui/common/format.h"
#include "ui/common/messages.h"
#include "ui/editor/my_cells.h"
#include "ui/editor/open_models.h"
#include "ui/editor/palette.h"
#include "ui/editor/save_cell_dialog.h"
#include "ui/shell/notice.h"
#include "ui/shell/services.h"

#include <QMessageBox>
#include <QPushButton>

#include <algorithm>

namespace celloom::ui {

namespace {

constexpr const char* kScript = "Script";

QString messageOf(const library::UpdateReport::Item& refused) {
    QStringList problems;
    for (const graph::Problem& problem : refused.problems) problems.append((problem.path.empty() ? QString() : fromUtf8(problem.path) + QStringLiteral(": ")) + said(problem.message));
    return problems.join(QLatin1Char('\n'));
}

} // namespace

void ModelPage::connectMyCells() {
    connect(m_myCells, &MyCells::changed, this, [this] {
        m_palette->setMine(m_myCells->entries());
        m_compared.reset(); // another version may be there
        compareCopies();
    });
    connect(m_myCells, &MyCells::compared, this, [this](const DocumentPtr& document, const std::vector<library::CopyStatus>& copies) {
        if (document != m_services.model.snapshot()) return;
        m_copies = copies;
        m_palette->setCopies(copies);
        offerUpdates();
    });
    connect(m_palette, &Palette::removeRequested, this, &ModelPage::removeMine);
    connect(m_palette, &Palette::updateRequested, this, [this](const QString& composite) { updateCopy(toUtf8(composite)); });
}

/// Asks on the library's thread how the copies in the model in front stand, where that may have changed.
void ModelPage::compareCopies() {
    const DocumentPtr& document = m_services.model.snapshot();
    if (!document || document == m_compared) return;
    m_compared = document;
    m_copies.clear();
    m_palette->setCopies({});
    const auto& all = document->composites;
    if (std::any_of(all.begin(), all.end(), [](const auto& one) { return one.second.origin.has_value(); })) m_myCells->compare(document);
}

const library::CopyStatus* ModelPage::newerThan(const std::string& composite) const {
    const auto found = std::find_if(m_copies.begin(), m_copies.end(), [&](const library::CopyStatus& copy) {
        return copy.composite == composite && !copy.isInsideOthers && (copy.state == library::CopyState::Newer || copy.state == library::CopyState::EditedAndNewer);
    });
    return found == m_copies.end() ? nullptr : &*found;
}

/// Once for a model and a set of versions.
void ModelPage::offerUpdates() {
    QStringList names, asked;
    for (const library::CopyStatus& copy : m_copies) {
        if (!newerThan(copy.composite) || copy.state != library::CopyState::Newer) continue;
        names.append(tr("%1 (version %2, here %3)").arg(fromUtf8(copy.composite)).arg(copy.newest).arg(copy.origin.version));
    }
    ModelDocument& model = m_services.model.current();
    if (names.isEmpty() || model.offeredUpdates == names) return;
    model.offeredUpdates = names;
    m_notice->show(Notice::Level::Result, tr("The library has newer versions: %1.").arg(names.join(QStringLiteral(", "))), tr("Update"), [this] { updateCopies({}, false); });
}

void ModelPage::updateCopy(const std::string& composite) {
    const library::CopyStatus* copy = newerThan(composite);
    if (!copy) return;
    if (copy->state == library::CopyState::Newer) {
        updateCopies({composite}, false);
        return;
    }
    auto* box = new QMessageBox(QMessageBox::Question, tr("Update %1").arg(fromUtf8(composite)),
                                tr("%1 was edited in this model. Its edits give way to version %2 of the library. Undo brings them back.").arg(fromUtf8(composite)).arg(copy->newest),
                                QMessageBox::Ok | QMessageBox::Cancel, window());
    box->setAttribute(Qt::WA_DeleteOnClose);
    box->button(QMessageBox::Ok)->setText(tr("Replace it"));
    box->button(QMessageBox::Cancel)->setText(tr("Cancel"));
    connect(box, &QMessageBox::finished, this, [this, composite](int answer) {
        if (answer == QMessageBox::Ok) updateCopies({composite}, true);
    });
    box->open();
}

void ModelPage::updateCopies(const std::vector<std::string>& composites, bool replacesEdited) {
    library::UpdateReport report;
    const QString name = composites.size() == 1 ? tr("Update %1").arg(fromUtf8(composites.front())) : tr("Update from the library");
    const bool isDone = edit(name, [&](graph::Document& document, const graph::GraphName&) -> Status {
        CELLOOM_TRY(made, library::update(document, &m_myCells->library(), {composites, replacesEdited}));
        report = made;
        return {};
    });
    if (!isDone || report.refused.empty()) return;
    QStringList texts;
    for (const auto& refused : report.refused) texts.append(tr("%1 stays as it is, since version %2 would break what uses it:").arg(fromUtf8(refused.composite)).arg(refused.after.version) + QLatin1Char('\n') + messageOf(refused));
    m_notice->show(Notice::Level::Warning, texts.join(QLatin1Char('\n')));
}

/// What the chosen box is to the library: the composite's name, or an empty one.
std::string ModelPage::chosenComposite() const {
    const auto box = m_view->chosen();
    return box && m_level.boxes[*box].kind == BoxKind::Composite ? m_level.boxes[*box].type : std::string();
}

bool ModelPage::canSaveCell() const {
    const auto box = m_view->chosen();
    return box && (m_level.boxes[*box].kind == BoxKind::Composite || (m_level.boxes[*box].kind == BoxKind::Cell && m_level.boxes[*box].type == kScript));
}

void ModelPage::saveCell() {
    if (!canSaveCell()) return;
    const std::string cell = m_level.boxes[*m_view->chosen()].name, composite = chosenComposite();
    const graph::Document& document = *m_services.model.snapshot();
    const graph::Graph* inner = composite.empty() ? nullptr : graph::graphOf(document, composite);
    const QString note = inner ? fromUtf8(inner->note) : fromUtf8(graph::findCell(*graph::graphOf(document, m_level.graphName), cell)->note);
    const bool isMine = inner && inner->origin && inner->origin->library == library::kWorkspace;
    const QString name = isMine ? fromUtf8(inner->origin->name) : fromUtf8(composite.empty() ? cell : composite);
    auto* dialog = new SaveCellDialog(name, note, [this](const QString& wanted) -> std::int64_t {
        const library::Entry* entry = m_myCells->find(toUtf8(wanted));
        return entry ? entry->version : 0;
    }, window());
    connect(dialog, &QDialog::finished, window(), &QWidget::activateWindow);
    connect(dialog, &SaveCellDialog::saveRequested, this, [=, this, graph = m_level.graphName, scope = m_level.hyper](const QString& wanted, const QString& said) {
        const DocumentPtr now = m_services.model.snapshot();
        Result<graph::Document> source = *now;
        if (composite.empty()) source = wrapScript(*now, graph, cell, toUtf8(wanted), scope);
        if (!source) {
            dialog->showError(source.error());
            return;
        }
        const QPointer<SaveCellDialog> open(dialog);
        const QPointer<ModelDocument> model(&m_services.model.current());
        m_myCells->save(*source, composite.empty() ? toUtf8(wanted) : composite, toUtf8(wanted), toUtf8(said), [=, this](const Result<library::Saved>& saved) {
            if (open && !saved) open->showError(saved.error());
            if (!saved) return;
            if (open) open->accept();
            if (model && !composite.empty()) linkCopy(*model, composite, saved->origin, said);
            m_notice->show(Notice::Level::Info, saved->isNewVersion ? tr("%1 is in My cells, version %2.").arg(wanted).arg(saved->origin.version)
                                                                    : tr("My cells has %1 as it is, version %2.").arg(wanted).arg(saved->origin.version));
        });
    });
    dialog->open();
}

/// The model's composite is a copy of the entry from now on, so that it hears of newer versions.
void ModelPage::linkCopy(ModelDocument& model, const std::string& composite, const graph::Origin& origin, const QString& note) {
    (void)model.edit(tr("Save to My cells"), [&](graph::Document& document) -> Status {
        graph::Graph* graph = graph::graphOf(document, composite);
        if (!graph) return fail("The composite is gone.");
        graph->origin = origin;
        graph->note = toUtf8(note);
        return {};
    });
}

void ModelPage::removeMine(const QString& name) {
    const library::Entry* entry = m_myCells->find(toUtf8(name));
    if (!entry) return;
    auto* box = new QMessageBox(QMessageBox::Question, tr("Remove from My cells"),
                                tr("Remove %1 with all its versions? Models that have a copy keep it. This cannot be undone.").arg(name), QMessageBox::Ok | QMessageBox::Cancel, window());
    box->setAttribute(Qt::WA_DeleteOnClose);
    box->button(QMessageBox::Ok)->setText(tr("Remove"));
    box->button(QMessageBox::Cancel)->setText(tr("Cancel"));
    box->setDefaultButton(QMessageBox::Cancel);
    connect(box, &QMessageBox::finished, this, [this, name](int answer) {
        if (answer != QMessageBox::Ok) return;
        m_myCells->remove(toUtf8(name), [this](const Status& status) {
            if (!status) m_notice->show(Notice::Level::Error, Format::error(status.error()));
        });
    });
    box->open();
}

} // namespace celloom::ui
