// The window as a whole, without an engine: pages by keyboard, validation that leads to the field, two languages, no LibTorch.
#include "tests/ui/services_bench.h"
#include "ui/common/format.h"
#include "ui/common/plot.h"
#include "ui/editor/model_page.h"
#include "ui/editor/unsaved_dialog.h"
#include "ui/history/history_page.h"
#include "ui/live/live_page.h"
#include "ui/shell/main_window.h"
#include "ui/shell/notice.h"
#include "ui/shell/welcome_page.h"
#include "ui/train/train_page.h"

#include <QAbstractButton>
#include <QComboBox>
#include <QDir>
#include <QDragEnterEvent>
#include <QFileDialog>
#include <QLabel>
#include <QLineEdit>
#include <QListWidget>
#include <QMimeData>
#include <QPlainTextEdit>
#include <QProcess>
#include <QPushButton>
#include <QScreen>
#include <QStackedWidget>
#include <QTest>

#include <algorithm>
#include <memory>

using namespace celloom;
using namespace celloom::ui;

namespace {

/// A whole window over a workspace of its own.
struct Bench : test::ServicesBench {
    std::unique_ptr<MainWindow> window = std::make_unique<MainWindow>(services);

    Bench() {
        window->show();
        QVERIFY(QTest::qWaitForWindowExposed(window.get()));
    }
    template <class Page> bool isInFront() const {
        auto* stack = window->findChild<QStackedWidget*>();
        return qobject_cast<Page*>(stack->currentWidget()) != nullptr;
    }
    /// A recipe file of that name, whose own name it is.
    QString write(const char* name) const {
        RecipeDocument document;
        document.setValue(QStringLiteral("name"), std::string(name));
        const QString path = folder.filePath(QString::fromLatin1(name) + QStringLiteral(".json"));
        return document.save(path) ? path : QString();
    }
    static std::string nameIn(const QString& path) {
        const auto recipe = recipe::Recipe::load(path.toStdString());
        return recipe ? recipe->text("name") : std::string();
    }
    UnsavedDialog* question() const { return window->findChild<UnsavedDialog*>(); }
    void answer(const char* text) const {
        QTRY_VERIFY(question());
        for (auto* button : question()->findChildren<QPushButton*>())
            if (button->text() == QLatin1String(text)) return QTest::mouseClick(button, Qt::LeftButton);
        QFAIL(text);
    }
};

} // namespace

class TestWindow : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void itOpensInsideTheScreen() {
        Bench bench;
        QVERIFY(bench.window->height() <= bench.window->screen()->availableGeometry().height());
    }

    void pagesOpenByKeyboard() {
        Bench bench;
        QVERIFY(bench.isInFront<WelcomePage>());
        QTest::keyClick(bench.window.get(), Qt::Key_3, Qt::ControlModifier);
        QVERIFY(bench.isInFront<TrainPage>());
        QTest::keyClick(bench.window.get(), Qt::Key_4, Qt::ControlModifier);
        QVERIFY(bench.isInFront<LivePage>());
        QTest::keyClick(bench.window.get(), Qt::Key_5, Qt::ControlModifier);
        QVERIFY(bench.isInFront<HistoryPage>());
        QTest::keyClick(bench.window.get(), Qt::Key_0, Qt::ControlModifier);
        QVERIFY(bench.isInFront<WelcomePage>());
    }

    void validatingNamesTheFirstProblemAndLeadsToItsField() {
        Bench bench; // a recipe without training files
        QTest::keyClick(bench.window.get(), Qt::Key_F7);
        auto* notice = bench.window->findChild<Notice*>();
        QTRY_VERIFY(notice->isVisible());
        QCOMPARE(notice->property("level").toString(), QStringLiteral("error"));
        auto* action = notice->findChild<QPushButton*>();
        QVERIFY(action->isVisible());
        action->click();
        QVERIFY(bench.isInFront<TrainPage>());
        auto* editor = bench.window->findChild<QWidget*>(QStringLiteral("data.train"));
        QVERIFY(editor);
        QTRY_VERIFY(editor->hasFocus());
    }

    void besideTheRecipeNothingLiesUponAnother() { // a notice takes height from the page
        Bench bench;
        bench.services.language.choose(QStringLiteral("zh_CN"));
        bench.window->resize(1280, 640);
        QTest::keyClick(bench.window.get(), Qt::Key_3, Qt::ControlModifier);
        QTest::keyClick(bench.window.get(), Qt::Key_F7);
        QTest::qWait(600); // the texts follow the recipe after a moment
        const auto* plot = bench.window->findChild<TrainPage*>()->findChild<Plot*>();
        QVERIFY(plot);
        for (const auto* label : plot->parentWidget()->findChildren<QLabel*>(Qt::FindDirectChildrenOnly))
            if (label->isVisible()) QTRY_VERIFY2(!label->geometry().intersects(plot->geometry()), qPrintable(label->text()));
        for (const auto* label : bench.window->findChild<TrainPage*>()->findChildren<QLabel*>())
            if (label->isVisible() && label->wordWrap()) QTRY_VERIFY2(label->height() >= label->heightForWidth(label->width()), qPrintable(QStringLiteral("%1 of %2: ").arg(label->height()).arg(label->heightForWidth(label->width())) + label->text()));
    }

    void everyExampleHasATitleOfItsOwn() {
        test::ServicesBench bench;
        bench.services.recipesFolder = QStringLiteral(CELLOOM_SOURCE "/resources/recipes");
        const auto examples = findExamples(bench.services.recipesFolder);
        QVERIFY(examples.size() > 5);
        for (const char* language : {"en", "zh_CN"}) {
            bench.language.choose(QLatin1String(language));
            const WelcomePage page(bench.services);
            for (const auto* label : page.findChildren<QLabel*>())
                for (const Example& example : examples) QVERIFY2(label->text() != example.name, qPrintable(example.name));
        }
        bench.language.choose(QStringLiteral("en"));
    }

    void aRecipeInOrderIsSaidToBeSo() {
        Bench bench;
        bench.recipe.setValue(QStringLiteral("data.train"), std::vector<std::string>{"a.txt"});
        QTest::keyClick(bench.window.get(), Qt::Key_F7);
        auto* notice = bench.window->findChild<Notice*>();
        QTRY_VERIFY(notice->isVisible());
        QVERIFY(notice->property("level").toString() != QStringLiteral("error"));
    }

    void anotherRecipeAsksAboutUnsavedEdits() {
        Bench bench;
        const QString first = bench.write("first"), second = bench.write("second");
        bench.window->openRecipe(first);
        QVERIFY(!bench.question());
        QCOMPARE(bench.recipe.filePath(), first);
        bench.recipe.setValue(QStringLiteral("name"), std::string("edited"));
        bench.window->openRecipe(second);
        QVERIFY(bench.isInFront<TrainPage>());
        bench.answer("Cancel");
        QTRY_VERIFY(!bench.question());
        QCOMPARE(bench.recipe.filePath(), first);
        QCOMPARE(bench.recipe.recipe().text("name"), std::string("edited"));
        QVERIFY(bench.recipe.isModified());
        bench.window->openRecipe(second);
        bench.answer("Save");
        QCOMPARE(bench.recipe.filePath(), second);
        QCOMPARE(Bench::nameIn(first), std::string("edited"));
        QTRY_VERIFY(!bench.question());
        bench.recipe.setValue(QStringLiteral("name"), std::string("given up"));
        bool isOpen = false;
        bench.window->openRecipe(first, [&] { isOpen = true; });
        QVERIFY(!isOpen);
        bench.answer("Discard");
        QVERIFY(isOpen);
        QCOMPARE(bench.recipe.filePath(), first);
        QCOMPARE(Bench::nameIn(second), std::string("second"));
    }

    void anExampleIsSavedElsewhere() {
        Bench bench;
        QVERIFY(QDir(bench.folder.path()).mkdir(QStringLiteral("examples")));
        const QString example = bench.write("examples/first");
        bench.window->openRecipe(example);
        bench.recipe.setValue(QStringLiteral("name"), std::string("edited"));
        bench.window->findChild<TrainPage*>()->save();
        auto* dialog = bench.window->findChild<QFileDialog*>();
        QVERIFY(dialog);
        QCOMPARE(dialog->directory().absolutePath(), pathText(bench.store.workspace().path));
        dialog->reject();
        QCOMPARE(Bench::nameIn(example), std::string("examples/first"));
        QVERIFY(bench.recipe.isModified());
    }

    void aRecipeThatDoesNotOpenCostsNothing() {
        Bench bench;
        bench.recipe.setValue(QStringLiteral("name"), std::string("edited"));
        bench.window->openRecipe(bench.folder.filePath(QStringLiteral("none.json")));
        QVERIFY(!bench.question());
        QVERIFY(bench.window->findChild<Notice*>()->isVisible());
        QCOMPARE(bench.recipe.recipe().text("name"), std::string("edited"));
    }

    void closingTheWindowAsksAboutTheRecipe() {
        Bench bench;
        const QString path = bench.write("mine");
        bench.window->openRecipe(path);
        bench.recipe.setValue(QStringLiteral("name"), std::string("edited"));
        QVERIFY(!bench.window->close());
        bench.answer("Cancel");
        QTRY_VERIFY(!bench.question());
        QVERIFY(bench.window->isVisible());
        bench.window->close();
        bench.answer("Save");
        QTRY_VERIFY(!bench.window->isVisible());
        QCOMPARE(Bench::nameIn(path), std::string("edited"));
        QCOMPARE(bench.settings.value(QStringLiteral("recipe")).toString(), path);
    }

    void closingTheWindowNamesRecipeAndModelsAtOnce() {
        Bench bench;
        bench.window->openRecipe(bench.write("mine"));
        QTRY_VERIFY(bench.model.snapshot() != nullptr);
        QVERIFY(bench.model.edit(QStringLiteral("name"), [](graph::Document& document) -> Status {
            document.main.name = "other";
            return {};
        }));
        bench.recipe.setValue(QStringLiteral("name"), std::string("edited"));
        QVERIFY(!bench.window->close());
        QTRY_VERIFY(bench.question());
        QCOMPARE(bench.question()->findChild<QListWidget*>()->count(), 2);
        QCOMPARE(bench.question()->findChild<QListWidget*>()->item(0)->text(), QStringLiteral("Recipe: mine"));
        bench.answer("Discard all");
        QTRY_VERIFY(!bench.window->isVisible());
        QCOMPARE(Bench::nameIn(bench.folder.filePath(QStringLiteral("mine.json"))), std::string("mine"));
    }

    void aRecipeWithoutAFileIsAskedAboutOnlyAfterEdits() {
        Bench bench;
        bench.recipe.follow(QStringLiteral("model.source"), std::string("internlm-tiny")); // as when a tab comes to the front
        QVERIFY(!bench.recipe.isModified());
        bench.recipe.setValue(QStringLiteral("name"), std::string("edited"));
        QVERIFY(bench.recipe.isModified());
        bench.recipe.setValue(QStringLiteral("name"), std::string());
        QVERIFY(!bench.recipe.isModified()); // as it was
        QVERIFY(bench.window->close());
        QVERIFY(bench.settings.value(QStringLiteral("draft")).toString().contains(QStringLiteral("internlm-tiny")));
    }

    void undoOnTheTrainPageLeadsToTheField() {
        Bench bench;
        QVERIFY(QTest::qWaitForWindowActive(bench.window.get()));
        QTest::keyClick(bench.window.get(), Qt::Key_3, Qt::ControlModifier);
        auto* rate = bench.window->findChild<QLineEdit*>(QStringLiteral("optimizer.lr"));
        auto* name = bench.window->findChild<QLineEdit*>(QStringLiteral("name"));
        const QString before = rate->text();
        rate->setFocus();
        rate->selectAll();
        QTest::keyClicks(rate, QStringLiteral("0.25"));
        name->setFocus();
        QTest::keyClicks(name, QStringLiteral("ab"));
        QTest::keyClick(name, Qt::Key_Z, Qt::ControlModifier);
        QVERIFY(name->text().isEmpty());
        QVERIFY(name->hasFocus());
        QCOMPARE(rate->text(), QStringLiteral("0.25"));
        QTest::keyClick(name, Qt::Key_Z, Qt::ControlModifier);
        QCOMPARE(rate->text(), before);
        QTRY_VERIFY(rate->hasFocus());
        QTest::keyClick(rate, Qt::Key_Z, Qt::ControlModifier | Qt::ShiftModifier);
        QTest::keyClick(rate, Qt::Key_Z, Qt::ControlModifier | Qt::ShiftModifier);
        QCOMPARE(rate->text(), QStringLiteral("0.25"));
        QCOMPARE(name->text(), QStringLiteral("ab"));
    }

    void everyControlThatTakesTheKeyboardHasAName() {
        Bench bench;
        for (QWidget* widget : bench.window->findChildren<QWidget*>()) {
            const bool isControl = qobject_cast<QAbstractButton*>(widget) || qobject_cast<QLineEdit*>(widget) ||
                                   qobject_cast<QComboBox*>(widget) || qobject_cast<QPlainTextEdit*>(widget);
            if (!isControl || widget->isHidden() || !(widget->focusPolicy() & Qt::TabFocus) ||
                widget->objectName().startsWith(QLatin1String("qt_")))
                continue;
            auto* button = qobject_cast<QAbstractButton*>(widget);
            const bool isInside = qobject_cast<QComboBox*>(widget->parentWidget()) != nullptr; // the line of an editable box
            const bool hasName = isInside || !widget->accessibleName().isEmpty() || (button && !button->text().isEmpty());
            QVERIFY2(hasName, qPrintable(QStringLiteral("%1 in %2")
                                             .arg(QString::fromLatin1(widget->metaObject()->className()),
                                                  QString::fromLatin1(widget->parentWidget()->metaObject()->className()))));
        }
    }

    void languageAndLookChangeWhileItRuns() {
        Bench bench;
        bench.window->showPage(PageId::Train);
        bench.language.choose(QStringLiteral("zh_CN"));
        QApplication::sendPostedEvents();
        QStringList english;
        for (auto* button : bench.window->findChildren<QPushButton*>()) {
            if (button->isVisible() && button->text().contains(QStringLiteral("Run"))) english.append(button->text());
        }
        QCOMPARE(english, QStringList());
        for (ThemeMode mode : {ThemeMode::Dark, ThemeMode::Light}) bench.theme.setMode(mode);
        bench.language.choose(QStringLiteral("en"));
        QApplication::sendPostedEvents();
    }

    void aFolderThatIsDroppedBecomesTheModel() {
        Bench bench;
        const QString folder = QStringLiteral(CELLOOM_FIXTURES "/internlm2");
        QMimeData data;
        data.setUrls({QUrl::fromLocalFile(folder)});
        QDragEnterEvent enter({50, 50}, Qt::CopyAction, &data, Qt::LeftButton, Qt::NoModifier);
        QApplication::sendEvent(bench.window.get(), &enter);
        QVERIFY(enter.isAccepted());
        QDropEvent drop({50, 50}, Qt::CopyAction, &data, Qt::LeftButton, Qt::NoModifier);
        QApplication::sendEvent(bench.window.get(), &drop);
        QVERIFY(bench.isInFront<ModelPage>());
        QTRY_COMPARE(QString::fromStdString(bench.recipe.recipe().text("model.source")), folder);
        QTRY_VERIFY(bench.analyser.isSettled() && bench.analyser.latest()->source == folder.toStdString());
        QVERIFY(bench.analyser.latest()->folder);
        QCOMPARE(bench.analyser.latest()->folder->weights.size(), std::size_t(1));
        const auto isShown = [&bench](const QString& text) { // new labels become visible when their layout has had its turn
            const auto labels = bench.window->findChildren<QLabel*>();
            return std::any_of(labels.begin(), labels.end(), [&](const QLabel* label) { return label->isVisible() && label->text() == text; });
        };
        QTRY_VERIFY(isShown(QStringLiteral("model.safetensors")));
        QCOMPARE(bench.settings.value(QStringLiteral("models/recent")).toStringList(), QStringList{folder});
        for (auto* button : bench.window->findChildren<QPushButton*>())
            if (button->text() == QStringLiteral("Begin the run with these weights")) QTest::mouseClick(button, Qt::LeftButton);
        QCOMPARE(QString::fromStdString(bench.recipe.recipe().text("model.weights")), folder);
    }

    void aFolderThatDoesNotOpenChangesNothing() {
        Bench bench;
        const std::string before = bench.recipe.recipe().toJson();
        bench.window->showPage(PageId::Model);
        auto* page = bench.window->findChild<ModelPage*>();
        page->open(bench.folder.path()); // holds no model
        auto* notice = page->findChild<Notice*>();
        QTRY_VERIFY(notice->isVisible());
        QString said;
        for (const auto* label : notice->findChildren<QLabel*>()) said += label->text();
        QVERIFY2(said.contains(QStringLiteral("the model stays as it was")) && said.contains(QStringLiteral("config.json")), qPrintable(said));
        QCOMPARE(bench.recipe.recipe().toJson(), before);
        QVERIFY(bench.settings.value(QStringLiteral("models/recent")).toStringList().isEmpty());
        page->open(QStringLiteral(CELLOOM_FIXTURES "/internlm")); // the message goes when one opens
        QTRY_VERIFY(!notice->isVisible());
    }

    void otherThingsCannotBeDropped() {
        Bench bench;
        QMimeData data;
        data.setUrls({QUrl::fromLocalFile(QStringLiteral(CELLOOM_FIXTURES "/internlm2/model.safetensors"))});
        QDragEnterEvent enter({50, 50}, Qt::CopyAction, &data, Qt::LeftButton, Qt::NoModifier);
        enter.ignore();
        QApplication::sendEvent(bench.window.get(), &enter);
        QVERIFY(!enter.isAccepted());
    }

    void runNeedsAnEngineAndSaysSo() {
        Bench bench;
        for (auto* button : bench.window->findChildren<QPushButton*>()) {
            if (button->property("role").toString() != QStringLiteral("primary") || !button->isVisible() ||
                !button->text().contains(QStringLiteral("F5")))
                continue;
            QVERIFY(!button->isEnabled());
            QVERIFY(!button->toolTip().isEmpty());
            return;
        }
        QFAIL("no run button");
    }

    void theProgramLoadsNoLibTorch() {
        QProcess ldd;
        ldd.start(QStringLiteral("ldd"), {QStringLiteral(CELLOOM_BIN "/celloom")});
        QVERIFY(ldd.waitForFinished());
        const QByteArray libraries = ldd.readAllStandardOutput();
        QVERIFY(libraries.contains("libQt6Widgets"));
        for (const char* name : {"libtorch", "libc10", "libcuda", "libsentencepiece"}) QVERIFY2(!libraries.contains(name), name);
    }
};

QTEST_MAIN(TestWindow)
#include "tst_window.moc"
