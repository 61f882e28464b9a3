// The window's program is killed while somebody edits, and started again: what was edited is there, but for the last seconds.
// This program is the window's too: started with --edit it opens the workbench and edits by mouse and keys until it is killed; with --look it opens it
// again, brings back what was left, and tells what that is.
#include "app/workbench/workbench.h"
#include "models/graph/json.h"
#include "ui/editor/graph_view.h"
#include "ui/editor/model_page.h"
#include "ui/editor/new_model_dialog.h"
#include "ui/editor/open_models.h"
#include "ui/editor/palette.h"
#include "ui/shell/notice.h"

#include <QElapsedTimer>
#include <QLineEdit>
#include <QProcess>
#include <QPushButton>
#include <QTabBar>
#include <QTemporaryDir>
#include <QTest>
#include <QTimer>

#include <cstdio>
#include <map>

using namespace celloom;
using namespace celloom::ui;

namespace {

constexpr qint64 kMayBeLostMs = 5000;

/// One line a fact, at once.
void tell(const QString& line) {
    std::printf("%s\n", qPrintable(line));
    std::fflush(stdout);
}

struct Window {
    Workbench bench{*qApp, QStringLiteral("en")};
    ModelPage* page = nullptr;

    explicit Window(const QString& workspace) {
        if (!bench.open(workspace)) qFatal("no workspace");
        bench.window().resize(1280, 800);
        bench.window().show();
        (void)QTest::qWaitForWindowActive(&bench.window());
        page = bench.window().findChild<ModelPage*>();
    }
    OpenModels& models() { return bench.services().model; }
    void key(Qt::Key key, Qt::KeyboardModifiers modifiers = Qt::ControlModifier) { QTest::keyClick(&bench.window(), key, modifiers); }
    void insert(const QString& words) {
        key(Qt::Key_K);
        auto* search = page->findChild<Palette*>()->findChild<QLineEdit*>();
        QTest::keyClicks(search, words);
        QTest::keyClick(search, Qt::Key_Return);
    }
};

/// Two models, edited in turn. Each edit is told once it is done.
int edit(const QString& workspace) {
    Window window(workspace);
    window.key(Qt::Key_1);
    if (!QTest::qWaitFor([&] { return window.models().snapshot() != nullptr && !window.page->findChild<GraphView*>()->positions().empty(); }, 20000)) return 1;
    window.key(Qt::Key_T);
    QTest::keyClick(window.bench.window().findChild<NewModelDialog*>()->focusWidget(), Qt::Key_Return); // the empty graph
    (void)QTest::qWaitForWindowActive(&window.bench.window());
    tell(QStringLiteral("ready"));
    for (int number = 0;; ++number) {
        window.insert(number % 2 ? QStringLiteral("relu") : QStringLiteral("tanh"));
        if (number % 5 == 4) window.key(Qt::Key_Tab);
        tell(QStringLiteral("edit %1 %2").arg(window.models().source()).arg(window.models().snapshot()->main.cells.size()));
        QTest::qWait(120);
    }
}

int look(const QString& workspace) {
    Window window(workspace);
    auto* notice = window.page->findChild<Notice*>(QStringLiteral("left over"));
    if (!QTest::qWaitFor([&] { return notice->isVisible(); }, 20000)) return 1;
    QTest::mouseClick(notice->findChild<QPushButton*>(), Qt::LeftButton);
    for (const ModelDocument* model : window.models().onlyHere()) {
        tell(QStringLiteral("model %1 %2").arg(model->source()).arg(model->snapshot()->main.cells.size()));
        QFile kept(workspace + QLatin1Char('/') + QFileInfo(model->source()).fileName() + QStringLiteral(".found"));
        if (kept.open(QIODevice::WriteOnly)) kept.write(QByteArray::fromStdString(graph::toJson(*model->snapshot())));
    }
    tell(QStringLiteral("front %1").arg(window.page->findChild<QTabBar*>()->tabText(window.models().indexOf(window.models().current()))));
    return 0;
}

/// A recipe of a file, edited on the Train page: a value, and a text that is none.
int editRecipe(const QString& workspace) {
    Window window(workspace);
    RecipeDocument written;
    const QString path = workspace + QStringLiteral("/mine.json");
    if (!written.save(path)) return 1;
    window.bench.window().openRecipe(path);
    const auto type = [&](const char* key, const QString& text) {
        auto* line = window.bench.window().findChild<QLineEdit*>(QLatin1String(key));
        line->selectAll();
        QTest::keyClicks(line, text);
    };
    type("optimizer.lr", QStringLiteral("0.00125"));
    type("train.max_steps", QStringLiteral("many"));
    tell(QStringLiteral("edited"));
    return QApplication::exec();
}

int lookAtRecipe(const QString& workspace) {
    Window window(workspace);
    const RecipeDocument& recipe = window.bench.services().recipe;
    tell(QStringLiteral("recipe %1 %2 %3 %4").arg(QFileInfo(recipe.filePath()).fileName(), QString::number(recipe.recipe().real("optimizer.lr")), recipe.pendingText(QStringLiteral("train.max_steps"))).arg(recipe.isModified()));
    return 0;
}

} // namespace

class TestRecovery : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void atMostFiveSecondsOfEditsAreLostInAnyTab_data() {
        QTest::addColumn<int>("afterEdits");
        QTest::newRow("soon") << 60;
        QTest::newRow("amid many") << 95;
    }

    void atMostFiveSecondsOfEditsAreLostInAnyTab() {
        QFETCH(int, afterEdits);
        const QTemporaryDir folder;
        QProcess child;
        start(child, folder, QStringLiteral("--edit"));
        struct Told {
            qint64 at;
            QString model;
            int cells;
        };
        std::vector<Told> edits;
        QElapsedTimer clock;
        clock.start();
        while (static_cast<int>(edits.size()) < afterEdits) {
            QVERIFY2(child.canReadLine() || child.waitForReadyRead(30000), child.readAllStandardError().constData());
            while (child.canReadLine()) {
                const QStringList words = QString::fromUtf8(child.readLine()).simplified().split(QLatin1Char(' '));
                if (words[0] == QLatin1String("edit")) edits.push_back({clock.elapsed(), words[1], words[2].toInt()});
            }
        }
        child.kill(); // SIGKILL
        QVERIFY(child.waitForFinished());
        const qint64 killed = clock.elapsed();
        QCOMPARE(child.exitStatus(), QProcess::CrashExit);
        std::map<QString, int> atLeast;
        for (const Told& told : edits)
            if (told.at < killed - kMayBeLostMs) atLeast[told.model] = told.cells;
        QVERIFY2(atLeast.size() == 2, "both models were edited long enough ago");

        QProcess again;
        start(again, folder, QStringLiteral("--look"));
        QVERIFY(again.waitForFinished(60000));
        const QStringList lines = QString::fromUtf8(again.readAllStandardOutput()).split(QLatin1Char('\n'));
        std::map<QString, int> found;
        for (const QString& line : lines)
            if (line.startsWith(QLatin1String("model "))) found[line.section(QLatin1Char(' '), 1, 1)] = line.section(QLatin1Char(' '), 2, 2).toInt();
        QCOMPARE(found.size(), std::size_t(2));
        for (const auto& [model, cells] : atLeast)
            QVERIFY2(found[model] >= cells, qPrintable(QStringLiteral("%1: %2 cells of at least %3").arg(model).arg(found[model]).arg(cells)));
        QVERIFY(lines.contains(QLatin1String("front untitled-1 *")) || lines.contains(QLatin1String("front baichuan-tiny *")));
        for (const auto& [model, cells] : found) QVERIFY(graph::loadDocument((folder.path() + QStringLiteral("/w/%1.found").arg(model)).toStdString()).has_value());

        QProcess third; // looking did not lose them
        start(third, folder, QStringLiteral("--look"));
        QVERIFY(third.waitForFinished(60000));
        QCOMPARE(QString::fromUtf8(third.readAllStandardOutput()).count(QLatin1String("model ")), 2);
    }

    void editsOfTheRecipeAreThereAgain() {
        const QTemporaryDir folder;
        QProcess child;
        start(child, folder, QStringLiteral("--edit-recipe"));
        QVERIFY2(child.waitForReadyRead(30000), child.readAllStandardError().constData());
        QVERIFY(!child.waitForFinished(kMayBeLostMs));
        child.kill();
        QVERIFY(child.waitForFinished());
        for (int i = 0; i < 2; ++i) { // looking does not lose them
            QProcess again;
            start(again, folder, QStringLiteral("--look-recipe"));
            QVERIFY(again.waitForFinished(60000));
            QCOMPARE(QString::fromUtf8(again.readAllStandardOutput()).trimmed(), QStringLiteral("recipe mine.json 0.00125 many 1"));
        }
    }

private:
    static void start(QProcess& process, const QTemporaryDir& folder, const QString& what) {
        QProcessEnvironment environment = QProcessEnvironment::systemEnvironment();
        for (const char* name : {"HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR"}) environment.insert(QLatin1String(name), folder.path());
        environment.insert(QStringLiteral("QT_QPA_PLATFORM"), QStringLiteral("offscreen"));
        process.setProcessEnvironment(environment);
        process.start(QCoreApplication::applicationFilePath(), {what, folder.path() + QStringLiteral("/w")});
        QVERIFY(process.waitForStarted());
    }
};

int main(int argc, char** argv) {
    QApplication application(argc, argv);
    QCoreApplication::setOrganizationName(QStringLiteral("celloom"));
    QCoreApplication::setApplicationName(QStringLiteral("celloom"));
    const QStringList arguments = QCoreApplication::arguments();
    if (arguments.size() == 3 && arguments[1] == QLatin1String("--edit")) return edit(arguments[2]);
    if (arguments.size() == 3 && arguments[1] == QLatin1String("--look")) return look(arguments[2]);
    if (arguments.size() == 3 && arguments[1] == QLatin1String("--edit-recipe")) return editRecipe(arguments[2]);
    if (arguments.size() == 3 && arguments[1] == QLatin1String("--look-recipe")) return lookAtRecipe(arguments[2]);
    TestRecovery test;
    return QTest::qExec(&test, argc, argv);
}
#include "tst_recovery.moc"
