// My cells: saved from the canvas, inserted from the palette, updated where the library is newer, removed after a question.
#include "models/graph/edits.h"
#include "models/graph/expand.h"
#include "models/graph/json.h"
#include "services_bench.h"
#include "ui/editor/graph_view.h"
#include "ui/editor/model_page.h"
#include "ui/editor/my_cells.h"
#include "ui/editor/palette.h"
#include "ui/editor/save_cell_dialog.h"
#include "ui/shell/notice.h"

#include <QContextMenuEvent>
#include <QLabel>
#include <QLineEdit>
#include <QMenu>
#include <QMessageBox>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QTest>
#include <QTreeWidget>

#include <memory>

using namespace celloom;
using namespace celloom::ui;

namespace {

struct Editor {
    test::ServicesBench bench;
    library::WorkspaceLibrary library{bench.store.workspace().path};
    std::unique_ptr<ModelPage> page;
    GraphView* view = nullptr;
    Palette* palette = nullptr;

    Editor() { begin(); }
    void begin() {
        page = std::make_unique<ModelPage>(bench.services);
        view = page->findChild<GraphView*>();
        palette = page->findChild<Palette*>();
        page->resize(1280, 800);
        page->show();
        QVERIFY(QTest::qWaitForWindowActive(page.get()));
        bench.recipe.setValue(QStringLiteral("model.source"), std::string("baichuan-tiny"));
        page->requestAnalysis();
        QTRY_VERIFY(bench.analyser.isSettled() && view->positions().contains("norm") && view->positions().at("norm").y > view->positions().at("embed_tokens").y + 27);
    }
    const graph::Document& document() const { return *bench.model.snapshot(); }
    void choose(const std::string& cell) {
        const auto place = view->positions().at(cell);
        QTest::mouseClick(view->viewport(), Qt::LeftButton, {}, view->mapFromScene(QPointF(place.x, place.y)));
        QCOMPARE(view->chosenCells(), std::set<std::string>{cell});
    }
    /// From the canvas' menu, by its words.
    void fromMenu(const QString& words) {
        QContextMenuEvent event(QContextMenuEvent::Keyboard, {10, 10}, view->viewport()->mapToGlobal(QPoint(10, 10)));
        Q_EMIT view->menuRequested(event.globalPos());
        for (auto* menu : page->findChildren<QMenu*>())
            for (QAction* action : menu->actions())
                if (action->text() == words && menu->isVisible()) {
                    QVERIFY2(action->isEnabled(), qPrintable(words));
                    QTest::mouseClick(menu, Qt::LeftButton, {}, menu->actionGeometry(action).center());
                    return;
                }
        QFAIL(qPrintable(words));
    }
    SaveCellDialog* dialog() const { return page->findChild<SaveCellDialog*>(); }
    void press(QWidget* in, const QString& text) {
        for (auto* button : in->findChildren<QPushButton*>())
            if (button->text() == text) {
                QTest::mouseClick(button, Qt::LeftButton);
                return;
            }
        QFAIL(qPrintable(text));
    }
    QTreeWidgetItem* inPalette(const QString& name) const {
        const auto found = palette->findChild<QTreeWidget*>()->findItems(name, Qt::MatchExactly | Qt::MatchRecursive);
        return found.isEmpty() ? nullptr : found.last();
    }
    QString said() const {
        QString text;
        for (auto* notice : page->findChildren<Notice*>())
            if (notice->isVisible())
                for (const auto* label : notice->findChildren<QLabel*>()) text += label->text();
        return text;
    }
    void insert(const QString& words) {
        QTest::keyClick(view, Qt::Key_K, Qt::ControlModifier);
        auto* search = palette->findChild<QLineEdit*>();
        QTest::keyClicks(search, words);
        QTest::keyClick(search, Qt::Key_Return);
    }
    /// "Gate" in the library, made from the model's norm.
    void saveGate() {
        choose("norm");
        QTest::keyClick(view, Qt::Key_G, Qt::ControlModifier);
        fromMenu(QStringLiteral("Save to My cells…"));
        QTRY_VERIFY(dialog());
        auto* name = dialog()->findChild<QLineEdit*>();
        name->selectAll();
        QTest::keyClicks(name, QStringLiteral("Gate"));
        QTest::keyClicks(dialog()->findChild<QPlainTextEdit*>(), QStringLiteral("the first one"));
        press(dialog(), QStringLiteral("Save"));
        QTRY_VERIFY(!dialog());
        QVERIFY(QTest::qWaitForWindowActive(page.get()));
    }
};

} // namespace

class TestMyCells : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void aCompositeIsSavedAndInsertedElsewhere() {
        Editor editor;
        editor.saveGate();
        const auto entry = editor.library.load("Gate");
        QVERIFY2(entry.has_value(), entry ? "" : entry.error().text().c_str());
        QCOMPARE(entry->version, std::int64_t(1));
        QCOMPARE(entry->summary(), std::string("the first one"));
        QVERIFY(editor.document().composites.at("Block").origin == (graph::Origin{"workspace", "Gate", 1})); // the model's is its copy
        QTRY_VERIFY(editor.inPalette(QStringLiteral("Gate")));
        QTRY_VERIFY(editor.said().contains(QLatin1String("Gate is in My cells, version 1")));
        editor.bench.recipe.setValue(QStringLiteral("model.source"), std::string("internlm-tiny"));
        editor.page->requestAnalysis();
        QTRY_VERIFY(editor.bench.analyser.isSettled() && editor.document().main.name == "internlm-tiny");
        editor.insert(QStringLiteral("gate"));
        QVERIFY(editor.document().composites.contains("Gate"));
        QVERIFY(editor.document().composites.at("Gate").origin.has_value());
    }

    void aNameThatIsTakenIsRefusedInTheDialog() {
        Editor editor;
        editor.choose("norm");
        QTest::keyClick(editor.view, Qt::Key_G, Qt::ControlModifier);
        editor.fromMenu(QStringLiteral("Save to My cells…"));
        QTRY_VERIFY(editor.dialog());
        auto* name = editor.dialog()->findChild<QLineEdit*>();
        name->selectAll();
        QTest::keyClicks(name, QStringLiteral("Dense"));
        editor.press(editor.dialog(), QStringLiteral("Save"));
        const auto says = [&](const QString& words) {
            if (!editor.dialog()) return false;
            const auto labels = editor.dialog()->findChildren<QLabel*>();
            return std::any_of(labels.begin(), labels.end(), [&](const QLabel* label) { return label->text().contains(words); });
        };
        QTRY_VERIFY(says(QStringLiteral("is a type of the catalogue")));
        QVERIFY(!QFile::exists(QString::fromStdString((editor.library.folder() / "Dense.cells.json").string())));
    }

    void aScriptCellIsInsertedAndSaved() {
        Editor editor;
        editor.choose("norm");
        editor.insert(QStringLiteral("script cell"));
        const graph::Cell* script = graph::findCell(editor.document().main, "script");
        QVERIFY(script);
        QCOMPARE(std::get<std::string>(script->params.at("inputs")), std::string("x: [B, T, C]")); // the norm gives three dimensions
        QVERIFY(graph::expand(editor.document()).ok());
        QTRY_VERIFY(editor.bench.analyser.isSettled() && editor.bench.analyser.latest()->edited == editor.bench.model.snapshot());
        QCOMPARE(editor.view->chosenCells(), std::set<std::string>{"script"});
        editor.fromMenu(QStringLiteral("Save to My cells…"));
        QTRY_VERIFY(editor.dialog());
        auto* name = editor.dialog()->findChild<QLineEdit*>();
        name->selectAll();
        QTest::keyClicks(name, QStringLiteral("HandOn"));
        editor.press(editor.dialog(), QStringLiteral("Save"));
        QTRY_VERIFY(editor.library.load("HandOn").has_value());
        const auto entry = editor.library.load("HandOn");
        QCOMPARE(entry->document.main.cells.size(), std::size_t(1));
        QCOMPARE(entry->document.main.cells[0].type, std::string("Script"));
        QCOMPARE(entry->document.main.inputs.at(0).name, std::string("x"));
        QCOMPARE(entry->document.main.outputs.at(0).name, std::string("out"));
    }

    void aNewerVersionIsOfferedAndTaken() {
        Editor editor;
        editor.saveGate();
        QTRY_VERIFY(editor.inPalette(QStringLiteral("Gate")));
        // Another model of the workspace makes version 2.
        graph::Document other = editor.library.load("Gate")->document;
        graph::Document holder;
        holder.composites["Gate"] = other.main;
        holder.composites["Gate"].note = "the second one";
        const graph::Wire last = holder.composites["Gate"].wires.back();
        QVERIFY(graph::insertOnWire(holder, "Gate", last, *graph::addCell(holder, "Gate", "SiLU"), "x", "out").has_value());
        QCOMPARE(editor.library.save(holder, "Gate")->origin.version, std::int64_t(2));
        const QString file = editor.bench.folder.filePath(QStringLiteral("mine.cells.json"));
        QVERIFY(editor.bench.model.current().save(file));
        editor.bench.model.remove(editor.bench.model.current());
        editor.page.reset(); // another window
        editor.begin();
        editor.page->open(file);
        QTRY_VERIFY2(editor.said().contains(QLatin1String("newer versions: Block (version 2, here 1)")), qPrintable(editor.said()));
        QTRY_VERIFY(editor.inPalette(QStringLiteral("Block ↑ version 2")));
        for (auto* notice : editor.page->findChildren<Notice*>())
            if (notice->isVisible()) editor.press(notice, QStringLiteral("Update"));
        QCOMPARE(editor.document().composites.at("Block").origin->version, std::int64_t(2));
        QCOMPARE(editor.document().composites.at("Block").note, std::string("the second one"));
        QCOMPARE(editor.bench.model.undoStack().count(), 1); // one step
        QTRY_VERIFY(editor.inPalette(QStringLiteral("Block")));
    }

    void anEntryIsRemovedAfterAQuestion() {
        Editor editor;
        editor.saveGate();
        QTRY_VERIFY(editor.inPalette(QStringLiteral("Gate")));
        auto* tree = editor.palette->findChild<QTreeWidget*>();
        tree->setCurrentItem(editor.inPalette(QStringLiteral("Gate")));
        QTest::keyClick(tree, Qt::Key_Delete);
        QTRY_VERIFY(editor.page->findChild<QMessageBox*>());
        editor.press(editor.page->findChild<QMessageBox*>(), QStringLiteral("Cancel"));
        QVERIFY(editor.library.load("Gate").has_value());
        QTRY_VERIFY(!editor.page->findChild<QMessageBox*>());
        QTest::keyClick(tree, Qt::Key_Delete);
        QTRY_VERIFY(editor.page->findChild<QMessageBox*>());
        editor.press(editor.page->findChild<QMessageBox*>(), QStringLiteral("Remove"));
        QTRY_VERIFY(!editor.library.load("Gate").has_value());
        QTRY_VERIFY(!editor.inPalette(QStringLiteral("Gate")));
        QVERIFY(editor.document().composites.contains("Block")); // the model keeps its copy
    }

    void aWrappedScriptBringsWhatItUses() {
        graph::Document document;
        document.main.hyper = {{"width", std::int64_t(8), ""}, {"other", std::int64_t(1), ""}};
        document.main.cells = {{"mine", "Script", {{"inputs", std::string("a: [B, width]; mask: [B] bool")}, {"outputs", std::string("out: [B, width]")}, {"weights", std::string("gain: [width]")},
                                                   {"code", std::string("def construct(self, a, mask):\n    return a * self.gain\n")}}, "3", "scales", {}}};
        const auto wrapped = wrapScript(document, "", "mine", "Scale", {{"width", std::int64_t(8)}, {"other", std::int64_t(1)}});
        QVERIFY2(wrapped.has_value(), wrapped ? "" : wrapped.error().text().c_str());
        const graph::Graph& scale = wrapped->composites.at("Scale");
        QCOMPARE(scale.inputs.size(), std::size_t(2));
        QCOMPARE(scale.inputs[1].dtype, std::string("bool"));
        QCOMPARE(scale.wires.size(), std::size_t(3));
        QVERIFY(scale.cells[0].repeat.empty()); // how often it stands somewhere is not its own
        QCOMPARE(scale.note, std::string("scales"));
        QCOMPARE(scale.hyper.size(), std::size_t(1)); // width; other is not used
    }
};

QTEST_MAIN(TestMyCells)
#include "tst_my_cells.moc"
