// What the catalogue refuses: parameters that no shape fits, with the shapes, the parameter to change and a hint; and the formula of an
// Expression.
#include "models/catalog/catalog.h"
#include "models/catalog/formula.h"
#include "models/graph/cost.h"
#include "models/graph/expand.h"

#include <QTest>

using namespace celloom;
using namespace celloom::graph;

namespace {

using Params = std::map<std::string, ParamValue>;
using Dims = std::vector<std::string>;

/// A graph of one cell, its inputs in port order.
Expansion expansionOf(const std::string& type, const Params& params, const std::vector<Dims>& inputs) {
    Document document;
    document.main.cells = {{"cell", type, params, {}, {}, {}}};
    std::vector<std::string> names;
    for (const catalog::PortDef& port : catalog::find(type)->inputs) names.push_back(port.name);
    if (type == "Expression" || type == "Concat") {
        names.clear();
        for (std::size_t i = 0; i < inputs.size(); ++i) names.push_back("in" + std::to_string(i));
    }
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        document.main.inputs.push_back({names[i], inputs[i]});
        document.main.wires.push_back({{"", names[i]}, {"cell", names[i]}});
    }
    document.main.outputs = {{"y", {}}};
    document.main.wires.push_back({{"cell", type == "Split" ? "out0" : "out"}, {"", "y"}});
    return expand(document);
}

const Params kConv{{"in_channels", std::int64_t{3}}, {"out_channels", std::int64_t{4}}, {"kernel_size", "3"}};
Params with(Params params, const Params& more) {
    for (const auto& [name, value] : more) params[name] = value;
    return params;
}

} // namespace

Q_DECLARE_METATYPE(Params)
Q_DECLARE_METATYPE(std::vector<Dims>)

class TestCatalog : public QObject {
    Q_OBJECT
private Q_SLOTS:
    void whatDoesNotFitIsRefusedAtItsParameter_data();
    void whatDoesNotFitIsRefusedAtItsParameter();
    void shapesFollowTheirRules_data();
    void shapesFollowTheirRules();
    void hugeSizesOverflowNothing_data();
    void hugeSizesOverflowNothing();
    void formulasThatAreNoneAreRefusedAtOnce_data();
    void formulasThatAreNoneAreRefusedAtOnce();
    void formulasBindAsPythonDoes();
    void anExpressionKeepsWhatItsDerivativeReads_data();
    void anExpressionKeepsWhatItsDerivativeReads();
};

void TestCatalog::whatDoesNotFitIsRefusedAtItsParameter_data() {
    QTest::addColumn<std::string>("type");
    QTest::addColumn<Params>("params");
    QTest::addColumn<std::vector<Dims>>("inputs");
    QTest::addColumn<QString>("parameter");
    QTest::addColumn<QString>("words");
    const auto row = [](const char* name, const char* type, const Params& params, const std::vector<Dims>& inputs, const char* parameter,
                        const char* words) {
        QTest::newRow(name) << std::string(type) << params << inputs << QString(parameter) << QString::fromUtf8(words);
    };
    const Dims image{"B", "3", "4", "4"};
    row("kernel larger than the image", "Conv2d", with(kConv, {{"kernel_size", "7"}}), {image}, "kernel_size",
        "x is [B, 3, 4, 4], but kernel_size = 7 reaches over 7 numbers; the height has 4");
    row("dilated kernel too wide", "Conv2d", with(kConv, {{"kernel_size", "1,3"}, {"dilation", "2"}}), {image}, "kernel_size",
        "the width has 4");
    row("group that does not divide", "Conv2d", with(kConv, {{"group", std::int64_t{2}}}), {image}, "group",
        "in_channels = 3 does not part into group = 2");
    row("padding beside same", "Conv2d", with(kConv, {{"pad_mode", "same"}, {"padding", "1"}}), {image}, "padding",
        "pad_mode same works its padding out");
    row("three numbers", "Conv2d", with(kConv, {{"stride", "1,1,1"}}), {image}, "stride", "stride has 3 numbers");
    row("stride of nothing", "Conv2d", with(kConv, {{"stride", "0"}}), {image}, "stride", "must be 1 to");
    row("other channels", "Conv2d", kConv, {{"B", "2", "4", "4"}}, "in_channels",
        "x is [B, 2, 4, 4], but in_channels = 3 expects [B, 3, H, W]");
    row("no image", "Conv2d", kConv, {{"B", "T", "3"}}, "", "x is [B, T, 3], expected an image");
    row("symbolic height", "MaxPool2d", {{"kernel_size", "2"}}, {{"B", "3", "H", "4"}}, "", "expected an image [B, C, H, W] with numbers");
    row("pool larger than the image", "AvgPool2d", {{"kernel_size", "5"}}, {image}, "kernel_size", "reaches over 5 numbers");
    row("more padding than half", "MaxPool2d", {{"kernel_size", "3"}, {"padding", "2"}}, {image}, "padding",
        "more than half of kernel_size = 3");
    row("norm of other channels", "BatchNorm2d", {{"num_features", std::int64_t{4}}}, {image}, "num_features", "expects [B, 4, H, W]");
    row("shape that holds less", "Reshape", {{"shape", "0, 5"}}, {{"B", "6"}}, "shape", "holds 5 · B numbers, x 6 · B");
    row("shape that does not divide", "Reshape", {{"shape", "-1, 4"}}, {{"B", "6"}}, "shape", "do not divide the 6 · B of x");
    row("two unknowns", "Reshape", {{"shape", "-1, -1"}}, {{"B", "6"}}, "shape", "more than one -1");
    row("two symbols in one", "Reshape", {{"shape", "-1, 6"}}, {{"B", "T", "6"}}, "shape", "one dimension of 6 · B · T");
    row("dimension that is not there", "Reshape", {{"shape", "-1, 1, 0"}}, {{"B", "6"}}, "shape", "keeps dimension 2");
    row("flattened symbols", "Flatten", {{"start_dim", std::int64_t{0}}}, {{"B", "T", "6"}}, "start_dim", "would be 6 · B · T");
    row("flattened backwards", "Flatten", {{"start_dim", std::int64_t{2}}, {"end_dim", std::int64_t{1}}}, {{"B", "T", "6"}}, "start_dim",
        "comes after end_dim");
    row("axis that is not there", "Flatten", {{"start_dim", std::int64_t{3}}}, {{"B", "T", "6"}}, "start_dim", "no axis 3");
    row("axis named twice", "Transpose", {{"perm", "0, 1, 1"}}, {{"B", "T", "6"}}, "perm", "does not name each of its 3 dimensions once");
    row("axis left out", "Transpose", {{"perm", "1, 0"}}, {{"B", "T", "6"}}, "perm", "perm = 1,0");
    row("index out of range", "Slice", {{"kind", "index"}, {"begin", std::int64_t{6}}}, {{"B", "6"}}, "begin", "has no place 6");
    row("range past the end", "Slice", {{"end", std::int64_t{7}}}, {{"B", "6"}}, "end", "ends before end = 7");
    row("empty range", "Slice", {{"begin", std::int64_t{3}}, {"end", std::int64_t{3}}}, {{"B", "6"}}, "end", "nothing between");
    row("range of a symbol from both sides", "Slice", {{"axis", std::int64_t{1}}, {"begin", std::int64_t{1}}}, {{"B", "T", "6"}}, "end",
        "is a symbol");
    row("reduced twice", "ReduceSum", {{"axis", "1, -2"}}, {{"B", "T", "6"}}, "axis", "twice");
    row("reduced axis that is not there", "ReduceMean", {{"axis", "3"}}, {{"B", "T", "6"}}, "axis", "no axis 3");
    row("reduced to nothing", "ReduceMax", {{"axis", "0"}}, {{"B"}}, "keep_dims", "no dimension would be left");
    row("no broadcasting", "Add", {}, {{"B", "T", "6"}, {"T", "5"}}, "",
        "a is [B, T, 6] and b is [T, 5]; counted from the end, dimension 1 differs");
    row("symbols are themselves", "Multiply", {}, {{"B", "T"}, {"B"}}, "", "a is [B, T] and b is [B]");
    row("product that does not meet", "MatMul", {}, {{"B", "4", "6"}, {"4", "6"}}, "transpose_b", "the product would need [6] = [4]");
    row("product of a row", "MatMul", {}, {{"6"}, {"6", "4"}}, "", "two dimensions or more");
    row("concat of others", "Concat", {{"axis", std::int64_t{1}}}, {{"B", "2", "6"}, {"B", "2", "5"}}, "axis",
        "in1 is [B, 2, 5] and in0 is [B, 2, 6]");
    row("pieces that do not add up", "Split", {{"sizes", "1,2"}, {"axis", std::int64_t{1}}}, {{"B", "4", "6"}}, "sizes", "add up to 3");
    row("condition of other rows", "Branch", {}, {{"T"}, {"B", "4"}, {"B", "4"}}, "", "condition is [T] and when_true is [B, 4]");
    row("arms that differ", "Branch", {}, {{"B"}, {"B", "4"}, {"B", "5"}}, "", "when_true is [B, 4] and when_false is [B, 5]");
    row("more experts than there are", "MixtureOfExperts",
        {{"hidden_size", std::int64_t{6}},
         {"intermediate_size", std::int64_t{4}},
         {"num_experts", std::int64_t{2}},
         {"top_k", std::int64_t{3}}},
        {{"B", "T", "6"}}, "top_k", "top_k = 3 is more than num_experts = 2");
    row("nine dimensions", "Reshape", {{"shape", "1,1,1,1,1,1,1,1,6"}}, {{"6"}}, "shape", "9 dimensions");
    row("no shape", "Parameter", {{"shape", "0"}}, {}, "shape", "must be 1 to");
    row("formula without its input", "Expression", {{"formula", "in0 + in1"}, {"inputs", std::int64_t{1}}}, {{"B"}}, "formula",
        "unknown name \"in1\"");
    row("inputs that do not broadcast", "Expression", {{"formula", "in0 + in1"}, {"inputs", std::int64_t{2}}}, {{"B", "3"}, {"B", "4"}}, "",
        "in0 is [B, 3] and in1 is [B, 4]");
}

void TestCatalog::whatDoesNotFitIsRefusedAtItsParameter() {
    QFETCH(std::string, type);
    QFETCH(Params, params);
    QFETCH(std::vector<Dims>, inputs);
    QFETCH(QString, parameter);
    QFETCH(QString, words);
    const Expansion expansion = expansionOf(type, params, inputs);
    QVERIFY(!expansion.ok());
    const Problem& problem = expansion.problems.front();
    QCOMPARE(QString::fromStdString(problem.path), QStringLiteral("cell"));
    QCOMPARE(QString::fromStdString(problem.parameter), parameter);
    QVERIFY2(QString::fromStdString(problem.message).contains(words), problem.message.c_str());
}

void TestCatalog::shapesFollowTheirRules_data() {
    QTest::addColumn<std::string>("type");
    QTest::addColumn<Params>("params");
    QTest::addColumn<std::vector<Dims>>("inputs");
    QTest::addColumn<QString>("shape");
    const auto row = [](const char* type, const Params& params, const std::vector<Dims>& inputs, const char* shape) {
        QTest::addRow("%s to %s %d", type, shape, int(params.size())) << std::string(type) << params << inputs << QString(shape);
    };
    row("Reshape", {{"shape", "0, 0, 8, -1"}}, {{"B", "T", "48"}}, "[B, T, 8, 6]");
    row("Reshape", {{"shape", "-1, 6"}}, {{"B", "2", "3"}}, "[B, 6]");
    row("Reshape", {{"shape", "-1, 3"}}, {{"B", "2", "3"}}, "[2 * B, 3]");
    row("Flatten", {{"end_dim", std::int64_t{2}}}, {{"B", "2", "3", "T"}}, "[B, 6, T]");
    row("Slice", {{"axis", std::int64_t{1}}, {"begin", std::int64_t{-2}}}, {{"B", "T", "6"}}, "[B, 2, 6]");
    row("Slice", {{"axis", std::int64_t{1}}, {"kind", "index"}}, {{"B", "T", "6"}}, "[B, 6]");
    row("Slice", {{"begin", std::int64_t{1}}, {"end", std::int64_t{-1}}, {"step", std::int64_t{3}}}, {{"B", "7"}}, "[B, 2]");
    row("ReduceMean", {{"axis", "-1, 1"}}, {{"B", "T", "6"}}, "[B]");
    row("MatMul", {{"transpose_b", true}}, {{"B", "H", "T", "6"}, {"B", "H", "S", "6"}}, "[B, H, T, S]");
    row("Add", {}, {{"1", "T", "6"}, {"B", "1", "6"}}, "[B, T, 6]");
    row("Parameter", {{"shape", "1, 64"}}, {{"B", "T", "64"}}, "[B, 1, 64]");
    row("Concat", {{"axis", std::int64_t{1}}}, {{"B", "1", "H"}, {"B", "4", "H"}}, "[B, 5, H]");
    // MindSpore's and PyTorch's formula: floor((7 + 2 - 2 · 2 - 1) / 2) + 1 = 3; same: ceil(7 / 2) = 4
    row("Conv2d", with(kConv, {{"stride", "2"}, {"padding", "1"}, {"dilation", "2"}}), {{"B", "3", "7", "7"}}, "[B, 4, 3, 3]");
    row("Conv2d", with(kConv, {{"stride", "2"}, {"pad_mode", "same"}}), {{"B", "3", "7", "7"}}, "[B, 4, 4, 4]");
    row("MaxPool2d", {{"kernel_size", "2"}, {"ceil_mode", true}}, {{"B", "3", "5", "4"}}, "[B, 3, 3, 2]");
}

void TestCatalog::shapesFollowTheirRules() {
    QFETCH(std::string, type);
    QFETCH(Params, params);
    QFETCH(std::vector<Dims>, inputs);
    QFETCH(QString, shape);
    const Expansion expansion = expansionOf(type, params, inputs);
    QVERIFY2(expansion.ok(), expansion.ok() ? "" : expansion.firstError().text().c_str());
    QCOMPARE(QString::fromStdString(toString(expansion.model.values[static_cast<std::size_t>(expansion.model.outputs[0].value)].shape)),
             shape);
}

void TestCatalog::hugeSizesOverflowNothing_data() {
    QTest::addColumn<std::string>("type");
    QTest::addColumn<Params>("params");
    QTest::addColumn<std::vector<Dims>>("inputs");
    const std::int64_t big = 1'000'000'000;
    const std::string huge = "1000000000000";
    const auto row = [](const char* name, const char* type, const Params& params, const std::vector<Dims>& inputs) {
        QTest::newRow(name) << std::string(type) << params << inputs;
    };
    row("kernels", "Conv2d", {{"in_channels", big}, {"out_channels", big}, {"kernel_size", "1000000"}}, {{"B", "1000000000", huge, huge}});
    row("padding", "Conv2d", with(kConv, {{"padding", "1000000"}, {"dilation", "1000000"}, {"stride", "1000000"}}),
        {{"B", "3", huge, huge}});
    row("pool", "MaxPool2d", {{"kernel_size", "1000000"}, {"padding", "500000"}, {"ceil_mode", true}}, {{"B", huge, huge, huge}});
    row("reshape", "Reshape", {{"shape", huge + "," + huge + ",-1"}}, {{huge, huge, huge, huge}});
    row("flatten", "Flatten", {{"start_dim", std::int64_t{0}}}, {{huge, huge, huge}});
    row("concat", "Concat", {}, {{huge}, {huge}});
    row("slice", "Slice", {{"begin", "-1000000000000"}, {"step", "1000000000000"}}, {{huge}});
    row("parameter", "Parameter", {{"shape", huge + "," + huge}}, {});
    row("experts", "MixtureOfExperts", {{"hidden_size", big}, {"intermediate_size", big}, {"num_experts", std::int64_t{4096}}},
        {{"B", "T", "1000000000"}});
    row("product", "MatMul", {}, {{huge, huge, huge}, {huge, huge}});
    row("expression", "Expression", {{"formula", "exp(in0) * in1"}, {"inputs", std::int64_t{2}}}, {{huge, huge, "1"}, {huge}});
}

/// Refused, or costs that stay at the largest numbers there are; UBSan builds see what would overflow.
void TestCatalog::hugeSizesOverflowNothing() {
    QFETCH(std::string, type);
    QFETCH(Params, params);
    QFETCH(std::vector<Dims>, inputs);
    const Expansion expansion = expansionOf(type, params, inputs);
    if (!expansion.ok()) return;
    for (const Cost& cost : costs(expansion.model, {{"B", 1000000000}, {"T", 1000000000}})) {
        QVERIFY(cost.forwardFlops >= 0);
        QVERIFY(cost.activationValues >= 0);
    }
}

void TestCatalog::formulasThatAreNoneAreRefusedAtOnce_data() {
    QTest::addColumn<std::string>("formula");
    QTest::addColumn<QString>("words");
    const auto row = [](const char* name, const std::string& formula, const char* words) {
        QTest::newRow(name) << formula << QString::fromUtf8(words);
    };
    row("200 000 parentheses", std::string(200000, '(') + "in0" + std::string(200000, ')'), "longer than 4000 bytes");
    row("many parentheses", std::string(1900, '(') + "in0" + std::string(1900, ')'), "nests deeper than 50 levels");
    row("many signs", std::string(3000, '-') + "in0", "nests deeper than 50 levels");
    row(
        "a tower of powers",
        [] {
            std::string out = "in0";
            for (int i = 0; i < 600; ++i) out += "**in0";
            return out;
        }(),
        "nests deeper than 50 levels");
    row(
        "many terms",
        [] {
            std::string out = "in0";
            for (int i = 0; i < 500; ++i) out += "+in0";
            return out;
        }(),
        "more than 400 terms");
    row("nothing", "", "ends too early");
    row("blank", " \n\t", "ends too early");
    row("no input", "2 * 3", "uses no input");
    row("unknown name", "in0 + y", "unknown name \"y\" at character 7");
    row("unknown function", "in0 + softmax(in0)", "unknown function \"softmax\" at character 7");
    row("a file", "open('/etc/passwd')", "calls the unknown function \"open\"");
    row("an attribute", "in0.data", "\".data\" at character 4");
    row("missing parenthesis", "exp(in0", "ends too early");
    row("one too many", "exp(in0))", "\")\" at character 9");
    row("two arguments", "exp(in0, in0)", "gives exp() at character 1 2 arguments; it takes 1");
    row("missing operand", "in0 *", "ends too early");
    row("two operands", "in0 in0", "\"in0\" at character 5");
    row("whole division", "in0 // 2", "\"// 2\"");
    row("bare comparison", "in0 > 1", "compares at character 5 outside of where()");
    row("comparison as a number", "where(in0 > 0, in0 < 1, in0)", "where a number is needed");
    row("where without one", "where(in0, 1, 2)", "needs a comparison");
    row("comparison of numbers", "where(1 > 0, in0, 2)", "compares two numbers");
    row("division by zero", "in0 + 1 / 0", "gives no finite number");
    row("no number", "in0 * 1e999", "cannot stand");
    row("root of -1", "in0 * sqrt(-1)", "gives no finite number");
    row("zero byte", std::string("in0 + \0 1", 9), "cannot stand");
    row("other letters", "in0 + α", "cannot stand");
}

void TestCatalog::formulasThatAreNoneAreRefusedAtOnce() {
    QFETCH(std::string, formula);
    QFETCH(QString, words);
    const auto read = catalog::readFormula(formula, 1);
    QVERIFY(!read);
    QCOMPARE(read.error().place, std::string("formula"));
    QVERIFY2(QString::fromStdString(read.error().message).contains(words), read.error().message.c_str());
    QVERIFY(read.error().message.size() < 400);
    const auto unused = catalog::readFormula("in0", 2);
    QVERIFY(!unused && unused.error().message.find("does not use in1") != std::string::npos);
}

/// -in0 ** 2 is -(in0 ** 2); 2 ** -in0; ** to the right; what holds numbers alone is one number.
void TestCatalog::formulasBindAsPythonDoes() {
    using Op = catalog::Formula::Op;
    const auto nodes = [](const std::string& text) { return catalog::readFormula(text, 1)->nodes; };
    QVERIFY(nodes("-in0 ** 2").back().op == Op::Negate);
    QVERIFY(nodes("in0 - 1 - 1").back().op == Op::Subtract);
    const auto tower = nodes("in0 ** 2 ** 3"); // in0 ** 8
    QVERIFY(tower.back().op == Op::Power && tower[static_cast<std::size_t>(tower.back().of[1])].number == 8);
    const auto folded = nodes("in0 * (1 + 2 * 3 ** 2) / -4");
    QVERIFY(folded.back().op == Op::Divide && folded[static_cast<std::size_t>(folded.back().of[1])].number == -4);
    QVERIFY(folded[static_cast<std::size_t>(folded[static_cast<std::size_t>(folded.back().of[0])].of[1])].number == 19);
    QCOMPARE(nodes("where(in0 >= 1e-3, in0, relu(-in0))").back().of.size(), std::size_t{3});
}

void TestCatalog::anExpressionKeepsWhatItsDerivativeReads_data() {
    QTest::addColumn<std::string>("formula");
    QTest::addColumn<int>("values"); // whole tensors beyond inputs and output, of four numbers
    QTest::newRow("sum") << std::string("in0 + 1") << 0;
    QTest::newRow("exp of a sum: its result, the output") << std::string("exp(in0 + 1)") << 0;
    QTest::newRow("log of a sum: the sum") << std::string("log(in0 + 1)") << 1;
    QTest::newRow("product of two: both") << std::string("(in0 + 1) * sin(in0 - 1)") << 3; // in0 + 1, in0 - 1, sin(…)
    QTest::newRow("tanh by a number: its result") << std::string("2 * tanh(in0)") << 1;
}

void TestCatalog::anExpressionKeepsWhatItsDerivativeReads() {
    QFETCH(std::string, formula);
    QFETCH(int, values);
    const Expansion expansion = expansionOf("Expression", {{"formula", formula}}, {{"4"}});
    const auto& cell = expansion.model.cells.at(0);
    QCOMPARE(catalog::find("Expression")->cost(cell, {{4}}, {{4}}).keptValues, std::int64_t{4 * values});
}

QTEST_GUILESS_MAIN(TestCatalog)
#include "tst_catalog.moc"
