// What a model begins from: the chooser by keyboard, and a Hugging Face folder whose weights stay linked until an edit breaks them.
#include "models/families/families.h"
#include "models/graph/edits.h"
#include "models/graph/expand.h"
#include "models/graph/json.h"
#include "models/library/standard.h"
#include "services_bench.h"
#include "ui/common/widgets.h"
#include "ui/editor/graph_view.h"
#include "ui/editor/inspector.h"
#include "ui/editor/model_page.h"
#include "ui/editor/new_model_dialog.h"
#include "ui/editor/palette.h"
#include "ui/editor/weights_bar.h"

#include <QDir>
#include <QFile>
#include <QFileInfo>
#include <QLabel>
#include <QLineEdit>
#include <QMenu>
#include <QPushButton>
#include <QSignalSpy>
#include <QTabBar>
#include <QTest>
#include <QToolButton>
#include <QTreeWidget>

#include <algorithm>

using namespace celloom;
using namespace celloom::ui;

namespace {

const QString kFolder = QStringLiteral(CELLOOM_FIXTURES "/internlm2");
const QString kRecipes = QStringLiteral(CELLOOM_SOURCE "/resources/recipes");

struct OnPage {
    test::ServicesBench bench;
    std::unique_ptr<ModelPage> page;
    GraphView* view = nullptr;

    OnPage() {
        bench.services.recipesFolder = kRecipes;
        page = std::make_unique<ModelPage>(bench.services);
        view = page->findChild<GraphView*>();
        page->resize(1280, 800);
        page->show();
        QVERIFY(QTest::qWaitForWindowActive(page.get()));
        QObject::connect(&bench.recipe, &RecipeDocument::valueChanged, page.get(), &ModelPage::requestAnalysis); // as the window does
        page->requestAnalysis();
        QTRY_VERIFY(bench.analyser.isSettled() && bench.model.snapshot());
    }
    NewModelDialog* ask() {
        QTest::keyClick(page.get(), Qt::Key_T, Qt::ControlModifier);
        return page->findChild<NewModelDialog*>();
    }
    QString bar() const {
        auto* bar = page->findChild<WeightsBar*>();
        return bar->isVisible() ? bar->findChild<ElidedLabel*>()->fullText() : QString();
    }
    QPushButton* barButton() const { return page->findChild<WeightsBar*>()->findChild<QPushButton*>(); }
};

} // namespace

class TestNewModel : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void everythingThatIsOfferedMakesAModel() {
        const auto choices = modelChoices(kRecipes, false);
        const auto count = [&](ModelChoice::Kind kind) { return std::count_if(choices.begin(), choices.end(), [&](const ModelChoice& one) { return one.kind == kind; }); };
        QCOMPARE(count(ModelChoice::Kind::Empty), 1);
        QCOMPARE(count(ModelChoice::Kind::Template), static_cast<std::ptrdiff_t>(library::templates().size()));
        QCOMPARE(count(ModelChoice::Kind::Preset), static_cast<std::ptrdiff_t>(families::presets().size()));
        QVERIFY(count(ModelChoice::Kind::Example) >= 7); // of resources/recipes, those whose model is there
        for (const ModelChoice& choice : choices) {
            const auto document = makeChosen(choice);
            QVERIFY2(document.has_value(), qPrintable(choice.name));
            QVERIFY2(!choice.summary.isEmpty(), qPrintable(choice.name));
            if (choice.kind != ModelChoice::Kind::Empty) QVERIFY2(graph::expand(*document).ok(), qPrintable(choice.name));
        }
    }

    void anExamplesNetworkHasItsOwnSizes() { // image-classifier-digits.json: height=8, width=8
        const auto found = searchChoices(modelChoices(kRecipes, false), QStringLiteral("image-classifier-digits"));
        QCOMPARE(found.size(), std::size_t(1));
        const auto document = makeChosen(found.front());
        for (const graph::HyperParameter& hyper : document->main.hyper)
            if (hyper.name == "height" || hyper.name == "width") QCOMPARE(std::get<std::int64_t>(hyper.value), std::int64_t(8));
        QCOMPARE(document->main.name, std::string("image-classifier-digits"));
    }

    void aSearchFindsNamesFirst() {
        const auto choices = modelChoices(kRecipes, false);
        QCOMPARE(searchChoices(choices, QStringLiteral("fusion")).front().name, QStringLiteral("fusion"));
        QCOMPARE(searchChoices(choices, QStringLiteral("7b baichuan2")).front().name, QStringLiteral("baichuan2-7b"));
        QVERIFY(searchChoices(choices, QStringLiteral("nothing like it")).empty());
        QVERIFY(!searchChoices(modelChoices(kRecipes, true), QStringLiteral("图像")).empty());
    }

    void aPresetIsChosenByKeyboardAndNeedsNoFile() {
        OnPage page;
        NewModelDialog* dialog = page.ask();
        QVERIFY(dialog);
        QTest::keyClicks(dialog->focusWidget(), QStringLiteral("internlm2-tiny"));
        QTest::keyClick(dialog->focusWidget(), Qt::Key_Return);
        QCOMPARE(page.bench.model.source(), QStringLiteral("internlm2-tiny"));
        QCOMPARE(QString::fromStdString(page.bench.recipe.recipe().text("model.source")), QStringLiteral("internlm2-tiny"));
        QVERIFY(!page.page->needsSaving());
        QCOMPARE(page.bench.model.count(), 2);
    }

    void theArrowsWalkTheListFromTheSearchLine() {
        OnPage page;
        NewModelDialog* dialog = page.ask();
        auto* list = dialog->findChild<QTreeWidget*>();
        QCOMPARE(list->currentItem()->text(0), QStringLiteral("Empty graph"));
        QTest::keyClicks(dialog->focusWidget(), QStringLiteral("baichuan2"));
        const QString first = list->currentItem()->text(0);
        QTest::keyClick(dialog->focusWidget(), Qt::Key_Down);
        QVERIFY(list->currentItem()->text(0) != first);
        QCOMPARE(dialog->focusWidget(), dialog->findChild<QLineEdit*>());
        QTest::keyClick(dialog->focusWidget(), Qt::Key_Escape);
        QTRY_VERIFY(!page.page->findChild<NewModelDialog*>());
        QCOMPARE(page.bench.model.count(), 1);
    }

    void anExampleIsUntitledAndARunSavesItFirst() {
        OnPage page;
        NewModelDialog* dialog = page.ask();
        QTest::keyClicks(dialog->focusWidget(), QStringLiteral("multi-task-wine"));
        QTest::keyClick(dialog->focusWidget(), Qt::Key_Return);
        QVERIFY(page.bench.model.current().isUntitled());
        QCOMPARE(page.bench.model.current().title(), QStringLiteral("multi-task-wine"));
        QVERIFY(page.page->needsSaving());
        QVERIFY(!page.bench.model.isModified()); // nothing would be lost
    }

    void aFoldersWeightsStayLinkedUntilAnEditBreaksThem() {
        OnPage page;
        page.page->open(kFolder);
        QTRY_VERIFY2(page.bar().contains(QLatin1String("are not used")), qPrintable(page.bar()));
        QTest::mouseClick(page.barButton(), Qt::LeftButton);
        QCOMPARE(QString::fromStdString(page.bench.recipe.recipe().text("model.weights")), kFolder);
        QTRY_VERIFY2(page.bar().contains(QLatin1String("tensors fit")), qPrintable(page.bar()));

        // A cell without weights changes nothing about them.
        QTRY_VERIFY(page.view->positions().at("norm").y > page.view->positions().at("layers").y + 27); // Graphviz has answered
        const auto norm = page.view->positions().at("norm");
        QTest::mouseClick(page.view->viewport(), Qt::LeftButton, {}, page.view->mapFromScene(QPointF(norm.x, norm.y)));
        QTest::keyClick(page.view, Qt::Key_K, Qt::ControlModifier);
        auto* search = page.page->findChild<Palette*>()->findChild<QLineEdit*>();
        QTest::keyClicks(search, QStringLiteral("dropout"));
        QTest::keyClick(search, Qt::Key_Return);
        QTRY_VERIFY(page.bench.analyser.isSettled() && page.bench.analyser.latest()->edited == page.bench.model.snapshot());
        QVERIFY2(page.bench.analyser.latest()->expansion.ok(), page.bench.analyser.latest()->expansion.firstError().text().c_str());
        QVERIFY2(page.bar().contains(QLatin1String("tensors fit")), qPrintable(page.bar()));

        // Another name is another weight.
        QVERIFY(page.bench.model.edit(QStringLiteral("x"), [](graph::Document& document) { return graph::renameCell(document, "", "norm", "last_norm"); }).has_value());
        QTRY_VERIFY2(page.bar().contains(QLatin1String("would be refused")), qPrintable(page.bar()));
        QVERIFY2(page.bar().contains(QLatin1String("last_norm.weight")) && page.bar().contains(QLatin1String(" norm.weight")), qPrintable(page.bar()));
        QTest::keyClick(page.view, Qt::Key_Z, Qt::ControlModifier);
        QTRY_VERIFY2(page.bar().contains(QLatin1String("tensors fit")), qPrintable(page.bar()));

        QTest::mouseClick(page.barButton(), Qt::LeftButton); // from scratch
        QCOMPARE(page.bench.recipe.recipe().text("model.weights"), std::string());
        QTRY_VERIFY(page.bar().contains(QLatin1String("are not used")));
    }

    void differencesOfWeightsAreNamed() { // expected by hand: one gone, one new, one of another size
        graph::ExpandedModel folder, model;
        const auto cell = [](const std::string& path, std::vector<std::int64_t> dims) {
            graph::CellInstance made;
            made.path = path;
            made.weights = {{"weight", std::move(dims)}};
            return made;
        };
        folder.cells = {cell("a", {2, 3}), cell("b", {4}), cell("c", {5})};
        model.cells = {cell("a", {2, 3}), cell("b", {8}), cell("d", {5})};
        const WeightsFit fit = compareWeights(folder, model);
        QCOMPARE(fit.fitting, std::size_t(1));
        QCOMPARE(fit.missing, std::vector<std::string>{"d.weight"});
        QCOMPARE(fit.unused, std::vector<std::string>{"c.weight"});
        QCOMPARE(fit.resized, std::vector<std::string>{"b.weight [8], there [4]"});
        QVERIFY(!fit.isWhole());
    }

    void openedFoldersAndSavedFilesAreRemembered() {
        OnPage page;
        page.page->open(kFolder);
        QTRY_COMPARE(page.bench.model.source(), kFolder);
        const QString file = page.bench.folder.filePath(QStringLiteral("mine.cells.json"));
        QVERIFY(page.bench.model.current().save(file));
        page.page->open(file);
        QTRY_COMPARE(page.bench.settings.value(QStringLiteral("models/recent")).toStringList(), (QStringList{file, kFolder}));
    }

    void aLoneGraphIsNotTakenForAFolder() {
        OnPage page;
        const QString file = page.bench.folder.filePath(QStringLiteral("alone/mine.cells.json"));
        QVERIFY(QDir().mkpath(QFileInfo(file).path()));
        QFile written(file);
        QVERIFY(written.open(QIODevice::WriteOnly));
        written.write(QByteArray::fromStdString(graph::toJson(*page.bench.model.snapshot())));
        written.close();
        const auto isSaid = [&](const QString& text) {
            const auto labels = page.page->findChild<Inspector*>()->findChildren<QLabel*>();
            return std::any_of(labels.begin(), labels.end(), [&](const QLabel* label) { return label->text().contains(text); });
        };
        page.page->open(file);
        QTRY_VERIFY(isSaid(file));
        QVERIFY(isSaid(QStringLiteral("A Cell graph by itself")));
        QVERIFY(!isSaid(QStringLiteral("Not understood")));
        page.page->open(kFolder);
        QTRY_VERIFY(isSaid(QStringLiteral("Not understood")));
    }
};

QTEST_MAIN(TestNewModel)
#include "tst_new_model.moc"
