// Typed sources before any compiler: places, limits, what is refused, and that any bytes at all are read or refused.
#include "engine/script/source.h"

#include <QtTest>

#include <random>

using namespace celloom;
using namespace celloom::engine;

namespace {

const char* const kArticle = R"(class CustomLRScheduler(Callback):
    def step_end(self, run_context):
        cb_params = run_context.original_args()
        step = cb_params.cur_step_num
        new_lr = initial_lr * (0.9 ** (step // 1000))
        cb_params.optimizer.learning_rate = new_lr
)";

/// "line:column message", or "ok".
std::string outcome(const std::string& code) {
    const auto source = readScriptSource(code);
    if (source) return "ok";
    const ScriptProblem& problem = source.error();
    return std::to_string(problem.line) + ":" + std::to_string(problem.column) + " " + problem.message;
}

std::string method(const std::string& body) { return "class A(Callback):\n    def step_end(self, run_context):\n" + body; }

} // namespace

class TestScriptSource : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void theArticlesClassIsOneDefinition() {
        const auto source = readScriptSource(kArticle);
        QVERIFY2(source, source ? "" : source.error().message.c_str());
        QCOMPARE(source->definitions.size(), std::size_t(1));
        QCOMPARE(QString::fromStdString(source->definitions[0].name), QString("CustomLRScheduler"));
        QCOMPARE(QString::fromStdString(source->definitions[0].base), QString("Callback"));
        QCOMPARE(QString::fromStdString(source->text), QString(kArticle)); // nothing to blank
    }

    void commentsAndDocstringsVanishAndEveryPlaceStays() {
        const std::string code = "\"\"\"A module.\n其说明\"\"\"\nfrom mindspore.train import Callback\ninitial_lr = 0.1  # 起始\n\n"
                                 "class A(ms.train.Callback):\n    \"\"\"Doc\n    string.\"\"\"\n    def step_end(self, run_context):  # hm\n        '''inner'''\n"
                                 "        x = \"# no comment\"\n";
        const auto source = readScriptSource(code);
        QVERIFY2(source, source ? "" : source.error().message.c_str());
        QCOMPARE(source->text.size(), code.size());
        for (std::size_t i = 0; i < code.size(); ++i) QCOMPARE(source->text[i] == '\n', code[i] == '\n');
        QCOMPARE(source->text.find("x = \"# no comment\""), code.find("x = \"# no comment\""));
        QVERIFY(source->text.find("Doc") == std::string::npos && source->text.find("hm") == std::string::npos && source->text.find("inner") == std::string::npos);
        QCOMPARE(QString::fromStdString(source->definitions[0].base), QString("Callback"));
        QCOMPARE(std::get<double>(source->constants.at("initial_lr")), 0.1);
    }

    void whatIsRefused_data() {
        QTest::addColumn<QString>("code");
        QTest::addColumn<QString>("expected"); // the outcome's beginning
        const auto row = [](const char* name, const std::string& code, const char* expected) {
            QTest::newRow(name) << QString::fromStdString(code) << QString::fromUtf8(expected);
        };
        row("lambda", method("        f = lambda x: x\n"), "3:13 lambda is not available");
        row("f-string", method("        print(f\"step {1}\")\n"), "3:15 f-strings are not available");
        row("bytes", method("        x = b'1'\n"), "3:13 Strings with a prefix");
        row("decorator", "class A(Callback):\n    @staticmethod\n    def f(x):\n        return x\n", "2:5 Decorators are not available");
        row("keyword arguments", "class A(Callback):\n    def step_end(self, **kwargs):\n        pass\n", "2:24 '**' parameters are not available");
        row("os", "import os\n" + std::string(kArticle), "1:8 The module \"os\" is not available");
        row("from os", method("        from os import path\n"), "3:14 The module \"os\" is not available");
        row("with", method("        with open('x') as f:\n            pass\n"), "3:9 with is not available");
        row("try", method("        try:\n            pass\n"), "3:9 try is not available");
        row("walrus", method("        if (x := 1):\n            pass\n"), "3:15 ':=' is not available");
        row("semicolon", method("        x = 1; y = 2\n"), "3:14 ';' is not available");
        row("inner function", method("        def f():\n            return 1\n"), "3:9 A function inside a function");
        row("dunder", method("        x = self.__class__\n"), "3:18 \"__class__\" is not available");
        row("full-width bracket", method("        print（1）\n"), "3:14 \"（\" is not part of the language");
        row("column after Chinese", method("        x = '中文' + lambda\n"), "3:20 lambda is not available");
        row("open bracket", method("        x = (1 +\n"), "3:13 This bracket is never closed");
        row("wrong bracket", method("        x = (1]\n"), "3:15 ']' closes a '('");
        row("open text", method("        x = 'abc\n"), "3:13 This text is never closed");
        row("bad indent", method("        x = 1\n      y = 2\n"), "4:7 This line's indentation fits no block");
        row("too much indent", method("        x = 1\n            y = 2\n"), "4:13 This line is indented");
        row("no body", "class A(Callback):\n    def step_end(self, run_context):\n    x = 1\n", "3:5 This line should be indented");
        row("tabs and spaces", "class A(Callback):\n    def f(self):\n\t\tx = 1\n", "3:1 Tabs and spaces are mixed");
        row("statement outside", "print(1)\n", "1:1 Only imports, constants");
        row("two bases", "class A(Callback, Metric):\n    pass\n", "1:17 A class derives from one other");
        row("number", method("        x = 1e5x\n"), "3:13 \"1e5x\" is not a number");
        row("one line", method("        if x[1:2]: y = 1\n"), "3:20 A statement begins in the line of its ':'");
        row("NUL", std::string("x = 1\0\n", 7), "1:6 A control character");
    }
    void whatIsRefused() {
        QFETCH(QString, code);
        QFETCH(QString, expected);
        const QString found = QString::fromStdString(outcome(code.toStdString()));
        QVERIFY2(found.startsWith(expected), qPrintable(found));
    }

    void deepAndEndlessSourcesAreRefusedWithAPlace_data() {
        QTest::addColumn<QString>("code");
        QTest::addColumn<QString>("expected");
        const auto row = [](const char* name, const std::string& code, const char* expected) { QTest::newRow(name) << QString::fromStdString(code) << QString(expected); };
        row("brackets", method("        x = " + std::string(30000, '(')), "3:45 Brackets are nested deeper");
        row("200 000 brackets", method("        x = " + std::string(200000, '(')), "0:0 The source is longer");
        std::string blocks = "class A(Callback):\n    def f(self):\n";
        for (int depth = 2; depth < 300; ++depth) blocks += std::string(static_cast<std::size_t>(depth), '\t') + "if True:\n";
        row("blocks", method("        if True:\n").append([] {
            std::string more;
            for (std::size_t depth = 3; depth < 100; ++depth) more += std::string(depth * 4, ' ') + "if True:\n";
            return more;
        }()), "13:49 Blocks are nested deeper");
        std::string sum = "        x = 1";
        for (int i = 0; i < 5000; ++i) sum += "+1";
        row("a long sum", method(sum + "\n"), "3:1011 A statement has more than 1000");
        row("signs", method("        x = " + std::string(500, '-') + "1\n"), "3:21 Too many signs");
        row("powers", method([] {
            std::string chain = "        x = 2";
            for (int i = 0; i < 2000; ++i) chain += "**2";
            return chain + "\n";
        }()), "3:1510 A statement has more than 1000");
    }
    void deepAndEndlessSourcesAreRefusedWithAPlace() {
        QFETCH(QString, code);
        QFETCH(QString, expected);
        const QString found = QString::fromStdString(outcome(code.toStdString()));
        QVERIFY2(found.startsWith(expected), qPrintable(found));
    }

    void lineEndsAndAMarkAtTheBeginningDoNotMatter() {
        std::string windows = "\xEF\xBB\xBF" + std::string(kArticle);
        for (std::size_t at = 0; (at = windows.find('\n', at)) != std::string::npos; at += 2) windows.insert(at, "\r");
        const auto source = readScriptSource(windows);
        QVERIFY2(source, source ? "" : source.error().message.c_str());
        QVERIFY(source->text.find('\r') == std::string::npos);
    }

    void numbersWithUnderscoresAreNumbers() {
        const auto source = readScriptSource("steps = 1_000_000\n" + std::string(kArticle));
        QVERIFY(source);
        QCOMPARE(std::get<std::int64_t>(source->constants.at("steps")), std::int64_t(1000000));
    }

    void valuesReadBackAsTheyAreWritten() {
        for (const ScriptValue& value : {ScriptValue(std::int64_t(3)), ScriptValue(3.0), ScriptValue(0.1), ScriptValue(1e-8), ScriptValue(true), ScriptValue(std::string("a\"b\n\\中"))}) {
            ScriptValue read;
            QVERIFY2(readScriptValue(scriptValueText(value), read), scriptValueText(value).c_str());
            QVERIFY2(read == value, scriptValueText(value).c_str());
        }
        ScriptValue read;
        for (const char* text : {"", "-", "x", "1x", "'a", "'a'b'", "1 2", "0x", "0x-5", "-0x-8000000000000000", "--1", "'\\q'"}) QVERIFY2(!readScriptValue(text, read), text);
    }

    /// Mutated sources are read with all lines in place, or refused at a place that exists.
    void anyBytesAreReadOrRefused() {
        std::mt19937 random(7);
        const std::string seeds[] = {kArticle, method("        self.a = [1, 2]\n        print(\"中文\", 'b', \"\"\"c\nd\"\"\")\n"),
                                     "x = -1_0.5e-3\ndef f(lr, cur_step_num):\n    '''d'''\n    return lr if cur_step_num % 3 else lr * .1\n"};
        static const std::string kBits[] = {"(", ")", "\"\"\"", "'", "\\", "\n", "\t", "    ", "#", ":", "**", "中", "\xE4", "\xFF", ".", "1e", "0x", "_", "@", "f'", "def ", "class ", "import "};
        for (int round = 0; round < 4000; ++round) {
            std::string code = seeds[random() % std::size(seeds)];
            for (std::size_t n = 1 + random() % 4; n > 0; --n) {
                const std::size_t at = random() % (code.size() + 1);
                if (random() % 3 == 0) code.erase(at, random() % 12);
                else code.insert(at, kBits[random() % std::size(kBits)]);
            }
            const auto source = readScriptSource(code);
            const auto lines = std::count(code.begin(), code.end(), '\n') + 1;
            if (!source) {
                QVERIFY(!source.error().message.empty() && source.error().line >= 0 && source.error().line <= lines + std::count(code.begin(), code.end(), '\r'));
                continue;
            }
            QVERIFY(source->text.size() >= code.size() && source->text.size() <= code.size() + 1);
            for (const ScriptDefinition& definition : source->definitions) QVERIFY(definition.begin < definition.end && definition.end <= source->text.size());
        }
    }
};

QTEST_GUILESS_MAIN(TestScriptSource)
#include "tst_script_source.moc"
