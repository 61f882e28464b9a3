// Ports that a Script or Plugin cell declares as text.
#include "models/graph/declared_ports.h"

#include <QtTest>

using namespace celloom;
using namespace celloom::graph;

class TestDeclaredPorts : public QObject {
    Q_OBJECT
private Q_SLOTS:
    void hyperParametersBecomeNumbersAndOtherNamesSymbols();
    void whatIsWrittenReadsBackTheSame();
    void wrongOnesAreRefusedWithThePort_data();
    void wrongOnesAreRefusedWithThePort();
};

void TestDeclaredPorts::hyperParametersBecomeNumbersAndOtherNamesSymbols() {
    const Scope scope{{"hidden", std::int64_t(64)}, {"heads", std::int64_t(4)}};
    const auto ports = readDeclaredPorts("x: [B, 2 * T, hidden / heads]; mask: [B, T] bool\n ids : [max(heads, 6)] int64;loss: []", scope);
    QVERIFY2(ports.has_value(), ports ? "" : ports.error().message.c_str());
    const std::vector<DeclaredPort> expected{
        {"x", {{1, "B"}, {2, "T"}, {16, ""}}, "float"}, {"mask", {{1, "B"}, {1, "T"}}, "bool"}, {"ids", {{6, ""}}, "int64"}, {"loss", {}, "float"}};
    QVERIFY(*ports == expected);
    QVERIFY(readDeclaredPorts(" \n ; ", scope)->empty());
}

void TestDeclaredPorts::whatIsWrittenReadsBackTheSame() {
    const auto ports = readDeclaredPorts("x: [B, 2 * T, 16]; mask: [B] bool; s: []", {});
    QVERIFY(ports.has_value());
    QCOMPARE(toText(*ports), std::string("x: [B, 2 * T, 16]; mask: [B] bool; s: []"));
    QVERIFY(*readDeclaredPorts(toText(*ports), {}) == *ports);
}

void TestDeclaredPorts::wrongOnesAreRefusedWithThePort_data() {
    QTest::addColumn<std::string>("text");
    QTest::addColumn<QString>("words");
    QTest::newRow("no shape") << std::string("x") << "\"x\" is not a name, a colon and a shape";
    QTest::newRow("no name") << std::string("a: [2]; : [3]") << "\": [3]\" has no name";
    QTest::newRow("dtype") << std::string("x: [2] int16") << "dtype \"int16\"";
    QTest::newRow("zero") << std::string("x: [0]") << "gives 0, expected 1";
    QTest::newRow("fraction") << std::string("x: [3 / 2]") << "\"x\":";
    QTest::newRow("empty dimension") << std::string("x: [2,,3]") << "\"x\":";
    QTest::newRow("product of symbols") << std::string("x: [B * T]") << "\"x\":";
    QTest::newRow("twice") << std::string("x: [2]; x: [3]") << "Two ports have the name \"x\"";
    QTest::newRow("nine dimensions") << std::string("x: [1,1,1,1,1,1,1,1,1]") << "more than 8";
    QTest::newRow("many brackets") << "x: [" + std::string(20000, '(') << "\"x: [";
    std::string many;
    for (int i = 0; i < 33; ++i) many += "p" + std::to_string(i) + ": [2];";
    QTest::newRow("33 ports") << many << "More than 32 ports";
}

void TestDeclaredPorts::wrongOnesAreRefusedWithThePort() {
    QFETCH(std::string, text);
    QFETCH(QString, words);
    const auto ports = readDeclaredPorts(text, {});
    QVERIFY(!ports.has_value());
    QVERIFY2(QString::fromStdString(ports.error().message).contains(words), ports.error().message.c_str());
}

QTEST_GUILESS_MAIN(TestDeclaredPorts)
#include "tst_declared_ports.moc"
