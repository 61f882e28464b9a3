// The probe on the canvas: progress, numbers on wires, histogram and attention beside them, errors at their cell. The engine is a script here, but for
// the last test.
#include "models/graph/edits.h"
#include "services_bench.h"
#include "ui/editor/arranger.h"
#include "ui/editor/graph_view.h"
#include "ui/editor/model_document.h"
#include "ui/editor/model_page.h"
#include "ui/editor/probe.h"
#include "ui/editor/probe_charts.h"
#include "ui/editor/probe_panel.h"

#include <QCheckBox>
#include <QComboBox>
#include <QFile>
#include <QLabel>
#include <QPushButton>
#include <QSpinBox>
#include <QTest>
#include <QToolButton>

#include <cmath>

using namespace celloom;
using namespace celloom::ui;

namespace {

/// As docs/file-formats.md has it.
QByteArray wireLine(const char* name, const char* port, const char* more = R"("nan":0,"mean":0.5,"deviation":0.25,"minimum":0,"maximum":1,"histogram":[1,3])") {
    return QByteArray(R"({"wire":")") + name + R"(","port":")" + port + R"(","shape":[2,16,256],"type":"float32","count":4,"positive_infinity":0,"negative_infinity":0,"zeros":1,)" + more + "}";
}
QByteArray cellLine(const char* path, int index, const QByteArray& more = {}, const char* values = nullptr) {
    const QByteArray wire = values ? wireLine((QByteArray(path) + ".out").constData(), "out", values) : wireLine((QByteArray(path) + ".out").constData(), "out");
    return QByteArray(R"({"cell":")") + path + R"(","type":"X","index":)" + QByteArray::number(index) + R"(,"of":5,"seconds":0.1,"wires":[)" + wire + "]" + more + "}\n";
}
const QByteArray kBegin = R"({"begin":{"model":"m","family":"","cells":5,"parameters":1,"rows":2,"bins":2,"gradients":false}})" "\n";
const QByteArray kEnd = R"({"end":{"cells":5,"not_computed":[],"seconds":0.5,"loss":8.25}})" "\n";
const char* const kNan = R"("nan":3,"mean":null,"deviation":null,"minimum":null,"maximum":null,"histogram":[])";

struct Editor {
    test::ServicesBench bench;
    std::unique_ptr<ModelPage> page;
    GraphView* view = nullptr;
    Probe* probe = nullptr;
    ProbePanel* panel = nullptr;

    /// `script`: what the engine does; `answer`: what it writes before.
    explicit Editor(const QByteArray& answer, const QByteArray& script = {}) {
        const auto write = [](const QString& path, const QByteArray& text) {
            QFile file(path);
            QVERIFY(file.open(QIODevice::WriteOnly) && file.write(text) == text.size());
        };
        write(bench.folder.filePath(QStringLiteral("answer")), answer);
        const QByteArray folder = bench.folder.path().toUtf8();
        write(bench.services.engineProgram, "#!/bin/sh\necho \"$@\" > " + folder + "/arguments\ncat " + folder + "/answer\n" + script + "\n");
        QFile::setPermissions(bench.services.engineProgram, QFile::ReadOwner | QFile::WriteOwner | QFile::ExeOwner);
        open();
    }
    explicit Editor(const QString& engine) {
        bench.services.engineProgram = engine;
        open();
    }
    void open() {
        page = std::make_unique<ModelPage>(bench.services);
        view = page->findChild<GraphView*>();
        probe = page->findChild<Probe*>();
        panel = page->findChild<ProbePanel*>();
        page->resize(1280, 900);
        page->show();
        QVERIFY(QTest::qWaitForWindowActive(page.get()));
        bench.recipe.setValue(QStringLiteral("model.source"), std::string("baichuan-tiny"));
        page->requestAnalysis();
        QTRY_VERIFY(view->positions().contains("norm") && !view->findChild<Arranger*>()->isBusy());
        view->setFocus();
    }
    void choose(const std::string& cell) {
        const graph::Position place = view->positions().at(cell);
        QTest::mouseClick(view->viewport(), Qt::LeftButton, {}, view->mapFromScene(QPointF(place.x, place.y)));
    }
    WireNote noteBehind(const std::string& cell) const {
        for (std::size_t i = 0; i < view->level().wires.size(); ++i)
            if (view->level().wires[i].wire.from.cell == cell && i < view->notes().size()) return view->notes()[i];
        return {};
    }
    QString barText() const { return page->findChild<QLabel*>(QStringLiteral("probeText"))->text(); }
    bool hasBar() const { return page->findChild<QFrame*>(QStringLiteral("probeBar"))->isVisible(); }
    QByteArray arguments() const {
        QFile file(bench.folder.filePath(QStringLiteral("arguments")));
        return file.open(QIODevice::ReadOnly) ? file.readAll() : QByteArray();
    }
};

} // namespace

class TestProbe : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void aReportIsReadLineByLine() {
        ProbeReport report;
        QVERIFY(report.take(kBegin.toStdString()));
        QCOMPARE(report.cellCount, std::int64_t(5));
        QVERIFY(report.take(cellLine("a", 0, {}, kNan).toStdString()));
        const ProbedValues* values = report.valuesOn("a.out");
        QVERIFY(values && values->isBad() && !values->mean);
        QCOMPARE(shortNumbers(*values), QStringLiteral("NaN 3"));
        QCOMPARE(sizesText(*values), QStringLiteral("[2, 16, 256]"));
        QVERIFY(report.take(cellLine("b", 1, R"(,"attention":{"batch_row":0,"queries":2,"keys":2,"heads":[[[1,0],[0.25,0.75]],[[1,0],[null,null]]]})").toStdString()));
        QCOMPARE(shortNumbers(*report.valuesOn("b.out")), QStringLiteral("0.50 ± 0.25"));
        const ProbedAttention& attention = *report.cells.at("b").attention;
        QCOMPARE(attention.heads.size(), std::size_t(2));
        QCOMPARE(attention.heads[0][3], 0.75F);
        QVERIFY(std::isnan(attention.heads[1][2]));
        QVERIFY(!report.isWhole);
        QVERIFY(report.take(kEnd.toStdString()));
        QVERIFY(report.isWhole && report.loss == 8.25);
        QVERIFY(report.take(R"({"later":1})")); // of a newer engine
        QVERIFY(!report.take("no JSON"));
        QVERIFY(!report.take(R"({"cell":"c"})"));
        QVERIFY(!report.take(R"({"cell":"c","type":"","index":0,"of":1,"seconds":0,"wires":[],"attention":{"batch_row":0,"queries":1,"keys":1,"heads":[[[1,0],[1]]]}})"));
    }

    void f9ShowsNumbersOnTheWiresAndTheChosenCellsHistogram() {
        Editor editor(kBegin + R"({"input":"input_ids","wires":[)" + wireLine("input_ids", "input_ids") + "]}\n" + cellLine("embed_tokens", 0) + cellLine("norm", 3, {}, kNan) + kEnd);
        editor.choose("embed_tokens");
        QTest::keyClick(editor.view, Qt::Key_F9);
        QVERIFY(editor.probe->isRunning());
        QTRY_VERIFY(!editor.probe->isRunning());
        QVERIFY(editor.arguments().startsWith("--json probe "));
        QVERIFY(editor.arguments().contains(".cells.json --batch 2 --length "));
        QCOMPARE(editor.noteBehind("embed_tokens").first, QStringLiteral("[2, 16, 256]"));
        QCOMPARE(editor.noteBehind("embed_tokens").second, QStringLiteral("0.50 ± 0.25"));
        QVERIFY(!editor.noteBehind("embed_tokens").isBad);
        QVERIFY(editor.noteBehind("norm").isBad);
        QVERIFY(editor.noteBehind("lm_head").first.isEmpty()); // nothing was told of it
        QVERIFY(editor.barText().contains(QStringLiteral("8.25")));
        QVERIFY(editor.panel->findChild<HistogramChart*>());
        editor.choose("norm");
        QVERIFY(!editor.panel->findChild<HistogramChart*>()); // only NaN
        const auto labels = editor.panel->findChildren<QLabel*>();
        QVERIFY(std::any_of(labels.begin(), labels.end(), [](const QLabel* label) { return label->text().contains(QStringLiteral("NaN 3")); }));
    }

    void anEditMakesTheNumbersOldAndUndoingItDoesNot() {
        Editor editor(kBegin + cellLine("embed_tokens", 0) + kEnd);
        QTest::keyClick(editor.view, Qt::Key_F9);
        QTRY_VERIFY(!editor.probe->isRunning());
        QVERIFY(!editor.barText().contains(QStringLiteral("old")));
        editor.choose("norm");
        QTest::keyClick(editor.view, Qt::Key_Down, Qt::ControlModifier); // moved: nothing is computed otherwise
        QVERIFY(!editor.barText().contains(QStringLiteral("old")));
        QTest::keyClick(editor.view, Qt::Key_Delete);
        QVERIFY(editor.barText().contains(QStringLiteral("old")));
        QCOMPARE(editor.noteBehind("embed_tokens").first, QStringLiteral("[2, 16, 256]")); // to compare with
        QTest::keyClick(editor.view, Qt::Key_Z, Qt::ControlModifier);
        QVERIFY(!editor.barText().contains(QStringLiteral("old")));
    }

    void anErrorIsShownAtItsCellInsideTheComposite() {
        Editor editor(kBegin + cellLine("embed_tokens", 0), R"(echo '{"error":{"message":"The sizes do not fit.","hint":"Change one.","place":"layers.2.mlp.up_proj"}}' >&2; exit 3)");
        QTest::keyClick(editor.view, Qt::Key_F9);
        QTRY_COMPARE(editor.view->level().prefix, std::string("layers.2.mlp."));
        QCOMPARE(editor.view->chosenCells(), std::set<std::string>{"up_proj"});
        QCOMPARE(editor.view->failureAt("up_proj"), QStringLiteral("layers.2.mlp.up_proj: The sizes do not fit. Change one."));
        QVERIFY(editor.barText().contains(QStringLiteral("The sizes do not fit.")));
        QTest::keyClick(editor.view, Qt::Key_Escape);
        QVERIFY(!editor.view->failureAt("mlp").isEmpty()); // the composite that it lies in
        QTest::mouseClick(editor.page->findChild<QFrame*>(QStringLiteral("probeBar"))->findChild<QToolButton*>(), Qt::LeftButton);
        QVERIFY(!editor.hasBar());
        QVERIFY(editor.view->failureAt("mlp").isEmpty());
    }

    void theButtonCancelsAndWhatWasFoundStays() {
        Editor editor(kBegin + cellLine("embed_tokens", 0), "exec sleep 1000");
        auto* button = editor.panel->findChild<QPushButton*>(QStringLiteral("probe"));
        button->click();
        QTRY_VERIFY(editor.barText().contains(QStringLiteral("cell 1 of 5")));
        QVERIFY(editor.noteBehind("embed_tokens").first.isEmpty());
        button->click();
        QTRY_VERIFY(!editor.probe->isRunning());
        QVERIFY(editor.barText().contains(QStringLiteral("cancelled after 1 of 5")));
        QCOMPARE(editor.noteBehind("embed_tokens").first, QStringLiteral("[2, 16, 256]"));
    }

    void itsBarStandsUnderTheCanvasAndCoversNoCell() {
        Editor editor(kBegin + cellLine("embed_tokens", 0), "exec sleep 1000");
        QTest::keyClick(editor.view, Qt::Key_F9);
        QTRY_VERIFY(editor.barText().contains(QStringLiteral("cell 1 of 5")));
        const auto* bar = editor.page->findChild<QFrame*>(QStringLiteral("probeBar"));
        const auto onScreen = [](const QWidget* widget) { return QRect(widget->mapToGlobal(QPoint()), widget->size()); };
        QTRY_VERIFY(!onScreen(bar).intersects(onScreen(editor.view)));
        QVERIFY(onScreen(bar).top() >= onScreen(editor.view).bottom());
        QTest::keyClick(editor.view, Qt::Key_F9);
        QTRY_VERIFY(!editor.probe->isRunning());
    }

    void eachTabHasAProbeOfItsOwn() {
        Editor editor(kBegin + cellLine("embed_tokens", 0), "exec sleep 1000");
        QTest::keyClick(editor.view, Qt::Key_F9);
        QTRY_VERIFY(editor.barText().contains(QStringLiteral("cell 1 of 5")));
        ModelDocument& first = editor.bench.model.current();
        ModelDocument& second = editor.bench.model.add();
        second.takeUntitled(*first.snapshot(), 1);
        editor.bench.model.setCurrent(second);
        QTRY_VERIFY(!editor.hasBar());
        QVERIFY(!editor.probe->isRunning()); // the one in front
        QTRY_VERIFY(editor.probe->action()->isEnabled());
        editor.view->setFocus();
        QTest::keyClick(editor.view, Qt::Key_F9);
        QTRY_VERIFY(editor.probe->isRunning());
        QTRY_VERIFY(editor.barText().contains(QStringLiteral("cell 1 of 5")));
        QTest::keyClick(editor.view, Qt::Key_F9); // ends this one alone
        QTRY_VERIFY(!editor.probe->isRunning());
        QVERIFY(editor.barText().contains(QStringLiteral("cancelled")));
        editor.bench.model.setCurrent(first);
        QTRY_VERIFY(editor.probe->isRunning());
        QVERIFY(editor.barText().contains(QStringLiteral("cell 1 of 5")));
        editor.bench.model.remove(first); // and its probe with it
        QTRY_VERIFY(editor.barText().contains(QStringLiteral("cancelled")));
    }

    void theRecipesDataGoThroughUnlessOneChoosesOthers() {
        Editor editor(kBegin + kEnd);
        editor.bench.recipe.setValue(QStringLiteral("data.train"), std::vector<std::string>{"some.txt"});
        QTest::keyClick(editor.view, Qt::Key_F9);
        QTRY_VERIFY(!editor.probe->isRunning());
        QVERIFY(editor.arguments().contains(" --data "));
        QVERIFY(!editor.arguments().contains(" --gradients"));
        editor.panel->findChild<QComboBox*>(QStringLiteral("probeData"))->setCurrentIndex(1);
        editor.panel->findChild<QCheckBox*>(QStringLiteral("probeGradients"))->setChecked(true);
        QTest::keyClick(editor.view, Qt::Key_F9);
        QTRY_VERIFY(!editor.probe->isRunning());
        QVERIFY(!editor.arguments().contains(" --data "));
        QVERIFY(editor.arguments().contains(" --gradients"));
    }

    void aModelWithProblemsIsNotSentToTheEngine() {
        Editor editor(kBegin + kEnd);
        editor.choose("norm");
        QTest::keyClick(editor.view, Qt::Key_Delete); // the head has no wire now
        QTest::keyClick(editor.view, Qt::Key_F9);
        QVERIFY(!editor.probe->isRunning());
        QCOMPARE(editor.view->chosenCells(), std::set<std::string>{"lm_head"});
        QVERIFY(editor.arguments().isEmpty());
    }

    // Each row of attention sums to 1 (softmax); of two rows and 24 words at 256 hidden numbers the shapes follow.
    void theEngineProbesTheModelOnShow() {
        Editor editor(QStringLiteral(CELLOOM_BIN "/celloom-engine"));
        editor.bench.recipe.setValue(QStringLiteral("train.sequence_length"), std::int64_t(24));
        QTest::keyClick(editor.view, Qt::Key_F9);
        QTRY_VERIFY_WITH_TIMEOUT(!editor.probe->isRunning(), 120'000);
        QCOMPARE(editor.noteBehind("embed_tokens").first, QStringLiteral("[2, 24, 256]"));
        QVERIFY2(editor.noteBehind("layers").second.contains(QStringLiteral("±")), qPrintable(editor.barText()));
        for (const char* composite : {"layers", "self_attn"}) {
            editor.choose(composite);
            QTest::keyClick(editor.view, Qt::Key_Return);
            QTRY_VERIFY(editor.view->isShown() && !editor.view->findChild<Arranger*>()->isBusy());
        }
        for (const WireNote& note : editor.view->notes()) QVERIFY(note.first.isEmpty() || note.first.startsWith(QStringLiteral("[2, 24, ")));
        editor.choose("attention");
        auto* head = editor.panel->findChild<QSpinBox*>(QStringLiteral("probeHead"));
        QVERIFY(head && editor.panel->findChild<AttentionChart*>());
        QCOMPARE(head->maximum(), 3); // four heads
        head->setFocus();
        QTest::keyClick(head, Qt::Key_Up);
        QCOMPARE(editor.panel->findChild<AttentionChart*>()->accessibleName(), QStringLiteral("Attention of head 1"));
    }
};

QTEST_MAIN(TestProbe)
#include "tst_probe_panel.moc"
