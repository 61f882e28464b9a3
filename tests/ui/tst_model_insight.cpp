// The panel under the canvas, by mouse and keyboard: problems that lead to their place, code both ways, costs.
#include "models/base/files.h"
#include "models/graph/edits.h"
#include "models/graph/json.h"
#include "services_bench.h"
#include "ui/common/format.h"
#include "ui/editor/code_import.h"
#include "ui/editor/graph_view.h"
#include "ui/editor/insight.h"
#include "ui/editor/model_page.h"
#include "ui/editor/problems_tab.h"
#include "ui/train/script_editor.h"

#include <QClipboard>
#include <QFileInfo>
#include <QLabel>
#include <QPushButton>
#include <QTest>
#include <QTextBlock>
#include <QToolButton>
#include <QTreeWidget>

using namespace celloom;
using namespace celloom::ui;

namespace {

QString engineBeside() {
    return QStringLiteral(CELLOOM_BIN "/celloom-engine");
}

QString fixture(const char* name) {
    const auto text = readFile(std::string(CELLOOM_FIXTURES "/") + name);
    return text ? fromUtf8(*text) : QString();
}

struct Editor {
    test::ServicesBench bench;
    std::unique_ptr<ModelPage> page;
    GraphView* view = nullptr;
    Insight* insight = nullptr;
    ScriptEditor* code = nullptr;

    explicit Editor(const QString& engine = {}) {
        if (!engine.isEmpty()) bench.services.engineProgram = engine;
        page = std::make_unique<ModelPage>(bench.services);
        view = page->findChild<GraphView*>();
        insight = page->findChild<Insight*>();
        code = page->findChild<ScriptEditor*>(QStringLiteral("model code"));
        page->resize(1440, 860);
        page->show();
        QVERIFY(QTest::qWaitForWindowActive(page.get())); // shortcuts need it
        bench.recipe.setValue(QStringLiteral("model.source"), std::string("baichuan-tiny"));
        page->requestAnalysis();
    }
    bool isReady() const {
        const auto places = view->positions();
        return places.contains("norm") && places.at("norm").y > places.at("embed_tokens").y + 27 && bench.analyser.isSettled();
    }
    const graph::Document& document() const { return *bench.model.snapshot(); }
    QPoint at(const std::string& cell) const {
        const graph::Position place = view->positions().at(cell);
        return view->mapFromScene(QPointF(place.x, place.y));
    }
    void clickTab(const char* key) {
        auto* button = page->findChild<QToolButton*>(QStringLiteral("tab:") + QLatin1String(key));
        QTest::mouseClick(button, Qt::LeftButton);
    }
    QTreeWidget* problems() const { return page->findChild<ProblemsTab*>()->findChild<QTreeWidget*>(); }
    QString lineWith(const QString& text) const {
        for (QTextBlock block = code->document()->begin(); block.isValid(); block = block.next())
            if (block.text().contains(text)) return block.text();
        return {};
    }
    /// Clicks into the line of the code that holds a text.
    void clickLine(const QString& text) {
        QTextBlock block = code->document()->begin();
        while (block.isValid() && !block.text().contains(text)) block = block.next();
        QVERIFY2(block.isValid(), qPrintable(text));
        code->setTextCursor(QTextCursor(block)); // into view
        code->centerCursor();
        QTextCursor inside(block);
        inside.movePosition(QTextCursor::Right, QTextCursor::MoveAnchor, 12);
        code->setTextCursor(QTextCursor(block.previous()));
        QTest::mouseClick(code->viewport(), Qt::LeftButton, {}, code->cursorRect(inside).center());
    }
};

} // namespace

class TestModelInsight : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void thePanelRemembersItsTabAndHeight();
    void aProblemLeadsToItsCell();
    void theCodeFollowsEditsAndTheChosenCell();
    void aLineOfTheCodeChoosesItsCell();
    void pastedClassesBecomeACell();
    void editedCodeReplacesTheModelInOneStep();
    void refusedCodeKeepsItsTextAndShowsThePlace();
    void whatLooksLikeCode();
};

void TestModelInsight::thePanelRemembersItsTabAndHeight() {
    Editor editor;
    QTRY_VERIFY(editor.isReady());
    QVERIFY(editor.insight->isOpen());
    editor.clickTab("code");
    QCOMPARE(editor.insight->current(), QStringLiteral("code"));
    auto* tab = editor.page->findChild<QToolButton*>(QStringLiteral("tab:code"));
    const int before = editor.insight->height();
    tab->setFocus();
    QTest::keyClick(tab, Qt::Key_Up, Qt::ControlModifier);
    QTRY_VERIFY(editor.insight->height() > before);
    const int height = editor.insight->height();
    QTest::keyClick(tab, Qt::Key_QuoteLeft, Qt::ControlModifier);
    QVERIFY(!editor.insight->isOpen());
    QTRY_VERIFY(editor.insight->height() < BottomPanel::kLeastHeight);
    Insight again(editor.bench.services);
    QVERIFY(!again.isOpen());
    QCOMPARE(again.current(), QStringLiteral("code"));
    again.setOpen(true);
    QCOMPARE(again.maximumHeight(), height);
}

void TestModelInsight::aProblemLeadsToItsCell() {
    Editor editor;
    QTRY_VERIFY(editor.isReady());
    editor.clickTab("problems");
    QCOMPARE(editor.problems()->topLevelItemCount(), 0);
    QVERIFY(editor.bench.model.edit(QStringLiteral("x"), [](graph::Document& document) { return graph::removeWire(document, "", {{"norm", "out"}, {"lm_head", "x"}}); }));
    QTRY_VERIFY(editor.problems()->topLevelItemCount() > 0);
    auto* tab = editor.page->findChild<QToolButton*>(QStringLiteral("tab:problems"));
    QCOMPARE(tab->text(), QStringLiteral("Problems %1").arg(editor.problems()->topLevelItemCount()));
    editor.view->setFocus();
    QTest::keyClick(editor.view, Qt::Key_F8);
    const QString place = editor.problems()->currentItem()->text(1);
    QCOMPARE(editor.view->chosenCells(), std::set<std::string>{toUtf8(place)});
    editor.view->choose(std::nullopt);
    QTest::mouseClick(editor.problems()->viewport(), Qt::LeftButton, {}, editor.problems()->visualItemRect(editor.problems()->topLevelItem(0)).center());
    QCOMPARE(editor.view->chosenCells(), std::set<std::string>{toUtf8(editor.problems()->topLevelItem(0)->text(1))});
}

void TestModelInsight::theCodeFollowsEditsAndTheChosenCell() {
    Editor editor;
    QTRY_VERIFY(editor.isReady());
    editor.clickTab("code");
    QTRY_VERIFY(!editor.lineWith(QStringLiteral("self.norm = ")).isEmpty());
    QTest::mouseClick(editor.view->viewport(), Qt::LeftButton, {}, editor.at("norm"));
    QVERIFY(!editor.code->lit().empty());
    for (const auto& [first, last] : editor.code->lit()) QVERIFY(editor.code->document()->findBlockByNumber(first - 1).text().contains(QLatin1String("self.norm")));
    QVERIFY(editor.bench.model.edit(QStringLiteral("x"), [](graph::Document& document) { return graph::renameCell(document, "", "norm", "last_norm"); }));
    QTRY_VERIFY(!editor.lineWith(QStringLiteral("self.last_norm = ")).isEmpty());
    QTest::mouseClick(editor.page->findChild<QToolButton*>(QStringLiteral("code:pytorch")), Qt::LeftButton);
    QTRY_VERIFY(!editor.lineWith(QStringLiteral("nn.Module")).isEmpty());
    QVERIFY(editor.code->isReadOnly());
    const QString before = editor.code->toPlainText();
    editor.code->setFocus();
    QTest::keyClicks(editor.code, QStringLiteral("abc"));
    QCOMPARE(editor.code->toPlainText(), before);
}

void TestModelInsight::aLineOfTheCodeChoosesItsCell() {
    Editor editor;
    QTRY_VERIFY(editor.isReady());
    editor.clickTab("code");
    QTRY_VERIFY(!editor.lineWith(QStringLiteral("self.norm = ")).isEmpty());
    editor.clickLine(QStringLiteral("self.embed_tokens = "));
    QCOMPARE(editor.view->chosenCells(), std::set<std::string>{"embed_tokens"});
    QVERIFY(editor.code->hasFocus());
    editor.clickLine(QStringLiteral("self.gate_proj = ")); // inside layers › mlp
    QCOMPARE(editor.view->level().prefix, std::string("layers.0.mlp."));
    QCOMPARE(editor.view->chosenCells(), std::set<std::string>{"gate_proj"});
}

void TestModelInsight::pastedClassesBecomeACell() {
    if (!QFileInfo(engineBeside()).isExecutable()) QSKIP("celloom-engine was not built");
    Editor editor(engineBeside());
    QTRY_VERIFY(editor.isReady());
    const std::string before = graph::toJson(editor.document());
    QApplication::clipboard()->setText(fixture("code/transformer_block.py"));
    editor.view->setFocus();
    QTest::keyClick(editor.view, Qt::Key_V, Qt::ControlModifier);
    QTRY_VERIFY_WITH_TIMEOUT(editor.document().composites.contains("TransformerBlock"), 30000);
    QCOMPARE(editor.view->chosenCells(), std::set<std::string>{"transformer_block"});
    std::set<std::string> types;
    for (const graph::Cell& cell : editor.document().composites.at("TransformerBlock").cells) types.insert(cell.type);
    for (const char* type : {"LayerNorm", "Add"}) QVERIFY2(types.contains(type), type);
    QCOMPARE(editor.bench.model.undoStack().count(), 1);
    editor.bench.model.undoStack().undo();
    QCOMPARE(graph::toJson(editor.document()), before);
}

void TestModelInsight::editedCodeReplacesTheModelInOneStep() {
    if (!QFileInfo(engineBeside()).isExecutable()) QSKIP("celloom-engine was not built");
    Editor editor(engineBeside());
    QTRY_VERIFY(editor.isReady());
    editor.clickTab("code");
    QTRY_VERIFY(!editor.lineWith(QStringLiteral("self.norm = ")).isEmpty());
    const std::string before = graph::toJson(editor.document());
    QTest::mouseClick(editor.page->findChild<QToolButton*>(QStringLiteral("code:edit")), Qt::LeftButton);
    QVERIFY(!editor.code->isReadOnly());
    QTextCursor cursor = editor.code->document()->find(QStringLiteral("self.norm = RMSNorm(dim=hidden"));
    QVERIFY(!cursor.isNull());
    cursor.setPosition(cursor.selectionEnd());
    editor.code->setTextCursor(cursor);
    QTest::keyClicks(editor.code, QStringLiteral(" * 1"));
    QTest::keyClick(editor.code, Qt::Key_Return, Qt::ControlModifier);
    QTRY_VERIFY_WITH_TIMEOUT(editor.bench.model.undoStack().count() == 1, 30000);
    QVERIFY(editor.code->isReadOnly());
    QCOMPARE(std::get<std::string>(graph::findCell(editor.document().main, "norm")->params.at("dim")), std::string("hidden * 1"));
    editor.bench.model.undoStack().undo();
    QCOMPARE(graph::toJson(editor.document()), before);
}

void TestModelInsight::refusedCodeKeepsItsTextAndShowsThePlace() {
    if (!QFileInfo(engineBeside()).isExecutable()) QSKIP("celloom-engine was not built");
    Editor editor(engineBeside());
    QTRY_VERIFY(editor.isReady());
    const QString source = QStringLiteral("class A(nn.Cell):\n    def __init__(self):\n        super().__init__()\n        self.f = nn.Foo(3)\n\n"
                                          "    def construct(self, x):\n        return self.f(x)\n");
    QApplication::clipboard()->setText(source);
    editor.view->setFocus();
    QTest::keyClick(editor.view, Qt::Key_V, Qt::ControlModifier);
    QTRY_VERIFY_WITH_TIMEOUT(!editor.code->marks().empty(), 30000);
    QCOMPARE(editor.code->marks().front().line, 4);
    QCOMPARE(editor.code->markedText(editor.code->marks().front()), QStringLiteral("nn.Foo"));
    QVERIFY(editor.insight->isShown(QStringLiteral("code")));
    QCOMPARE(editor.code->toPlainText(), source);
    QVERIFY(editor.page->findChild<QLabel*>(QStringLiteral("code note"))->text().contains(QLatin1String("Line 4")));
    QCOMPARE(editor.bench.model.undoStack().count(), 0);
    // put right, it is read
    QTextCursor cursor = editor.code->document()->find(QStringLiteral("nn.Foo(3)"));
    editor.code->setTextCursor(cursor);
    QTest::keyClicks(editor.code, QStringLiteral("nn.ReLU()"));
    QTest::mouseClick(editor.page->findChild<QPushButton*>(QStringLiteral("code:insert")), Qt::LeftButton);
    QTRY_VERIFY_WITH_TIMEOUT(editor.document().composites.contains("A"), 30000);
}

void TestModelInsight::whatLooksLikeCode() {
    QVERIFY(looksLikeCode(fixture("code/transformer_block.py")));
    QVERIFY(looksLikeCode(QStringLiteral("class Block(torch.nn.Module):\n  pass")));
    QVERIFY(!looksLikeCode(QStringLiteral("{\"format\": \"celloom-cells\"}")));
    QVERIFY(!looksLikeCode(QStringLiteral("a class of (Cell):")));
}

QTEST_MAIN(TestModelInsight)
#include "tst_model_insight.moc"
