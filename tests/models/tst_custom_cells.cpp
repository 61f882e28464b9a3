// Script and Plugin cells in graphs: what they declare is held to what is wired in, symbols carry sizes through, weights and costs are counted.
#include "models/catalog/catalog.h"
#include "models/graph/cost.h"
#include "models/graph/expand.h"
#include "models/graph/json.h"

#include <QTest>

using namespace celloom;
using namespace celloom::graph;

namespace {

using Params = std::map<std::string, ParamValue>;

/// x and y go into one Script cell; its first output is the graph's.
Document documentOf(Params params, const SymbolicShape& x, const SymbolicShape& y = {}, const SymbolicShape& out = {"B", "T", "8"}) {
    Document document;
    document.main.name = "custom";
    document.main.hyper = {{"hidden", std::int64_t(8), ""}};
    document.main.inputs = {{"x", x}};
    if (!y.empty()) document.main.inputs.push_back({"y", y});
    document.main.outputs = {{"out", out}};
    params.emplace("code", std::string("def construct(self, x):\n    return x\n"));
    document.main.cells = {{"mine", "Script", params, {}, {}, {}}};
    document.main.wires = {{{"", "x"}, {"mine", "x"}}, {{"mine", "out"}, {"", "out"}}};
    if (!y.empty()) document.main.wires.push_back({{"", "y"}, {"mine", "y"}});
    return document;
}

QString problemsOf(const Expansion& expansion) {
    QStringList out;
    for (const Problem& problem : expansion.problems)
        out.append(QString::fromStdString(problem.path + " (" + problem.parameter + "): " + problem.message));
    return out.join('\n');
}

QString shapeOf(const Expansion& expansion, const char* producer) {
    for (const ValueInfo& value : expansion.model.values)
        if (value.producer == producer) return QString::fromStdString(toString(value.shape));
    return {};
}

} // namespace

class TestCustomCells : public QObject {
    Q_OBJECT
private Q_SLOTS:
    void symbolsCarrySizesThrough() {
        const Expansion expansion = expand(documentOf({{"inputs", "x: [N, L, hidden]; y: [N, L]"}, {"outputs", "out: [N, L, hidden]; sum: [2 * L, N] int64"}}, {"B", "T", "8"}, {"B", "T"}));
        QVERIFY2(expansion.ok(), qPrintable(problemsOf(expansion)));
        QCOMPARE(shapeOf(expansion, "mine.out"), QString("[B, T, 8]"));
        QCOMPARE(shapeOf(expansion, "mine.sum"), QString("[2 * T, B]"));
        QCOMPARE(QString::fromStdString(expansion.model.values.back().dtype), QString("int64"));
    }

    void errorsNamePortShapesAndSymbol_data() {
        QTest::addColumn<QString>("inputs");
        QTest::addColumn<QString>("outputs");
        QTest::addColumn<QString>("weights");
        QTest::addColumn<QString>("problem");
        const auto row = [](const char* name, const char* inputs, const char* outputs, const char* weights, const char* problem) {
            QTest::newRow(name) << inputs << outputs << weights << problem;
        };
        // x is [B, T, 8], y is [B, 6]
        row("another number", "x: [B, T, 16]; y: [B, N]", "out: [B, T, 16]", "", "mine (inputs): x is [B, T, 8], but the cell declares [B, T, 16].");
        row("another rank", "x: [B, C]; y: [B, N]", "out: [B, C]", "", "mine (inputs): x is [B, T, 8], but the cell declares [B, C]: 3 dimensions, not 2.");
        row("one symbol, two sizes", "x: [B, T, C]; y: [B, C]", "out: [B, T, C]", "",
            "mine (inputs): y is [B, 6], but the cell declares [B, C], where C would be 6; it is 8 from x.");
        row("no multiple", "x: [B, T, 3 * C]; y: [B, N]", "out: [B, T, C]", "", "mine (inputs): x is [B, T, 8], but the cell declares [B, T, 3 * C], and 8 is no multiple of 3.");
        row("an output's symbol", "x: [B, T, C]; y: [B, N]", "out: [B, T, D]", "", "mine (outputs): The dimension D of out is in no input.");
        row("no output", "x: [B, T, C]; y: [B, N]", "", "", "mine (outputs): The cell declares no output.");
        row("a weight's symbol", "x: [B, T, C]; y: [B, N]", "out: [B, T, C]", "w: [C]", "mine (weights): The weight w has the dimension C, whose size is not known.");
        row("a weight's type", "x: [B, T, C]; y: [B, N]", "out: [B, T, C]", "w: [8] int64", "mine (weights): The weight w is int64; weights learn, and are float.");
        row("a name of the language", "x: [B, T, C]; y: [B, N]", "out: [B, T, C]", "lambda: [8]", "mine (weights): lambda cannot be a name here: it means something else.");
    }
    void errorsNamePortShapesAndSymbol() {
        QFETCH(QString, inputs);
        QFETCH(QString, outputs);
        QFETCH(QString, weights);
        QFETCH(QString, problem);
        const Expansion expansion =
            expand(documentOf({{"inputs", inputs.toStdString()}, {"outputs", outputs.toStdString()}, {"weights", weights.toStdString()}}, {"B", "T", "8"}, {"B", "6"}));
        QVERIFY(!expansion.ok());
        QCOMPARE(problemsOf(expansion).section('\n', 0, 0), problem);
        for (const Problem& one : expansion.problems) QVERIFY(!one.hint.empty());
    }

    void aWireOfAnotherTypeIsRefused() {
        Document document = documentOf({{"inputs", "x: [B, T, 8] int64"}, {"outputs", "out: [B, T, 8]"}}, {"B", "T", "8"});
        QCOMPARE(problemsOf(expand(document)), QString("mine (): The input x takes int64, but x gives float."));
        document.main.inputs[0].dtype = "int64";
        QVERIFY(expand(document).ok());
    }

    void absurdSizesAreRefused() {
        const Expansion expansion = expand(documentOf({{"inputs", "x: [A, B, C]"}, {"outputs", "out: [1000000 * A, B, C]"}}, {"999999999999", "B", "8"}, {}, {"B"}));
        QVERIFY(problemsOf(expansion).contains("out would have a dimension of more than"));
    }

    void weightsBeginByTheirNames() {
        const Expansion expansion = expand(documentOf({{"inputs", "x: [B, T, hidden]"}, {"outputs", "out: [B, T, hidden]"},
                                                       {"weights", "kernel: [2 * hidden, hidden]; in_bias: [hidden]; beta: [hidden]; gain: [hidden]; scale: []; mixing_bias: [2, 2]"}}, {"B", "T", "8"}));
        QVERIFY2(expansion.ok(), qPrintable(problemsOf(expansion)));
        const std::vector<WeightSpec>& weights = expansion.model.cells[0].weights;
        using Init = WeightSpec::Init;
        const std::vector<Init> expected{Init::FanIn, Init::Zeros, Init::Zeros, Init::Ones, Init::Ones, Init::Zeros};
        QCOMPARE(weights.size(), expected.size());
        for (std::size_t i = 0; i < weights.size(); ++i) QVERIFY2(weights[i].init == expected[i], weights[i].name.c_str());
        QCOMPARE(expansion.model.parameterCount(), std::int64_t(16 * 8 + 8 + 8 + 8 + 1 + 4));
        const auto cost = costs(expansion.model, {{"B", 2}, {"T", 3}});
        QCOMPARE(cost[0].parameters, expansion.model.parameterCount());
        // 48 numbers in, 48 out, and for each of 6 rows a product with the matrices of 16 x 8 and 2 x 2
        QCOMPARE(cost[0].forwardFlops, 48.0 + 48 + 2 * 6 * (16 * 8 + 4));
    }

    void codeIsBounded() { // 200 000 parentheses
        Document document = documentOf({{"inputs", "x: [B, T, C]"}, {"outputs", "out: [B, T, C]"}}, {"B", "T", "8"});
        document.main.cells[0].params["code"] = "def construct(self, x):\n    return " + std::string(200000, '(') + "x";
        const auto read = fromJson(toJson(document), "mine.cells.json");
        QVERIFY(!read);
        QCOMPARE(QString::fromStdString(read.error().place + " " + read.error().message), QString("mine.cells.json: main.cells[0].params.code is longer than 65536 bytes."));
    }

    void aDeclaredCostIsTaken() {
        const Expansion expansion = expand(documentOf({{"inputs", "x: [B, T, C]"}, {"outputs", "out: [B, T, C]"}, {"flops_per_value", 7.5}}, {"B", "T", "8"}));
        QVERIFY2(expansion.ok(), qPrintable(problemsOf(expansion)));
        QCOMPARE(costs(expansion.model, {{"B", 2}, {"T", 3}})[0].forwardFlops, 7.5 * 48);
    }
};

QTEST_GUILESS_MAIN(TestCustomCells)
#include "tst_custom_cells.moc"
