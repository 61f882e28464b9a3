// The panel under the canvas, by mouse and keyboard: problems that lead to their place, code both ways, costs.
#include "models/base/files.h"
#include "models/graph/edits.h"
#include "models/graph/json.h"
#include "services_bench.h"
#include "ui/common/format.h"
#include "ui/common/widgets.h"
#include "ui/editor/code_import.h"
#include "ui/editor/cost_tree.h"
#include "ui/editor/graph_view.h"
#include "ui/editor/insight.h"
#include "ui/editor/model_page.h"
#include "ui/editor/problems_tab.h"
#include "ui/train/script_editor.h"

#include <QAbstractItemModelTester>
#include <QClipboard>
#include <QComboBox>
#include <QFileInfo>
#include <QLabel>
#include <QLineEdit>
#include <QMenu>
#include <QPushButton>
#include <QSortFilterProxyModel>
#include <QSignalSpy>
#include <QTest>
#include <QTextBlock>
#include <QToolButton>
#include <QTreeView>
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
    void aProblemIsMendedByItsButton();
    void aProblemIsMendedByTheKeyboard();
    void problemsFixesAndBadgesFollowTheLanguage();
    void theCodeFollowsEditsAndTheChosenCell();
    void aLineOfTheCodeChoosesItsCell();
    void pastedClassesBecomeACell();
    void classesBeingReadDoNotReachAnotherTab();
    void editedCodeStaysWithItsTab();
    void editedCodeReplacesTheModelInOneStep();
    void refusedCodeKeepsItsTextAndShowsThePlace();
    void inChineseCodeIsRefusedInChinese();
    void costsAreSummedAndLinkedWithTheCanvas();
    void aRuleIsMadeAndRemovedInTheInspector();
    void modelAndRulesGoBackInTheOrderInWhichTheyWereEdited();
    void aRuleThatDoesNotFitIsMendedOrOnlySaid();
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

void TestModelInsight::problemsFixesAndBadgesFollowTheLanguage() {
    Editor editor;
    QTRY_VERIFY(editor.isReady());
    const auto speak = [&editor](const char* code) {
        editor.bench.language.choose(QLatin1String(code));
        QApplication::sendPostedEvents();
    };
    const auto canvas = [&editor] { return editor.view->viewport()->grab().toImage(); };
    const QImage plain = canvas();
    editor.bench.recipe.setValue(QStringLiteral("rules"), std::vector<std::string>{"norm: freeze"});
    editor.page->requestAnalysis();
    QTRY_VERIFY(editor.bench.analyser.isSettled() && canvas() != plain);
    const QImage frozen = canvas();
    speak("zh_CN");
    QTRY_VERIFY(canvas() != frozen);
    speak("en");
    QTRY_VERIFY(canvas() == frozen);

    editor.clickTab("problems");
    QVERIFY(editor.bench.model.edit(QStringLiteral("x"), [](graph::Document& document) { return graph::removeWire(document, "", {{"norm", "out"}, {"lm_head", "x"}}); }));
    const auto* tab = editor.page->findChild<ProblemsTab*>();
    const auto firstFix = [tab] {
        for (const ProblemRow& row : tab->rows())
            if (!row.remedies.empty()) return row.remedies.front().title;
        return QString();
    };
    QTRY_VERIFY(editor.bench.analyser.isSettled() && firstFix().startsWith(QStringLiteral("Wire ")));
    const QString english = tab->rows().front().message;
    QVERIFY2(english.contains(QStringLiteral("has no wire")), qPrintable(english));
    speak("zh_CN");
    QTRY_VERIFY2(tab->rows().front().message.contains(QStringLiteral("没有连线")), qPrintable(tab->rows().front().message));
    QTRY_VERIFY2(firstFix().startsWith(QStringLiteral("将 ")), qPrintable(firstFix()));
    speak("en");
    QTRY_COMPARE(tab->rows().front().message, english);
}

void TestModelInsight::aProblemIsMendedByItsButton() {
    Editor editor;
    QTRY_VERIFY(editor.isReady());
    editor.clickTab("problems");
    const std::string before = graph::toJson(editor.document());
    QVERIFY(editor.bench.model.edit(QStringLiteral("x"), [](graph::Document& document) { return graph::setParam(document, "", "norm", "dim", std::string("hiden")); }));
    QToolButton* button = nullptr;
    QTRY_VERIFY((button = editor.page->findChild<QToolButton*>(QStringLiteral("mend:0"))));
    QCOMPARE(button->accessibleName(), QStringLiteral("Set dim to hidden"));
    QTest::mouseClick(button, Qt::LeftButton);
    QTRY_COMPARE(editor.problems()->topLevelItemCount(), 0);
    QCOMPARE(editor.bench.model.undoStack().undoText(), QStringLiteral("Set dim to hidden"));
    QCOMPARE(graph::toJson(editor.document()), before);
}

void TestModelInsight::aProblemIsMendedByTheKeyboard() {
    Editor editor;
    QTRY_VERIFY(editor.isReady());
    editor.clickTab("problems");
    const graph::Wire wire{{"norm", "out"}, {"lm_head", "x"}};
    QVERIFY(editor.bench.model.edit(QStringLiteral("x"), [&](graph::Document& document) { return graph::removeWire(document, "", wire); }));
    QTRY_VERIFY(editor.page->findChild<QToolButton*>(QStringLiteral("mend:0")));
    editor.problems()->setFocus();
    QTest::keyClick(editor.problems(), Qt::Key_Period, Qt::ControlModifier);
    if (auto* menu = qobject_cast<QMenu*>(QApplication::activePopupWidget())) QTest::keyClick(menu, Qt::Key_Return); // several are offered, best first
    QTRY_COMPARE(editor.problems()->topLevelItemCount(), 0);
    const auto& wires = editor.document().main.wires;
    QVERIFY(std::find(wires.begin(), wires.end(), wire) != wires.end());
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

void TestModelInsight::classesBeingReadDoNotReachAnotherTab() {
    if (!QFileInfo(engineBeside()).isExecutable()) QSKIP("celloom-engine was not built");
    Editor editor(engineBeside());
    QTRY_VERIFY(editor.isReady());
    const ModelDocument* first = &editor.bench.model.current();
    const std::string before = graph::toJson(editor.document());
    QApplication::clipboard()->setText(fixture("code/transformer_block.py"));
    editor.view->setFocus();
    QTest::keyClick(editor.view, Qt::Key_V, Qt::ControlModifier);
    editor.bench.model.setCurrent(editor.bench.model.add()); // before the answer can be there
    auto* importer = editor.insight->findChild<CodeImporter*>();
    QVERIFY(importer);
    QTRY_VERIFY_WITH_TIMEOUT(!importer->isRunning(), 30000);
    QTest::qWait(100); // what comes late would be here
    QCOMPARE(graph::toJson(*first->snapshot()), before);
    QVERIFY(!editor.bench.model.snapshot() || !editor.bench.model.snapshot()->composites.contains("TransformerBlock"));
}

void TestModelInsight::editedCodeStaysWithItsTab() {
    Editor editor;
    QTRY_VERIFY(editor.isReady());
    editor.clickTab("code");
    QTRY_VERIFY(!editor.lineWith(QStringLiteral("self.norm = ")).isEmpty());
    QTest::mouseClick(editor.page->findChild<QToolButton*>(QStringLiteral("code:edit")), Qt::LeftButton);
    QTest::keyClicks(editor.code, QStringLiteral("# mine "));
    OpenModels& models = editor.bench.model;
    ModelDocument& first = models.current();
    ModelDocument& second = models.add();
    graph::Document other;
    other.main.name = "other";
    second.takeUntitled(other, 7);
    models.setCurrent(second);
    QTRY_VERIFY(!editor.code->toPlainText().contains(QLatin1String("# mine")));
    QVERIFY(editor.code->isReadOnly());
    models.setCurrent(first);
    QVERIFY(editor.code->toPlainText().startsWith(QLatin1String("# mine")));
    QVERIFY(!editor.code->isReadOnly());
    QTest::qWait(100); // the model's own code would be here by now
    QVERIFY(editor.code->toPlainText().startsWith(QLatin1String("# mine")));
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

void TestModelInsight::inChineseCodeIsRefusedInChinese() {
    if (!QFileInfo(engineBeside()).isExecutable()) QSKIP("celloom-engine was not built");
    Editor editor(engineBeside());
    QTRY_VERIFY(editor.isReady());
    editor.bench.language.choose(QStringLiteral("zh_CN"));
    QApplication::sendPostedEvents();
    QApplication::clipboard()->setText(QStringLiteral("class A(nn.Cell):\n    def __init__(self):\n        super().__init__()\n        self.f = nn.Foo(3)\n\n"
                                                      "    def construct(self, x):\n        return self.f(x)\n"));
    editor.view->setFocus();
    QTest::keyClick(editor.view, Qt::Key_V, Qt::ControlModifier);
    QTRY_VERIFY_WITH_TIMEOUT(!editor.code->marks().empty(), 30000);
    const QString note = editor.page->findChild<QLabel*>(QStringLiteral("code note"))->text();
    QVERIFY2(note.contains(QStringLiteral("nn 中没有目录认识的 \"Foo\"。")), qPrintable(note));
    editor.bench.language.choose(QStringLiteral("en"));
}

void TestModelInsight::costsAreSummedAndLinkedWithTheCanvas() {
    Editor editor;
    QTRY_VERIFY(editor.isReady());
    editor.clickTab("cost");
    auto* tree = editor.page->findChild<QTreeView*>(QStringLiteral("cost tree"));
    QTRY_VERIFY(tree->model()->rowCount() > 0);
    const ModelAnalysisPtr analysis = editor.bench.analyser.latest();
    CostTreeModel model;
    const QAbstractItemModelTester tester(&model, QAbstractItemModelTester::FailureReportingMode::QtTest);
    for (const bool isFolded : {true, false}) {
        model.setAnalysis(analysis, isFolded);
        // parts are the whole
        double parameters = 0, flops = 0;
        for (int row = 0; row < model.rowCount(); ++row) {
            parameters += model.index(row, CostTreeModel::Parameters).data(CostTreeModel::SortRole).toDouble();
            flops += model.index(row, CostTreeModel::Flops).data(CostTreeModel::SortRole).toDouble();
        }
        QCOMPARE(parameters, static_cast<double>(analysis->expansion.model.parameterCount()));
        const double tokens = static_cast<double>(analysis->batch * analysis->sequence);
        QVERIFY(qAbs(flops - graph::total(analysis->costs).forwardFlops / tokens) < 1e-6 * flops);
        QVERIFY(model.indexOf("layers.1.mlp.gate_proj").isValid());
        QVERIFY(!model.indexOf("nowhere").isValid());
    }
    const QModelIndex layers = model.indexOf("layers"); // instance by instance
    QCOMPARE(model.rowCount(layers), 4);
    QCOMPARE(model.index(1, 0, layers).data(CostTreeModel::PathRole).toString(), QStringLiteral("layers.1"));
    model.setAnalysis(analysis, true);
    QCOMPARE(model.indexOf("layers").data().toString(), QStringLiteral("layers  ×4"));
    // a row chooses its cell, wherever it is
    const auto* sorted = qobject_cast<QSortFilterProxyModel*>(tree->model());
    const QModelIndex inside = sorted->mapFromSource(editor.page->findChild<CostTreeModel*>()->indexOf("layers.0.mlp.gate_proj"));
    QVERIFY(inside.isValid());
    for (QModelIndex above = inside.parent(); above.isValid(); above = above.parent()) tree->expand(above);
    tree->scrollTo(inside);
    QTest::mouseClick(tree->viewport(), Qt::LeftButton, {}, tree->visualRect(inside).center());
    QCOMPARE(editor.view->level().prefix, std::string("layers.0.mlp."));
    QCOMPARE(editor.view->chosenCells(), std::set<std::string>{"gate_proj"});
    // and the other way
    editor.view->setFocus();
    editor.view->chooseCells({"up_proj"});
    QCOMPARE(tree->currentIndex().data(CostTreeModel::PathRole).toString(), QStringLiteral("layers.0.mlp.up_proj"));
    QVERIFY(editor.page->findChild<ElidedLabel*>(QStringLiteral("cost total"))->fullText().contains(QStringLiteral("batch %1 × sequence %2").arg(analysis->batch).arg(analysis->sequence)));
    QCOMPARE(tree->viewport()->height() % tree->visualRect(tree->currentIndex()).height(), 0); // whole rows
}

void TestModelInsight::aRuleIsMadeAndRemovedInTheInspector() {
    Editor editor;
    QTRY_VERIFY(editor.isReady());
    QObject::connect(&editor.bench.recipe, &RecipeDocument::valueChanged, editor.page.get(), &ModelPage::requestAnalysis); // as the window does
    editor.insight->setOpen(false);
    editor.clickTab("cost");
    editor.insight->setOpen(false);
    Q_EMIT editor.insight->placeRequested({{"layers", 1}, {"mlp", 0}}, "up_proj", true);
    QCOMPARE(editor.view->level().prefix, std::string("layers.1.mlp."));
    auto* open = editor.page->findChild<QPushButton*>(QStringLiteral("new rule"));
    QVERIFY(open);
    open->setFocus();
    QTest::keyClick(open, Qt::Key_Space);
    auto* what = editor.page->findChild<QComboBox*>(QStringLiteral("rule what"));
    auto* reach = editor.page->findChild<QComboBox*>(QStringLiteral("rule reach"));
    auto* pattern = editor.page->findChild<QLineEdit*>(QStringLiteral("rule pattern"));
    auto* count = editor.page->findChild<QLabel*>(QStringLiteral("rule count"));
    QCOMPARE(pattern->text(), QStringLiteral("layers.*.mlp.up_proj"));
    QVERIFY(count->text().contains(QLatin1String("4 cell")));
    QTest::keyClick(reach, Qt::Key_Down);
    QCOMPARE(pattern->text(), QStringLiteral("layers.1.mlp.up_proj"));
    QVERIFY(count->text().contains(QLatin1String("1 cell")));
    QTest::keyClick(reach, Qt::Key_Up);
    QTest::keyClick(what, Qt::Key_L); // LoRA adapter
    QCOMPARE(editor.page->findChild<QLineEdit*>(QStringLiteral("rule value"))->text(), QStringLiteral("r=8 alpha=16"));
    QTest::mouseClick(editor.page->findChild<QPushButton*>(QStringLiteral("add rule")), Qt::LeftButton);
    QTRY_COMPARE(editor.bench.recipe.recipe().list("rules"), (std::vector<std::string>{"layers.*.mlp.up_proj: lora r=8 alpha=16"}));
    QTRY_VERIFY(editor.page->findChild<QLineEdit*>(QStringLiteral("rule:0")));
    // changed in its place; what is wrong is said and not taken
    auto* line = editor.page->findChild<QLineEdit*>(QStringLiteral("rule:0"));
    line->setFocus();
    line->selectAll();
    QTest::keyClicks(line, QStringLiteral("layers.*.mlp.up_projj: freeze"));
    QTest::keyClick(line, Qt::Key_Return);
    QVERIFY(line->property("invalid").toBool());
    QCOMPARE(editor.bench.recipe.recipe().list("rules").front(), std::string("layers.*.mlp.up_proj: lora r=8 alpha=16"));
    line->selectAll();
    QTest::keyClicks(line, QStringLiteral("layers.0.mlp.up_proj: freeze"));
    QTest::keyClick(line, Qt::Key_Return);
    QTRY_COMPARE(editor.bench.recipe.recipe().list("rules").front(), std::string("layers.0.mlp.up_proj: freeze"));
    QTRY_VERIFY(!editor.page->findChild<QLineEdit*>(QStringLiteral("rule:0"))); // it does not reach layer 1
    Q_EMIT editor.insight->placeRequested({{"layers", 0}, {"mlp", 0}}, "up_proj", true);
    QTRY_VERIFY(editor.page->findChild<QToolButton*>(QStringLiteral("remove rule:0")));
    QTest::mouseClick(editor.page->findChild<QToolButton*>(QStringLiteral("remove rule:0")), Qt::LeftButton);
    QTRY_VERIFY(editor.bench.recipe.recipe().list("rules").empty());
}

void TestModelInsight::modelAndRulesGoBackInTheOrderInWhichTheyWereEdited() {
    Editor editor;
    QTRY_VERIFY(editor.isReady());
    RecipeDocument& recipe = editor.bench.recipe;
    const auto rename = [&editor](const char* name) {
        QVERIFY(editor.bench.model.edit(QStringLiteral("Name"), [name](graph::Document& document) -> Status {
            document.main.name = name;
            return {};
        }));
    };
    const auto rule = [&recipe](const char* text) { recipe.setValue(QStringLiteral("rules"), std::vector<std::string>{text}); };
    const auto now = [&] {
        const auto& rules = recipe.recipe().list("rules");
        return QString::fromStdString(editor.bench.model.snapshot()->main.name + " " + (rules.empty() ? "" : rules.front()));
    };
    const auto press = [&editor](Qt::KeyboardModifiers modifiers) { QTest::keyClick(editor.view, Qt::Key_Z, modifiers); };
    QStringList states{now()};
    const auto did = [&] { states.append(now()); };
    rename("first"), did();
    rule("norm: freeze"), did();
    rename("second"), did();
    rule("norm: train"), did();
    recipe.setValue(QStringLiteral("optimizer.lr"), 0.25); // of the Train page: stays out of this
    for (qsizetype i = states.size() - 1; i > 0; --i) {
        QCOMPARE(now(), states[i]);
        press(Qt::ControlModifier);
    }
    QCOMPARE(now(), states.front());
    press(Qt::ControlModifier);
    QCOMPARE(recipe.recipe().real("optimizer.lr"), 0.25);
    for (const QString& state : states) {
        QCOMPARE(now(), state);
        press(Qt::ControlModifier | Qt::ShiftModifier);
    }
    press(Qt::ControlModifier); // the last rule
    rename("third");
    press(Qt::ControlModifier | Qt::ShiftModifier); // after something new there is nothing to do again
    QCOMPARE(now(), QStringLiteral("third norm: freeze"));
}

void TestModelInsight::aRuleThatDoesNotFitIsMendedOrOnlySaid() {
    Editor editor;
    QTRY_VERIFY(editor.isReady());
    RecipeDocument& recipe = editor.bench.recipe;
    QObject::connect(&recipe, &RecipeDocument::valueChanged, editor.page.get(), &ModelPage::requestAnalysis); // as the window does
    const auto* tab = editor.page->findChild<ProblemsTab*>();
    const auto row = [tab](const char* words) -> const ProblemRow* {
        for (const ProblemRow& one : tab->rows())
            if (one.message.contains(QLatin1String(words))) return &one;
        return nullptr;
    };
    recipe.setValue(QStringLiteral("rules"), std::vector<std::string>{"norm: freeze", "layers.*.nothing: freeze"});
    QTRY_VERIFY(editor.bench.analyser.isSettled() && row("layers.*.nothing"));
    QVERIFY(row("layers.*.nothing")->isError);
    QCOMPARE(row("layers.*.nothing")->place, QStringLiteral("Rule 2"));
    QCOMPARE(row("layers.*.nothing")->remedies.size(), std::size_t(2));
    recipe.follow(QStringLiteral("model.source"), std::string("internlm-tiny")); // another model is only looked at
    QTRY_VERIFY(editor.bench.analyser.isSettled() && editor.bench.model.source() == QLatin1String("internlm-tiny") && row("layers.*.nothing") && !row("layers.*.nothing")->isError);
    const auto remedies = row("layers.*.nothing")->remedies;
    QSignalSpy asked(editor.page.get(), &ModelPage::fieldRequested);
    remedies[1].run();
    QCOMPARE(asked.count(), 1);
    QCOMPARE(asked[0][0].toString(), QStringLiteral("rules"));
    remedies[0].run();
    QCOMPARE(recipe.recipe().list("rules"), std::vector<std::string>{"norm: freeze"});
    QTRY_VERIFY(editor.bench.analyser.isSettled() && !row("layers.*.nothing"));
    recipe.rulesStack().undo();
    QCOMPARE(recipe.recipe().list("rules").size(), std::size_t(2));
    recipe.setValue(QStringLiteral("rules"), std::vector<std::string>{"layers.*.self_attn.q_proj: lora r=8", "norm: freeze"});
    QTRY_VERIFY(editor.bench.analyser.isSettled() && row("random weights"));
    QVERIFY(!row("random weights")->isError);
    const auto mend = row("random weights")->remedies;
    mend[1].run();
    QCOMPARE(recipe.recipe().list("rules"), std::vector<std::string>{"norm: freeze"});
    QTRY_VERIFY(editor.bench.analyser.isSettled() && !row("random weights"));
    recipe.rulesStack().undo();
    mend[0].run();
    QCOMPARE(recipe.recipe().text("kind"), std::string("finetune"));
    QTRY_VERIFY(editor.bench.analyser.isSettled() && !row("random weights"));
}

void TestModelInsight::whatLooksLikeCode() {
    QVERIFY(looksLikeCode(fixture("code/transformer_block.py")));
    QVERIFY(looksLikeCode(QStringLiteral("class Block(torch.nn.Module):\n  pass")));
    QVERIFY(looksLikeCode(QStringLiteral("class 模型(nn.Cell, Mixin):\n  pass")));
    QVERIFY(!looksLikeCode(QStringLiteral("{\"format\": \"celloom-cells\"}")));
    QVERIFY(!looksLikeCode(QStringLiteral("a class of (Cell):")));
}

QTEST_MAIN(TestModelInsight)
#include "tst_model_insight.moc"
