// Graphs as Python text: what a reader of the code relies on. That it runs and computes the same is tst_code_outputs' matter.
#include "models/code/code.h"
#include "models/code/python.h"
#include "models/families/families.h"
#include "models/graph/json.h"

#include <QTest>

using namespace celloom;
using namespace celloom::code;

namespace {

template <class T> T must(Result<T> result) {
    if (!result) qFatal("%s", result.error().text().c_str());
    return std::move(*result);
}

std::vector<std::string> linesOf(const std::string& text) {
    std::vector<std::string> out(1);
    for (const char c : text) {
        if (c == '\n')
            out.emplace_back();
        else
            out.back() += c;
    }
    return out;
}

/// A graph x -> cell -> out around `cells` and `wires`, as JSON.
graph::Document document(const std::string& cells, const std::string& wires, const std::string& more = {}) {
    return must(graph::fromJson(
        R"({"format": "celloom-cells", "schema": 1, "main": {"name": "net", "hyper": [{"name": "n", "value": 9}], "inputs": [{"name": "x", "shape": ["B", "n"]}],
        "outputs": [{"name": "out"}], "cells": [)" +
        cells + R"(], "wires": [)" + wires + "]}" + more + "}"));
}

std::string expression(const std::string& text, bool isWhole) {
    std::set<std::string> needs;
    return must(pythonExpression(
        text, {{"hidden", std::int64_t(64)}, {"heads", std::int64_t(3)}, {"kv", std::int64_t(4)}}, isWhole,
        [](const std::string& name) { return name; }, needs));
}

} // namespace

class TestCode : public QObject {
    Q_OBJECT
private Q_SLOTS:
    void expressionsStayExpressions();
    void eachLineKnowsItsCell_data();
    void eachLineKnowsItsCell();
    void namesThatPythonDoesNotTakeAreToldInAComment();
    void parametersThatTheGraphHandsDownStayParameters();
    void aGraphWithProblemsIsRefusedByName_data();
    void aGraphWithProblemsIsRefusedByName();
    void aDocumentCannotPutItsOwnLinesIntoTheCode();
    void weightsHaveTheFrameworksNames();
};

void TestCode::expressionsStayExpressions() {
    QCOMPARE(expression("hidden / kv", true), std::string("hidden // kv"));      // comes out whole
    QCOMPARE(expression("hidden / heads", true), std::string("hidden / heads")); // does not: an error in Celloom, a fraction in Python
    QCOMPARE(expression("hidden / kv", false), std::string("hidden / kv"));
    QCOMPARE(expression("roundUp(hidden * 8 / 3, 256)", true), std::string("round_up(hidden * 8 / 3, 256)"));
    QCOMPARE(expression("(heads + 2 * kv) * -hidden % 7", true), std::string("(heads + 2 * kv) * -hidden % 7"));
    QCOMPARE(expression("floor(hidden / heads) + ceil(1e-3) + max(kv, 2)", true),
             std::string("math.floor(hidden / heads) + math.ceil(1e-3) + max(kv, 2)"));
}

void TestCode::eachLineKnowsItsCell_data() {
    QTest::addColumn<int>("dialect");
    QTest::newRow("MindSpore") << int(Dialect::MindSpore);
    QTest::newRow("PyTorch") << int(Dialect::PyTorch);
}

void TestCode::eachLineKnowsItsCell() {
    QFETCH(int, dialect);
    const Code code = must(write(must(families::openModel("internlm2-tiny")), static_cast<Dialect>(dialect)));
    const auto lines = linesOf(code.text);
    std::map<std::pair<std::string, std::string>, std::string> byCell;
    int last = 0;
    for (const CellLines& one : code.lines) {
        QVERIFY(one.first > last && one.last >= one.first && one.last <= static_cast<int>(lines.size()));
        last = one.last;
        for (int line = one.first; line <= one.last; ++line)
            byCell[{one.composite, one.cell}] += lines[static_cast<std::size_t>(line - 1)] + "\n";
    }
    const std::string& packed = byCell.at({"SelfAttention", "wqkv"});
    QVERIFY2(packed.find("self.wqkv = nn.") != std::string::npos && packed.find("wqkv = self.wqkv(x)") != std::string::npos,
             packed.c_str());
    QVERIFY(byCell.at({"", "layers"}).find("for cell in self.layers:") != std::string::npos);
    QVERIFY(byCell.at({"DecoderLayer", "attention_residual"}).find("attention_residual = x + ") != std::string::npos);
    QCOMPARE(code.mainClass, std::string("Internlm2Tiny"));
}

void TestCode::namesThatPythonDoesNotTakeAreToldInAComment() {
    const auto text =
        must(
            write(
                document(
                    R"({"name": "0", "type": "ReLU"}, {"name": "class", "type": "Tanh"}, {"name": "cells", "type": "SiLU"}, {"name": "层-1", "type": "Sigmoid"})",
                    R"("x -> 0.x", "0.out -> class.x", "class.out -> cells.x", "cells.out -> 层-1.x", "层-1.out -> out")"),
                Dialect::MindSpore))
            .text;
    QVERIFY2(text.find("self.cell_0 = nn.ReLU()  # cell: 0") != std::string::npos, text.c_str());
    QVERIFY(text.find("self.class_ = nn.Tanh()  # cell: class") != std::string::npos);
    QVERIFY(text.find("self.cells_ = nn.SiLU()  # cell: cells") != std::string::npos); // nn.Cell has a method of that name
    QVERIFY(text.find("# cell: 层-1") != std::string::npos);
    for (const std::string& line : linesOf(text)) // Python itself would take the letters; the readers of many editors do not
        for (const char c : line.substr(0, line.find('#'))) QVERIFY(static_cast<unsigned char>(c) < 0x80);
}

void TestCode::parametersThatTheGraphHandsDownStayParameters() {
    const auto text =
        must(
            write(
                document(
                    R"({"name": "cut", "type": "Split", "params": {"sizes": "n / 3, n - n / 3"}}, {"name": "dense", "type": "Dense", "params": {"in_channels": "n / 3", "out_channels": 4, "has_bias": true}})",
                    R"("x -> cut.x", "cut.out0 -> dense.x", "dense.out -> out")"),
                Dialect::PyTorch))
            .text;
    QVERIFY2(text.find("def __init__(self, n=9):") != std::string::npos, text.c_str());
    QVERIFY(text.find("self.dense = nn.Linear(n // 3, 4)\n") != std::string::npos); // a bias is PyTorch's standard
    QVERIFY(text.find("self.n = n\n") != std::string::npos);
    QVERIFY(text.find("cut_out0, cut_out1 = torch.split(x, [self.n // 3, self.n - self.n // 3], -1)\n") != std::string::npos);
}

void TestCode::aGraphWithProblemsIsRefusedByName_data() {
    QTest::addColumn<QString>("cells");
    QTest::addColumn<QString>("wires");
    QTest::addColumn<QString>("says");
    QTest::newRow("an unknown type") << R"({"name": "a", "type": "Dens"})"
                                     << R"("x -> a.x", "a.out -> out")"
                                     << "a: There is no cell type";
    QTest::newRow("a parameter that is missing") << R"({"name": "a", "type": "Dense", "params": {"in_channels": "n"}})"
                                                 << R"("x -> a.x", "a.out -> out")"
                                                 << "a: Dense needs the parameter out_channels";
    QTest::newRow("no wire to an input") << R"({"name": "a", "type": "Add"})"
                                         << R"("x -> a.a", "a.out -> out")"
                                         << "a: The input b has no wire";
    QTest::newRow("no wire to the output") << R"({"name": "a", "type": "ReLU"})"
                                           << R"("x -> a.x")"
                                           << "The output out has no wire";
    QTest::newRow("a circle") << R"({"name": "a", "type": "ReLU"}, {"name": "b", "type": "ReLU"})"
                              << R"("a.out -> b.x", "b.out -> a.x", "b.out -> out")"
                              << "in a circle";
    QTest::newRow("a port that is not there") << R"({"name": "a", "type": "ReLU"})"
                                              << R"("x -> a.x", "a.none -> out")"
                                              << "output \"none\"";
}
void TestCode::aGraphWithProblemsIsRefusedByName() {
    QFETCH(QString, cells);
    QFETCH(QString, wires);
    QFETCH(QString, says);
    const auto code = write(document(cells.toStdString(), wires.toStdString()), Dialect::MindSpore);
    QVERIFY(!code);
    QVERIFY2(QString::fromStdString(code.error().text()).contains(says), code.error().text().c_str());
}

void TestCode::aDocumentCannotPutItsOwnLinesIntoTheCode() {
    graph::Document hostile =
        document(R"({"name": "a", "type": "B", "note": "x\nimport os"})", R"("x -> a.x", "a.out -> out")",
                 R"(, "composites": {"B": {"hyper": [{"name": "k", "value": 1}], "inputs": [{"name": "x"}], "outputs": [{"name": "out"}],
                                          "cells": [{"name": "r", "type": "ReLU"}], "wires": ["x -> r.x", "r.out -> out"]}})");
    hostile.main.inputs[0].shape = {"B\nimport os", "n"};
    hostile.main.note = "\"\"\"\nimport os\n\\\"\"\"";
    hostile.main.hyper[0].help = "one\n\"\"\"; import os";
    hostile.main.name = "x\nimport os";
    const auto text = must(write(hostile, Dialect::PyTorch)).text;
    bool isInside = false; // of a docstring
    for (const std::string& line : linesOf(text)) {
        for (std::size_t i = 0; i + 2 < line.size(); ++i) {
            if (line[i] == '\\')
                ++i;
            else if (line.compare(i, 3, "\"\"\"") == 0) {
                isInside = !isInside;
                i += 2;
            } else if (line[i] == '#' && !isInside)
                break;
        }
        const auto at = line.find("import os");
        QVERIFY2(at == std::string::npos || isInside || line.find('#') < at || line.ends_with("\"\"\""), line.c_str());
    }
    QVERIFY(!isInside);
    for (const char* expression : {"exit(0)", "k", "1.real", "n; exit", "n\nexit"}) { // none is an expression of this graph
        hostile.main.cells[0].params["k"] = std::string(expression);
        QVERIFY2(!write(hostile, Dialect::PyTorch), expression);
    }
}

void TestCode::weightsHaveTheFrameworksNames() {
    QCOMPARE(parameterName(Dialect::MindSpore, "LayerNorm", "weight"), std::string("gamma"));
    QCOMPARE(parameterName(Dialect::MindSpore, "BatchNorm2d", "running_var"), std::string("moving_variance"));
    QCOMPARE(parameterName(Dialect::MindSpore, "Embedding", "weight"), std::string("embedding_table"));
    QCOMPARE(parameterName(Dialect::MindSpore, "Dense", "weight"), std::string("weight"));
    QCOMPARE(parameterName(Dialect::PyTorch, "LayerNorm", "weight"), std::string("weight"));
}

QTEST_GUILESS_MAIN(TestCode)
#include "tst_code.moc"
