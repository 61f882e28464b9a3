// Several models in tabs, by mouse and keyboard: what is in front is what the recipe trains.
#include "models/graph/edits.h"
#include "models/graph/json.h"
#include "services_bench.h"
#include "ui/editor/graph_view.h"
#include "ui/editor/model_page.h"
#include "ui/editor/new_model_dialog.h"
#include "ui/editor/palette.h"
#include "ui/editor/unsaved_dialog.h"
#include "ui/shell/notice.h"

#include <QClipboard>
#include <QDir>
#include <QLabel>
#include <QLineEdit>
#include <QListWidget>
#include <QMessageBox>
#include <QPushButton>
#include <QTabBar>
#include <QTest>
#include <QToolButton>

using namespace celloom;
using namespace celloom::ui;

namespace {

struct Tabs {
    test::ServicesBench bench;
    ModelPage page{bench.services};
    GraphView* view = page.findChild<GraphView*>();
    QTabBar* bar = page.findChild<QTabBar*>();
    OpenModels& models = bench.model;

    Tabs() {
        page.resize(1280, 800);
        page.show();
        QVERIFY(QTest::qWaitForWindowActive(&page)); // shortcuts need it
        QObject::connect(&bench.recipe, &RecipeDocument::replaced, &page, &ModelPage::requestAnalysis); // as the window does
        QObject::connect(&bench.recipe, &RecipeDocument::valueChanged, &page, &ModelPage::requestAnalysis);
        page.requestAnalysis();
    }
    bool isSettled() const { // opened, and Graphviz has answered: nothing lies on anything
        const auto places = view->positions();
        return bench.analyser.isSettled() && models.snapshot() && places.contains("norm") && places.at("norm").y > places.at("embed_tokens").y + 27;
    }
    void key(Qt::Key key, Qt::KeyboardModifiers modifiers = Qt::ControlModifier) { QTest::keyClick(page.focusWidget() ? page.focusWidget() : &page, key, modifiers); }
    void begin() { // the chooser's first entry is the empty graph
        key(Qt::Key_T);
        auto* dialog = page.findChild<NewModelDialog*>();
        QVERIFY(dialog);
        QTest::keyClick(dialog->focusWidget(), Qt::Key_Return);
        QTRY_VERIFY(!page.findChild<NewModelDialog*>());
        QVERIFY(QTest::qWaitForWindowActive(&page));
    }
    void insert(const QString& words) {
        key(Qt::Key_K);
        auto* search = page.findChild<Palette*>()->findChild<QLineEdit*>();
        QTRY_VERIFY(search->hasFocus());
        QTest::keyClicks(search, words);
        QTest::keyClick(search, Qt::Key_Return);
    }
    QString source() const { return QString::fromStdString(bench.recipe.recipe().text("model.source")); }
    QStringList titles() const {
        QStringList out;
        for (int i = 0; i < bar->count(); ++i) out.append(bar->tabText(i));
        return out;
    }
    QString write(const QString& name, const char* cell) const {
        graph::Document document;
        document.main.name = name.toStdString();
        document.main.cells = {{cell, "SiLU", {}, "", "", graph::Position{0, 0}}};
        const QString path = bench.folder.filePath(name + QStringLiteral(".cells.json"));
        QFile file(path);
        if (file.open(QIODevice::WriteOnly)) file.write(QByteArray::fromStdString(graph::toJson(document)));
        return path;
    }
    QString said() const { return page.findChild<Notice*>()->findChildren<QLabel*>().at(1)->text(); }
    UnsavedDialog* question() const { return page.findChild<UnsavedDialog*>(); }
    void answer(const QString& text) {
        QTRY_VERIFY(question());
        for (auto* button : question()->findChildren<QPushButton*>())
            if (button->text() == text) {
                QTest::mouseClick(button, Qt::LeftButton);
                return;
            }
        QFAIL("no such button");
    }
};

} // namespace

class TestDocumentTabs : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void aNewModelIsTheRecipesAndGoesAgain() {
        Tabs tabs;
        QTRY_VERIFY(tabs.isSettled());
        QCOMPARE(tabs.titles(), QStringList{QStringLiteral("baichuan-tiny")});
        tabs.begin();
        QCOMPARE(tabs.titles(), (QStringList{QStringLiteral("baichuan-tiny"), QStringLiteral("untitled-1")}));
        QCOMPARE(tabs.bar->currentIndex(), 1);
        QCOMPARE(tabs.source(), QStringLiteral("untitled-1.cells.json"));
        QVERIFY(tabs.page.needsSaving()); // a run reads files
        QTRY_VERIFY(tabs.bench.analyser.isSettled());
        QCOMPARE(tabs.bench.analyser.latest()->document.main.name, std::string("untitled-1"));
        tabs.key(Qt::Key_W);
        QCOMPARE(tabs.titles(), QStringList{QStringLiteral("baichuan-tiny")});
        QCOMPARE(tabs.source(), QStringLiteral("baichuan-tiny"));
        QVERIFY(!tabs.page.needsSaving());
    }

    void eachTabHasItsOwnUndoAndItsOwnPlace() {
        Tabs tabs;
        QTRY_VERIFY(tabs.isSettled());
        const auto layers = tabs.view->positions().at("layers");
        QTest::mouseDClick(tabs.view->viewport(), Qt::LeftButton, {}, tabs.view->mapFromScene(QPointF(layers.x, layers.y)));
        QTRY_COMPARE(tabs.view->level().prefix, std::string("layers.0."));
        tabs.begin();
        QCOMPARE(tabs.view->level().prefix, std::string());
        tabs.insert(QStringLiteral("relu"));
        tabs.insert(QStringLiteral("dropout"));
        QCOMPARE(tabs.models.snapshot()->main.cells.size(), std::size_t(2));
        QCOMPARE(tabs.bar->tabText(1), QStringLiteral("untitled-1 *"));
        tabs.view->zoomBy(0.5);
        const double zoom = tabs.view->transform().m11();
        tabs.key(Qt::Key_Tab, Qt::ControlModifier);
        QCOMPARE(tabs.source(), QStringLiteral("baichuan-tiny"));
        QCOMPARE(tabs.view->level().prefix, std::string("layers.0."));
        tabs.key(Qt::Key_Z); // nothing was done here
        QCOMPARE(tabs.models.at(1).snapshot()->main.cells.size(), std::size_t(2));
        tabs.key(Qt::Key_Backtab, Qt::ControlModifier | Qt::ShiftModifier);
        QCOMPARE(tabs.source(), QStringLiteral("untitled-1.cells.json"));
        QCOMPARE(tabs.view->transform().m11(), zoom);
        tabs.key(Qt::Key_Z);
        QCOMPARE(tabs.models.snapshot()->main.cells.size(), std::size_t(1));
    }

    void overridesAndWeightsFollowTheTab() {
        Tabs tabs;
        QTRY_VERIFY(tabs.isSettled());
        const std::vector<std::string> overrides{"layers=1"};
        tabs.bench.recipe.setValue(QStringLiteral("model.overrides"), overrides);
        tabs.bench.recipe.setValue(QStringLiteral("model.weights"), std::string("/some/base"));
        QTRY_VERIFY(tabs.bench.analyser.isSettled());
        tabs.begin();
        QVERIFY(tabs.bench.recipe.recipe().list("model.overrides").empty());
        QCOMPARE(tabs.bench.recipe.recipe().text("model.weights"), std::string());
        tabs.key(Qt::Key_Tab, Qt::ControlModifier);
        QVERIFY(tabs.bench.recipe.recipe().list("model.overrides") == overrides);
        QCOMPARE(tabs.bench.recipe.recipe().text("model.weights"), std::string("/some/base"));
    }

    void anOpenFileComesToTheFrontAndIsNotOpenedTwice() {
        Tabs tabs;
        QTRY_VERIFY(tabs.isSettled());
        const QString first = tabs.write(QStringLiteral("first"), "one"), second = tabs.write(QStringLiteral("second"), "two");
        tabs.page.open(first);
        QTRY_COMPARE(tabs.source(), first);
        tabs.page.open(second);
        QTRY_COMPARE(tabs.source(), second);
        QCOMPARE(tabs.bar->tabToolTip(tabs.bar->currentIndex()), second);
        const int count = tabs.bar->count();
        tabs.page.open(tabs.bench.folder.path() + QStringLiteral("/../") + QFileInfo(tabs.bench.folder.path()).fileName() + QStringLiteral("/first.cells.json"));
        QTRY_COMPARE(tabs.source(), first);
        QCOMPARE(tabs.bar->count(), count);
        tabs.bench.recipe.setValue(QStringLiteral("model.source"), second.toStdString()); // as the Train page's field does
        QCOMPARE(tabs.models.source(), second);
        QCOMPARE(tabs.bar->count(), count);
    }

    void aRecipesModelTakesNoEditedOnesPlace() {
        Tabs tabs;
        QTRY_VERIFY(tabs.isSettled());
        tabs.bench.recipe.setValue(QStringLiteral("model.source"), std::string("internlm-tiny"));
        QTRY_COMPARE(tabs.titles(), QStringList{QStringLiteral("internlm-tiny")}); // nothing was done to the other: it gave way
        QTRY_VERIFY(tabs.isSettled());
        tabs.insert(QStringLiteral("dropout"));
        QVERIFY(tabs.models.isModified());
        recipe::Recipe other;
        QVERIFY(other.set("model.source", std::string("baichuan-tiny")).has_value());
        tabs.bench.recipe.take(std::move(other), QStringLiteral("other"));
        QTRY_COMPARE(tabs.titles(), (QStringList{QStringLiteral("internlm-tiny *"), QStringLiteral("baichuan-tiny")}));
        QCOMPARE(tabs.models.source(), QStringLiteral("baichuan-tiny"));
    }

    void closingAnEditedModelAsks() {
        Tabs tabs;
        QTRY_VERIFY(tabs.isSettled());
        tabs.begin();
        tabs.insert(QStringLiteral("relu"));
        tabs.key(Qt::Key_Tab, Qt::ControlModifier);
        QTest::mouseClick(tabs.bar, Qt::MiddleButton, {}, tabs.bar->tabRect(1).center());
        QCOMPARE(tabs.bar->currentIndex(), 1); // one sees what is asked about
        tabs.answer(QStringLiteral("Cancel"));
        QTRY_VERIFY(!tabs.question());
        QCOMPARE(tabs.bar->count(), 2);
        auto* close = tabs.bar->tabButton(1, QTabBar::RightSide);
        QTest::mouseClick(close, Qt::LeftButton);
        tabs.answer(QStringLiteral("Discard"));
        QCOMPARE(tabs.titles(), QStringList{QStringLiteral("baichuan-tiny")});
    }

    void leavingListsAllThatAreUnsaved() {
        Tabs tabs;
        QTRY_VERIFY(tabs.isSettled());
        const QString file = tabs.write(QStringLiteral("mine"), "one");
        tabs.page.open(file);
        QTRY_COMPARE(tabs.source(), file);
        tabs.insert(QStringLiteral("relu"));
        tabs.begin();
        tabs.insert(QStringLiteral("tanh"));
        bool isLeft = false;
        tabs.page.leaveAll([&] { isLeft = true; });
        QTRY_VERIFY(tabs.question());
        auto* list = tabs.question()->findChild<QListWidget*>();
        QCOMPARE(list->count(), 2);
        QCOMPARE(list->item(0)->text(), QStringLiteral("mine"));
        tabs.answer(QStringLiteral("Cancel"));
        QVERIFY(!isLeft);
        QTRY_VERIFY(!tabs.question());
        tabs.page.leaveAll([&] { isLeft = true; });
        tabs.answer(QStringLiteral("Discard all"));
        QVERIFY(isLeft);
        QVERIFY(tabs.models.onlyHere().empty());
        QCOMPARE(graph::loadDocument(file.toStdString())->main.cells.size(), std::size_t(1));
    }

    void whatChangesOutsideIsReadAgainWhenOneComesBack() {
        Tabs tabs;
        QTRY_VERIFY(tabs.isSettled());
        const QString file = tabs.write(QStringLiteral("mine"), "one");
        tabs.page.open(file);
        QTRY_COMPARE(tabs.source(), file);
        tabs.begin();
        tabs.write(QStringLiteral("mine"), "other");
        tabs.key(Qt::Key_Tab, Qt::ControlModifier | Qt::ShiftModifier);
        QCOMPARE(tabs.source(), file);
        QVERIFY(graph::findCell(tabs.models.snapshot()->main, "other"));
        QVERIFY(!tabs.models.isModified());
        QVERIFY(tabs.said().contains(QStringLiteral("was read again")));
        tabs.key(Qt::Key_Z);
        QVERIFY(graph::findCell(tabs.models.snapshot()->main, "one"));
        // With edits of one's own it is only said.
        tabs.write(QStringLiteral("mine"), "third");
        QEvent activated(QEvent::ActivationChange); // one was in another window
        QApplication::sendEvent(&tabs.page, &activated);
        QVERIFY(tabs.said().contains(QStringLiteral("unsaved edits here")));
        QVERIFY(graph::findCell(tabs.models.snapshot()->main, "one"));
        auto* again = tabs.page.findChild<Notice*>()->findChild<QPushButton*>();
        QCOMPARE(again->text(), QStringLiteral("Read the file again"));
        QTest::mouseClick(again, Qt::LeftButton);
        QVERIFY(graph::findCell(tabs.models.snapshot()->main, "third"));
        QFile broken(file);
        QVERIFY(broken.open(QIODevice::WriteOnly) && broken.write("{") == 1);
        broken.close();
        QApplication::sendEvent(&tabs.page, &activated);
        QVERIFY(tabs.said().contains(QStringLiteral("cannot be read")));
        QVERIFY(graph::findCell(tabs.models.snapshot()->main, "third"));
    }

    void savingAsksBeforeItReplacesWhatSomebodyElseWrote() {
        Tabs tabs;
        QTRY_VERIFY(tabs.isSettled());
        const QString file = tabs.write(QStringLiteral("mine"), "one");
        const auto onDisk = [&] { return QString::fromStdString(graph::loadDocument(file.toStdString())->main.cells.front().name); };
        tabs.page.open(file);
        QTRY_COMPARE(tabs.source(), file);
        tabs.insert(QStringLiteral("relu"));
        tabs.write(QStringLiteral("mine"), "other");
        const auto answer = [&](const QString& text) {
            QTRY_VERIFY(tabs.page.findChild<QMessageBox*>());
            for (auto* button : tabs.page.findChild<QMessageBox*>()->findChildren<QPushButton*>())
                if (button->text() == text) QTest::mouseClick(button, Qt::LeftButton);
            QTRY_VERIFY(!tabs.page.findChild<QMessageBox*>());
            QVERIFY(QTest::qWaitForWindowActive(&tabs.page));
        };
        bool isSaved = false;
        tabs.page.save([&] { isSaved = true; }); // as a run does first
        answer(QStringLiteral("Cancel"));
        QVERIFY(!isSaved && tabs.models.isModified());
        QCOMPARE(onDisk(), QStringLiteral("other"));
        tabs.page.save([&] { isSaved = true; });
        answer(QStringLiteral("Save over it"));
        QVERIFY(isSaved && !tabs.models.isModified());
        QCOMPARE(onDisk(), QStringLiteral("one"));
        isSaved = false;
        tabs.insert(QStringLiteral("tanh"));
        tabs.page.save([&] { isSaved = true; }); // nobody else was there
        QVERIFY(isSaved && !tabs.page.findChild<QMessageBox*>());
        tabs.insert(QStringLiteral("gelu"));
        tabs.write(QStringLiteral("mine"), "fourth");
        tabs.page.save();
        answer(QStringLiteral("Read the file again"));
        QVERIFY(graph::findCell(tabs.models.snapshot()->main, "fourth"));
        QVERIFY(!tabs.models.isModified());
        tabs.key(Qt::Key_Z);
        QVERIFY(tabs.models.snapshot()->main.cells.size() > 1); // what was here
    }

    void aModelWhoseFileIsGoneIsNotClosedUnasked() {
        Tabs tabs;
        QTRY_VERIFY(tabs.isSettled());
        const QString file = tabs.write(QStringLiteral("mine"), "one");
        tabs.page.open(file);
        QTRY_COMPARE(tabs.source(), file);
        QVERIFY(QFile::remove(file));
        tabs.key(Qt::Key_W);
        tabs.answer(QStringLiteral("Cancel"));
        QTRY_VERIFY(!tabs.question());
        QCOMPARE(tabs.source(), file);
        bool isLeft = false;
        tabs.page.leaveAll([&] { isLeft = true; });
        tabs.answer(QStringLiteral("Save"));
        QVERIFY(isLeft && QFile::exists(file));
        QVERIFY(QFile::remove(file));
        isLeft = false;
        tabs.page.leaveAll([&] { isLeft = true; });
        tabs.answer(QStringLiteral("Discard"));
        QVERIFY(isLeft && tabs.models.onlyHere().empty()); // the window may go
    }

    void whatIsSaidOfAModelGoesWithItsTab() {
        Tabs tabs;
        QTRY_VERIFY(tabs.isSettled());
        auto* notice = tabs.page.findChild<Notice*>();
        tabs.page.open(tabs.bench.folder.filePath(QStringLiteral("nowhere.cells.json")));
        QTRY_VERIFY(notice->isVisible());
        const QString said = tabs.said();
        tabs.begin();
        QVERIFY(!notice->isVisible());
        tabs.key(Qt::Key_Tab);
        QVERIFY(notice->isVisible());
        QCOMPARE(tabs.said(), said);
        QTest::mouseClick(notice->findChild<QToolButton*>(), Qt::LeftButton);
        tabs.key(Qt::Key_Tab);
        tabs.key(Qt::Key_Tab);
        QVERIFY(!notice->isVisible()); // it was closed
    }

    void equalNamesAreToldApartByTheirFolders() {
        Tabs tabs;
        QTRY_VERIFY(tabs.isSettled());
        for (const char* folder : {"a/x", "b/x", "b/y"}) QVERIFY(QDir(tabs.bench.folder.path()).mkpath(QLatin1String(folder)));
        for (const char* name : {"a/x/m", "b/x/m", "b/y/m", "b/y/other"}) {
            const QString file = tabs.write(QLatin1String(name), "one");
            tabs.page.open(file);
            QTRY_COMPARE(tabs.source(), file);
        }
        QCOMPARE(tabs.titles(), (QStringList{QStringLiteral("m — a/x"), QStringLiteral("m — b/x"), QStringLiteral("m — y"), QStringLiteral("other")}));
        tabs.models.setCurrent(tabs.models.at(0));
        tabs.key(Qt::Key_W);
        QCOMPARE(tabs.titles().at(0), QStringLiteral("m — x"));
    }

    void theTabsOfTheLastWindowAreThereAgain() {
        Tabs tabs;
        QTRY_VERIFY(tabs.isSettled());
        const QString first = tabs.write(QStringLiteral("first"), "one"), second = tabs.write(QStringLiteral("second"), "two");
        for (const QString& file : {tabs.write(QStringLiteral("zeroth"), "nil"), first, second}) {
            tabs.page.open(file);
            QTRY_COMPARE(tabs.source(), file);
        }
        QVERIFY(QFile::remove(second));
        tabs.models.setCurrent(tabs.models.at(0));
        tabs.page.keepTabs(); // the recipe's own comes with the recipe
        test::ServicesBench next;
        next.settings.setValue(QStringLiteral("models/open"), tabs.bench.settings.value(QStringLiteral("models/open")));
        ModelPage page(next.services);
        QCOMPARE(next.model.count(), 2);
        QCOMPARE(next.model.at(1).title(), QStringLiteral("first"));
        QVERIFY(!next.model.at(1).snapshot()); // read when one goes there
        auto* notice = page.findChild<Notice*>();
        QVERIFY(!notice->isHidden() && notice->findChildren<QLabel*>().at(1)->text().contains(second));
        next.model.setCurrent(next.model.at(1));
        QTRY_VERIFY(next.model.snapshot());
        QVERIFY(graph::findCell(next.model.snapshot()->main, "one"));
        QCOMPARE(next.recipe.recipe().text("model.source"), first.toStdString());
    }

    void cellsAreCopiedFromTabToTab() {
        Tabs tabs;
        QTRY_VERIFY(tabs.isSettled());
        const auto norm = tabs.view->positions().at("norm");
        QTest::mouseClick(tabs.view->viewport(), Qt::LeftButton, {}, tabs.view->mapFromScene(QPointF(norm.x, norm.y)));
        QTest::keyClick(tabs.view, Qt::Key_C, Qt::ControlModifier);
        tabs.begin();
        QTest::keyClick(tabs.view, Qt::Key_V, Qt::ControlModifier);
        QVERIFY(graph::findCell(tabs.models.snapshot()->main, "norm"));
        QCOMPARE(tabs.models.snapshot()->main.hyper.size(), std::size_t(2)); // hidden and norm_eps came along
        QVERIFY(!tabs.models.at(0).isModified());
    }

    void tabsAreReorderedByDragging() {
        Tabs tabs;
        QTRY_VERIFY(tabs.isSettled());
        tabs.begin();
        tabs.begin();
        QCOMPARE(tabs.models.at(2).source(), QStringLiteral("untitled-2.cells.json"));
        const QPoint from = tabs.bar->tabRect(2).center(), to = tabs.bar->tabRect(0).center() - QPoint(20, 0);
        QTest::mousePress(tabs.bar, Qt::LeftButton, {}, from);
        for (int i = 1; i <= 10; ++i) QTest::mouseMove(tabs.bar, from + (to - from) * i / 10);
        QTest::mouseRelease(tabs.bar, Qt::LeftButton, {}, to);
        QTRY_COMPARE(tabs.models.at(0).source(), QStringLiteral("untitled-2.cells.json"));
        QCOMPARE(tabs.bar->tabText(0), QStringLiteral("untitled-2"));
        QCOMPARE(tabs.models.source(), QStringLiteral("untitled-2.cells.json"));
    }

    void theLastOneThatIsClosedLeavesAnEmptyGraph() {
        Tabs tabs;
        QTRY_VERIFY(tabs.isSettled());
        tabs.key(Qt::Key_W);
        QCOMPARE(tabs.titles(), QStringList{QStringLiteral("untitled-1")});
        QVERIFY(tabs.models.snapshot() && tabs.models.snapshot()->main.cells.empty());
        QCOMPARE(tabs.source(), QStringLiteral("untitled-1.cells.json"));
    }

    void aRunThatDoesNotTrainShowsTheNetworkOfItsWeights() {
        Tabs tabs;
        QTRY_VERIFY(tabs.isSettled());
        tabs.insert(QStringLiteral("dropout"));
        tabs.bench.recipe.setValue(QStringLiteral("kind"), std::string("evaluate"));
        QTRY_VERIFY(!tabs.bar->isVisible());
        QVERIFY(!tabs.page.needsSaving());
        tabs.bench.recipe.setValue(QStringLiteral("kind"), std::string("pretrain"));
        QTRY_VERIFY(tabs.bar->isVisible());
        QVERIFY(graph::findCell(tabs.models.snapshot()->main, "dropout"));
        QVERIFY(tabs.page.needsSaving());
    }
};

QTEST_MAIN(TestDocumentTabs)
#include "tst_document_tabs.moc"
