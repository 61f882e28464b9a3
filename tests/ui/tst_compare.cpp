// Two graphs compared on the canvas: what is listed, what is marked, how one gets out again.
#include "models/graph/edits.h"
#include "models/graph/json.h"
#include "editor_bench.h"
#include "ui/editor/compare_panel.h"
#include "ui/editor/graph_view.h"
#include "ui/editor/model_page.h"
#include "ui/common/format.h"
#include "ui/editor/palette.h"

#include <QGraphicsItem>
#include <QGraphicsScene>
#include <QLabel>
#include <QMenu>
#include <QTest>
#include <QTimer>
#include <QToolButton>
#include <QTreeWidget>

#include <memory>

using namespace celloom;
using namespace celloom::ui;

namespace {

struct Editor : test::EditorBench {
    ComparePanel* panel = page.findChild<ComparePanel*>();

    void edit(const std::function<Status(graph::Document&)>& change) { QVERIFY(bench.model.edit(QStringLiteral("x"), change).has_value()); }
    void compare(const QString& words) {
        for (auto* button : page.findChildren<QToolButton*>()) {
            if (button->text() != QStringLiteral("Compare")) continue;
            QMenu* menu = button->menu();
            bool isFound = false;
            QTimer::singleShot(0, menu, [&] { // the button's menu runs a loop of its own
                for (QAction* action : menu->actions())
                    if (action->text() == words && action->isEnabled()) {
                        isFound = true;
                        QTest::mouseClick(menu, Qt::LeftButton, {}, menu->actionGeometry(action).center());
                        return;
                    }
                menu->close();
            });
            QTest::mouseClick(button, Qt::LeftButton);
            QVERIFY2(isFound, qPrintable(words));
            return;
        }
        QFAIL(qPrintable(words));
    }
    QTreeWidgetItem* row(const QString& text) const {
        const auto found = panel->findChild<QTreeWidget*>()->findItems(text, Qt::MatchContains | Qt::MatchRecursive);
        return found.isEmpty() ? nullptr : found.front();
    }
    const QGraphicsItem* ghost(const char* cell) const {
        for (const QGraphicsItem* item : view->scene()->items())
            if (item->toolTip() == QLatin1String(cell)) return item;
        return nullptr;
    }
    bool isSettled() const { return bench.analyser.isSettled() && !view->findChild<Arranger*>()->isBusy(); }
    int pixels(const QImage& picture, const char* name) const {
        const QColor color = bench.theme.color(name);
        int count = 0;
        for (int y = 0; y < picture.height(); ++y)
            for (int x = 0; x < picture.width(); ++x) count += picture.pixelColor(x, y).rgb() == color.rgb();
        return count;
    }
    /// What hangs on the boxes.
    int marks(const std::string& cell) const {
        for (std::size_t i = 0; i < view->level().boxes.size(); ++i)
            if (view->level().boxes[i].name == cell) return static_cast<int>(view->items()[i]->childItems().size());
        return -1;
    }
};

} // namespace

class TestCompare : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void editsAreComparedWithWhatWasSaved() {
        Editor editor;
        editor.edit([](graph::Document& document) -> Status {
            CELLOOM_TRY_STATUS(graph::setParam(document, "", "norm", "eps", graph::ParamValue(0.5)));
            CELLOOM_TRY_STATUS(graph::addCell(document, "", "Dropout").transform([](const auto&) {}));
            return graph::removeCells(document, "", {"lm_head"});
        });
        editor.compare(QStringLiteral("With what was saved last"));
        QTRY_VERIFY(editor.panel->isVisible());
        QVERIFY(!editor.page.findChild<Palette*>()->isVisible());
        QVERIFY(editor.row(QStringLiteral("+ dropout")));
        QVERIFY(editor.row(QStringLiteral("− lm_head")));
        QVERIFY(editor.row(QStringLiteral("≠ norm")));
        QVERIFY(editor.row(QStringLiteral("eps: ")) && editor.row(QStringLiteral("→ 0.5")));
        QVERIFY(editor.row(QStringLiteral("− wire norm.out -> lm_head.x")));
        QCOMPARE(editor.marks("dropout"), 1);
        QCOMPARE(editor.marks("norm"), 1);
        QCOMPARE(editor.marks("embed_tokens"), 0);

        auto* list = editor.panel->findChild<QTreeWidget*>();
        QTest::mouseClick(list->viewport(), Qt::LeftButton, {}, list->visualItemRect(editor.row(QStringLiteral("≠ norm"))).center());
        QCOMPARE(editor.view->chosenCells(), std::set<std::string>{"norm"});

        editor.edit([](graph::Document& document) { return graph::removeCells(document, "", {"dropout"}); }); // the list follows
        QTRY_VERIFY(!editor.row(QStringLiteral("+ dropout")));

        QTest::keyClick(editor.view, Qt::Key_Escape);
        QTRY_VERIFY(!editor.panel->isVisible());
        QVERIFY(editor.page.findChild<Palette*>()->isVisible());
        QCOMPARE(editor.marks("norm"), 0);
    }

    void whatWentStandsWhereNothingElseDoesAndItsWiresAreDrawn() {
        Editor editor;
        editor.edit([](graph::Document& document) { return graph::removeCells(document, "", {"embed_tokens", "norm", "lm_head"}); });
        editor.edit([](graph::Document& document) { return graph::addWire(document, "", {{"layers", document.composites.at(document.main.cells.front().type).outputs.front().name}, {"", "logits"}}); });
        editor.compare(QStringLiteral("With what was saved last"));
        QTRY_VERIFY(editor.panel->isVisible() && editor.view->isShown() && editor.isSettled());
        std::vector<QRectF> taken;
        for (const BoxItem* item : editor.view->items()) taken.push_back(item->sceneRect());
        for (const char* gone : {"embed_tokens", "norm", "lm_head"}) {
            const QGraphicsItem* ghost = editor.ghost(gone);
            QVERIFY2(ghost, gone);
            const QRectF rect = ghost->sceneBoundingRect().adjusted(8, 12, -12, -8); // without the sign at its corner
            for (const QRectF& other : taken) QVERIFY2(!rect.intersects(other), gone);
            QVERIFY(editor.view->contents().contains(rect));
            taken.push_back(rect);
        }
        QVERIFY(editor.row(QStringLiteral("≠ wire layers.")));
        editor.view->fitAll();
        const QImage picture = editor.view->viewport()->grab().toImage();
        for (const char* color : {"bad", "warning"}) QVERIFY2(editor.pixels(picture, color) > 40, color);
    }

    void anotherTabIsComparedWithAndWhatIsInsideIsShown() {
        Editor editor;
        graph::Document other = *editor.bench.model.snapshot();
        std::string inner; // the composite of the layers
        for (const graph::Cell& cell : other.main.cells)
            if (cell.name == "layers") inner = cell.type;
        const std::string first = other.composites.at(inner).cells.front().name;
        other.composites.at(inner).cells.front().note = "another";
        ModelDocument& tab = editor.bench.model.add();
        tab.takeUntitled(other, 1);
        editor.compare(QStringLiteral("With baichuan-tiny"));
        QTRY_VERIFY(editor.panel->isVisible());
        QVERIFY(editor.row(fromUtf8(inner)));
        QCOMPARE(editor.marks("layers"), 1);
        auto* list = editor.panel->findChild<QTreeWidget*>();
        QTreeWidgetItem* row = editor.row(QStringLiteral("≠ ") + fromUtf8(first));
        QVERIFY(row);
        QTest::mouseClick(list->viewport(), Qt::LeftButton, {}, list->visualItemRect(row).center());
        QCOMPARE(editor.view->level().prefix, std::string("layers.0."));
        QCOMPARE(editor.marks(first), 1);
        editor.bench.model.setCurrent(tab); // a comparison belongs to its tab
        QTRY_VERIFY(!editor.panel->isVisible());
        QVERIFY(editor.page.findChild<Palette*>()->isVisible());
    }

    void graphsThatSayTheSameAreSaidToBeSo() {
        Editor editor;
        ModelDocument& tab = editor.bench.model.add();
        tab.takeUntitled(*editor.bench.model.snapshot(), 1);
        editor.compare(QStringLiteral("With baichuan-tiny"));
        QTRY_VERIFY(editor.panel->isVisible());
        const auto labels = editor.panel->findChildren<QLabel*>();
        QVERIFY(std::any_of(labels.begin(), labels.end(), [](const QLabel* label) { return label->text().contains(QLatin1String("say the same")); }));
        QCOMPARE(editor.panel->findChild<QTreeWidget*>()->topLevelItemCount(), 0);
    }
};

QTEST_MAIN(TestCompare)
#include "tst_compare.moc"
