// Expressions over hyper-parameters: exact, bounded, with errors that say what was computed from what.
#include "models/graph/expression.h"

#include <QtTest>

using namespace celloom;
using namespace celloom::graph;

namespace {

const Scope kScope{{"hidden", std::int64_t(4096)},
                   {"heads", std::int64_t(32)},
                   {"ratio", 2.5},
                   {"causal", true},
                   {"big", INT64_MAX},
                   {"small", INT64_MIN}};

QString shown(const Result<ResolvedValue>& value) {
    if (!value) return "error: " + QString::fromStdString(value.error().text());
    return QString::fromStdString(toString(*value)) + (std::holds_alternative<double>(*value) ? " real" : "");
}

} // namespace

class TestExpression : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void values_data() {
        QTest::addColumn<QString>("text");
        QTest::addColumn<QString>("value");
        const auto add = [](const char* text, const char* value) { QTest::newRow(text) << text << value; };
        add("7", "7");
        add(" 1 + 2 * 3 ", "7");
        add("(1 + 2) * 3", "9");
        add("10 - 4 - 3", "3");
        add("2 * -3", "-6");
        add("--3", "3");
        add("7 % 4", "3");
        add("hidden / heads", "128");
        add("hidden * 8 / 3", "10922.666666666666 real");
        add("8 / 3 * 3", "8"); // fractions are exact
        add("1 / 3 + 2 / 3", "1");
        add("roundUp(hidden * 8 / 3, 256)", "11008"); // Baichuan-7B's intermediate size
        add("roundUp(8 / 3 * hidden, 256)", "11008");
        add("roundUp(512, 256)", "512");
        add("roundUp(-1, 256)", "0");
        add("min(3, 1, 2)", "1");
        add("max(hidden, 5)", "4096");
        add("floor(7 / 2)", "3");
        add("ceil(7 / 2)", "4");
        add("floor(-7 / 2)", "-4");
        add("ceil(-7 / 2)", "-3");
        add("0.5", "0.5 real");
        add("0.5 * 4", "2"); // whole, whatever it came from
        add("1e3", "1000");
        add("ratio * 2", "5");
        add("floor(ratio)", "2");
    }
    void values() {
        QFETCH(QString, text);
        QFETCH(QString, value);
        QCOMPARE(shown(evaluate(text.toStdString(), kScope)), value);
    }

    void errors_data() {
        QTest::addColumn<QString>("text");
        QTest::addColumn<QString>("said");
        const auto add = [](const char* text, const char* said) { QTest::newRow(text) << text << said; };
        add("", "ends too early");
        add("1 +", "ends too early");
        add("(1", "ends too early");
        add("1 2", "\"2\" at character 3");
        add("1 + * 2", "cannot stand");
        add(")", "cannot stand");
        add("$", "cannot stand");
        add("hiden", "Did you mean hidden?");
        add("1 / 0", "divides by zero");
        add("1 % 0", "divides by zero");
        add("1 / (heads - 32)", "divides by zero");
        add("7.5 % 2", "remainder");
        add("big + 1", "too large");
        add("big * big", "too large");
        add("1 / big / big", "too large");
        add("small", "too large");
        add("99999999999999999999", "too large");
        add("1e999", "too large");
        add("1e308 * 10", "no finite number");
        add("causal + 1", "not a number");
        add("round(3)", "unknown function");
        add("roundUp(3)", "takes two numbers");
        add("min(3)", "takes two numbers");
        add("floor()", "cannot stand");
        add("roundUp(3, 0)", "not above 0");
        add("B * 2", "unknown name");
    }
    void errors() {
        QFETCH(QString, text);
        QFETCH(QString, said);
        const QString value = shown(evaluate(text.toStdString(), kScope));
        QVERIFY2(value.startsWith("error: ") && value.contains(said), qPrintable(value));
    }

    void lengthAndDepthAreBounded() {
        QVERIFY(shown(evaluate(std::string(1001, '1'), kScope)).contains("longer than"));
        QVERIFY(shown(evaluate(std::string(400, '('), kScope)).contains("deeper than"));
        QVERIFY(shown(evaluate(std::string(400, '-') + "1", kScope)).contains("deeper than"));
        QVERIFY(shown(evaluate(std::string("1\0", 2) + "2", kScope)).contains("error"));
    }

    void aFractionWhereAWholeNumberIsNeededSaysWhy() {
        const auto value = evaluateInteger("hidden / (heads - 29)", kScope);
        QVERIFY(!value);
        const QString message = QString::fromStdString(value.error().text());
        for (const char* part : {"hidden / (heads - 29)", "1365.33", "hidden = 4096", "heads = 32", "whole number"})
            QVERIFY2(message.contains(part), qPrintable(message));
        QCOMPARE(*evaluateInteger("hidden / heads", kScope), 128);
    }

    void dimensionsAreANumberOrASymbolTimesANumber() {
        const Symbols symbols{{"B", {1, "B"}}, {"T", {2, "S"}}}; // in this composite T stands for 2 * S
        const auto dim = [&](const char* text) {
            auto value = evaluateDim(text, kScope, symbols);
            return value ? QString::fromStdString(toString(*value)) : "error: " + QString::fromStdString(value.error().text());
        };
        QCOMPARE(dim("B"), QString("B"));
        QCOMPARE(dim("T"), QString("2 * S"));
        QCOMPARE(dim("3 * T / 2"), QString("3 * S"));
        QCOMPARE(dim("hidden / heads"), QString("128"));
        QVERIFY(dim("B * T").contains("one at most"));
        QVERIFY(dim("B + 1").contains("symbol"));
        QVERIFY(dim("1 / B").contains("symbol"));
        QVERIFY(dim("B / 3").contains("whole number"));
        QVERIFY(dim("B * 0.5").contains("fraction"));
        QVERIFY(dim("max(B, 2)").contains("function"));
        QVERIFY(dim("0").contains("expected 1 to"));
        QVERIFY(dim("-1 * B").contains("expected 1 to"));
        QVERIFY(dim("U").contains("unknown name"));
    }
};

QTEST_GUILESS_MAIN(TestExpression)
#include "tst_expression.moc"
