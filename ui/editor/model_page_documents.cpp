// The Model page's documents: which models are open, which one the recipe means, opening, saving, closing, and what a crash left.
#include "ui/editor/model_page.h"

#include "models/families/families.h"
#include "models/graph/difference.h"
#include "models/graph/json.h"
#include "ui/common/format.h"
#include "ui/common/recipe_document.h"
#include "ui/common/run_store.h"
#include "ui/common/widgets.h"
#include "ui/editor/document_tabs.h"
#include "ui/editor/graph_export.h"
#include "ui/editor/insight.h"
#include "ui/editor/new_model_dialog.h"
#include "ui/editor/open_models.h"
#include "ui/editor/unsaved_dialog.h"
#include "ui/editor/weights_bar.h"
#include "ui/shell/notice.h"
#include "ui/shell/services.h"

#include <QDir>
#include <QEvent>
#include <QFileDialog>
#include <QFileInfo>
#include <QJsonArray>
#include <QJsonDocument>
#include <QMenu>
#include <QMessageBox>
#include <QPushButton>
#include <QScopedValueRollback>
#include <QSettings>
#include <QStackedWidget>
#include <QTimer>

#include <algorithm>
#include <cmath>

namespace celloom::ui {

namespace {

constexpr int kMostRecent = 12;
constexpr int kRecentWidth = 420; // pixels of a path in the menu
constexpr int kMostReopened = 50;
const QString kOpenKey = QStringLiteral("models/open"), kRecentKey = QStringLiteral("models/recent");
const QString kSource = QStringLiteral("model.source"), kOverrides = QStringLiteral("model.overrides"), kWeights = QStringLiteral("model.weights");
const QString kEnding = QStringLiteral(".cells.json");

RecipePart partOf(const recipe::Recipe& recipe) {
    return {recipe.list("model.overrides"), recipe.text("model.weights")};
}

QString sourceOf(const recipe::Recipe& recipe) {
    return fromUtf8(recipe.withAbsolutePaths().text("model.source"));
}

graph::Document emptyGraph(int number) {
    graph::Document document;
    document.main.name = "untitled-" + std::to_string(number);
    return document;
}

/// A file of the model's own, or the model's folder: what the inspector shows weights of.
QString folderOf(const QString& source) {
    const QFileInfo about(source);
    if (families::isBuiltIn(toUtf8(source)) || !about.exists() || source.endsWith(kEnding)) return {};
    return about.isDir() ? about.absoluteFilePath() : about.absolutePath();
}

QString unsavedName(const ModelDocument& model) {
    return model.isModified() ? model.title() : ModelPage::tr("%1 (its file is gone)").arg(model.title());
}

} // namespace

void ModelPage::connectDocuments() {
    OpenModels& models = m_services.model;
    m_noticeOf = models.current().recoveryName();
    connect(&models, &OpenModels::changed, this, &ModelPage::showDocument);
    connect(&models, &OpenModels::currentChanged, this, &ModelPage::showCurrent);
    connect(&models, &OpenModels::titleChanged, this, [this] {
        refreshActions();
        Q_EMIT contextChanged();
    });
    connect(m_tabs, &DocumentTabs::chosen, this, [this](int index) { activate(m_services.model.at(index)); });
    connect(m_tabs, &DocumentTabs::closeRequested, this, &ModelPage::closeTab);
    connect(m_tabs, &DocumentTabs::newRequested, this, &ModelPage::newModel);
    connect(&m_services.recipe, &RecipeDocument::replaced, this, &ModelPage::followRecipe);
    connect(&m_services.recipe, &RecipeDocument::valueChanged, this, [this](const QString& key) {
        if (m_isFollowing) return;
        if (key == kSource || key == QLatin1String("kind")) followRecipe();
        else if ((key == kOverrides || key == kWeights) && isOfRecipe(m_services.model.current())) m_services.model.current().part = partOf(m_services.recipe.recipe());
    });
    connect(m_weights, &WeightsBar::useRequested, this, [this](const QString& folder, bool hasTokenizer) {
        m_services.recipe.asOneStep([&] {
            m_services.recipe.setValue(kWeights, toUtf8(folder));
            if (hasTokenizer) m_services.recipe.setValue(QStringLiteral("tokenizer.path"), toUtf8(folder + QStringLiteral("/tokenizer.model")));
        });
    });
    connect(m_weights, &WeightsBar::dropRequested, this, [this] { m_services.recipe.setValue(kWeights, std::string()); });
    reopenTabs();
    m_left = models.left();
    if (m_left.empty()) return;
    QStringList names;
    for (const Recovery::Left& left : m_left) names.append(QFileInfo(left.about.value(QStringLiteral("source")).toString()).fileName());
    m_leftNotice->show(Notice::Level::Warning, tr("Celloom ended before changes of these models were saved: %1.").arg(names.join(QStringLiteral(", "))), tr("Bring them back"),
                   [this] { bringBack(); });
}

// ---- the recipe's model ----

bool ModelPage::isOfRecipe(const ModelDocument& model) const {
    return recipe::trains(m_services.recipe.recipe()) && model.isNamedBy(sourceOf(m_services.recipe.recipe()));
}

bool ModelPage::needsSaving() const {
    const ModelDocument& model = m_services.model.current();
    return isOfRecipe(model) && model.needsSaving();
}

void ModelPage::requestAnalysis() {
    const ModelDocument& model = m_services.model.current();
    m_services.analyser.request(m_services.recipe.recipe(), isOfRecipe(model) && model.needsSaving() ? model.snapshot() : nullptr);
}

void ModelPage::followRecipe() {
    if (m_isFollowing) return;
    OpenModels& models = m_services.model;
    const recipe::Recipe& recipe = m_services.recipe.recipe();
    ModelDocument* open = recipe::trains(recipe) ? models.find(sourceOf(recipe)) : nullptr;
    if (open) open->part = partOf(recipe);
    if (open && open != &models.current()) activate(*open);
    else requestAnalysis(); // opens it
}

void ModelPage::bringToRecipe() {
    const QScopedValueRollback following(m_isFollowing, true);
    const ModelDocument& model = m_services.model.current();
    RecipeDocument& recipe = m_services.recipe;
    if (!model.isNamedBy(sourceOf(recipe.recipe()))) recipe.follow(kSource, toUtf8(model.source()));
    recipe.follow(kOverrides, model.part.overrides);
    recipe.follow(kWeights, model.part.weights);
}

ModelDocument& ModelPage::implicitTab() {
    OpenModels& models = m_services.model;
    if (models.current().isImplicit && models.current().isUntouched()) return models.current();
    ModelDocument& added = models.add();
    added.isImplicit = true;
    return added;
}

void ModelPage::onAnalysis(const ModelAnalysisPtr& analysis) {
    OpenModels& models = m_services.model;
    const bool trains = recipe::trains(m_services.recipe.recipe());
    if (trains && analysis->edited && analysis->edited != models.snapshot()) return; // of an edit before the newest
    if (trains && !analysis->edited && !takeModel(analysis)) return; // another is asked for
    m_tabs->setVisible(trains); // a run that does not train uses weights as they are: theirs is the network on show
    showAnalysis(analysis);
}

void ModelPage::beginAnew(ModelDocument& model) {
    const int number = m_services.model.freeNumber();
    model.takeUntitled(emptyGraph(number), number);
    if (&model == &m_services.model.current()) showCurrent();
    else activate(model);
}

/// What was opened for the recipe becomes the document in front, unless it is that already.
bool ModelPage::takeModel(const ModelAnalysisPtr& analysis) {
    OpenModels& models = m_services.model;
    const bool isInFront = isOfRecipe(models.current());
    if (isInFront && models.snapshot() && (analysis->openError || graph::isSame(*models.snapshot(), analysis->document))) return true;
    if (isInFront && models.snapshot()) {
        if (m_analysisTimer->isActive()) return false; // read before it was saved; the next one is under way
        takeChanged(models.current(), analysis->document);
        return true;
    }
    const QString source = sourceOf(m_services.recipe.recipe());
    ModelDocument& model = isInFront ? models.current() : implicitTab();
    const bool isForgotten = analysis->openError && ModelDocument::isUntitledName(source) && m_left.empty(); // given up when a window before this one closed
    if (isForgotten) {
        beginAnew(model);
        return false;
    }
    const QScopedValueRollback following(m_isFollowing, true);
    model.part = partOf(m_services.recipe.recipe());
    model.folder = folderOf(source);
    if (analysis->openError) model.takeNothing(source);
    else model.take(analysis->document, source, source.endsWith(kEnding) ? source : QString());
    if (&model != &models.current()) keepPlace();
    models.setCurrent(model);
    m_path.clear();
    m_fitNext = true;
    return true;
}

// ---- tabs ----

void ModelPage::activate(ModelDocument& model) {
    if (&model == &m_services.model.current()) return;
    keepPlace();
    m_services.model.setCurrent(model);
}

/// What was said of a model goes and comes back with its tab.
void ModelPage::changeNotice() {
    const QString name = m_services.model.current().recoveryName();
    if (name == m_noticeOf) return;
    if (auto words = m_notice->words()) m_notices[m_noticeOf] = std::move(*words);
    m_notice->hide();
    m_noticeOf = name;
    if (const auto kept = m_notices.extract(name)) m_notice->show(kept.mapped());
}

void ModelPage::showCurrent() {
    changeNotice();
    if (m_isFollowing) return;
    ModelDocument& model = m_services.model.current();
    if (!model.snapshot() && model.source().isEmpty()) { // after the last one was closed
        const int number = m_services.model.freeNumber();
        model.takeUntitled(emptyGraph(number), number);
    }
    m_view->choose({});
    m_path = model.place.path;
    m_goTo = model.place;
    m_fitNext = true;
    bringToRecipe();
    if (model.snapshot()) {
        showDocument();
    } else {
        m_analysis.reset();
        m_insight->setAnalysis(nullptr);
        m_message->setTexts(tr("Opening the model…"), {});
        m_stack->setCurrentIndex(0);
    }
    m_analysisTimer->stop();
    requestAnalysis();
    checkFile();
}

// ---- files that change outside ----

void ModelPage::changeEvent(QEvent* event) {
    Page::changeEvent(event);
    if (event->type() == QEvent::ActivationChange && isActiveWindow() && isVisible()) checkFile();
}

void ModelPage::showEvent(QShowEvent* event) {
    Page::showEvent(event);
    checkFile();
}

/// What became of the file of the model in front while one was elsewhere.
void ModelPage::checkFile() {
    ModelDocument& model = m_services.model.current();
    const OnDisk onDisk = model.snapshot() ? model.onDisk() : OnDisk::Same;
    if (onDisk == OnDisk::Gone) {
        m_notice->show(Notice::Level::Warning, tr("The file of %1 is gone: the model is only here.").arg(model.title()), tr("Save it again"), [this] { save(); });
    } else if (onDisk == OnDisk::Changed && model.isModified()) {
        m_notice->show(Notice::Level::Warning, tr("The file of %1 was changed outside while the model has unsaved edits here.").arg(model.title()), tr("Read the file again"),
                       [this, changed = QPointer<ModelDocument>(&model)] {
                           if (changed) readAgain(*changed);
                       });
    } else if (onDisk == OnDisk::Changed) {
        readAgain(model);
    }
}

void ModelPage::readAgain(ModelDocument& model) {
    auto document = graph::loadDocument(toPath(model.filePath()));
    if (document) takeChanged(model, std::move(*document));
    else m_notice->show(Notice::Level::Error, tr("The file of %1 was changed outside and cannot be read; the model stays as it was.").arg(model.title()) + QLatin1Char('\n') + Format::error(document.error()));
}

void ModelPage::takeChanged(ModelDocument& model, graph::Document document) {
    model.takeChanged(std::move(document));
    m_notice->show(Notice::Level::Result, tr("The file of %1 was changed outside and was read again. Undo brings back what was here.").arg(model.title()));
}

/// Saving would replace what somebody else wrote.
void ModelPage::askToSaveOver(ModelDocument& model, const std::function<void()>& then) {
    auto* box = new QMessageBox(QMessageBox::Warning, tr("Save %1").arg(model.title()),
                                tr("The file was changed outside since it was read. Saving replaces what is there now:") + QLatin1Char('\n') + model.filePath(), QMessageBox::Cancel, window());
    box->setAttribute(Qt::WA_DeleteOnClose);
    QPushButton* over = box->addButton(tr("Save over it"), QMessageBox::AcceptRole);
    QPushButton* again = box->addButton(tr("Read the file again"), QMessageBox::ResetRole);
    box->button(QMessageBox::Cancel)->setText(tr("Cancel"));
    box->setDefaultButton(QMessageBox::Cancel);
    connect(box, &QDialog::finished, window(), &QWidget::activateWindow);
    connect(box, &QMessageBox::finished, this, [this, box, over, again, changed = QPointer<ModelDocument>(&model), then] {
        if (!changed) return;
        if (box->clickedButton() == over) write(*changed, changed->filePath(), then);
        if (box->clickedButton() == again) readAgain(*changed);
    });
    box->open();
}

ModelPlace ModelPage::placeNow() const {
    return {m_path, m_view->transform().m11(), m_view->middle()};
}

void ModelPage::keepPlace() {
    if (!m_analysis || m_analysis->openError) return;
    ModelPlace place = placeNow();
    if (m_view->isFitted()) place.zoom = 0;
    m_services.model.current().place = place;
}

/// Once the level is placed and fitted.
void ModelPage::restorePlace() {
    const auto place = std::exchange(m_goTo, std::nullopt);
    if (!place || place->zoom <= 0) return;
    m_view->setSight(place->zoom, place->middle);
}

void ModelPage::stepTabs(int by) {
    OpenModels& models = m_services.model;
    activate(models.at((models.indexOf(models.current()) + by + models.count()) % models.count()));
}

void ModelPage::newModel() {
    auto* dialog = new NewModelDialog(m_services, window());
    connect(dialog, &NewModelDialog::chosen, this, &ModelPage::takeChoice);
    connect(dialog, &QDialog::finished, window(), &QWidget::activateWindow); // also where no window manager does it
    dialog->open();
}

void ModelPage::takeChoice(const ModelChoice& choice) {
    auto document = makeChosen(choice);
    if (!document) {
        m_notice->show(Notice::Level::Error, Format::error(document.error()));
        return;
    }
    ModelDocument& model = m_services.model.add();
    const int number = m_services.model.freeNumber();
    if (choice.kind == ModelChoice::Kind::Empty) model.takeUntitled(emptyGraph(number), number);
    else if (choice.kind == ModelChoice::Kind::Example) model.takeUntitled(std::move(*document), number);
    else model.take(std::move(*document), choice.name); // what a recipe may call it as long as nothing is changed
    activate(model);
    m_view->setFocus();
}

void ModelPage::refreshWeights() {
    const ModelDocument& model = m_services.model.current();
    const bool isShown = isOfRecipe(model);
    const QString used = fromUtf8(m_services.recipe.recipe().withAbsolutePaths().text("model.weights"));
    const bool isFolder = !used.isEmpty() && QFileInfo(used).isAbsolute();
    m_weights->setFolder(!isShown ? QString() : isFolder ? used : model.folder, isFolder);
    m_weights->setAnalysis(m_analysis);
}

void ModelPage::closeTab(int index) {
    OpenModels& models = m_services.model;
    const QPointer<ModelDocument> model(&models.at(index));
    const auto close = [this, model] {
        if (model) m_services.model.remove(*model);
    };
    if (!model->isOnlyHere()) {
        close();
        return;
    }
    activate(*model); // one sees what is asked about
    auto* dialog = new UnsavedDialog({unsavedName(*model)}, {}, window());
    connect(dialog, &UnsavedDialog::saveChosen, this, [this, model, close] {
        if (model) saveModel(*model, close);
    });
    connect(dialog, &UnsavedDialog::discardChosen, this, close);
    dialog->open();
}

void ModelPage::leaveAll(const std::function<void()>& then, const UnsavedRecipe& recipe) {
    QStringList names;
    std::vector<QPointer<ModelDocument>> models;
    for (ModelDocument* model : m_services.model.onlyHere()) {
        names.append(unsavedName(*model));
        models.emplace_back(model);
    }
    if (models.empty() && recipe.name.isEmpty()) {
        then();
        return;
    }
    auto* dialog = new UnsavedDialog(names, recipe.name, window());
    connect(dialog, &UnsavedDialog::saveChosen, this, [this, models, then, recipe] {
        saveAll(models, recipe.name.isEmpty() ? then : [then, recipe] { recipe.save(then); });
    });
    connect(dialog, &UnsavedDialog::discardChosen, this, [models, then, recipe] {
        for (const auto& model : models)
            if (model) model->discard();
        if (!recipe.name.isEmpty()) recipe.discard();
        then();
    });
    dialog->open();
}

// ---- what the window before this one had open ----

void ModelPage::keepTabs() {
    const OpenModels& models = m_services.model;
    QJsonArray open;
    for (int i = 0; i < models.count(); ++i) {
        const ModelDocument& model = models.at(i);
        if (!model.isUntitled() && !isOfRecipe(model) && !model.source().isEmpty()) open.append(model.about());
    }
    m_services.settings.setValue(kOpenKey, QJsonDocument(open).toJson(QJsonDocument::Compact));
}

/// Each is read when one goes to it.
void ModelPage::reopenTabs() {
    OpenModels& models = m_services.model;
    QStringList gone;
    for (const auto& one : QJsonDocument::fromJson(m_services.settings.value(kOpenKey).toByteArray()).array()) {
        const QString source = one.toObject().value(QStringLiteral("source")).toString();
        if (source.isEmpty() || models.find(source) || models.count() > kMostReopened) continue;
        if (families::isBuiltIn(toUtf8(source)) || QFileInfo::exists(source)) models.add().takeLater(one.toObject());
        else gone.append(source);
    }
    if (!gone.isEmpty()) m_notice->show(Notice::Level::Warning, tr("These models were open last and are not there any more: %1.").arg(gone.join(QStringLiteral(", "))));
}

// ---- what a crash left ----

void ModelPage::bringBack() {
    m_leftNotice->hide();
    const auto models = m_services.model.bringBack(std::exchange(m_left, {}));
    if (models.empty()) return;
    const bool isInFront = std::find(models.begin(), models.end(), &m_services.model.current()) != models.end();
    if (isInFront) showCurrent();
    else activate(*models.front());
}

// ---- saving ----

void ModelPage::save(const std::function<void()>& then) {
    if (m_services.model.snapshot()) saveModel(m_services.model.current(), then);
}

void ModelPage::saveAs(const std::function<void()>& then) {
    if (m_services.model.snapshot()) saveModelAs(m_services.model.current(), then);
}

void ModelPage::saveModel(ModelDocument& model, const std::function<void()>& then) {
    if (!model.filePath().isEmpty()) {
        finishSaving(model, model.filePath(), then);
        return;
    }
    activate(model);
    saveModelAs(model, then);
}

void ModelPage::saveModelAs(ModelDocument& model, const std::function<void()>& then) {
    const QString folder = pathText(m_services.store.workspace().path) + QStringLiteral("/models");
    QDir().mkpath(folder);
    auto* dialog = new QFileDialog(window(), tr("Save the model"));
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    dialog->setAcceptMode(QFileDialog::AcceptSave);
    dialog->setNameFilters({tr("Cell graphs (*.cells.json)")});
    dialog->setDirectory(model.filePath().isEmpty() ? folder : QFileInfo(model.filePath()).absolutePath());
    const QString name = fromUtf8(model.snapshot()->main.name);
    dialog->selectFile((name.isEmpty() ? QStringLiteral("model") : name) + kEnding);
    connect(dialog, &QFileDialog::fileSelected, this, [this, saved = QPointer<ModelDocument>(&model), then](const QString& path) {
        if (saved) finishSaving(*saved, path.endsWith(kEnding) ? path : path + kEnding, then);
    });
    dialog->open();
}

void ModelPage::finishSaving(ModelDocument& model, const QString& path, const std::function<void()>& then) {
    if (const ModelDocument* other = m_services.model.find(path); other && other != &model) {
        m_notice->show(Notice::Level::Error, tr("%1 is open in another tab. Choose another name, or close that tab first.").arg(path));
        return;
    }
    if (path == model.filePath() && model.onDisk() == OnDisk::Changed) askToSaveOver(model, then);
    else write(model, path, then);
}

void ModelPage::write(ModelDocument& model, const QString& path, const std::function<void()>& then) {
    if (Status status = model.save(path); !status) {
        m_notice->show(Notice::Level::Error, Format::error(status.error()));
        return;
    }
    remember(model.filePath());
    if (&model == &m_services.model.current()) bringToRecipe();
    refreshActions();
    if (then) then();
}

void ModelPage::saveAll(std::vector<QPointer<ModelDocument>> models, const std::function<void()>& then) {
    while (!models.empty() && !models.front()) models.erase(models.begin());
    if (models.empty()) {
        then();
        return;
    }
    const QPointer<ModelDocument> first = models.front();
    models.erase(models.begin());
    saveModel(*first, [this, models, then] { saveAll(models, then); });
}

void ModelPage::savePicture() {
    if (!m_view->isShown() || m_level.boxes.empty()) return;
    const QString folder = m_services.model.filePath().isEmpty() ? pathText(m_services.store.workspace().path) : QFileInfo(m_services.model.filePath()).absolutePath();
    QString name = m_services.model.current().title();
    for (const LevelStep& step : m_path) name += QLatin1Char('-') + fromUtf8(step.cell);
    auto* dialog = new ExportDialog(std::make_shared<const LevelPicture>(*m_view, m_services.theme), folder, name, window());
    connect(dialog, &QDialog::finished, window(), &QWidget::activateWindow);
    connect(dialog, &ExportDialog::saved, this, [this](const QString& path) { m_notice->show(Notice::Level::Info, tr("The picture is %1.").arg(path)); });
    connect(dialog, &ExportDialog::failed, this, [this](const Error& error) { m_notice->show(Notice::Level::Error, Format::error(error)); });
    dialog->open();
}

// ---- opening ----

bool ModelPage::canOpen(const QString& path) {
    const QFileInfo about(path);
    return about.isDir() || about.fileName() == QLatin1String("config.json") || path.endsWith(kEnding);
}

void ModelPage::remember(const QString& path) {
    QStringList recent = m_services.settings.value(kRecentKey).toStringList();
    recent.removeAll(path);
    recent.prepend(path);
    m_services.settings.setValue(kRecentKey, recent.mid(0, kMostRecent));
}

void ModelPage::fillRecent() {
    m_openMenu->clear();
    connect(m_openMenu->addAction(tr("Open a folder…")), &QAction::triggered, this, &ModelPage::chooseFolder);
    connect(m_openMenu->addAction(tr("Open a file…")), &QAction::triggered, this, &ModelPage::chooseFile);
    if (!m_left.empty())
        connect(m_openMenu->addAction(tr("Bring back unsaved models (%1)").arg(m_left.size())), &QAction::triggered, this, &ModelPage::bringBack);
    const QStringList recent = m_services.settings.value(kRecentKey).toStringList();
    if (recent.isEmpty()) return;
    m_openMenu->addSeparator();
    for (const QString& path : recent) {
        QString name = m_openMenu->fontMetrics().elidedText(path, Qt::ElideMiddle, kRecentWidth);
        QAction* action = m_openMenu->addAction(name.replace(QLatin1Char('&'), QLatin1String("&&")));
        action->setToolTip(path);
        connect(action, &QAction::triggered, this, [this, path] { open(path); });
    }
    m_openMenu->addSeparator();
    connect(m_openMenu->addAction(tr("Forget these")), &QAction::triggered, this, [this] { m_services.settings.remove(kRecentKey); });
}

void ModelPage::chooseFolder() {
    auto* dialog = new QFileDialog(window(), tr("Open a model's folder"));
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    dialog->setFileMode(QFileDialog::Directory);
    dialog->setOption(QFileDialog::ShowDirsOnly);
    const QStringList recent = m_services.settings.value(kRecentKey).toStringList();
    if (!recent.isEmpty()) dialog->setDirectory(QFileInfo(recent.front()).absolutePath());
    connect(dialog, &QFileDialog::fileSelected, this, &ModelPage::open);
    dialog->open();
}

void ModelPage::chooseFile() {
    auto* dialog = new QFileDialog(window(), tr("Open a model's file"));
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    dialog->setFileMode(QFileDialog::ExistingFile);
    dialog->setNameFilters({tr("Models (config.json *.cells.json)"), tr("All files (*)")});
    connect(dialog, &QFileDialog::fileSelected, this, &ModelPage::open);
    dialog->open();
}

void ModelPage::open(const QString& path) {
    if (ModelDocument* open = m_services.model.find(path); open && (open->snapshot() || open != &m_services.model.current()) && !families::isBuiltIn(toUtf8(path))) {
        remember(path);
        m_notice->hide();
        activate(*open);
        return;
    }
    const int number = ++m_openings;
    m_background.run(
        [path] { // a folder may lie on a slow disk
            auto document = families::openModel(path.toStdString());
            if (document && !path.endsWith(kEnding)) { // a graph that is not finished yet may well be opened; a config.json that gives none may not
                if (const graph::Expansion expansion = graph::expand(*document); !expansion.ok()) document = tl::unexpected(expansion.firstError());
            }
            return document;
        },
        [this, number, path](const Result<graph::Document>& document) {
            if (number == m_openings) finishOpening(path, document);
        });
}

void ModelPage::finishOpening(const QString& path, Result<graph::Document> document) {
    if (!document) {
        m_notice->show(Notice::Level::Error, tr("%1 cannot be opened; the model stays as it was.").arg(path) + QLatin1Char('\n') + Format::error(document.error()));
        return;
    }
    m_notice->hide();
    remember(path);
    OpenModels& models = m_services.model;
    const QString source = QFileInfo(path).absoluteFilePath();
    ModelDocument& now = models.current();
    const bool isEmpty = now.isUntitled() && now.isUntouched() && now.snapshot()->main.cells.empty();
    ModelDocument& model = isEmpty || (now.isImplicit && now.isUntouched()) ? now : models.add();
    model.part = {};
    model.place = {};
    model.folder = folderOf(source);
    model.isImplicit = false;
    model.take(std::move(*document), source, source.endsWith(kEnding) ? source : QString());
    if (&model == &now) showCurrent();
    else activate(model);
}

} // namespace celloom::ui
