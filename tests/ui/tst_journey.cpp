// The tasks of docs/gestures.md in the real window, as the program opens it, on a virtual screen, by X events alone: widgets are looked at to find
// places and outcomes, never called. Pictures of each step go to the build folder's journey/.
#include "app/workbench/workbench.h"
#include "tests/ui/x_hand.h"
#include "ui/editor/graph_view.h"
#include "ui/editor/model_page.h"

#include <QTemporaryDir>

using namespace celloom;
using namespace celloom::ui;

class TestJourney : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void initTestCase();
    void cleanupTestCase() { m_bench.reset(); }
    void fromAnEmptyCanvasToATrainedTransformer();

private:
    QTemporaryDir m_folder;
    std::optional<Workbench> m_bench;
    std::optional<test::XHand> m_hand;
};

void TestJourney::initTestCase() {
    m_hand.emplace(QStringLiteral(CELLOOM_JOURNEY));
    m_bench.emplace(*qApp, QStringLiteral("en"));
    const Status opened = m_bench->open(m_folder.filePath(QStringLiteral("workspace")));
    QVERIFY2(opened.has_value(), opened ? "" : opened.error().text().c_str());
    m_bench->window().show();
    m_bench->start();
    QVERIFY(QTest::qWaitForWindowExposed(&m_bench->window()));
    m_bench->window().move(0, 0);
    m_bench->window().activateWindow(); // there is no window manager
    QTRY_VERIFY(m_bench->window().isActiveWindow());
}

void TestJourney::fromAnEmptyCanvasToATrainedTransformer() {
    m_hand->picture(QStringLiteral("start"));
    m_hand->key("ctrl+1");
    QTRY_VERIFY(m_bench->window().findChild<ModelPage*>()->isVisible());
    m_hand->picture(QStringLiteral("model"));
}

int main(int argc, char** argv) {
    const auto screen = test::startScreen(QStringLiteral("1440x900"));
    if (!screen) return 1;
    QTemporaryDir home; // settings and caches of this test alone
    for (const char* name : {"HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR"}) qputenv(name, QFile::encodeName(home.path()));
    int result = 1;
    {
        QApplication application(argc, argv);
        TestJourney test;
        result = QTest::qExec(&test, argc, argv);
    }
    screen->terminate();
    screen->waitForFinished();
    return result;
}
#include "tst_journey.moc"
