// The canvas with thousands of cells: shown at once, arranged by Graphviz in the background, called off at any moment.
#include "large_graphs.h"
#include "models/base/files.h"
#include "models/graph/edits.h"
#include "models/graph/json.h"
#include "services_bench.h"
#include "ui/editor/arranger.h"
#include "ui/editor/graph_view.h"
#include "ui/editor/model_page.h"
#include "ui/editor/wire_judge.h"
#include "ui/editor/wire_routing.h"

#include <QProcess>
#include <QPushButton>
#include <QRandomGenerator>
#include <QSignalSpy>
#include <QTest>
#include <QTimer>
#include <QWheelEvent>

using namespace celloom;
using namespace celloom::ui;

namespace {

const QString kHelper = QStringLiteral(CELLOOM_BIN "/celloom");

ModelAnalysis analysisOf(graph::Document document) {
    return analyse(recipe::Recipe(), std::make_shared<const graph::Document>(std::move(document)));
}

/// Of the flat document, as the view asks for it.
LayoutInput layoutOf(const graph::Document& document) {
    const ModelLevel level = makeLevel(analysisOf(document), {});
    LayoutInput input;
    for (std::size_t i = 0; i < level.boxes.size(); ++i) input.boxes.push_back({168, 54});
    for (const LevelWire& wire : level.wires) input.arrows.push_back({static_cast<int>(wire.from), static_cast<int>(wire.to)});
    return input;
}

void verifyApart(const LayoutInput& input, const LayoutResult& result) {
    QCOMPARE(result.centers.size(), input.boxes.size());
    std::vector<QRectF> boxes;
    for (std::size_t i = 0; i < input.boxes.size(); ++i)
        boxes.emplace_back(result.centers[i] - QPointF(input.boxes[i].width() / 2, input.boxes[i].height() / 2), input.boxes[i]);
    for (std::size_t a = 0; a < boxes.size(); ++a)
        for (std::size_t b = a + 1; b < boxes.size(); ++b) QVERIFY(!boxes[a].intersects(boxes[b]));
    for (const LayoutInput::Arrow& arrow : input.arrows)
        QVERIFY(result.centers[static_cast<std::size_t>(arrow.from)].y() < result.centers[static_cast<std::size_t>(arrow.to)].y());
}

struct Bench {
    test::ServicesBench bench;
    ModelPage page{bench.services};
    GraphView* view = page.findChild<GraphView*>();
    Arranger* arranger = page.findChild<Arranger*>();

    explicit Bench(const graph::Document& document) {
        page.resize(1280, 800);
        page.show();
        QVERIFY(QTest::qWaitForWindowActive(&page));
        const QString path = bench.folder.filePath(QStringLiteral("large.cells.json"));
        QVERIFY(writeFileAtomically(path.toStdString(), graph::toJson(document)));
        bench.recipe.setValue(QStringLiteral("model.source"), path.toStdString());
        page.requestAnalysis();
        const std::size_t boxes = document.main.cells.size() + document.main.inputs.size() + document.main.outputs.size();
        QTRY_COMPARE(view->level().boxes.size(), boxes);
    }
};

} // namespace

class TestCanvasScale : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void initTestCase() { QVERIFY(QFileInfo(kHelper).isExecutable()); }

    void aLargeLevelIsShownInRowsWhileGraphvizIsAtWork() {
        Bench page(test::flatDocument());
        QVERIFY(page.view->isShown()); // as soon as the level is there
        QVERIFY(page.arranger->isBusy());
        QCOMPARE(page.view->positions().size(), std::size_t(2000));
        QVERIFY(page.view->sight().top() <= page.view->contents().top()); // where it begins, as large as texts need
        page.view->fitAll();
        QVERIFY(page.view->viewport()->rect().contains(page.view->mapFromScene(page.view->contents()).boundingRect())); // all of it
    }

    void theWindowGoesOnWhileALargeLevelIsArrangedAndTheCancelButtonEndsIt() {
        Bench page(test::flatDocument());
        QTRY_VERIFY(page.arranger->isBusy());
        const auto rows = page.view->positions();
        auto* cancel = page.page.findChild<QPushButton*>(QStringLiteral("cancelArranging"));
        QTRY_VERIFY(cancel->isVisible() || !page.arranger->isBusy());
        if (!page.arranger->isBusy()) QSKIP("Graphviz was quicker than a person.");
        QTest::mouseClick(cancel, Qt::LeftButton);
        QVERIFY(!page.arranger->isBusy());
        QVERIFY(!cancel->isVisible());
        QTRY_VERIFY(page.arranger->findChildren<QProcess*>().empty()); // nothing works on in the background
        QTest::mouseClick(page.view->viewport(), Qt::LeftButton, {}, page.view->mapFromScene(QPointF(rows.at("c3_50").x, rows.at("c3_50").y)));
        QCOMPARE(page.view->chosenCells(), std::set<std::string>{"c3_50"});
        QCOMPARE(page.view->positions().at("c3_50").x, rows.at("c3_50").x);
    }

    void anEditWhileALargeLevelIsArrangedKeepsTheOrderOnShow() {
        Bench page(test::flatDocument());
        QTRY_VERIFY(page.view->isShown());
        const auto rows = page.view->positions();
        page.view->chooseCells({"c0_99"});
        QTest::keyClick(page.view, Qt::Key_Delete);
        QVERIFY(!page.arranger->isBusy());
        QCOMPARE(page.view->positions().size(), std::size_t(1999));
        QCOMPARE(page.view->positions().at("c3_50").y, rows.at("c3_50").y);
        QVERIFY(graph::findCell(page.bench.model.snapshot()->main, "c3_50")->position.has_value());
    }

    void theHelperArrangesAsGraphvizDoes() {
        const LayoutInput input = layoutOf(test::flatDocument(4, 80));
        QVERIFY(input.boxes.size() > GraphLayouter::kMostOnThread);
        GraphLayouter layouter(kHelper);
        LayoutResultPtr result;
        int turns = 0; // of the event loop
        QTimer turning;
        connect(&turning, &QTimer::timeout, &turning, [&turns] { ++turns; });
        connect(&layouter, &GraphLayouter::ready, &turning, [&result](const LayoutResultPtr& answer) { result = answer; });
        turning.start(0);
        layouter.request(input);
        QVERIFY(layouter.isBusy());
        QTRY_VERIFY_WITH_TIMEOUT(result, 60'000);
        QVERIFY(turns > 10);
        const LayoutResult here = arrangeByGraphviz(input);
        QCOMPARE(result->centers.size(), here.centers.size());
        for (std::size_t i = 0; i < here.centers.size(); ++i) QCOMPARE(result->centers[i], here.centers[i]);
        for (std::size_t i = 0; i < here.curves.size(); ++i) QCOMPARE(result->curves[i], here.curves[i]);
        verifyApart(input, *result);
    }

    void aRequestThatIsCalledOffIsAnsweredWithRowsAtOnceAndItsProcessEnds() {
        GraphLayouter layouter(kHelper);
        QSignalSpy ready(&layouter, &GraphLayouter::ready);
        const LayoutInput input = layoutOf(test::flatDocument());
        layouter.request(input);
        const auto process = layouter.findChild<QProcess*>();
        QVERIFY(process);
        QSignalSpy ended(process, &QProcess::finished);
        layouter.cancel();
        QCOMPARE(ready.size(), 1);
        QVERIFY(!layouter.isBusy());
        verifyApart(input, *ready.front().front().value<LayoutResultPtr>());
        QTRY_COMPARE(ended.size(), 1);
        QCOMPARE(ended.front().at(1).value<QProcess::ExitStatus>(), QProcess::CrashExit);
        layouter.request(layoutOf(test::flatDocument(2, 4))); // nothing of the large one is in the way
        QTRY_COMPARE(ready.size(), 2);
    }

    void aHelperThatFailsLeavesRows() {
        GraphLayouter layouter(QStringLiteral("/bin/false"));
        QSignalSpy ready(&layouter, &GraphLayouter::ready);
        const LayoutInput input = layoutOf(test::flatDocument());
        layouter.request(input);
        QTRY_COMPARE(ready.size(), 1);
        verifyApart(input, *ready.front().front().value<LayoutResultPtr>());
    }

    void rowsOfAChainStandUnderEachOther() { // a mean of one neighbour's place is that place
        LayoutInput input;
        for (int i = 0; i < 2000; ++i) input.boxes.push_back({160, 50});
        for (int i = 1999; i > 0; --i) input.arrows.push_back({i - 1, i});
        const LayoutResult result = arrangeInRows(input);
        for (const QPointF& center : result.centers) QCOMPARE(center.x(), result.centers[0].x());
        verifyApart(input, result);
    }

    void boxesWithoutWiresStandInAField() {
        LayoutInput input;
        for (int i = 0; i < 2000; ++i) input.boxes.push_back({160, 50});
        const LayoutResult result = arrangeInRows(input);
        verifyApart(input, result);
        QVERIFY(result.bounds.width() < 3 * result.bounds.height());
    }

    void everyInstanceLiesInOneBoxOfItsLevel() {
        const ModelAnalysis analysis = analysisOf(test::nestedDocument());
        QVERIFY(analysis.expansion.ok());
        const auto& cells = analysis.expansion.model.cells;
        QCOMPARE(cells.size(), std::size_t(2000));
        const ModelLevel level = makeLevel(analysis, {});
        std::vector<int> seen(cells.size(), 0);
        for (const LevelBox& box : level.boxes)
            for (const std::size_t index : box.instances) {
                ++seen[index];
                QVERIFY(cells[index].path.starts_with(box.name + ".")); // "block1" is not "block10"
            }
        QVERIFY(std::all_of(seen.begin(), seen.end(), [](int count) { return count == 1; }));
        QCOMPARE(makeLevel(analysis, {{"block7", 0}}).boxes[2].shape, std::string("[B, T, 64]")); // through a composite
    }

    void theJudgeOfWiresKnowsEveryCircle() {
        const ModelAnalysis analysis = analysisOf(test::flatDocument(6, 10));
        const ModelLevel level = makeLevel(analysis, {});
        QRandomGenerator random(8);
        const auto& cells = level.graph->cells;
        WireJudge judge(level);
        for (int i = 0; i < 400; ++i) {
            const auto& from = cells[random.bounded(static_cast<quint32>(cells.size()))];
            const auto& to = cells[random.bounded(static_cast<quint32>(cells.size()))];
            const graph::Wire wire{{from.name, "out"}, {to.name, to.type == "Add" ? "a" : "x"}};
            QCOMPARE(judge.isFit(wire), !graph::leadsTo(*level.graph, to.name, from.name)); // all shapes are alike
        }
    }

    void aWireIsJudgedOnceForEachPort() {
        Bench page(test::flatDocument());
        QTRY_VERIFY(page.view->isShown());
        page.arranger->stop();
        page.view->zoomBy(1 / page.view->transform().m11());
        const graph::Position place = page.view->positions().at("c4_48");
        page.view->centerOn(place.x, place.y);
        std::size_t asked = 0, ports = 0;
        for (const LevelBox& box : page.view->level().boxes) ports += box.inputs.size() + box.outputs.size();
        page.view->setJudge([&asked](const graph::Wire&, bool isThorough) {
            asked += !isThorough;
            return GraphView::Verdict{};
        });
        const QPoint port = page.view->mapFromScene(QPointF(place.x, place.y + 27));
        QTest::mousePress(page.view->viewport(), Qt::LeftButton, {}, port);
        QVERIFY(asked > 2000 && asked <= ports);
        QTest::keyClick(page.view, Qt::Key_Escape);
    }

    void theWheelKeepsWhatIsUnderThePointer() {
        Bench page(test::flatDocument(4, 10));
        QTRY_VERIFY(page.view->isShown());
        page.arranger->stop();
        const QPoint at = page.view->viewport()->rect().center() + QPoint(90, -70);
        const QPointF under = page.view->mapToScene(at);
        const int begun = page.view->zoomPercent();
        for (const int by : {120, 120, 120, -120, 120, 120}) {
            QWheelEvent event(at, page.view->viewport()->mapToGlobal(at), {}, {0, by}, Qt::NoButton, Qt::NoModifier, Qt::NoScrollPhase, false);
            QCoreApplication::sendEvent(page.view->viewport(), &event);
            const QPoint now = page.view->mapFromScene(under);
            QVERIFY((now - at).manhattanLength() <= 2);
        }
        QVERIFY(page.view->zoomPercent() > begun);
    }

    void wiresGoAroundBoxes() {
        const QRectF between(-60, 100, 120, 50);
        const RectGrid boxes({between, {-80, -54, 160, 54}, {-80, 300, 160, 54}});
        const QPainterPath path = wireCurve({0, 0}, {0, 300}, boxes, 1, 2);
        for (int i = 0; i <= 1000; ++i) QVERIFY(!between.contains(path.pointAtPercent(i / 1000.0)));
        QCOMPARE(QPointF(path.elementAt(0)), QPointF(0, 0));
        QCOMPARE(path.currentPosition(), QPointF(0, 300));
    }

    void aWireIsHitNearItsCurveAlone() {
        const QPolygonF line = straightened(wireCurve({0, 0}, {200, 200}));
        QVERIFY(distanceTo(line, {100, 100}) < 1); // the middle, by symmetry
        QVERIFY(distanceTo(line, {0, 200}) > 60);
    }
};

QTEST_MAIN(TestCanvasScale)
#include "tst_canvas_scale.moc"
