// The tasks of docs/gestures.md in the real window, as the program opens it, on a virtual screen, by X events alone: widgets are looked at to find
// places and outcomes, never called. Pictures of each step go to the build folder's journey/.
#include "app/workbench/workbench.h"
#include "models/graph/edits.h"
#include "tests/ui/x_hand.h"
#include "ui/editor/graph_view.h"
#include "ui/editor/inspector.h"
#include "ui/editor/model_page.h"
#include "ui/editor/probe_charts.h"
#include "ui/history/history_page.h"
#include "ui/train/train_page.h"

#include <QAbstractButton>
#include <QClipboard>
#include <QLabel>
#include <QLineEdit>
#include <QTableView>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QTemporaryDir>

using namespace celloom;
using namespace celloom::ui;

class TestJourney : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void initTestCase();
    void cleanupTestCase() { m_bench.reset(); }
    // each begins where the one before it ended
    void aTransformerIsBuiltFromAnEmptyCanvas();
    void problemsAreMendedByTheFixesOffered();
    void aProbeShowsWhatIsOnTheWires();
    void itIsSaved();
    void itTrainsForTwentySteps();
    void theRunIsInTheHistory();
    void codeOnTheClipboardBecomesAGraph();

private:
    ModelPage* page() { return m_bench->window().findChild<ModelPage*>(); }
    GraphView* view() { return page()->findChild<GraphView*>(); }
    const graph::Document& document() { return *m_bench->services().model.snapshot(); }
    const graph::Cell* cell(const char* name) { return graph::findCell(document().main, name); }
    QPoint placeOf(const std::string& cell);
    /// Where a field of the panel on the right is, by the name of what it holds.
    QWidget* field(const char* name);
    void insert(const char* words);
    void fill(QWidget* field, const QString& text);
    /// Gestures since the last call against the budget of docs/gestures.md.
    void within(int budget, const char* task);

    QTemporaryDir m_folder;
    std::optional<Workbench> m_bench;
    std::optional<test::XHand> m_hand;
    QStringList m_counts;
};

void TestJourney::initTestCase() {
    const QString recipe = m_folder.filePath(QStringLiteral("journey.json"));
    const QString corpus = QStringLiteral(CELLOOM_SOURCE "/resources/corpora/sanguo/");
    QFile file(recipe);
    QVERIFY(file.open(QIODevice::WriteOnly));
    file.write(QJsonDocument(QJsonObject{{QStringLiteral("schema"), 1},
                                         {QStringLiteral("name"), QStringLiteral("journey")},
                                         {QStringLiteral("model"), QJsonObject{{QStringLiteral("source"), QStringLiteral("baichuan-tiny")}}},
                                         {QStringLiteral("tokenizer"), QJsonObject{{QStringLiteral("vocab_size"), 1200}, {QStringLiteral("character_coverage"), 0.98}}},
                                         {QStringLiteral("data"), QJsonObject{{QStringLiteral("train"), QJsonArray{corpus + QStringLiteral("001.txt"), corpus + QStringLiteral("002.txt")}}}},
                                         {QStringLiteral("train"), QJsonObject{{QStringLiteral("batch_size"), 2}, {QStringLiteral("sequence_length"), 32}}}})
                   .toJson());
    file.close();
    m_hand.emplace(QStringLiteral(CELLOOM_JOURNEY));
    m_bench.emplace(*qApp, QStringLiteral("en"));
    const Status opened = m_bench->open(m_folder.filePath(QStringLiteral("workspace")));
    QVERIFY2(opened.has_value(), opened ? "" : opened.error().text().c_str());
    QVERIFY(m_bench->services().recipe.open(recipe).has_value()); // as on the command line
    m_bench->window().show();
    m_bench->start();
    QVERIFY(QTest::qWaitForWindowExposed(&m_bench->window()));
    m_bench->window().setGeometry(0, 0, 1440, 900);
    m_bench->window().activateWindow(); // there is no window manager
    QTRY_VERIFY(m_bench->window().isActiveWindow());
    QTest::qWait(300);
}

QPoint TestJourney::placeOf(const std::string& cell) {
    const auto at = view()->positions().at(cell);
    return view()->viewport()->mapToGlobal(view()->mapFromScene(QPointF(at.x, at.y)));
}

QWidget* TestJourney::field(const char* name) {
    for (QWidget* widget : page()->findChildren<QWidget*>(QString::fromLatin1(name)))
        if (widget->isVisible()) return widget;
    return nullptr;
}

void TestJourney::insert(const char* words) {
    const std::size_t before = document().main.cells.size() + document().main.inputs.size() + document().main.outputs.size();
    m_hand->key("ctrl+k");
    m_hand->type(QString::fromLatin1(words));
    m_hand->key("Return");
    QTRY_COMPARE(document().main.cells.size() + document().main.inputs.size() + document().main.outputs.size(), before + 1);
    QTest::qWait(300);
}

void TestJourney::fill(QWidget* field, const QString& text) {
    QVERIFY(field);
    m_hand->click(field);
    if (const auto* line = qobject_cast<QLineEdit*>(field); line && !line->text().isEmpty()) m_hand->key("ctrl+a");
    m_hand->type(text);
    m_hand->key("Return");
    QTest::qWait(300);
}

void TestJourney::within(int budget, const char* task) {
    const int count = m_hand->gestures();
    m_counts.append(QStringLiteral("%1: %2 of %3").arg(QLatin1String(task)).arg(count).arg(budget));
    qInfo("gestures, %s", qPrintable(m_counts.back()));
    QVERIFY2(count <= budget, qPrintable(m_counts.back()));
    m_hand->startCounting();
}

void TestJourney::aTransformerIsBuiltFromAnEmptyCanvas() {
    m_hand->key("ctrl+1");
    QTRY_VERIFY(page()->isVisible());
    QTRY_VERIFY(!document().main.cells.empty());
    m_hand->startCounting();
    m_hand->key("ctrl+t");
    QTRY_VERIFY(QApplication::activeModalWidget() || QApplication::activePopupWidget());
    m_hand->picture(QStringLiteral("new"));
    m_hand->key("Return");
    m_hand->focus(m_bench->window());
    QTRY_VERIFY(document().main.cells.empty());
    m_hand->picture(QStringLiteral("empty"));
    insert("token ids");
    insert("embedding");
    m_hand->picture(QStringLiteral("embedding"));
    fill(field("param:vocab_size"), QStringLiteral("1200"));
    fill(field("param:embedding_size"), QStringLiteral("64"));
    insert("transformerblock");
    m_hand->picture(QStringLiteral("block"));
    fill(field("repeat"), QStringLiteral("2"));
    QWidget* causal = field("param:causal");
    QVERIFY(causal);
    m_hand->click(causal->mapToGlobal(QPoint(10, causal->height() / 2)));
    QTRY_VERIFY(cell("transformer_block")->params.contains("causal"));
    insert("lmhead");
    fill(field("param:vocab_size"), QStringLiteral("1200"));
    insert("output");
    m_hand->picture(QStringLiteral("built"));
    within(32, "a model with two Transformer blocks");
}

void TestJourney::problemsAreMendedByTheFixesOffered() {
    const auto problems = [this] {
        std::size_t count = 0;
        const auto analysis = m_bench->services().analyser.latest();
        for (const graph::Problem& problem : analysis->expansion.problems) count += problem.severity == graph::Problem::Severity::Error ? 1 : 0;
        return m_bench->services().analyser.isSettled() ? count : 99;
    };
    QTRY_COMPARE(problems(), 0U);
    m_hand->click(placeOf("transformer_block"));
    fill(field("param:num_heads"), QStringLiteral("7")); // does not divide 64
    QTRY_COMPARE(problems(), 1U);
    m_hand->picture(QStringLiteral("first-problem"));
    m_hand->startCounting();
    QTRY_VERIFY(field("mend:0"));
    m_hand->click(field("mend:0"));
    QTRY_COMPARE(problems(), 0U);
    const int first = m_hand->gestures();
    m_hand->click(placeOf("lm_head"));
    fill(field("param:hidden_size"), QStringLiteral("48")); // what comes in has 64
    QTRY_COMPARE(problems(), 1U);
    m_hand->picture(QStringLiteral("second-problem"));
    m_hand->startCounting();
    QTRY_VERIFY(field("mend:0"));
    m_hand->click(field("mend:0"));
    QTRY_COMPARE(problems(), 0U);
    m_hand->picture(QStringLiteral("mended"));
    m_hand->addToCount(first);
    within(4, "two problems mended");
}

void TestJourney::aProbeShowsWhatIsOnTheWires() {
    m_hand->startCounting();
    m_hand->click(placeOf("lm_head"));
    m_hand->key("F9");
    const auto* summary = page()->findChild<QLabel*>(QStringLiteral("probeSummary"));
    QTRY_VERIFY_WITH_TIMEOUT(summary->isVisible() && summary->text().contains(QStringLiteral("loss")), 60000 * CELLOOM_TEST_TIME_FACTOR);
    m_hand->picture(QStringLiteral("probe"));
    const auto histogram = [this] {
        for (const auto* chart : page()->findChildren<HistogramChart*>())
            if (!chart->visibleRegion().isEmpty()) return true;
        return false;
    };
    m_hand->scrollDown(test::XHand::middleOf(page()->findChild<Inspector*>()));
    QTRY_VERIFY(histogram());
    m_hand->picture(QStringLiteral("histogram"));
    within(3, "a probe");
}

void TestJourney::itIsSaved() {
    const QString file = m_folder.filePath(QStringLiteral("mine.cells.json"));
    m_hand->startCounting();
    m_hand->key("ctrl+s");
    QTest::qWait(500);
    m_hand->type(file);
    m_hand->picture(QStringLiteral("saving"));
    m_hand->key("Return");
    QTRY_VERIFY(QFile::exists(file));
    QTRY_VERIFY(!m_bench->services().model.isModified());
    QCOMPARE(document().main.name, std::string("mine"));
    within(3, "saving");
    m_hand->focus(m_bench->window());
}

void TestJourney::itTrainsForTwentySteps() {
    m_hand->startCounting();
    m_hand->key("ctrl+3");
    QTest::qWait(500);
    auto* page = m_bench->window().findChild<TrainPage*>();
    for (auto* section : page->findChildren<QAbstractButton*>())
        if (section->isVisible() && section->text() == QLatin1String("Training")) m_hand->click(section);
    QWidget* steps = page->findChild<QWidget*>(QStringLiteral("train.max_steps"));
    QVERIFY(steps);
    QTRY_VERIFY(!steps->visibleRegion().isEmpty());
    m_hand->click(steps);
    m_hand->key("ctrl+a");
    m_hand->type(QStringLiteral("20"));
    m_hand->picture(QStringLiteral("recipe"));
    m_hand->key("F5");
    within(6, "training");
    RunListPtr runs;
    RunStore& store = m_bench->services().store;
    connect(&store, &RunStore::runsLoaded, this, [&runs](const RunListPtr& loaded) { runs = loaded; });
    const auto isFinished = [&] {
        store.refreshRuns();
        return runs && runs->size() == 1 && store::isOver(runs->front().state);
    };
    QTRY_VERIFY_WITH_TIMEOUT(isFinished(), 120000 * CELLOOM_TEST_TIME_FACTOR);
    QVERIFY(disconnect(&store, nullptr, this, nullptr));
    QCOMPARE(QString::fromStdString(runs->front().outcome), QStringLiteral("finished"));
    QVERIFY(runs->front().state == store::RunState::Finished);
    QCOMPARE(runs->front().step, 20);
    m_hand->picture(QStringLiteral("trained"));
}

void TestJourney::theRunIsInTheHistory() {
    m_hand->startCounting();
    m_hand->key("ctrl+5");
    auto* table = m_bench->window().findChild<HistoryPage*>()->findChild<QTableView*>();
    QTRY_COMPARE(table->model()->rowCount(), 1);
    m_hand->click(table->viewport()->mapToGlobal(table->visualRect(table->model()->index(0, 1)).center()));
    m_hand->picture(QStringLiteral("history"));
    within(3, "the run in the history");
}

void TestJourney::codeOnTheClipboardBecomesAGraph() {
    QFile source(QStringLiteral(CELLOOM_FIXTURES "/code/transformer_block.py"));
    QVERIFY(source.open(QIODevice::ReadOnly));
    QApplication::clipboard()->setText(QString::fromUtf8(source.readAll()));
    m_hand->key("ctrl+1");
    m_hand->key("ctrl+t");
    QTRY_VERIFY(QApplication::activeModalWidget());
    m_hand->key("Return");
    m_hand->focus(m_bench->window());
    QTRY_VERIFY(document().main.cells.empty());
    QTest::qWait(300);
    m_hand->startCounting();
    m_hand->key("ctrl+v");
    QTRY_VERIFY_WITH_TIMEOUT(!document().main.cells.empty(), 60000 * CELLOOM_TEST_TIME_FACTOR);
    m_hand->picture(QStringLiteral("code"));
    within(3, "the article's TransformerBlock");
}

int main(int argc, char** argv) {
    const auto screen = test::startScreen(QStringLiteral("1440x900"));
    if (!screen) return 1;
    QTemporaryDir home; // settings and caches of this test alone
    for (const char* name : {"HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME"}) qputenv(name, QFile::encodeName(home.path()));
    QTemporaryDir sockets;
    qputenv("XDG_RUNTIME_DIR", QFile::encodeName(sockets.path()));
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
