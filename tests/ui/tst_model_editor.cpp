// Building a model on the canvas, by mouse and keyboard.
#include "models/graph/edits.h"
#include "models/graph/json.h"
#include "services_bench.h"
#include "ui/editor/arranger.h"
#include "ui/editor/graph_view.h"
#include "ui/editor/model_page.h"
#include "ui/editor/palette.h"
#include "ui/shell/notice.h"

#include <QClipboard>
#include <QLabel>
#include <QLineEdit>
#include <QSignalSpy>
#include <QTest>
#include <QTreeWidget>

using namespace celloom;
using namespace celloom::ui;

namespace {

constexpr double kHalfBox = 27; // of a cell's height: where its ports are

struct Editor {
    test::ServicesBench bench;
    ModelPage page{bench.services};
    GraphView* view = page.findChild<GraphView*>();
    Palette* palette = page.findChild<Palette*>();

    Editor() {
        page.resize(1280, 800);
        page.show();
        QVERIFY(QTest::qWaitForWindowActive(&page)); // shortcuts need it
        bench.recipe.setValue(QStringLiteral("model.source"), std::string("baichuan-tiny"));
        page.requestAnalysis();
    }
    /// Graphviz has answered: nothing lies on anything.
    bool isReady() const {
        const auto places = view->positions();
        return !view->findChild<Arranger*>()->isBusy() && places.contains("norm") && places.at("norm").y > places.at("embed_tokens").y + kHalfBox;
    }
    const graph::Graph& main() const { return bench.model.snapshot()->main; }
    QPoint at(const std::string& cell, double below = 0) const {
        const graph::Position place = view->positions().at(cell);
        return view->mapFromScene(QPointF(place.x, place.y + below));
    }
    void drag(QPoint from, QPoint to) {
        QWidget* surface = view->viewport();
        QTest::mousePress(surface, Qt::LeftButton, {}, from);
        QTest::mouseMove(surface, (from + to) / 2);
        QTest::mouseMove(surface, to);
        QTest::mouseRelease(surface, Qt::LeftButton, {}, to);
    }
    bool hasWire(const graph::Wire& wire) const { return std::find(main().wires.begin(), main().wires.end(), wire) != main().wires.end(); }
};

} // namespace

class TestModelEditor : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void aCellFromTheSearchFollowsTheChosenOneOnItsWire();
    void draggingABoxIsOneStepAndEscapeCallsItOff();
    void aWireDrawnToAFedPortReplacesTheOneThere();
    void aWireTakenOffAndLetGoIsRemoved();
    void deletedCellsComeBackAsTheyWere();
    void aWrongParameterIsRefusedBesideItsField();
    void cellsAreGroupedAndExpanded();
    void copiesArePastedWithNewNames();
    void thePaletteFindsByNameFirst();
};

void TestModelEditor::aCellFromTheSearchFollowsTheChosenOneOnItsWire() {
    Editor editor;
    QTRY_VERIFY(editor.isReady());
    const std::string before = graph::toJson(*editor.bench.model.snapshot());
    QTest::mouseClick(editor.view->viewport(), Qt::LeftButton, {}, editor.at("norm"));
    QCOMPARE(editor.view->chosenCells(), std::set<std::string>{"norm"});
    auto* search = editor.palette->findChild<QLineEdit*>();
    editor.palette->focusSearch();
    QTest::keyClicks(search, QStringLiteral("dropout"));
    QTest::keyClick(search, Qt::Key_Return);
    QVERIFY(editor.hasWire({{"norm", "out"}, {"dropout", "x"}}));
    QVERIFY(!editor.hasWire({{"norm", "out"}, {"lm_head", "x"}}));
    QCOMPARE(editor.view->chosenCells(), std::set<std::string>{"dropout"});
    const auto places = editor.view->positions(); // nothing lies on anything
    QVERIFY(places.at("lm_head").y - places.at("dropout").y > 2 * kHalfBox);
    QVERIFY(editor.bench.model.isModified());
    editor.bench.model.undoStack().undo();
    QCOMPARE(graph::toJson(*editor.bench.model.snapshot()), before);
}

void TestModelEditor::draggingABoxIsOneStepAndEscapeCallsItOff() {
    Editor editor;
    QTRY_VERIFY(editor.isReady());
    const auto before = editor.view->positions();
    editor.drag(editor.at("norm"), editor.at("norm") + QPoint(160, 40));
    QCOMPARE(editor.bench.model.undoStack().count(), 1);
    QVERIFY(editor.view->positions().at("norm").x > before.at("norm").x + 50);
    QCOMPARE(editor.view->positions().at("lm_head").x, before.at("lm_head").x);
    QVERIFY(graph::findCell(editor.main(), "lm_head")->position.has_value()); // the whole layout is the document's now
    QWidget* surface = editor.view->viewport();
    const QPoint start = editor.at("norm");
    QTest::mousePress(surface, Qt::LeftButton, {}, start);
    QTest::mouseMove(surface, start + QPoint(0, 60));
    QTest::keyClick(editor.view, Qt::Key_Escape);
    QTest::mouseRelease(surface, Qt::LeftButton, {}, start + QPoint(0, 60));
    QCOMPARE(editor.bench.model.undoStack().count(), 1);
}

void TestModelEditor::aWireDrawnToAFedPortReplacesTheOneThere() {
    Editor editor;
    QTRY_VERIFY(editor.isReady());
    editor.drag(editor.at("norm"), editor.at("norm") + QPoint(260, 20)); // out of the way
    QTRY_VERIFY(editor.isReady());
    editor.drag(editor.at("layers", kHalfBox), editor.at("lm_head", -kHalfBox));
    QVERIFY(editor.hasWire({{"layers", "out"}, {"lm_head", "x"}}) || editor.hasWire({{"layers", "hidden"}, {"lm_head", "x"}}));
    QVERIFY(!editor.hasWire({{"norm", "out"}, {"lm_head", "x"}}));
    QCOMPARE(editor.bench.model.undoStack().count(), 2);
    editor.drag(editor.at("lm_head", kHalfBox), editor.at("layers", -kHalfBox)); // a circle
    QCOMPARE(editor.bench.model.undoStack().count(), 2);
}

void TestModelEditor::aWireTakenOffAndLetGoIsRemoved() {
    Editor editor;
    QTRY_VERIFY(editor.isReady());
    editor.drag(editor.at("norm", -kHalfBox), editor.at("norm") + QPoint(300, -10));
    const auto& wires = editor.main().wires;
    QVERIFY(std::none_of(wires.begin(), wires.end(), [](const graph::Wire& wire) { return wire.to == graph::Endpoint{"norm", "x"}; }));
}

void TestModelEditor::deletedCellsComeBackAsTheyWere() {
    Editor editor;
    QTRY_VERIFY(editor.isReady());
    const std::string before = graph::toJson(*editor.bench.model.snapshot());
    QTest::mouseClick(editor.view->viewport(), Qt::LeftButton, {}, editor.at("norm"));
    QTest::mouseClick(editor.view->viewport(), Qt::LeftButton, Qt::ShiftModifier, editor.at("embed_tokens"));
    QTest::keyClick(editor.view, Qt::Key_Delete);
    QCOMPARE(editor.main().cells.size(), std::size_t(2));
    QTest::keyClick(editor.view, Qt::Key_Z, Qt::ControlModifier);
    QCOMPARE(graph::toJson(*editor.bench.model.snapshot()), before);
    QTest::keyClick(editor.view, Qt::Key_Z, Qt::ControlModifier | Qt::ShiftModifier);
    QCOMPARE(editor.main().cells.size(), std::size_t(2));
}

void TestModelEditor::aWrongParameterIsRefusedBesideItsField() {
    Editor editor;
    QTRY_VERIFY(editor.isReady());
    QTest::mouseClick(editor.view->viewport(), Qt::LeftButton, {}, editor.at("norm"));
    auto* field = editor.page.findChild<QLineEdit*>(QStringLiteral("param:dim"));
    QVERIFY(field);
    QCOMPARE(field->text(), QStringLiteral("hidden"));
    field->setFocus();
    field->selectAll();
    QTest::keyClicks(field, QStringLiteral("hiden"));
    QTest::keyClick(field, Qt::Key_Return);
    QVERIFY(field->property("invalid").toBool());
    QCOMPARE(editor.bench.model.undoStack().count(), 0);
    field->selectAll();
    QTest::keyClicks(field, QStringLiteral("hidden * 1"));
    QTest::keyClick(field, Qt::Key_Return);
    QTRY_COMPARE(editor.bench.model.undoStack().count(), 1);
    QCOMPARE(std::get<std::string>(graph::findCell(editor.main(), "norm")->params.at("dim")), std::string("hidden * 1"));
}

void TestModelEditor::cellsAreGroupedAndExpanded() {
    Editor editor;
    QTRY_VERIFY(editor.isReady());
    QTest::mouseClick(editor.view->viewport(), Qt::LeftButton, {}, editor.at("norm"));
    QTest::mouseClick(editor.view->viewport(), Qt::LeftButton, Qt::ControlModifier, editor.at("lm_head"));
    QTest::keyClick(editor.view, Qt::Key_G, Qt::ControlModifier);
    QVERIFY(editor.bench.model.snapshot()->composites.contains("Block"));
    QCOMPARE(editor.view->chosenCells(), std::set<std::string>{"Block"});
    QTest::keyClick(editor.view, Qt::Key_G, Qt::ControlModifier | Qt::ShiftModifier);
    QVERIFY(!editor.bench.model.snapshot()->composites.contains("Block"));
    QCOMPARE(editor.view->chosenCells(), (std::set<std::string>{"lm_head", "norm"}));
}

void TestModelEditor::copiesArePastedWithNewNames() {
    Editor editor;
    QTRY_VERIFY(editor.isReady());
    QTest::mouseClick(editor.view->viewport(), Qt::LeftButton, {}, editor.at("norm"));
    QTest::keyClick(editor.view, Qt::Key_C, Qt::ControlModifier);
    QVERIFY(QApplication::clipboard()->text().contains(QLatin1String("RMSNorm")));
    QTest::keyClick(editor.view, Qt::Key_V, Qt::ControlModifier);
    QVERIFY(graph::findCell(editor.main(), "norm_2"));
    for (const auto& [text, why] : {std::pair("celloom-cells, but no document", "cannot be read: is not valid JSON"), std::pair("a shopping list", "holds no cells"),
                                    std::pair(R"({"format": "celloom-cells", "schema": 1, "main": {"cells": [{"name": "a"}]}})", "main.cells[0]")}) {
        QApplication::clipboard()->setText(QString::fromLatin1(text));
        QTest::keyClick(editor.view, Qt::Key_V, Qt::ControlModifier);
        QCOMPARE(editor.bench.model.undoStack().count(), 1);
        const auto* notice = editor.page.findChild<Notice*>();
        QVERIFY(notice->isVisible());
        QVERIFY(notice->findChildren<QLabel*>().at(1)->text().contains(QLatin1String(why)));
    }
}

void TestModelEditor::thePaletteFindsByNameFirst() {
    const auto all = paletteEntries(nullptr, false);
    QVERIFY(all.size() > 15);
    QCOMPARE(searchPalette(all, QStringLiteral("dense")).front().type, QStringLiteral("Dense"));
    QCOMPARE(searchPalette(all, QStringLiteral("norm rms")).front().type, QStringLiteral("RMSNorm"));
    QVERIFY(searchPalette(all, QStringLiteral("nothing like it")).empty());
    QCOMPARE(searchPalette(all, QStringLiteral("  ")).size(), all.size());
}

QTEST_MAIN(TestModelEditor)
#include "tst_model_editor.moc"
