// The canvas by keys alone, what it tells screen readers, and the minimap.
#include "models/graph/edits.h"
#include "editor_bench.h"
#include "ui/editor/arranger.h"
#include "ui/editor/graph_view.h"
#include "ui/editor/minimap.h"
#include "ui/editor/model_page.h"
#include "ui/editor/tool_row.h"

#include <QAbstractButton>
#include <QAction>
#include <QTest>
#include <QToolButton>
#include <QToolTip>
#include <QUndoStack>

#include <cmath>

using namespace celloom;
using namespace celloom::ui;

namespace {

struct Editor : test::EditorBench {
    Minimap* minimap = page.findChild<Minimap*>();

    Editor() { view->setFocus(Qt::TabFocusReason); }
    void key(int key, Qt::KeyboardModifiers modifiers = {}) { QTest::keyClick(view, static_cast<Qt::Key>(key), modifiers); }
    QString told() const { return view->accessibleDescription(); }
    bool hasWire(const graph::Wire& wire) const {
        const auto& wires = bench.model.snapshot()->main.wires;
        return std::find(wires.begin(), wires.end(), wire) != wires.end();
    }
};

} // namespace

class TestCanvasKeys : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void arrowsGoWhereTheyPointAndTellWhatIsThere() { // the model is a column: ids, embedding, layers, norm, head, logits
        Editor editor;
        QVERIFY(editor.view->property("keys").toBool()); // the focus is seen
        editor.key(Qt::Key_Home);
        editor.key(Qt::Key_Down);
        QCOMPARE(editor.view->chosenCells(), std::set<std::string>{"embed_tokens"});
        QVERIFY(editor.told().startsWith(QStringLiteral("embed_tokens, Embedding, [B, T, 256], fed by input_ids, feeds layers")));
        editor.key(Qt::Key_Down, Qt::ShiftModifier);
        QCOMPARE(editor.view->chosenCells(), (std::set<std::string>{"embed_tokens", "layers"}));
        editor.key(Qt::Key_Down);
        QCOMPARE(editor.view->chosenCells(), std::set<std::string>{"norm"});
        editor.key(Qt::Key_Up);
        QCOMPARE(editor.view->chosenCells(), std::set<std::string>{"layers"});
        editor.key(Qt::Key_PageDown);
        QCOMPARE(editor.view->chosenCells(), std::set<std::string>{"norm"});
    }

    void aWireIsDrawnByKeys() {
        Editor editor;
        editor.view->choose(1); // embed_tokens
        QCOMPARE(editor.view->chosenCells(), std::set<std::string>{"embed_tokens"});
        editor.key(Qt::Key_W);
        QVERIFY(editor.view->isInGesture());
        QVERIFY(editor.told().contains(QStringLiteral("Wire from embed_tokens.out to layers.")));
        QVERIFY(editor.told().contains(QStringLiteral("It replaces the wire there.")));
        for (int i = 0; i < 10 && !editor.told().contains(QStringLiteral("to lm_head.x")); ++i) editor.key(Qt::Key_Tab);
        QVERIFY(editor.told().contains(QStringLiteral("to lm_head.x")));
        editor.key(Qt::Key_Return);
        QVERIFY(editor.hasWire({{"embed_tokens", "out"}, {"lm_head", "x"}}));
        QVERIFY(!editor.hasWire({{"norm", "out"}, {"lm_head", "x"}}));
        QCOMPARE(editor.bench.model.undoStack().count(), 1);
        QVERIFY(editor.view->hasFocus());
        editor.view->chooseCells({"lm_head"});
        editor.key(Qt::Key_W, Qt::ShiftModifier); // from its input
        QVERIFY(editor.told().contains(QStringLiteral("to lm_head.x")));
        editor.key(Qt::Key_Escape);
        QVERIFY(!editor.view->isInGesture());
        QCOMPARE(editor.bench.model.undoStack().count(), 1);
    }

    void portsThatDoNotFitAreListedWithTheReasonAndNotTaken() {
        Editor editor;
        editor.view->chooseCells({"lm_head"});
        editor.key(Qt::Key_W);
        QVERIFY(editor.told().contains(QStringLiteral("to logits"))); // what fits comes first
        QVERIFY(!editor.told().contains(QStringLiteral("Does not fit")));
        editor.key(Qt::Key_Tab);
        QVERIFY(editor.told().contains(QStringLiteral("Does not fit: ")));
        QVERIFY(!editor.told().contains(QStringLiteral("Does not fit: \n")));
        const auto before = editor.bench.model.snapshot()->main.wires.size();
        editor.key(Qt::Key_Return);
        QVERIFY(editor.view->isInGesture()); // it is not taken
        QCOMPARE(editor.bench.model.snapshot()->main.wires.size(), before);
        QVERIFY(QToolTip::text().contains(QStringLiteral("▸")));
        editor.key(Qt::Key_Escape);
        QVERIFY(!editor.view->isInGesture());
        QCOMPARE(editor.bench.model.undoStack().count(), 0);
    }

    void theMinimapsFrameIsDraggedFromWhereItIsTaken() {
        Editor editor;
        editor.view->zoomBy(2.6);
        QVERIFY(editor.minimap->isVisible());
        const QPointF before = editor.view->middle();
        const QRectF whole = editor.view->contents();
        const double scale = std::min((editor.minimap->width() - 16.0) / whole.width(), (editor.minimap->height() - 16.0) / whole.height()); // a margin of 8 pixels
        const auto onMap = [&](QPointF scene) { return (QPointF(editor.minimap->width(), editor.minimap->height()) / 2 + (scene - whole.center()) * scale).toPoint(); };
        const QPoint corner = onMap(editor.view->sight().center()) + QPoint(0, 6); // within the frame, not its middle
        QVERIFY(editor.view->sight().height() * scale / 2 > 7);
        QTest::mousePress(editor.minimap, Qt::LeftButton, {}, corner);
        QVERIFY(QLineF(editor.view->middle(), before).length() < 2);
        QMouseEvent move(QEvent::MouseMove, QPointF(corner + QPoint(0, 10)), editor.minimap->mapToGlobal(QPointF(corner + QPoint(0, 10))), Qt::NoButton, Qt::LeftButton, {});
        QCoreApplication::sendEvent(editor.minimap, &move);
        QVERIFY(std::abs(editor.view->middle().y() - before.y() - 10 / scale) < 3 / scale);
        QTest::mouseRelease(editor.minimap, Qt::LeftButton, {}, corner + QPoint(0, 10));
    }

    void aWireIsChosenAndRemovedByKeys() {
        Editor editor;
        editor.view->chooseCells({"norm"});
        editor.key(Qt::Key_E);
        QVERIFY(editor.view->chosenWire());
        const graph::Wire first = *editor.view->chosenWire();
        editor.key(Qt::Key_E);
        QVERIFY(!(*editor.view->chosenWire() == first)); // it has two
        editor.key(Qt::Key_E);
        QCOMPARE(*editor.view->chosenWire() == first, true);
        editor.key(Qt::Key_Delete);
        QVERIFY(!editor.hasWire(first));
    }

    void chosenCellsMoveAndTheSightDoesByKeys() {
        Editor editor;
        editor.view->chooseCells({"norm"});
        const double before = editor.view->positions().at("norm").x;
        editor.key(Qt::Key_Right, Qt::ControlModifier);
        QCOMPARE(editor.view->positions().at("norm").x, before + 8);
        const QPointF middle = editor.view->middle();
        editor.key(Qt::Key_Right, Qt::AltModifier);
        QVERIFY(editor.view->middle().x() > middle.x() + 20);
        QCOMPARE(editor.view->positions().at("norm").x, before + 8);
    }

    void draggedBoxesRestOnAGridUnlessAltIsHeld() {
        Editor editor;
        const graph::Position place = editor.view->positions().at("norm");
        const auto drag = [&](Qt::KeyboardModifiers held) {
            const graph::Position now = editor.view->positions().at("norm");
            const QPoint at = editor.view->mapFromScene(QPointF(now.x, now.y));
            QTest::mousePress(editor.view->viewport(), Qt::LeftButton, {}, at);
            for (const QPoint by : {QPoint(20, 3), QPoint(47, 5)}) {
                QMouseEvent move(QEvent::MouseMove, at + by, editor.view->viewport()->mapToGlobal(at + by), Qt::NoButton, Qt::LeftButton, held);
                QCoreApplication::sendEvent(editor.view->viewport(), &move);
            }
            QTest::mouseRelease(editor.view->viewport(), Qt::LeftButton, {}, at + QPoint(47, 5));
        };
        drag({});
        const graph::Position snapped = editor.view->positions().at("norm");
        QVERIFY(snapped.x > place.x);
        QCOMPARE(std::remainder(snapped.x, 8), 0.0);
        QCOMPARE(std::remainder(snapped.y, 8), 0.0);
        const double scale = editor.view->transform().m11();
        drag(Qt::AltModifier);
        QVERIFY(std::abs(editor.view->positions().at("norm").x - snapped.x - 47 / scale) <= 1 / scale + 1); // where the pointer is
    }

    void theMinimapIsThereWhileNotEverythingIsInSightAndMovesTheSight() {
        Editor editor;
        QVERIFY(editor.minimap->isHidden()); // all fits
        editor.view->zoomBy(2.6);
        QVERIFY(editor.minimap->isVisible());
        QVERIFY(!editor.minimap->accessibleName().isEmpty());
        const QRectF whole = editor.view->contents();
        QTest::mouseClick(editor.minimap, Qt::LeftButton, {}, QPoint(editor.minimap->width() / 2, 12));
        QVERIFY(editor.view->middle().y() < whole.top() + whole.height() * 0.2);
        QTest::mousePress(editor.minimap, Qt::LeftButton, {}, QPoint(editor.minimap->width() / 2, 12));
        QMouseEvent move(QEvent::MouseMove, QPointF(editor.minimap->width() / 2.0, editor.minimap->height() - 12.0), editor.minimap->mapToGlobal(QPointF(0, 0)), Qt::NoButton, Qt::LeftButton, {});
        QCoreApplication::sendEvent(editor.minimap, &move);
        QTest::mouseRelease(editor.minimap, Qt::LeftButton, {}, QPoint(editor.minimap->width() / 2, editor.minimap->height() - 12));
        QVERIFY(editor.view->middle().y() > whole.top() + whole.height() * 0.8);
        editor.key(Qt::Key_M);
        QVERIFY(editor.minimap->isHidden());
        QCOMPARE(editor.bench.settings.value(QStringLiteral("canvas/minimap")).toBool(), false);
        editor.key(Qt::Key_M);
        QVERIFY(editor.minimap->isVisible());
        editor.key(Qt::Key_0);
        QVERIFY(editor.minimap->isHidden());
    }

    void fittingKeepsTextsReadableAndShowsTheBeginningOrWhatIsChosen() {
        Editor editor;
        editor.page.resize(1280, 520); // too low for the whole column
        editor.key(Qt::Key_0);
        QVERIFY(editor.view->zoomPercent() >= 70);
        const QRectF whole = editor.view->contents();
        QVERIFY(editor.view->sight().top() <= whole.top() && editor.view->sight().bottom() < whole.bottom());
        const auto place = editor.view->positions().at("lm_head");
        editor.view->chooseCells({"lm_head"});
        editor.key(Qt::Key_0);
        QVERIFY(editor.view->zoomPercent() >= 70);
        QVERIFY(editor.view->sight().contains(QPointF(place.x, place.y)));
        editor.key(Qt::Key_0, Qt::ShiftModifier);
        QVERIFY(editor.view->zoomPercent() < 70);
        QVERIFY(editor.view->sight().contains(whole));
        editor.page.resize(1280, 500); // stays so
        QTRY_VERIFY(editor.view->sight().contains(whole));
        editor.key(Qt::Key_0);
        QVERIFY(editor.view->zoomPercent() >= 70);
    }

    void toolsFoldToIconsWhereTheWidthDoesNotSuffice() {
        Editor editor;
        for (const auto& [width, language] : {std::pair(1600, "en"), std::pair(900, "en"), std::pair(1100, "zh_CN")}) {
            editor.bench.language.choose(QString::fromLatin1(language));
            editor.page.resize(width, 800);
            QTest::qWait(50); // laid out
            auto* row = editor.page.findChild<ToolRow*>();
            int texts = 0;
            for (const auto* button : row->findChildren<QToolButton*>()) {
                QVERIFY2(button->width() >= button->sizeHint().width(), qPrintable(button->text())); // nothing is cut
                QVERIFY2(button->geometry().right() <= row->width(), qPrintable(button->text()));
                QVERIFY(!button->toolTip().isEmpty());
                QVERIFY(!button->accessibleName().isEmpty() || !button->text().isEmpty());
                texts += button->toolButtonStyle() == Qt::ToolButtonTextBesideIcon;
            }
            if (width == 1600) QCOMPARE(texts, 4);
            if (width == 900) QVERIFY(texts < 4);
        }
        editor.bench.language.choose(QStringLiteral("en"));
    }

    void theViewAndItsControlsHaveNames() {
        Editor editor;
        QVERIFY(!editor.view->accessibleName().isEmpty());
        for (const auto* button : editor.page.findChildren<QAbstractButton*>())
            if (button->isVisible()) QVERIFY2(!button->text().isEmpty() || !button->accessibleName().isEmpty() || !button->toolTip().isEmpty(), qPrintable(button->objectName()));
    }
};

QTEST_MAIN(TestCanvasKeys)
#include "tst_canvas_keys.moc"
