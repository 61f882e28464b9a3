// Typed cells: they compute what the same cells of the catalogue compute, learn, run again and in half types alike; mistakes have places, and nothing
// hostile gets through.
#include "engine/script/cell_script.h"
#include "engine/script/trial.h"
#include "models/graph/declared_ports.h"
#include "tests/engine/cell_helpers.h"
#include "tests/engine/train_helper.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/zeros.h>

#include <chrono>

using namespace celloom;
using namespace celloom::engine;
using namespace celloom::engine::testing;

namespace {

using graph::ParamValue;

/// A gate in front of a linear map: sigmoid(x kernelᵀ + bias) x.
const char* const kGate = R"(def construct(self, x):
    gate = ops.matmul(x, self.kernel.t()) + self.bias
    return ops.sigmoid(gate) * x
)";

ScriptPorts portsOf(const std::string& inputs, const std::string& outputs, const std::string& weights = {}) {
    return {must(graph::readDeclaredPorts(inputs, {})), must(graph::readDeclaredPorts(outputs, {})), must(graph::readDeclaredPorts(weights, {}))};
}

ScriptResult<std::shared_ptr<const CellScript>> compiled(const std::string& code, const std::string& inputs = "x: [B, C]", const std::string& outputs = "out: [B, C]",
                                                         const std::string& weights = "kernel: [3, 3]") {
    return CellScript::compile({"cell", code, {}, portsOf(inputs, outputs, weights)});
}

QString said(const ScriptProblem& problem) {
    return QStringLiteral("%1:%2 %3").arg(problem.line).arg(problem.column).arg(QString::fromStdString(problem.message));
}
template <class T> QString outcome(const ScriptResult<T>& result) { return result ? QStringLiteral("ok") : said(result.error()); }

Trial tried(const std::string& code, const std::string& inputs = "x: [B, C]", const std::string& outputs = "out: [B, C]", const std::string& weights = {}) {
    return tryScript({"cell", code, {}, portsOf(inputs, outputs, weights)});
}
QString outcome(const Trial& trial) { return trial.error ? said(*trial.error) : QStringLiteral("ok"); }

/// "features" [B,6] -> Dense -> gate -> Dense -> "logits"; the gate is a Script cell, or Dense, Sigmoid and Multiply. Numbered, so that it can be recomputed.
graph::Document gated(bool isScript) {
    graph::Document document;
    document.main.name = "gated";
    document.main.inputs = {{"features", {"B", "6"}}};
    document.main.outputs = {{"logits", {"B", "1"}}};
    const auto dense = [](const char* name, std::int64_t in, std::int64_t out) {
        return graph::Cell{name, "Dense", {{"in_channels", in}, {"out_channels", out}, {"has_bias", true}}, {}, {}, {}};
    };
    graph::Graph layer;
    layer.inputs = {{"x", {"B", "8"}}};
    layer.outputs = {{"out", {"B", "8"}}};
    if (isScript) {
        layer.cells = {{"gate", "Script",
                        {{"inputs", std::string("x: [B, 8]")}, {"outputs", std::string("out: [B, 8]")}, {"weights", std::string("kernel: [8, 8]; bias: [8]")}, {"code", std::string(kGate)}}, {}, {}, {}}};
        layer.wires = {{{"", "x"}, {"gate", "x"}}, {{"gate", "out"}, {"", "out"}}};
    } else {
        layer.cells = {dense("gate", 8, 8), {"sigmoid", "Sigmoid", {}, {}, {}, {}}, {"times", "Multiply", {}, {}, {}, {}}};
        layer.wires = {{{"", "x"}, {"gate", "x"}}, {{"gate", "out"}, {"sigmoid", "x"}}, {{"sigmoid", "out"}, {"times", "a"}}, {{"", "x"}, {"times", "b"}}, {{"times", "out"}, {"", "out"}}};
    }
    document.composites["Gate"] = layer;
    document.main.cells = {dense("first", 6, 8), {"layers", "Gate", {}, "2", {}, {}}, dense("last", 8, 1)};
    document.main.wires = {{{"", "features"}, {"first", "x"}}, {{"first", "out"}, {"layers", "x"}}, {{"layers", "out"}, {"last", "x"}}, {{"last", "out"}, {"", "logits"}}};
    return document;
}

std::unique_ptr<Network> networkOf(const graph::Document& document, const NetworkOptions& options = {.seed = 3, .initStd = 0.5}, const std::vector<recipe::Rule>& rules = {}) {
    graph::Expansion expansion = graph::expand(document);
    if (!expansion.ok()) qFatal("%s", expansion.firstError().text().c_str());
    const auto treatment = must(recipe::resolve(expansion.model, rules));
    return must(Network::create(std::move(expansion.model), treatment, options));
}

/// The same numbers under the other names: layers.0.gate.kernel is layers.0.gate.weight.
void copyWeights(const Network& from, Network& to) {
    const at::AutoGradMode noGradients(false);
    CELLOOM_CHECK(from.parameters().size() == to.parameters().size());
    for (std::size_t i = 0; i < from.parameters().size(); ++i) to.parameters()[i].tensor.copy_(from.parameters()[i].tensor);
}

/// Outputs, then the gradients of all parameters under the sum of squares.
std::vector<at::Tensor> passOf(Network& network, const at::Tensor& features) {
    for (Parameter& parameter : network.parameters()) parameter.tensor.mutable_grad() = at::Tensor();
    const at::Tensor logits = must(network.forward({.columns = {{"features", features}}}, {.training = true})).at("logits");
    logits.square().sum().backward();
    std::vector<at::Tensor> out{logits.detach()};
    for (const Parameter& parameter : network.parameters()) out.push_back(parameter.tensor.grad());
    return out;
}

Params paramsOf(const std::string& code, const std::string& inputs, const std::string& outputs, const std::string& weights = {}) {
    return {{"code", code}, {"inputs", inputs}, {"outputs", outputs}, {"weights", weights}};
}

} // namespace

class TestScriptCell : public QObject {
    Q_OBJECT
private Q_SLOTS:
    void itEqualsTheSameOfTheCatalogue() {
        const auto plain = networkOf(gated(false)), typed = networkOf(gated(true));
        copyWeights(*plain, *typed);
        const at::Tensor features = drawn({5, 6}, 9);
        const auto expected = passOf(*plain, features), actual = passOf(*typed, features);
        QCOMPARE(actual.size(), expected.size());
        for (std::size_t i = 0; i < actual.size(); ++i) QVERIFY2(at::allclose(actual[i], expected[i], 1e-5, 1e-6), std::to_string(i).c_str());
        QVERIFY(at::equal(passOf(*typed, features)[1], actual[1])); // bit for bit, pass after pass
    }

    void gradientsEqualFiniteDifferences() { // central differences in float64: h = 1e-6 leaves about 9 digits
        LoneCell cell("Script", paramsOf(kGate, "x: [B, 3]", "out: [B, 3]", "kernel: [3, 3]; bias: [3]"));
        at::Tensor x = normal({2, 3}, 5).requires_grad_(true);
        const at::Tensor weighing = normal({2, 3}, 6);
        const auto loss = [&] { return (cell({x})[0] * weighing).sum(); };
        loss().backward();
        for (const at::Tensor& leaf : {x, cell.weights[0], cell.weights[1]}) {
            at::Tensor values = leaf.detach().flatten();
            for (std::int64_t i = 0; i < values.numel(); ++i) {
                double* value = values.mutable_data_ptr<double>() + i;
                const double kept = *value;
                *value = kept + 1e-6;
                const double above = loss().item<double>();
                *value = kept - 1e-6;
                const double below = loss().item<double>();
                *value = kept;
                QVERIFY(std::abs((above - below) / 2e-6 - leaf.grad().flatten()[i].item<double>()) < 1e-6);
            }
        }
    }

    void recomputedItIsTheSame() {
        const auto plain = networkOf(gated(true)), again = networkOf(gated(true), {.seed = 3, .initStd = 0.5}, {must(recipe::parseRule("layers.*: recompute"))});
        const at::Tensor features = drawn({5, 6}, 9);
        const auto expected = passOf(*plain, features), actual = passOf(*again, features);
        for (std::size_t i = 0; i < actual.size(); ++i) QVERIFY2(at::equal(actual[i], expected[i]), std::to_string(i).c_str());
    }

    void levelsOfPrecisionReachItsInside() {
        const at::Tensor features = drawn({5, 6}, 9);
        const auto full = networkOf(gated(true));
        const at::Tensor expected = must(full->forward({.columns = {{"features", features}}})).at("logits");
        for (const auto& [level, type] : std::vector<std::pair<AmpLevel, at::ScalarType>>{{AmpLevel::O1, at::kFloat}, {AmpLevel::O2, at::kBFloat16}, {AmpLevel::O3, at::kBFloat16}}) {
            const auto network = networkOf(gated(true), {.ampLevel = level, .seed = 3, .initStd = 0.5});
            std::vector<at::ScalarType> seen;
            ForwardOptions options;
            options.typeObserver = [&](const graph::CellInstance& cell, const ObservedTypes& types) {
                if (cell.type == "Script") seen.insert(seen.end(), types.results.begin(), types.results.end());
            };
            const at::Tensor logits = must(network->forward({.columns = {{"features", features}}}, options)).at("logits");
            QCOMPARE(seen, (std::vector<at::ScalarType>{type, type}));
            QVERIFY(at::allclose(logits, expected, 0.05, 0.05)); // bfloat16 has 8 bits
        }
    }

    void aClassWithAttributesAndHelpersIsRead() {
        const char* const code = R"(import mindspore.nn as nn
from mindspore import ops

scale = 0.5

def twice(x):
    return x + x

class Mixer(nn.Cell):
    """Mixes two inputs."""
    def __init__(self, power=2):
        super().__init__()
        self.power = power
        self.shift = (1.0, 2.0)
        self.table = ops.arange(3)

    def construct(self, x, y):
        z = twice(x) * scale + y ** self.power
        if self.training:
            z = z + self.shift[1]
        return self.rest(z), z.mean(axis=-1, keep_dims=True)

    def rest(self, z):
        return z + self.table
)";
        LoneCell cell("Script", paramsOf(code, "x: [B, 3]; y: [B, 3]", "out: [B, 3]; mean: [B, 1]"));
        const at::Tensor x = normal({2, 3}, 1), y = normal({2, 3}, 2);
        const auto results = cell({x, y});
        const at::Tensor expected = x + y * y;
        const at::Tensor table = at::arange(3, at::kDouble);
        QVERIFY(at::allclose(results[0], expected + table) && at::allclose(results[1], expected.mean(-1, true)));
        cell.context.isTraining = true;
        QVERIFY(at::allclose(cell({x, y})[0], expected + table + 2));
    }

    void operationsAsObjectsAreRead() { // as MindSpore's own cells keep them
        const char* const code = R"(class A(nn.Cell):
    def __init__(self):
        super().__init__()
        self.softmax = nn.Softmax()
        self.matmul = ops.MatMul()
        self.mean = ops.ReduceMean(keep_dims=True)
        self.concat = ops.Concat(axis=1)
        self.transpose = ops.Transpose()

    def construct(self, x):
        y = self.matmul(self.softmax(x), self.transpose(x, (1, 0)))
        return self.concat((y, self.mean(x, 1)))
)";
        LoneCell cell("Script", paramsOf(code, "x: [2, 3]", "out: [2, 3]"));
        const at::Tensor x = normal({2, 3}, 1);
        QVERIFY(at::allclose(cell({x})[0], at::cat({at::matmul(x.softmax(-1), x.t()), x.mean(1, true)}, 1)));
        QCOMPARE(outcome(compiled("class A(nn.Cell):\n    def __init__(self):\n        self.m = ops.MatMul(transpose_b=True)\n    def construct(self, x):\n        return self.m(x, x)\n")),
                 QString("3:18 MatMul takes nothing here."));
    }

    void mistakesHavePlaces_data() {
        QTest::addColumn<QString>("code");
        QTest::addColumn<QString>("problem");
        const auto row = [](const char* name, const char* code, const char* problem) { QTest::newRow(name) << QString(code) << QString(problem); };
        row("no construct", "def call(self, x):\n    return x\n", "1:1 There is no construct.");
        row("nothing given", "def construct(self, x):\n    y = x\n", "1:5 construct gives nothing, but the cell declares 1 output.");
        row("a number given", "def construct(self, x):\n    return x.dim()\n", "1:5 construct gives a int, but the cell declares 1 output.");
        row("two given", "def construct(self, x):\n    return x, x\n", "1:5 construct gives 2 tensors, but the cell declares 1 output.");
        row("two inputs", "def construct(self, x, y):\n    return x + y\n", "1:5 construct takes 2 inputs, but the cell declares 1: x.");
        row("an unknown operation", "def construct(self, x):\n    return ops.sigmoidd(x)\n", "2:12 ops.sigmoidd is not available in typed code. Did you mean sigmoid?");
        row("an unknown name", "def construct(self, x):\n    return x * scale\n", "2:16 scale has no value.");
        row("an unknown weight", "def construct(self, x):\n    return x + self.kernl\n", "2:16 self.kernl is not there.");
        row("a cell inside", "class A(nn.Cell):\n    def __init__(self):\n        super().__init__()\n        self.d = nn.Dense(3, 3)\n    def construct(self, x):\n        return x\n",
            "4:18 nn.Dense is not available in typed code. Cells inside a typed cell are not: declare weights and compute with them, or wire such a cell to this one.");
        row("what is kept", "class A(nn.Cell):\n    def __init__(self):\n        self.count = 0\n    def construct(self, x):\n        self.count = self.count + 1\n        return x\n",
            "5:9 construct keeps nothing: self.count cannot be set.");
        row("a list that is kept", "class A(nn.Cell):\n    def __init__(self):\n        self.seen = [0]\n    def construct(self, x):\n        return x\n",
            "3:9 self.seen is a list or a dict, which could change from pass to pass.");
        row("a weight set", "class A(nn.Cell):\n    def __init__(self):\n        self.kernel = ops.ones(3, 3)\n    def construct(self, x):\n        return x\n", "3:9 self.kernel is there already.");
        row("in place", "def construct(self, x):\n    x.add_(1)\n    return x\n", "2:5 Tensors are not changed in place here ('add_').");
        row("another base", "class A(Callback):\n    def construct(self, x):\n        return x\n", "1:1 The class A derives from Callback.");
        row("print", "def construct(self, x):\n    print(x)\n    return x\n", "2:5 print is not available in a cell.");
        row("the time", "def construct(self, x):\n    return x * time.time()\n", "2:16 The time is not available in a cell: two passes would differ.");
        row("random numbers", "def construct(self, x):\n    return x + torch.rand_like(x)\n", "2:16 torch.rand_like is not available in typed code.");
        row("random numbers of a tensor", "def construct(self, x):\n    return x.bernoulli(0.5)\n", "2:12 'bernoulli' is not available in typed code.");
        row("memory as it was", "def construct(self, x):\n    return torch.empty_like(x)\n", "2:12 empty_like holds whatever was in memory.");
        row("a seed", "def construct(self, x):\n    torch.manual_seed(1)\n    return x\n", "2:5 torch.manual_seed is not available in typed code.");
        row("a file", "def construct(self, x):\n    torch.save(x, \"f\")\n    return x\n", "2:5 torch.save is not available in typed code.");
        row("a file opened", "def construct(self, x):\n    y = torch.from_file(\"/etc/passwd\")\n    return x\n", "2:9 torch.from_file is not available in typed code.");
        row("while", "def construct(self, x):\n    while True:\n        x = x + 1\n    return x\n", "2:5 while is not available in a cell.");
    }
    void mistakesHavePlaces() {
        QFETCH(QString, code);
        QFETCH(QString, problem);
        const auto result = compiled(code.toStdString());
        QVERIFY(!result);
        QVERIFY2(outcome(result).startsWith(problem), qPrintable(outcome(result)));
        QVERIFY2(outcome(tried(code.toStdString(), "x: [B, C]", "out: [B, C]", "kernel: [3, 3]")).startsWith(problem), "in the trial"); // and is no crash
    }

    void theOrderOfInputsIsThatOfThePorts() {
        QCOMPARE(outcome(compiled("def construct(self, y, x):\n    return x - y\n", "x: [B]; y: [B]", "out: [B]")),
                 QString("1:5 construct takes the inputs in another order than the cell declares: x, y."));
        QCOMPARE(outcome(compiled("def construct(self, a, b):\n    return a - b\n", "x: [B]; y: [B]", "out: [B]")), QString("ok"));
        QCOMPARE(outcome(compiled("def construct(self, *inputs):\n    return inputs[0] - inputs[1]\n", "x: [B]; y: [B]", "out: [B]")), QString("ok"));
    }

    void whatItGivesIsHeldToWhatItDeclares() {
        graph::Document document = gated(true);
        auto& params = document.composites["Gate"].cells[0].params;
        const auto messageOf = [&](const char* code) {
            params["code"] = std::string(code);
            const auto result = networkOf(document)->forward({.columns = {{"features", drawn({5, 6}, 9)}}});
            return result ? QString("ok") : QString::fromStdString(result.error().text());
        };
        QCOMPARE(messageOf("def construct(self, x):\n    return x[:, :4]\n"),
                 QString("layers.0.gate: gave [5, 4] for out, but declares [B, 8] = [5, 8]. Change what it computes, or the declared shape."));
        QVERIFY(messageOf("def construct(self, x):\n    return x > 0\n").startsWith("layers.0.gate: gave Bool for out, but declares float."));
        QVERIFY(messageOf("def construct(self, x):\n    return x.split(4, -1)\n").startsWith("layers.0.gate: gave 2 tensors, but declares 1 output."));
        QVERIFY2(messageOf("def construct(self, x):\n    y = x + 1\n    return ops.matmul(y, x)\n").startsWith("layers.0.gate, code:3:12: mat1 and mat2 shapes cannot be multiplied"),
                 qPrintable(messageOf("def construct(self, x):\n    y = x + 1\n    return ops.matmul(y, x)\n")));
    }

    void aCompileErrorHasTheCellsPathAndPlace() {
        graph::Document document = gated(true);
        document.composites["Gate"].cells[0].params["code"] = std::string("def construct(self, x):\n    return ops.sigmoidd(x)\n");
        graph::Expansion expansion = graph::expand(document);
        QVERIFY(expansion.ok());
        const auto checked = checkCells(expansion.model);
        QVERIFY(!checked);
        QCOMPARE(QString::fromStdString(checked.error().place), QString("layers.0.gate, code:2:12"));
        const auto treatment = must(recipe::resolve(expansion.model, {}));
        const auto network = Network::create(std::move(expansion.model), treatment, {});
        QVERIFY(!network);
        QCOMPARE(QString::fromStdString(network.error().place), QString("layers.0.gate, code:2:12"));
    }

    void aTrialRunsForwardAndBackward() {
        QCOMPARE(outcome(tried(kGate, "x: [B, T, 3]", "out: [B, T, 3]", "kernel: [3, 3]; bias: [3]")), QString("ok"));
        const Trial wrong = tried("def construct(self, x):\n    return x.sum(-1)\n");
        QVERIFY(wrong.error && wrong.isCompiled);
        QCOMPARE(outcome(wrong), QString("0:0 construct gave [2] for out, but declares [B, C] = [2, 3]. (Tried with B = 2, C = 3.)"));
        // suits sizes that are a multiple of four alone
        QCOMPARE(outcome(tried("def construct(self, x):\n    B, T = x.shape\n    return x.reshape(B, T // 4, 4).flatten(1)\n")), QString("ok"));
        QCOMPARE(outcome(tried("def construct(self, x):\n    return x.reshape(x.shape[0], 1, -1)[:, 0] * self.big.mean()\n", "x: [B, C]", "out: [B, C]", "big: [4096, 4096]")), QString("ok"));
    }

    void hostileScriptsAreRefusedInTwoSeconds_data() {
        QTest::addColumn<QString>("code");
        QTest::addColumn<QString>("problem");
        const auto row = [](const char* name, const QString& code, const char* problem) { QTest::newRow(name) << code << QString(problem); };
        const QString begin = QStringLiteral("def construct(self, x):\n");
        row("parentheses", begin + "    return " + QString(200000, '(') + "x" + QString(200000, ')') + "\n", "0:0 The source is longer than 64 KiB.");
        row("fewer parentheses", begin + "    return " + QString(20000, '(') + "x" + QString(20000, ')') + "\n", "2:44 Brackets are nested deeper than 32.");
        row("an endless loop", begin + "    while x.dim() > 0:\n        x = x + 1\n    return x\n", "2:5 while is not available in a cell");
        row("a long loop", begin + "    for i in range(1000000000000):\n        x = x + 1\n    return x\n", "");
        row("a long loop over numbers", begin + "    n = 0\n    for i in range(1000000000000):\n        n = n + i\n    return x * n\n", "3:5 Loops ran more than 1000000 rounds in one call.");
        row("a doubling list", begin + "    y = [1]\n    for i in range(64):\n        y = y + y\n    return x * len(y)\n", "4:13 A list grew longer than 100000 items.");
        row("a doubling text", begin + "    y = \"ab\"\n    for i in range(64):\n        y = y + y\n    return x * len(y)\n", "4:13 A text grew longer than 65536 bytes.");
        row("a doubling tensor", begin + "    for i in range(64):\n        x = ops.cat([x, x])\n    return x\n", "3:13 The script asks for more memory than there is.");
        row("a huge tensor", begin + "    return x + ops.zeros([1000000, 1000000]).sum()\n", "2:16 A new tensor would have more than");
        row("a large tensor", begin + "    return x + ops.zeros([10000, 100000]).sum()\n", "2:16 The script asks for more memory than there is.");
        row("calls that multiply", [&] {
            QString code = "def f0(x):\n    return x + 1\n";
            for (int i = 1; i <= 24; ++i) code += QStringLiteral("def f%1(x):\n    return f%2(x) + f%2(x)\n").arg(i).arg(i - 1);
            return code + begin + "    return f24(x)\n";
        }(), "");
        row("a long beginning", "class A(nn.Cell):\n    def __init__(self):\n        n = 0\n        for i in range(1000000000):\n            n = n + i\n        self.n = n\n    def construct(self, x):\n        return x\n", "");
    }
    void hostileScriptsAreRefusedInTwoSeconds() {
        QFETCH(QString, code);
        QFETCH(QString, problem);
        const Trial trial = tryScript({"cell", code.toStdString(), {}, portsOf("x: [B, C]", "out: [B, C]")}); // the child has two seconds of processor time
        QVERIFY(trial.error);
        const bool isSlow = qEnvironmentVariableIntValue("CELLOOM_TEST_EVERY") > 1; // the time may end before the memory does
        QVERIFY2(outcome(trial).startsWith(problem) || (isSlow && outcome(trial).contains(QLatin1String("of processor time"))), qPrintable(outcome(trial)));
        QVERIFY2(!trial.error->hint.empty() && (trial.error->line > 0 || code.size() > 65536), qPrintable(outcome(trial)));
    }

    void aTrainingStopsAtALimitAsWell() { // what a trial on small tensors cannot see
        graph::Document document = gated(true);
        document.composites["Gate"].cells[0].params["code"] = std::string("def construct(self, x):\n    n = 0\n    for i in range(x.shape[0] * 100000):\n        n = n + 1\n    return x\n");
        const auto network = networkOf(document);
        const auto result = network->forward({.columns = {{"features", drawn({20, 6}, 9)}}});
        QVERIFY(!result);
        QCOMPARE(QString::fromStdString(result.error().place), QString("layers.0.gate, code:3:5"));
        QVERIFY(network->forward({.columns = {{"features", drawn({5, 6}, 9)}}}).has_value()); // and goes on with others
    }
};

QTEST_GUILESS_MAIN(TestScriptCell)
#include "tst_script_cell.moc"
