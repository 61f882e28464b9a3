// Callbacks and metrics in the form: what is typed reaches the recipe, what the engine finds is marked at its place, fields follow the source.
#include "ui/common/recipe_document.h"
#include "ui/common/theme.h"
#include "ui/train/script_editor.h"
#include "ui/train/script_panel.h"

#include <QApplication>
#include <QClipboard>
#include <QFile>
#include <QLabel>
#include <QLineEdit>
#include <QSignalSpy>
#include <QTabBar>
#include <QTemporaryDir>
#include <QTest>
#include <QTextBlock>

using namespace celloom;
using namespace celloom::ui;

namespace {

const QString kKey = QStringLiteral("callbacks.scripts");

/// A program in place of celloom-engine: it finds an error where the script holds "cur_stepnum", and an open name where it holds "initial_lr".
QString makeEngine(const QTemporaryDir& folder) {
    const QString path = folder.filePath(QStringLiteral("engine"));
    QFile file(path);
    if (!file.open(QIODevice::WriteOnly)) return {};
    file.write("#!/bin/sh\n"
               "names='[]'\n"
               "if grep -q initial_lr \"$3\"; then names='[{\"name\":\"initial_lr\",\"line\":5,\"column\":18,\"value\":0.01}]'; fi\n"
               "if grep -q cur_stepnum \"$3\"; then\n"
               "  echo '{\"ok\":false,\"kind\":\"callback\",\"definition\":\"A\",\"methods\":[],\"names\":'\"$names\"',\"warnings\":[],\"error\":{\"message\":\"cb_params has no \\\"cur_stepnum\\\".\",\"hint\":\"Did you mean cur_step_num?\",\"line\":3,\"column\":9,\"length\":11,\"method\":\"\",\"is_limit\":false}}'\n"
               "  exit 3\n"
               "fi\n"
               "echo '{\"ok\":true,\"kind\":\"callback\",\"definition\":\"A\",\"methods\":[\"step_end\"],\"names\":'\"$names\"',\"warnings\":[],\"error\":null}'\n");
    file.close();
    file.setPermissions(QFile::ReadOwner | QFile::WriteOwner | QFile::ExeOwner);
    return path;
}

recipe::TypedScript scriptOf(const RecipeDocument& document, std::size_t index = 0) {
    const auto scripts = recipe::typedScripts(document.recipe().list("callbacks.scripts"));
    if (!scripts || index >= scripts->size()) return {};
    return (*scripts)[index];
}

} // namespace

class TestScriptPanel : public QObject {
    Q_OBJECT
    Theme m_theme{*qApp};
    QTemporaryDir m_folder;
    QString m_engine;

private Q_SLOTS:
    void initTestCase() { m_engine = makeEngine(m_folder); }

    void aTemplateBecomesPartOfTheRecipeAndIsChecked() {
        RecipeDocument document;
        ScriptPanel panel(document, m_engine, m_theme);
        panel.show();
        panel.addTemplate(ScriptPanel::Template::Rate);
        const recipe::TypedScript script = scriptOf(document);
        QCOMPARE(QString::fromStdString(script.name), QStringLiteral("CustomLRScheduler"));
        QVERIFY(script.code.find("initial_lr * (0.9 ** (step // 1000))") != std::string::npos);
        QVERIFY(std::get<double>(script.values.at("initial_lr")) == document.recipe().real("optimizer.lr"));
        QTRY_VERIFY(panel.findChild<QLineEdit*>(QStringLiteral("scriptValue.initial_lr")));
        QVERIFY(panel.problem().isEmpty());
        QVERIFY(panel.editor()->marks().empty());
    }

    void anErrorIsUnderlinedAtItsPlaceAndSaidBelow() {
        RecipeDocument document;
        ScriptPanel panel(document, m_engine, m_theme);
        panel.show();
        panel.addTemplate(ScriptPanel::Template::StopWhen);
        panel.editor()->setPlainText(QStringLiteral("class A(Callback):\n    def step_end(self, run_context):\n        cur_stepnum\n"));
        QTRY_COMPARE(panel.editor()->marks().size(), std::size_t(1));
        const ScriptEditor::Mark& mark = panel.editor()->marks().front();
        QCOMPARE(mark.line, 3);
        QCOMPARE(panel.editor()->markedText(mark), QStringLiteral("cur_stepnum"));
        bool isUnderlined = false;
        for (const auto& selection : panel.editor()->extraSelections())
            isUnderlined = isUnderlined || (selection.format.underlineStyle() == QTextCharFormat::WaveUnderline && selection.cursor.selectedText() == QStringLiteral("cur_stepnum"));
        QVERIFY(isUnderlined);
        const auto* said = panel.findChild<QLabel*>(QStringLiteral("scriptFinding"));
        QVERIFY(said->isVisible());
        QCOMPARE(said->text(), QStringLiteral("Line 3, column 9: cb_params has no \"cur_stepnum\". Did you mean cur_step_num?"));
        QVERIFY(panel.problem().contains(said->text()));
        QCOMPARE(panel.editor()->accessibleDescription(), said->text());
        QTest::keyClick(panel.editor(), Qt::Key_Space); // another text: the mark was of the old one
        QVERIFY(panel.editor()->marks().empty());
    }

    void aFieldForAnOpenNameGivesItsValue() {
        RecipeDocument document;
        ScriptPanel panel(document, m_engine, m_theme);
        panel.show();
        panel.addTemplate(ScriptPanel::Template::Rate);
        QLineEdit* field = nullptr;
        QTRY_VERIFY((field = panel.findChild<QLineEdit*>(QStringLiteral("scriptValue.initial_lr"))));
        field->setFocus();
        field->selectAll();
        QTest::keyClicks(field, QStringLiteral("0.25"));
        QCOMPARE(std::get<double>(scriptOf(document).values.at("initial_lr")), 0.25);
        field->selectAll();
        QTest::keyClicks(field, QStringLiteral("3"));
        QCOMPARE(std::get<std::int64_t>(scriptOf(document).values.at("initial_lr")), std::int64_t(3));
        QTest::keyClick(field, Qt::Key_Backspace);
        QVERIFY(scriptOf(document).values.empty());
        QCOMPARE(field->text(), QString());
    }

    void scriptsAreRenamedMovedAndRemoved() {
        RecipeDocument document;
        ScriptPanel panel(document, m_engine, m_theme);
        panel.show();
        panel.addTemplate(ScriptPanel::Template::Metric);
        panel.addTemplate(ScriptPanel::Template::Metric);
        QCOMPARE(QString::fromStdString(scriptOf(document, 1).name), QStringLiteral("next_token_accuracy_2"));
        auto* name = panel.findChild<QLineEdit*>(QStringLiteral("scriptName"));
        name->setFocus();
        name->selectAll();
        QTest::keyClicks(name, QStringLiteral("mine"));
        QCOMPARE(QString::fromStdString(scriptOf(document, 1).name), QStringLiteral("mine"));
        auto* tabs = panel.findChild<QTabBar*>(QStringLiteral("scriptTabs"));
        tabs->moveTab(1, 0);
        QCOMPARE(QString::fromStdString(scriptOf(document, 0).name), QStringLiteral("mine"));
        QCOMPARE(QString::fromStdString(scriptOf(document, 1).name), QStringLiteral("next_token_accuracy"));
        name->selectAll();
        QTest::keyClicks(name, QStringLiteral("next_token_accuracy")); // taken: the recipe refuses it, and what was typed stays
        QVERIFY(!document.pendingError(kKey).message.empty());
        QCOMPARE(name->text(), QStringLiteral("next_token_accuracy"));
    }

    void anOpenedRecipeShowsItsScripts() {
        RecipeDocument document;
        ScriptPanel panel(document, m_engine, m_theme);
        recipe::Recipe given;
        QVERIFY(given.set("callbacks.scripts", std::vector<std::string>{recipe::toText(recipe::TypedScript{"one", "class A(Callback):\n    pass\n", {}, {}}), "two.py"}));
        document.take(given, QStringLiteral("given"));
        auto* tabs = panel.findChild<QTabBar*>(QStringLiteral("scriptTabs"));
        QCOMPARE(tabs->count(), 2);
        QCOMPARE(panel.editor()->toPlainText(), QStringLiteral("class A(Callback):\n    pass\n"));
        panel.select(1);
        QVERIFY(panel.editor()->isReadOnly()); // a file: it is read when the run is submitted
        QVERIFY(!document.isModified());
    }

    void theEditorIndentsWithSpacesAndLetsTheKeyboardGo() {
        QWidget window;
        ScriptEditor editor(m_theme, &window);
        QLineEdit next(&window);
        QWidget::setTabOrder(&editor, &next);
        window.show();
        QVERIFY(QTest::qWaitForWindowExposed(&window));
        editor.setFocus();
        QTest::keyClicks(&editor, QStringLiteral("def f(lr, step):"));
        QTest::keyClick(&editor, Qt::Key_Return);
        QTest::keyClicks(&editor, QStringLiteral("if step:"));
        QTest::keyClick(&editor, Qt::Key_Return);
        QTest::keyClicks(&editor, QStringLiteral("x"));
        QCOMPARE(editor.toPlainText(), QStringLiteral("def f(lr, step):\n    if step:\n        x"));
        QTest::keyClick(&editor, Qt::Key_Backspace);
        QTest::keyClick(&editor, Qt::Key_Backspace);
        QCOMPARE(editor.toPlainText(), QStringLiteral("def f(lr, step):\n    if step:\n    "));
        QTest::keyClick(&editor, Qt::Key_Tab);
        QCOMPARE(editor.toPlainText(), QStringLiteral("def f(lr, step):\n    if step:\n        "));
        editor.selectAll();
        QTest::keyClick(&editor, Qt::Key_Tab);
        QCOMPARE(editor.document()->findBlockByNumber(1).text(), QStringLiteral("        if step:"));
        QTest::keyClick(&editor, Qt::Key_Backtab, Qt::ShiftModifier);
        QCOMPARE(editor.document()->findBlockByNumber(0).text(), QStringLiteral("def f(lr, step):"));
        editor.selectAll();
        QGuiApplication::clipboard()->setText(QStringLiteral("a:\r\n\tb\r\n"));
        editor.paste();
        QCOMPARE(editor.toPlainText(), QStringLiteral("a:\n    b\n"));
        QTest::keyClick(&editor, Qt::Key_Escape);
        QVERIFY(next.hasFocus());
    }

    void withoutAnEngineTheSourceIsKeptAndTheReasonIsSaid() {
        RecipeDocument document;
        ScriptPanel panel(document, m_folder.filePath(QStringLiteral("nothing")), m_theme);
        panel.show();
        panel.addTemplate(ScriptPanel::Template::Metric);
        QVERIFY(!scriptOf(document).code.empty());
        QTRY_VERIFY([&] {
            for (const QLabel* label : panel.findChildren<QLabel*>())
                if (label->isVisible() && label->text().startsWith(QStringLiteral("Not checked:"))) return true;
            return false;
        }());
    }
};

QTEST_MAIN(TestScriptPanel)
#include "tst_script_panel.moc"
