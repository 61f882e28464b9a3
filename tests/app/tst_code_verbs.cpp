// The verbs code and import-code as a user runs them.
#include "models/base/files.h"
#include "models/graph/json.h"
#include "models/protocol/protocol.h"
#include "tests/app/verb_helper.h"

#include <QTemporaryDir>
#include <QTest>
#include <nlohmann/json.hpp>

using namespace celloom;
using namespace celloom::app::testing;
using nlohmann::json;

class TestCodeVerbs : public QObject {
    Q_OBJECT
private Q_SLOTS:
    void aModelGoesToPythonAndComesBack();
    void theAnswerForProgramsTellsLinesAndProblems();
    void whatCannotBeReadIsToldWithItsPlace();
    void wrongArgumentsAreToldFromWrongFiles();

private:
    QTemporaryDir m_folder;
    QString path(const char* name) const { return m_folder.filePath(name); }
};

void TestCodeVerbs::aModelGoesToPythonAndComesBack() {
    const Outcome written = runEngine({"code", "internlm-tiny", "--to", "mindspore", "--set", "hidden=32", "--out", path("net.py")});
    QVERIFY2(written.code == 0, written.err.c_str());
    const Outcome read = runEngine({"import-code", path("net.py"), "--out", path("net.cells.json")});
    QVERIFY2(read.code == 0, read.err.c_str());
    QVERIFY2(read.err.find("parameters, written to") != std::string::npos, read.err.c_str());
    const auto document = graph::loadDocument(path("net.cells.json").toStdString());
    QVERIFY(document);
    QCOMPARE(document->family, std::string("internlm"));
    const Outcome again = runEngine({"code", path("net.cells.json"), "--to", "mindspore"}); // to standard output
    QCOMPARE(again.out, *readFile(path("net.py").toStdString()));
}

void TestCodeVerbs::theAnswerForProgramsTellsLinesAndProblems() {
    const json code = json::parse(runEngine({"code", "baichuan-tiny", "--to", "pytorch", "--json"}).out);
    QVERIFY(code["text"].get<std::string>().find("class " + code["class"].get<std::string>()) != std::string::npos);
    QVERIFY(code["lines"].size() > 20 && code["lines"][0].contains("composite"));
    QVERIFY(writeFileAtomically(path("block.py").toStdString(), "class Block(nn.Cell):\n    def __init__(self, d_model):\n        "
                                                                "super().__init__()\n        self.dense = nn.Dense(d_model, d_model)\n\n"
                                                                "    def construct(self, x):\n        return x + self.dense(x)\n"));
    const Outcome outcome = runEngine({"import-code", path("block.py"), "--input", "x:[B,T,64]", "--set", "d_model=64", "--json"});
    QVERIFY2(outcome.code == 0, outcome.err.c_str());
    const json read = json::parse(outcome.out);
    QVERIFY(read["ok"] == true && read["class"] == "Block" && read["problems"].empty());
    QCOMPARE(read["parameters"].get<std::int64_t>(), std::int64_t(64 * 64 + 64));
    QVERIFY(graph::fromJson(read["document"].dump()));
    const json wrong =
        json::parse(runEngine({"import-code", path("block.py"), "--input", "x:[B,T,65]", "--set", "d_model=64", "--json"}).out);
    QVERIFY2(wrong["problems"].size() == 1 && wrong["problems"][0]["path"] == "block.dense", wrong.dump().c_str());
}

void TestCodeVerbs::whatCannotBeReadIsToldWithItsPlace() {
    QVERIFY(writeFileAtomically(path("bad.py").toStdString(),
                                "class Net(nn.Cell):\n    def construct(self, x):\n        return nn.Dence(3, 4)(x)\n"));
    const Outcome outcome = runEngine({"import-code", path("bad.py"), "--out", path("never.json"), "--json"});
    QCOMPARE(outcome.code, int(protocol::BadInput));
    const json answer = json::parse(outcome.out);
    QVERIFY(answer["ok"] == false && answer["error"]["line"] == 3 && answer["error"]["hint"] == "Did you mean Dense?");
    QVERIFY2(outcome.err.find("bad.py:3:") != std::string::npos, outcome.err.c_str());
    QVERIFY(!QFile::exists(path("never.json")));
    QVERIFY(writeFileAtomically(path("deep.py").toStdString(), "class Net(nn.Cell):\n    def construct(self, x):\n        return " +
                                                                   std::string(200000, '(') + "x" + std::string(200000, ')') + "\n"));
    const Outcome deep = runEngine({"import-code", path("deep.py")});
    QCOMPARE(deep.code, int(protocol::BadInput));
    QVERIFY2(deep.err.find("deep.py:3:") != std::string::npos, deep.err.c_str());
}

void TestCodeVerbs::wrongArgumentsAreToldFromWrongFiles() {
    QCOMPARE(runEngine({"code", "baichuan-tiny", "--to", "keras"}).code, int(protocol::Usage));
    QCOMPARE(runEngine({"code", "baichuan-tinny"}).code, int(protocol::BadInput));
    QCOMPARE(runEngine({"code", "baichuan-tiny", "--set", "hiden=3"}).code, int(protocol::BadInput));
    QCOMPARE(runEngine({"import-code", path("nothing.py")}).code, int(protocol::BadInput));
    QCOMPARE(runEngine({"import-code", path("nothing.py"), "--input", "x"}).code, int(protocol::Usage));
}

QTEST_GUILESS_MAIN(TestCodeVerbs)
#include "tst_code_verbs.moc"
