#include "ui/shell/main_window.h"

#include "ui/common/engine_client.h"
#include "ui/common/format.h"
#include "ui/common/recipe_document.h"
#include "ui/common/theme.h"
#include "ui/editor/open_models.h"
#include "ui/editor/model_page.h"
#include "ui/editor/unsaved_dialog.h"
#include "ui/history/history_page.h"
#include "ui/history/resume_dialog.h"
#include "ui/live/live_page.h"
#include "ui/playground/try_page.h"
#include "ui/shell/bottom_bar.h"
#include "ui/shell/coming_page.h"
#include "ui/shell/language.h"
#include "ui/shell/notice.h"
#include "ui/shell/run_exporter.h"
#include "ui/shell/services.h"
#include "ui/shell/top_bar.h"
#include "ui/shell/welcome_page.h"
#include "ui/train/train_page.h"

#include <QApplication>
#include <QCloseEvent>
#include <QDesktopServices>
#include <QDragEnterEvent>
#include <QFileDialog>
#include <QFileInfo>
#include <QHBoxLayout>
#include <QMimeData>
#include <QScreen>
#include <QSettings>
#include <QShortcut>
#include <QStackedWidget>
#include <QTimer>
#include <QUrl>
#include <QVBoxLayout>

#include <algorithm>

namespace celloom::ui {

namespace {
constexpr int kTitleBar = 36; // the height of a window's frame is known only once it is shown
}

MainWindow::MainWindow(Services& services, QWidget* parent) : QMainWindow(parent), m_services(services) {
    setWindowTitle(QStringLiteral("Celloom"));
    setWindowIcon(services.theme.icon(QStringLiteral("celloom"), "accent"));
    setMinimumSize(1080, 680);

    auto* central = new QWidget(this);
    auto* column = new QVBoxLayout(central);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(0);
    m_top = new TopBar(services, central);
    m_notice = new Notice(services.theme, central);
    m_exporter = new RunExporter(services, central);
    m_pages = new PageBar(services.theme, central);
    m_bottom = new BottomBar(services, central);
    m_stack = new QStackedWidget(central);
    auto* middle = new QHBoxLayout;
    middle->setSpacing(0);
    auto* content = new QVBoxLayout;
    content->setSpacing(0);
    content->addWidget(m_notice);
    content->addWidget(m_exporter);
    content->addWidget(m_stack, 1);
    middle->addWidget(m_pages);
    middle->addLayout(content, 1);
    column->addWidget(m_top);
    column->addLayout(middle, 1);
    column->addWidget(m_bottom);
    setCentralWidget(central);

    setAcceptDrops(true);
    buildPages(m_stack);
    connectEngine();
    addShortcuts();
    if (m_model->hasLeftOver()) showPage(PageId::Model); // what a crash left is offered there
    else showWelcome();
    (m_model->hasLeftOver() ? static_cast<QWidget*>(m_model) : central)->setFocus(); // no control is marked before somebody uses the keyboard
    if (!restoreGeometry(services.settings.value(QStringLiteral("geometry")).toByteArray())) {
        const QSize room = screen()->availableSize() - QSize(0, kTitleBar); // a panel and the frame's title take their part
        resize(QSize(1440, 900).boundedTo(room));
    } else if (const QRect room = screen()->availableGeometry(); !isMaximized() && !isFullScreen() && !room.contains(frameGeometry())) { // a smaller screen than last time
        resize(size().boundedTo(room.size() - QSize(0, kTitleBar)));
        move(room.topLeft());
    }

    const auto analyse = [this] { m_model->requestAnalysis(); };
    connect(&services.recipe, &RecipeDocument::replaced, this, analyse);
    for (auto changed : {&RecipeDocument::replaced, &RecipeDocument::titleChanged})
        connect(&services.recipe, changed, m_notice, &QWidget::hide);
    connect(&services.recipe, &RecipeDocument::valueChanged, m_notice, &QWidget::hide); // what it said was of the recipe before
    connect(&services.recipe, &RecipeDocument::valueChanged, this, [analyse](const QString& key) {
        static const QStringList matters{
            QStringLiteral("train.batch_size"),     QStringLiteral("train.sequence_length"), QStringLiteral("rules"),
            QStringLiteral("tokenizer.vocab_size"), QStringLiteral("tokenizer.path"),        QStringLiteral("train.accumulation"),
            QStringLiteral("checkpoint.keep_max"),  QStringLiteral("checkpoint.keep_best"),  QStringLiteral("data.attention"),
            QStringLiteral("data.validation"),      QStringLiteral("data.validation_fraction"), QStringLiteral("train.z_loss"),
            QStringLiteral("device"),               QStringLiteral("kind"),                  QStringLiteral("train.recompute")};
        static const QStringList sections{QStringLiteral("model."), QStringLiteral("lora."), QStringLiteral("precision."), QStringLiteral("optimizer.")};
        const bool isOfSection = std::any_of(sections.begin(), sections.end(), [&](const QString& section) { return key.startsWith(section); });
        if (isOfSection || matters.contains(key)) analyse();
    });
    auto* keepTimer = new QTimer(this); // a window that is killed loses a moment of the recipe, no more
    keepTimer->setSingleShot(true);
    keepTimer->setInterval(ModelDocument::kRecoveryMs);
    connect(keepTimer, &QTimer::timeout, this, &MainWindow::keepEdits);
    const auto keepSoon = [keepTimer] {
        if (!keepTimer->isActive()) keepTimer->start();
    };
    for (auto changed : {&RecipeDocument::replaced, &RecipeDocument::titleChanged}) connect(&services.recipe, changed, keepTimer, keepSoon);
    connect(&services.recipe, &RecipeDocument::valueChanged, keepTimer, keepSoon);
    if (services.recipe.isModified()) // nobody has touched it yet
        m_notice->show(Notice::Level::Warning, tr("Celloom ended before changes of the recipe %1 were saved; they are back.").arg(nameOfRecipe()), tr("Show the recipe"), [this] { showPage(PageId::Train); });
    connect(&services.analyser, &ModelAnalyser::ready, this, [this] {
        if (m_isChecking) finishCheck();
    });
    analyse();
    services.store.refreshRuns();
}

void MainWindow::buildPages(QStackedWidget* stack) {
    m_model = new ModelPage(m_services, stack);
    auto* data = new ComingPage(m_services.theme, stack);
    m_train = new TrainPage(m_services, stack);
    m_live = new LivePage(m_services, stack);
    m_history = new HistoryPage(m_services, stack);
    m_try = new TryPage(m_services, stack);
    m_byId = {m_model, data, m_train, m_live, m_history, m_try};
    m_welcome = new WelcomePage(m_services, stack);
    for (Page* page : m_byId) {
        stack->addWidget(page);
        connect(page, &Page::contextChanged, this, &MainWindow::refreshContext);
    }
    stack->addWidget(m_welcome);

    connect(m_pages, &PageBar::chosen, this, &MainWindow::showPage);
    connect(m_top, &TopBar::homeRequested, this, &MainWindow::showWelcome);
    connect(m_top, &TopBar::runRequested, this, &MainWindow::run);
    connect(m_top, &TopBar::validateRequested, this, &MainWindow::validate);
    connect(data, &ComingPage::trainRequested, this, [this] { showPage(PageId::Train); });
    connect(m_welcome, &WelcomePage::runExampleRequested, this, [this](const QString& path) {
        openRecipe(path, [this] { run(); });
    });
    connect(m_welcome, &WelcomePage::openExampleRequested, this, [this](const QString& path) { openRecipe(path); });
    connect(m_welcome, &WelcomePage::openRecipeRequested, this, &MainWindow::chooseRecipe);
    connect(m_welcome, &WelcomePage::runChosen, this, &MainWindow::openRun);
    connect(m_welcome, &WelcomePage::historyRequested, this, [this] { showPage(PageId::History); });
    connect(m_train, &TrainPage::openRequested, this, &MainWindow::chooseRecipe);
    connect(m_train, &TrainPage::failed, this, [this](const QString& text) { m_notice->show(Notice::Level::Error, text); });
    connect(m_train, &TrainPage::modelRequested, this, [this] { showPage(PageId::Model); });
    connect(m_history, &HistoryPage::runChosen, this, &MainWindow::openRun);
    connect(m_history, &HistoryPage::resumeRequested, this, &MainWindow::resumeRun);
    connect(m_history, &HistoryPage::cloneRequested, this, &MainWindow::cloneRun);
    connect(m_history, &HistoryPage::failed, this, [this](const QString& text) { m_notice->show(Notice::Level::Error, text); });
    connect(m_live, &LivePage::failed, this, [this](const QString& text) { m_notice->show(Notice::Level::Error, text); });
    connect(m_live, &LivePage::runChosen, this, &MainWindow::openRun);
    connect(m_live, &LivePage::resumeRequested, this, &MainWindow::resumeRun);
    connect(m_model, &ModelPage::fieldRequested, this, [this](const QString& key) {
        showPage(PageId::Train);
        m_train->focusField(key);
    });
    connect(m_model, &ModelPage::tuneRequested, this, [this] {
        showPage(PageId::Train);
        m_train->focusField(QStringLiteral("data.train")); // what is missing still
    });
    connect(m_history, &HistoryPage::actionRequested, this, &MainWindow::actOnRun);
    connect(m_live, &LivePage::runActionRequested, this, &MainWindow::actOnRun);
    connect(m_exporter, &RunExporter::failed, this, [this](const QString& text) { m_notice->show(Notice::Level::Error, text); });
    connect(m_exporter, &RunExporter::done, this, [this](const QString& text, const QString& folder) {
        m_notice->show(Notice::Level::Result, text, tr("Open the folder"), [folder] { QDesktopServices::openUrl(QUrl::fromLocalFile(folder)); });
    });
    connect(m_live, &LivePage::welcomeRequested, this, &MainWindow::showWelcome);
    connect(m_live, &LivePage::tryRequested, this, &MainWindow::tryRun);
    connect(m_history, &HistoryPage::tryRequested, this, &MainWindow::tryRun);
    connect(m_try, &TryPage::exampleRequested, this, &MainWindow::showWelcome);
    connect(m_try, &TryPage::failed, this, [this](const QString& text) { m_notice->show(Notice::Level::Error, text); });
}

void MainWindow::connectEngine() {
    RunStore& store = m_services.store;
    connect(&store, &RunStore::runsLoaded, this, &MainWindow::openStartingRun);
    connect(&store, &RunStore::failed, this, [this](const QString& text) { m_notice->show(Notice::Level::Error, text); });
    connect(&store, &RunStore::recipeLoaded, this, [this](const QString& folder, const QString& json, const QString& error) {
        if (folder != std::exchange(m_clonePending, QString())) return;
        auto recipe =
            error.isEmpty() ? recipe::Recipe::fromJson(toUtf8(json), toUtf8(folder)) : Result<recipe::Recipe>(fail(toUtf8(error)));
        if (!recipe) {
            m_notice->show(Notice::Level::Error, Format::error(recipe.error()));
            return;
        }
        leaveRecipe([this, recipe = *recipe, name = tr("copy of %1").arg(folder)] { takeRecipe(recipe, name); });
    });
    EngineClient& engine = m_services.engine;
    connect(&engine, &EngineClient::runChanged, &store, [&store] { store.refreshRuns(); });
    connect(&engine, &EngineClient::resyncNeeded, &store, [&store] {
        store.refreshRuns();
        store.poll();
    });
    const auto refreshRun = [this] {
        const bool isConnected = m_services.engine.state() == EngineClient::State::Connected;
        m_top->setRunEnabled(isConnected, isConnected ? QString() : m_services.engine.detail());
    };
    connect(&engine, &EngineClient::stateChanged, this, refreshRun);
    m_texts.add(refreshRun);
}

void MainWindow::addShortcuts() {
    for (int i = 0; i < kPageCount; ++i) {
        auto* shortcut = new QShortcut(QKeySequence(Qt::CTRL | static_cast<Qt::Key>(Qt::Key_1 + i)), this);
        connect(shortcut, &QShortcut::activated, this, [this, i] {
            centralWidget()->setFocus();
            showPage(static_cast<PageId>(i));
        });
    }
    auto* home = new QShortcut(QKeySequence(Qt::CTRL | Qt::Key_0), this);
    connect(home, &QShortcut::activated, this, &MainWindow::showWelcome);
    auto* open = new QShortcut(QKeySequence::Open, this);
    connect(open, &QShortcut::activated, this, &MainWindow::chooseRecipe);
    auto* save = new QShortcut(QKeySequence::Save, this);
    connect(save, &QShortcut::activated, this, [this] { // what one looks at
        if (m_stack->currentWidget() == m_model) m_model->save();
        else m_train->save();
    });
    auto* quit = new QShortcut(QKeySequence::Quit, this);
    connect(quit, &QShortcut::activated, this, &QWidget::close);
}

/// Once, when the runs are known for the first time: a run that is going is what one wants to see.
void MainWindow::openStartingRun(const RunListPtr& runs) {
    if (std::exchange(m_hasChosenStart, true)) return;
    for (const store::RunRecord& run : *runs) {
        if (store::isOver(run.state)) continue;
        openRun(fromUtf8(run.folder));
        return;
    }
}

/// The keyboard must not wander to some control of the next page when this one is hidden.
void MainWindow::leavePage() {
    if (m_stack->isAncestorOf(QApplication::focusWidget())) centralWidget()->setFocus();
}

void MainWindow::showPage(PageId page) {
    leavePage();
    Page* shown = m_byId[static_cast<std::size_t>(page)];
    m_stack->setCurrentWidget(shown);
    m_pages->setCurrent(page);
    if (QApplication::focusWidget() == centralWidget()) shown->setFocus(); // Tab begins with the page, not with the bars
    refreshContext();
}

void MainWindow::showWelcome() {
    leavePage();
    m_stack->setCurrentWidget(m_welcome);
    m_pages->clearCurrent();
    refreshContext();
}

namespace {

/// The one model that is dragged, or nothing.
QString draggedModel(const QMimeData& data) {
    const QList<QUrl> urls = data.urls();
    if (urls.size() != 1 || !urls.front().isLocalFile()) return {};
    const QString path = urls.front().toLocalFile();
    return ModelPage::canOpen(path) ? path : QString();
}

} // namespace

void MainWindow::dragEnterEvent(QDragEnterEvent* event) {
    if (!draggedModel(*event->mimeData()).isEmpty()) event->acceptProposedAction();
}

void MainWindow::dropEvent(QDropEvent* event) {
    const QString path = draggedModel(*event->mimeData());
    if (path.isEmpty()) return;
    event->acceptProposedAction();
    showPage(PageId::Model);
    m_model->open(path);
}

void MainWindow::refreshContext() {
    auto* page = qobject_cast<Page*>(m_stack->currentWidget());
    m_top->setContext(page ? page->context() : QString());
}

void MainWindow::openRecipe(const QString& path, const std::function<void()>& then) {
    if (const auto recipe = recipe::Recipe::load(toPath(path)); !recipe) { // before anything is asked
        m_notice->show(Notice::Level::Error, Format::error(recipe.error()));
        return;
    }
    leaveRecipe([this, path, then] {
        if (Status status = m_services.recipe.open(path); !status) {
            m_notice->show(Notice::Level::Error, Format::error(status.error()));
            return;
        }
        rememberRecipe();
        showPage(PageId::Train);
        if (then) then();
    });
}

void MainWindow::takeRecipe(recipe::Recipe recipe, const QString& name) {
    m_services.recipe.take(std::move(recipe), name);
    rememberRecipe();
    showPage(PageId::Train);
}

QString MainWindow::nameOfRecipe() const {
    const RecipeDocument& recipe = m_services.recipe;
    const bool isUntitled = recipe.name().isEmpty() || (recipe.filePath().isEmpty() && recipe.name() == QLatin1String("untitled"));
    return isUntitled ? tr("untitled") : recipe.name();
}

void MainWindow::leaveRecipe(const std::function<void()>& then) {
    if (!m_services.recipe.isModified()) {
        then();
        return;
    }
    showPage(PageId::Train); // one sees what is asked about
    auto* dialog = new UnsavedDialog({}, nameOfRecipe(), this);
    connect(dialog, &UnsavedDialog::saveChosen, this, [this, then] { m_train->save(then); });
    connect(dialog, &UnsavedDialog::discardChosen, this, then);
    dialog->open();
}

void MainWindow::chooseRecipe() {
    auto* dialog = new QFileDialog(this, tr("Open recipe"));
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    dialog->setNameFilters({tr("Recipes (*.json)"), tr("All files (*)")});
    dialog->setFileMode(QFileDialog::ExistingFile);
    dialog->setDirectory(QFileInfo(m_services.settings.value(QStringLiteral("recipe")).toString()).absolutePath());
    connect(dialog, &QFileDialog::fileSelected, this, [this](const QString& path) { openRecipe(path); });
    dialog->open();
}

void MainWindow::run() {
    check(true);
}

void MainWindow::validate() {
    check(false);
}

void MainWindow::check(bool andRun) {
    m_runAfterCheck = andRun;
    m_isChecking = true;
    m_model->requestAnalysis();
}

void MainWindow::finishCheck() {
    m_isChecking = false;
    int errors = 0, warnings = 0;
    QString first, firstKey;
    for (const recipe::Problem& problem : m_services.recipe.problems()) {
        const bool isError = problem.severity == recipe::Problem::Severity::Error;
        ++(isError ? errors : warnings);
        if (isError && first.isEmpty()) {
            first = m_train->problemText(problem);
            firstKey = fromUtf8(problem.key);
        }
    }
    const ModelAnalysisPtr analysis = m_services.analyser.latest();
    QString modelError;
    if (analysis->openError)
        modelError = Format::error(*analysis->openError);
    else if (!analysis->expansion.ok())
        modelError = Format::error(analysis->expansion.firstError());
    else if (analysis->ruleError)
        modelError = Format::error(*analysis->ruleError);
    m_train->showProblems();
    if (errors > 0) {
        m_notice->show(Notice::Level::Error, errors == 1 ? first : tr("Problems: %1. The first: ").arg(errors) + first,
                       tr("Show the field"), [this, firstKey] {
                           showPage(PageId::Train);
                           m_train->focusField(firstKey);
                       });
    } else if (!modelError.isEmpty()) {
        const bool isRule = analysis->ruleError.has_value();
        m_notice->show(Notice::Level::Error, modelError, isRule ? tr("Show the rules") : tr("Show the model"), [this, isRule] {
            showPage(isRule ? PageId::Train : PageId::Model);
            if (isRule) m_train->focusField(QStringLiteral("rules"));
        });
    } else if (m_runAfterCheck) {
        if (m_model->needsSaving()) m_model->save([this] { submit(); }); // the run reads the file
        else submit();
    } else if (warnings > 0) {
        m_notice->show(Notice::Level::Warning, tr("The recipe can run. Warnings beside the fields: %1.").arg(warnings));
    } else {
        m_notice->show(Notice::Level::Info, tr("The recipe and the model are in order."));
    }
}

void MainWindow::submit() {
    const recipe::Recipe& recipe = m_services.recipe.recipe();
    QString name = fromUtf8(recipe.text("name"));
    if (name.isEmpty()) // of a model's folder, its own name
        name = m_services.recipe.filePath().isEmpty() ? QFileInfo(fromUtf8(recipe.text(recipe::trains(recipe) ? "model.source" : "model.weights"))).fileName() : m_services.recipe.name();
    const QByteArray json = QByteArray::fromStdString(recipe.withAbsolutePaths().toJson(false));
    m_services.engine.submit(json, name, [this](const Result<QString>& run) {
        if (!run) {
            m_notice->show(Notice::Level::Error, Format::error(run.error()));
            return;
        }
        m_services.store.refreshRuns();
        openRun(*run);
    });
}

void MainWindow::openRun(const QString& folder) {
    m_live->open(folder);
    showPage(PageId::Live);
}

void MainWindow::tryRun(const QString& folder) {
    showPage(PageId::Try);
    const store::RunFolder run{m_services.store.workspace().runs() / toUtf8(folder)};
    const auto recipe = run.hasAdapter() ? recipe::Recipe::load(run.recipe()) : Result<recipe::Recipe>(recipe::Recipe());
    m_try->openBesideBase(folder, recipe ? fromUtf8(recipe->text("model.weights")) : QString());
}

void MainWindow::resumeRun(const QString& folder) {
    const store::RunFolder run{m_services.store.workspace().runs() / toUtf8(folder)};
    const auto resume = [this, folder](const ResumeDialog::Changes& changes) {
        m_services.engine.resume(folder, changes, [this, folder](const Result<QString>& resumed) {
            if (resumed)
                openRun(resumed->isEmpty() ? folder : *resumed);
            else
                m_notice->show(Notice::Level::Error, Format::error(resumed.error()));
        });
    };
    const auto recipe = recipe::Recipe::load(run.recipe());
    if (recipe && !recipe::trains(*recipe)) return resume({}); // nothing that may change is worth a question
    (new ResumeDialog(run, m_services.language.isChinese(), resume, this))->open();
}

void MainWindow::cloneRun(const QString& folder) {
    m_clonePending = folder;
    m_services.store.loadRecipe(folder);
}

void MainWindow::actOnRun(RunAction action, const QString& folder) {
    if (action != RunAction::FineTune) {
        m_exporter->ask(action, folder);
        return;
    }
    const store::RunFolder run{m_services.store.workspace().runs() / toUtf8(folder)};
    const auto checkpoint = run.newestCheckpoint();
    if (checkpoint.empty())
        m_notice->show(Notice::Level::Error, tr("The run %1 has no complete checkpoint.").arg(folder));
    else
        tune(pathText(checkpoint), folder.section(QLatin1Char('-'), 1) + QStringLiteral("-tuned"));
}

void MainWindow::tune(const QString& model, const QString& name) {
    recipe::Recipe recipe;
    CELLOOM_CHECK(recipe.set("kind", std::string("finetune")));
    CELLOOM_CHECK(recipe.set("name", toUtf8(name)));
    CELLOOM_CHECK(recipe.set("model.source", toUtf8(model)));
    CELLOOM_CHECK(recipe.set("model.weights", toUtf8(model)));
    const QString tokenizer = model + QStringLiteral("/tokenizer.model");
    if (QFileInfo::exists(tokenizer)) CELLOOM_CHECK(recipe.set("tokenizer.path", toUtf8(tokenizer)));
    leaveRecipe([this, recipe, name] {
        takeRecipe(recipe, name);
        m_train->focusField(QStringLiteral("data.train")); // what is missing still
    });
}

void MainWindow::closeEvent(QCloseEvent* event) {
    // Runs belong to the engine and go on.
    m_services.settings.setValue(QStringLiteral("geometry"), saveGeometry());
    m_model->keepTabs();
    RecipeDocument& recipe = m_services.recipe;
    const bool areModelsSaved = m_services.model.onlyHere().empty();
    event->setAccepted(areModelsSaved && !recipe.isModified());
    if (event->isAccepted()) {
        rememberRecipe();
        m_services.model.recovery().removeRecipe();
        return;
    }
    showPage(areModelsSaved ? PageId::Train : PageId::Model);
    m_model->leaveAll([this] { close(); }, {recipe.isModified() ? nameOfRecipe() : QString(), [this](const auto& then) { m_train->save(then); }, [&recipe] { recipe.discard(); }});
}

/// What is not saved comes back also after the window was killed.
void MainWindow::keepEdits() {
    Recovery& recovery = m_services.model.recovery();
    if (m_services.recipe.isModified()) recovery.writeRecipe(m_services.recipe.about());
    else recovery.removeRecipe();
}

/// For the next start: the file, or the recipe itself where it has none, such as a run's.
void MainWindow::rememberRecipe() {
    const RecipeDocument& recipe = m_services.recipe;
    if (!recipe.filePath().isEmpty()) m_services.settings.setValue(QStringLiteral("recipe"), recipe.filePath());
    m_services.settings.setValue(QStringLiteral("draft"), recipe.filePath().isEmpty() ? fromUtf8(recipe.recipe().withAbsolutePaths().toJson()) : QString());
    m_services.settings.setValue(QStringLiteral("draftName"), recipe.name());
}

void MainWindow::changeEvent(QEvent* event) {
    QMainWindow::changeEvent(event);
    if (event->type() == QEvent::LanguageChange) m_texts.refresh();
}

} // namespace celloom::ui
