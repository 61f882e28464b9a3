// Building a model on the canvas, by mouse and keyboard.
#include "models/graph/edits.h"
#include "models/graph/json.h"
#include "services_bench.h"
#include "ui/editor/arranger.h"
#include "ui/editor/graph_view.h"
#include "ui/editor/inspector.h"
#include "ui/editor/model_page.h"
#include "ui/editor/palette.h"
#include "ui/shell/notice.h"

#include <QClipboard>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
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
    bool isSettled() const { return bench.analyser.isSettled() && !view->findChild<Arranger*>()->isBusy(); }
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
    void aCellDraggedOntoAWireComesBetweenItsEnds();
    void aWireThatCannotTakeTheCellSaysWhy();
    void anEmptySearchSaysWhatToDo();
    void numbersOnWiresDoNotLieOnEachOther();
    void aRenamedCellStaysChosen();
    void escapeEndsTheEditOfAFieldBeforeItLeaves();
    void whatOneTypesStaysWhenAnAnalysisArrives();
    void aChosenCellWithAProblemShowsBoth();
    void cellsWithoutWeightsAreSaidToHaveNone();
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

void TestModelEditor::aCellDraggedOntoAWireComesBetweenItsEnds() {
    Editor editor;
    QTRY_VERIFY(editor.isReady());
    const auto middle = [&](const char* above, const char* below) { return (editor.at(above, kHalfBox) + editor.at(below, -kHalfBox)) / 2; };
    // one that was in a wire leaves that whole
    editor.drag(editor.at("norm"), middle("embed_tokens", "layers"));
    QVERIFY(editor.hasWire({{"embed_tokens", "out"}, {"norm", "x"}}));
    const auto joins = [&](const char* from, const char* to) {
        const auto& wires = editor.main().wires;
        return std::any_of(wires.begin(), wires.end(), [&](const graph::Wire& wire) { return wire.from.cell == from && wire.to.cell == to; });
    };
    QVERIFY(joins("norm", "layers") && joins("layers", "lm_head") && !joins("embed_tokens", "layers") && !joins("norm", "lm_head"));
    QCOMPARE(editor.bench.model.undoStack().count(), 1);
    // and one without wires gets two
    editor.bench.model.undoStack().undo();
    QVERIFY(editor.bench.model.edit(QStringLiteral("x"), [](graph::Document& document) { return graph::addCell(document, "", "Dropout").transform([](const auto&) {}); }).has_value());
    QTRY_VERIFY(editor.isSettled() && editor.view->positions().contains("dropout"));
    const auto where = editor.view->positions().at("dropout");
    editor.view->centerOn(where.x, where.y + 100);
    editor.view->fitAll();
    editor.drag(editor.at("dropout"), middle("norm", "lm_head"));
    QVERIFY(joins("norm", "dropout") && joins("dropout", "lm_head") && !joins("norm", "lm_head"));
}

void TestModelEditor::aWireThatCannotTakeTheCellSaysWhy() {
    Editor editor;
    QTRY_VERIFY(editor.isReady());
    QVERIFY(editor.bench.model.edit(QStringLiteral("x"), [](graph::Document& document) -> Status {
        CELLOOM_TRY(add, graph::addCell(document, "", "Add"));
        CELLOOM_TRY_STATUS(graph::addWire(document, "", {{"norm", "out"}, {add, "a"}}));
        CELLOOM_TRY_STATUS(graph::addWire(document, "", {{"layers", document.composites.at(graph::findCell(document.main, "layers")->type).outputs.front().name}, {add, "b"}}));
        return graph::addWire(document, "", {{add, "out"}, {"lm_head", "x"}});
    }).has_value());
    QTRY_VERIFY(editor.isSettled() && editor.view->positions().contains("add"));
    editor.view->fitAll();
    const auto before = editor.main().wires;
    editor.drag(editor.at("add"), (editor.at("embed_tokens", kHalfBox) + editor.at("layers", -kHalfBox)) / 2); // it reads what the layers give: a circle
    QCOMPARE(editor.main().wires.size(), before.size());
    QVERIFY(std::equal(before.begin(), before.end(), editor.main().wires.begin()));
    const auto* notice = editor.page.findChild<Notice*>();
    QVERIFY(notice->isVisible());
    const auto labels = notice->findChildren<QLabel*>();
    QVERIFY(std::any_of(labels.begin(), labels.end(), [](const QLabel* label) { return label->text().contains(QLatin1String("circle")); }));
}

void TestModelEditor::anEmptySearchSaysWhatToDo() {
    Editor editor;
    QTRY_VERIFY(editor.isReady());
    auto* search = editor.palette->findChild<QLineEdit*>();
    const auto button = [&](const QString& text) -> QPushButton* {
        for (auto* one : editor.palette->findChildren<QPushButton*>())
            if (one->isVisible() && one->text() == text) return one;
        return nullptr;
    };
    editor.palette->focusSearch();
    QTest::keyClicks(search, QStringLiteral("dens3"));
    const auto labels = editor.palette->findChildren<QLabel*>();
    QVERIFY(std::any_of(labels.begin(), labels.end(), [](const QLabel* label) { return label->isVisible() && label->text() == QString::fromUtf8("No cell fits “dens3”."); }));
    QVERIFY(!editor.palette->findChild<QTreeWidget*>()->isVisible());
    QVERIFY(button(QStringLiteral("Did you mean Dense?")));
    button(QStringLiteral("Did you mean Dense?"))->click();
    QCOMPARE(search->text(), QStringLiteral("Dense"));
    QVERIFY(editor.palette->findChild<QTreeWidget*>()->isVisible());
    search->setText(QStringLiteral("qqqqqqqq"));
    button(QStringLiteral("Write it as a Script cell"))->click();
    QVERIFY(graph::findCell(editor.main(), "script"));
    QVERIFY(search->text().isEmpty() && editor.palette->findChild<QTreeWidget*>()->isVisible());
}

void TestModelEditor::numbersOnWiresDoNotLieOnEachOther() {
    Theme theme{*qApp};
    const CanvasStyle style(theme, qApp->font());
    WireLayer layer(style);
    QPainterPath path;
    path.lineTo(0, 40); // too short for two notes beside each other
    layer.setPaths({path, path, path.translated(400, 0)});
    layer.setNotes({{QStringLiteral("[2, 3]"), QStringLiteral("0 ± 1"), false}, {QStringLiteral("[2, 3]"), QStringLiteral("NaN 3"), true}, {QStringLiteral("[2, 3]"), QStringLiteral("0 ± 1"), false}});
    QVERIFY(!layer.isNoteShown(0) && layer.isNoteShown(1) && layer.isNoteShown(2)); // what is wrong comes first
    layer.setChosen(0);
    QVERIFY(layer.isNoteShown(0) && !layer.isNoteShown(1) && layer.isNoteShown(2));
}

void TestModelEditor::aRenamedCellStaysChosen() {
    Editor editor;
    QTRY_VERIFY(editor.isReady());
    QTest::mouseClick(editor.view->viewport(), Qt::LeftButton, {}, editor.at("norm"));
    QTest::keyClick(editor.view, Qt::Key_F2);
    auto* field = editor.page.findChild<QLineEdit*>(QStringLiteral("name"));
    QTRY_VERIFY(field->hasFocus());
    QTest::keyClicks(field, QStringLiteral("last_norm"));
    QTest::keyClick(field, Qt::Key_Return);
    QTRY_VERIFY(graph::findCell(editor.main(), "last_norm"));
    QCOMPARE(editor.view->chosenCells(), std::set<std::string>{"last_norm"});
    QTRY_VERIFY(editor.isSettled());
    QCOMPARE(editor.view->chosenCells(), std::set<std::string>{"last_norm"});
    editor.bench.model.undoStack().undo();
    QCOMPARE(editor.view->chosenCells(), std::set<std::string>{"norm"});
}

void TestModelEditor::escapeEndsTheEditOfAFieldBeforeItLeaves() {
    Editor editor;
    QTRY_VERIFY(editor.isReady());
    QTest::mouseClick(editor.view->viewport(), Qt::LeftButton, {}, editor.at("norm"));
    auto* field = editor.page.findChild<QLineEdit*>(QStringLiteral("param:dim"));
    field->setFocus();
    field->selectAll();
    QTest::keyClicks(field, QStringLiteral("hiden"));
    QTest::keyClick(field, Qt::Key_Return); // refused
    QVERIFY(field->property("invalid").toBool());
    QTest::keyClick(field, Qt::Key_Escape);
    QCOMPARE(field->text(), QStringLiteral("hidden"));
    QVERIFY(!field->property("invalid").toBool() && field->hasFocus());
    QTest::keyClick(field, Qt::Key_Escape);
    QVERIFY(editor.view->hasFocus());
    QCOMPARE(editor.bench.model.undoStack().count(), 0);
    QCOMPARE(editor.view->chosenCells(), std::set<std::string>{"norm"});
}

void TestModelEditor::whatOneTypesStaysWhenAnAnalysisArrives() {
    Editor editor;
    QTRY_VERIFY(editor.isReady());
    QTest::mouseClick(editor.view->viewport(), Qt::LeftButton, {}, editor.at("norm"));
    const auto field = [&](const char* name) { return editor.page.findChild<QLineEdit*>(QLatin1String(name)); };
    field("param:dim")->setFocus();
    field("param:dim")->selectAll();
    QTest::keyClicks(field("param:dim"), QStringLiteral("hidden * 1"));
    QTest::keyClick(field("param:dim"), Qt::Key_Tab); // taken; its analysis is under way
    QTRY_COMPARE(editor.bench.model.undoStack().count(), 1);
    auto* next = qobject_cast<QLineEdit*>(editor.page.focusWidget());
    QVERIFY(next && next->objectName() != QLatin1String("param:dim"));
    const QString name = next->objectName();
    QTest::keyClicks(next, QStringLiteral("0.25"));
    QVERIFY(editor.page.focusWidget() == next);
    QSignalSpy arrived(&editor.bench.analyser, &ModelAnalyser::ready);
    QTRY_VERIFY(!arrived.isEmpty() && editor.isSettled());
    next = qobject_cast<QLineEdit*>(editor.page.focusWidget());
    QVERIFY(next && next->objectName() == name);
    QCOMPARE(next->text(), QStringLiteral("0.25")); // Tab had marked what was there before
    QTest::keyClick(next, Qt::Key_Return);
    QTRY_COMPARE(editor.bench.model.undoStack().count(), 2);
}

void TestModelEditor::aChosenCellWithAProblemShowsBoth() {
    Editor editor;
    QTRY_VERIFY(editor.isReady());
    QTest::mouseClick(editor.view->viewport(), Qt::LeftButton, {}, editor.at("norm"));
    QTest::keyClick(editor.view, Qt::Key_Delete); // the head is not fed now
    QTRY_VERIFY(editor.isSettled());
    const auto count = [&](const char* name) {
        const QImage picture = editor.view->viewport()->grab(QRect(editor.at("lm_head") - QPoint(200, 40), QSize(400, 80))).toImage();
        const QColor color = editor.bench.theme.color(name);
        int pixels = 0;
        for (int y = 0; y < picture.height(); ++y)
            for (int x = 0; x < picture.width(); ++x) pixels += picture.pixelColor(x, y).rgb() == color.rgb();
        return pixels;
    };
    const int accentBefore = count("accent"), badBefore = count("bad");
    QVERIFY(badBefore > 100);
    QTest::mouseClick(editor.view->viewport(), Qt::LeftButton, {}, editor.at("lm_head"));
    QTRY_VERIFY(count("accent") > accentBefore + 100);
    QVERIFY(count("bad") > badBefore - 20);
}

void TestModelEditor::cellsWithoutWeightsAreSaidToHaveNone() {
    Editor editor;
    QTRY_VERIFY(editor.isReady());
    const auto says = [&](const QString& text) {
        const auto labels = editor.page.findChild<Inspector*>()->findChildren<QLabel*>();
        return std::any_of(labels.begin(), labels.end(), [&](const QLabel* label) { return label->text() == text; });
    };
    QTest::mouseClick(editor.view->viewport(), Qt::LeftButton, {}, editor.at("norm"));
    QTRY_VERIFY(editor.isSettled());
    QVERIFY(says(QStringLiteral("Trained in full, in the run's precision.")));
    QVERIFY(says(QStringLiteral("FLOPs per token, forward")));
    editor.palette->focusSearch();
    auto* search = editor.palette->findChild<QLineEdit*>();
    QTest::keyClicks(search, QStringLiteral("dropout"));
    QTest::keyClick(search, Qt::Key_Return);
    QTRY_VERIFY(editor.isSettled());
    QTRY_VERIFY(says(QStringLiteral("No weights")));
    QVERIFY(editor.bench.recipe.open(QStringLiteral(CELLOOM_SOURCE "/resources/recipes/image-classifier-digits.json")).has_value());
    editor.page.requestAnalysis();
    QTRY_VERIFY(says(QStringLiteral("FLOPs per row, forward")));
    QVERIFY(!says(QStringLiteral("FLOPs per token, forward")));
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
