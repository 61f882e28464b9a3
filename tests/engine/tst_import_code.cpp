// Python classes as Cell graphs: what DESIGN and the articles show is read, what is written is read back, what is hostile is refused.
#include "engine/code/import.h"
#include "models/base/files.h"
#include "models/code/code.h"
#include "models/families/families.h"
#include "models/graph/expand.h"
#include "models/graph/json.h"
#include "models/library/entry.h"

#include <QTest>
#include <nlohmann/json.hpp>

#include <set>

using namespace celloom;
using namespace celloom::engine;
using namespace celloom::engine::code;

namespace {

constexpr const char* kCrossAttention = R"(class CrossAttention(nn.Cell):
    def __init__(self, d_model, n_head):
        super().__init__()
        self.attention = nn.MultiHeadAttention(d_model, n_head)

    def construct(self, query, key, value):
        return self.attention(query, key, value)
)";

constexpr const char* kTransformerBlock = R"(import mindspore.nn as nn

class TransformerBlock(nn.Cell):
    """A block as the article writes it."""

    def __init__(self, d_model, n_head):
        super(TransformerBlock, self).__init__()
        self.attention = nn.MultiHeadAttention(d_model, n_head)
        self.ffn = nn.SequentialCell(
            nn.Dense(d_model, 4 * d_model),
            nn.ReLU(),
            nn.Dense(4 * d_model, d_model)
        )
        self.norm1 = nn.LayerNorm((d_model,))
        self.norm2 = nn.LayerNorm((d_model,))

    def construct(self, x):
        attn_output = self.attention(x, x, x)
        x = self.norm1(x + attn_output)
        ffn_output = self.ffn(x)
        x = self.norm2(x + ffn_output)
        return x
)";

template <class T> T must(ScriptResult<T> result) {
    if (!result) qFatal("%s", result.error().asError("source").text().c_str());
    return std::move(*result);
}
template <class T> T must(Result<T> result) {
    if (!result) qFatal("%s", result.error().text().c_str());
    return std::move(*result);
}

Imported imported(const std::string& text, ImportOptions options = {}) {
    return must(importCode(text, options));
}

graph::ExpandedModel expanded(const graph::Document& document) {
    graph::Expansion out = graph::expand(document);
    if (!out.ok()) qFatal("%s", out.firstError().text().c_str());
    return std::move(out.model);
}

std::set<std::string> weightPaths(const graph::ExpandedModel& model) {
    std::set<std::string> out;
    for (const graph::CellInstance& cell : model.cells)
        for (const graph::WeightSpec& weight : cell.weights) out.insert(cell.path + "." + weight.name);
    return out;
}

/// Wires in any order, positions and explicit defaults apart: cells with their types and what feeds them.
std::map<std::string, std::string> structureOf(const graph::ExpandedModel& model) {
    std::map<std::string, std::string> out;
    for (const graph::CellInstance& cell : model.cells) {
        std::string text = cell.type;
        for (const auto& [name, value] : cell.params)
            text += " " + name + "=" + std::visit([](const auto& held) { return nlohmann::json(held).dump(); }, value);
        for (const graph::ValueId id : cell.inputs)
            text += " <- " + (id < 0 ? std::string("-")
                                     : model.values[static_cast<std::size_t>(id)].producer +
                                           graph::toString(model.values[static_cast<std::size_t>(id)].shape));
        out[cell.path] = text;
    }
    for (const graph::NamedValue& output : model.outputs)
        out["-> " + output.name] = model.values[static_cast<std::size_t>(output.value)].producer;
    return out;
}

} // namespace

class TestImportCode : public QObject {
    Q_OBJECT
private Q_SLOTS:
    void crossAttentionAsDesignShowsIt();
    void theTransformerBlockOfTheArticle();
    void whatIsWrittenIsReadBack_data();
    void whatIsWrittenIsReadBack();
    void codeToGraphToCodeToGraphIsTheSameDocument_data();
    void codeToGraphToCodeToGraphIsTheSameDocument();
    void layersThatRepeatAreOneCell();
    void shapesComeFromCommentsAndFromOptions();
    void notesAndHelpComeBack();
    void whatIsNotKnownIsRefusedWithItsPlace_data();
    void whatIsNotKnownIsRefusedWithItsPlace();
    void hostileSourcesAreRefused_data();
    void hostileSourcesAreRefused();
};

void TestImportCode::crossAttentionAsDesignShowsIt() {
    const Imported read = imported(kCrossAttention);
    const graph::Graph& graph = read.document.composites.at("CrossAttention");
    QCOMPARE(graph.cells.size(), std::size_t(1));
    QCOMPARE(graph.cells[0].name, std::string("attention"));
    const graph::Graph& attention = read.document.composites.at(graph.cells[0].type);
    QVERIFY(attention.origin && attention.origin->name == "MultiHeadAttention" && attention.origin->library == library::kStandard);
    QCOMPARE(graph.inputs.size(), std::size_t(3));
    const auto model = expanded(read.document);
    QCOMPARE(graph::toString(model.values[static_cast<std::size_t>(model.outputs[0].value)].shape), std::string("[B, T, 512]"));
    QCOMPARE(model.parameterCount(), std::int64_t(4 * (512 * 512 + 512))); // four projections with their biases
    QVERIFY(!read.notes.empty());                                          // the sizes and shapes were assumed, and it says so
    const auto given = expanded(imported(kCrossAttention, {.inputs = must(readInputPorts("query:[B,T,64]; key:[B,S,64]; value:[B,S,64]")),
                                                           .values = {{"d_model", std::int64_t(64)}, {"n_head", std::int64_t(4)}}})
                                    .document);
    QCOMPARE(given.parameterCount(), std::int64_t(4 * (64 * 64 + 64)));
}

void TestImportCode::theTransformerBlockOfTheArticle() {
    const Imported read = imported(kTransformerBlock, {.values = {{"d_model", std::int64_t(64)}, {"n_head", std::int64_t(4)}}});
    const graph::Graph& block = read.document.composites.at("TransformerBlock");
    QCOMPARE(block.note, std::string("A block as the article writes it."));
    std::vector<std::string> types;
    for (const graph::Cell& cell : block.cells) types.push_back(cell.type);
    QCOMPARE(types, (std::vector<std::string>{"MultiHeadAttention", "Add", "LayerNorm", "TransformerBlockFfn", "Add", "LayerNorm"}));
    const auto model = expanded(read.document);
    QCOMPARE(graph::toString(model.values[static_cast<std::size_t>(model.outputs[0].value)].shape), std::string("[B, T, 64]"));
    // attention, two layers with biases, two norms
    QCOMPARE(model.parameterCount(), std::int64_t(4 * (64 * 64 + 64) + (64 * 256 + 256) + (256 * 64 + 64) + 4 * 64));
    for (const graph::CellInstance& cell : model.cells)
        if (cell.type == "LayerNorm") QCOMPARE(cell.real("eps"), 1e-7); // MindSpore's default
    // twice as wide, by one number
    graph::Document wider = read.document;
    QVERIFY(graph::applyOverrides(wider, {{"d_model", std::int64_t(128)}}));
    QVERIFY(graph::expand(wider).ok());
}

static void addDocuments() {
    QTest::addColumn<QString>("model");
    for (const char* preset : {"baichuan-tiny", "baichuan-tiny-alibi", "baichuan-tiny-gqa", "baichuan2-tiny", "internlm-tiny",
                               "internlm2-tiny", "internlm3-tiny", "transformer-tiny"})
        QTest::newRow(preset) << QString(preset);
    for (const auto& entry : nlohmann::json::parse(*readFile(CELLOOM_FIXTURES "/code/cases.json"))) {
        const std::string model = entry["model"];
        if (model == "typed_cells.cells.json") continue; // a Script cell comes back as the composite that its code is
        if (model.ends_with(".json"))
            QTest::newRow(entry["name"].get<std::string>().c_str()) << QString(CELLOOM_FIXTURES "/code/") + model.c_str();
    }
}

void TestImportCode::whatIsWrittenIsReadBack_data() {
    addDocuments();
}
void TestImportCode::whatIsWrittenIsReadBack() {
    QFETCH(QString, model);
    const graph::Document document = must(families::openModel(model.toStdString()));
    const Imported read = imported(must(celloom::code::write(document, celloom::code::Dialect::MindSpore)).text);
    QCOMPARE(read.document.family, document.family);
    QCOMPARE(read.document.main.name, document.main.name);
    QCOMPARE(read.document.composites.size(), document.composites.size());
    const auto before = expanded(document), after = expanded(read.document);
    QCOMPARE(weightPaths(after), weightPaths(before));
    QCOMPARE(after.parameterCount(), before.parameterCount());
    const auto given = structureOf(after), expected = structureOf(before);
    for (const auto& [path, text] : expected)
        QCOMPARE(QString::fromStdString(given.contains(path) ? given.at(path) : "(" + path + " is missing)"), QString::fromStdString(text));
    QCOMPARE(given.size(), expected.size());
    QVERIFY(read.notes.empty());
}

void TestImportCode::codeToGraphToCodeToGraphIsTheSameDocument_data() {
    addDocuments();
    QTest::newRow("CrossAttention") << QString("CrossAttention");
    QTest::newRow("TransformerBlock") << QString("TransformerBlock");
}
void TestImportCode::codeToGraphToCodeToGraphIsTheSameDocument() {
    QFETCH(QString, model);
    std::string code = model == "CrossAttention" ? kCrossAttention : kTransformerBlock;
    if (model != "CrossAttention" && model != "TransformerBlock")
        code = must(celloom::code::write(must(families::openModel(model.toStdString())), celloom::code::Dialect::MindSpore)).text;
    const Imported first = imported(code);
    const auto written = must(celloom::code::write(first.document, celloom::code::Dialect::MindSpore));
    const Imported second = imported(written.text);
    QCOMPARE(QString::fromStdString(graph::toJson(second.document)), QString::fromStdString(graph::toJson(first.document)));
    QCOMPARE(must(celloom::code::write(second.document, celloom::code::Dialect::MindSpore)).text, written.text);
}

void TestImportCode::layersThatRepeatAreOneCell() {
    const char* const kForms[] = {
        "        self.layers = nn.CellList([Layer(dim) for _ in range(depth)])\n",
        "        self.layers = nn.CellList()\n        for _ in range(depth):\n            self.layers.append(Layer(dim))\n",
        "        blocks = []\n        for i in range(depth):\n            blocks.append(Layer(dim))\n        self.layers = "
        "nn.CellList(blocks)\n"};
    for (const char* form : kForms) {
        const std::string text = std::string("class Layer(nn.Cell):\n    def __init__(self, dim=8):\n        super().__init__()\n        "
                                             "self.dense = nn.Dense(dim, dim)\n\n"
                                             "    def construct(self, x):\n        return x + self.dense(x)\n\n\nclass Net(nn.Cell):\n    "
                                             "def __init__(self, dim=16, depth=3):\n        super().__init__()\n") +
                                 form +
                                 "\n    def construct(self, x):\n        # x: [B, dim]\n        for layer in self.layers:\n            x = "
                                 "layer(x)\n        return x\n";
        const Imported read = imported(text);
        QCOMPARE(read.document.main.cells.size(), std::size_t(1));
        QCOMPARE(read.document.main.cells[0].repeat, std::string("depth"));
        QVERIFY(weightPaths(expanded(read.document)).contains("layers.2.dense.weight"));
        graph::Document deep = read.document;
        QVERIFY(graph::applyOverrides(deep, {{"depth", std::int64_t(5)}}));
        QCOMPARE(expanded(deep).parameterCount(), std::int64_t(5 * (16 * 16 + 16)));
    }
}

void TestImportCode::shapesComeFromCommentsAndFromOptions() {
    const std::string text =
        "class Net(nn.Cell):\n    def __init__(self, dim=8):\n        super().__init__()\n        self.dense = nn.Dense(dim, 3)\n\n"
        "    def construct(self, x):\n        # x: [N, dim]\n        return self.dense(x)\n";
    QCOMPARE(imported(text).document.main.inputs[0].shape, (graph::SymbolicShape{"N", "dim"}));
    const Imported given = imported(text, {.inputs = must(readInputPorts("x: [B, T, dim]"))});
    QCOMPARE(given.document.main.inputs[0].shape, (graph::SymbolicShape{"B", "T", "dim"}));
    QVERIFY(!importCode(text, {.inputs = must(readInputPorts("y: [B]"))}));
    QVERIFY(!readInputPorts("x [B]"));
}

void TestImportCode::notesAndHelpComeBack() {
    graph::Document document = must(families::openModel("baichuan-tiny"));
    document.main.note = "Two lines,\nwith \"quotes\" and a back\\slash.";
    document.main.cells[0].note = "Looked up, not multiplied.";
    document.composites["MLP"].cells[3].note = "Gate times up.\nA second line.";
    const Imported read = imported(must(celloom::code::write(document, celloom::code::Dialect::MindSpore)).text);
    QCOMPARE(read.document.main.note, document.main.note);
    QCOMPARE(read.document.main.hyper[0].help, document.main.hyper[0].help);
    QCOMPARE(read.document.main.cells[0].note, document.main.cells[0].note);
    const auto& cells = read.document.composites.at("MLP").cells;
    const auto product = std::find_if(cells.begin(), cells.end(), [](const graph::Cell& cell) { return cell.name == "product"; });
    QVERIFY(product != cells.end());
    QCOMPARE(product->note, document.composites["MLP"].cells[3].note);
}

void TestImportCode::whatIsNotKnownIsRefusedWithItsPlace_data() {
    QTest::addColumn<QString>("init");
    QTest::addColumn<QString>("construct");
    QTest::addColumn<int>("line");
    QTest::addColumn<QString>("says");
    QTest::newRow("an unknown layer") << QString("self.a = nn.Dens(4, 4)") << QString("return self.a(x)") << 4
                                      << QString("Did you mean Dense?");
    QTest::newRow("an unknown argument") << QString("self.a = nn.Dense(4, 4, has_bas=True)") << QString("return self.a(x)") << 4
                                         << QString("Did you mean has_bias?");
    QTest::newRow("an activation inside Dense")
        << QString("self.a = nn.Dense(4, 4, activation=\"relu\")") << QString("return self.a(x)") << 4 << QString("activation");
    QTest::newRow("a layer that is not there") << QString("self.dense = nn.Dense(4, 4)") << QString("return self.dens(x)") << 7
                                               << QString("Did you mean self.dense?");
    QTest::newRow("an unknown operator") << QString("pass") << QString("return ops.sofmax(x)") << 7 << QString("Did you mean softmax?");
    QTest::newRow("shared weights") << QString("self.a = nn.Dense(4, 4)") << QString("return self.a(self.a(x))") << 7
                                    << QString("weights are not shared");
    QTest::newRow("a condition on data") << QString("pass") << QString("return x if x > 0 else x") << 7 << QString("ops.where");
    QTest::newRow("a while loop") << QString("pass") << QString("while True:\n            x = x + x") << 7 << QString("not available");
    QTest::newRow("nothing returned") << QString("pass") << QString("x = x + x") << 6 << QString("returns nothing");
    QTest::newRow("sequence first") << QString("self.a = nn.MultiheadAttention(8, 2)") << QString("return self.a(x, x, x)[0]") << 4
                                    << QString("batch_first=True");
    QTest::newRow("layers that differ") << QString("self.a = nn.CellList([nn.Dense(4, i) for i in range(3)])") << QString("return x") << 4
                                        << QString("Each layer would be another one");
}
void TestImportCode::whatIsNotKnownIsRefusedWithItsPlace() {
    QFETCH(QString, init);
    QFETCH(QString, construct);
    QFETCH(int, line);
    QFETCH(QString, says);
    const QString text = "class Net(nn.Cell):\n    def __init__(self):\n        super().__init__()\n        " + init +
                         "\n\n    def construct(self, x):\n        " + construct + "\n";
    const auto read = importCode(text.toStdString(), {});
    QVERIFY(!read);
    const QString said = QString::fromStdString(read.error().message + " " + read.error().hint);
    QVERIFY2(said.contains(says), qPrintable(said));
    QCOMPARE(read.error().line, line);
    QVERIFY(read.error().column >= 1);
}

void TestImportCode::hostileSourcesAreRefused_data() {
    QTest::addColumn<QByteArray>("text");
    QTest::addColumn<QString>("says");
    const auto construct = [](const QByteArray& body) {
        return QByteArray("class Net(nn.Cell):\n    def __init__(self):\n        super().__init__()\n\n    def construct(self, x):\n") +
               body;
    };
    QTest::newRow("200 000 parentheses") << construct("        return " + QByteArray(200000, '(') + "x" + QByteArray(200000, ')') + "\n")
                                         << QString("Brackets are nested deeper");
    QTest::newRow("a chain of 200 000 additions")
        << construct("        return x" + QByteArray("+x").repeated(200000) + "\n") << QString("words and signs");
    QTest::newRow("blocks in blocks") << construct([] {
        QByteArray out;
        for (int i = 0; i < 400; ++i) out += QByteArray(8 + 4 * i, ' ') + "if x:\n";
        return out + QByteArray(8 + 4 * 400, ' ') + "return x\n";
    }()) << QString("Blocks are nested deeper");
    QTest::newRow("a loop of 1e9 rounds") << construct("        for i in range(10**9):\n            x = x + x\n        return x\n")
                                          << QString("200 rounds");
    QTest::newRow("10 MB") << QByteArray("# ").append(QByteArray(10 << 20, 'a')) << QString("longer than");
    QTest::newRow("a NUL") << construct(QByteArray("        return x\0\n", 18)) << QString("control character");
    QTest::newRow("no UTF-8") << construct("        return x # \xff\xfe\n") << QString("UTF-8");
    QByteArray doubling = "        a = (x, x)\n";
    for (int i = 0; i < 40; ++i) doubling += "        a = (a, a)\n";
    QTest::newRow("doubling lists") << construct(doubling + "        return x\n") << QString("more than 20000 items");
    QByteArray methods = "        return self.m0(x)\n\n";
    for (int i = 0; i < 15; ++i)
        methods += "    def m" + QByteArray::number(i) + "(self, x):\n        " + (i == 14 ? QByteArray("return x") : QByteArray()) +
                   (i < 14 ? "y = self.m" + QByteArray::number(i + 1) + "(x)\n" +
                                 QByteArray("        y = self.m" + QByteArray::number(i + 1) + "(y)\n").repeated(9) + "        return y"
                           : QByteArray()) +
                   "\n\n";
    QTest::newRow("methods that call each other ten times") << construct(methods) << QString("too many steps");
    QTest::newRow("a method that calls itself") << construct("        return self.construct(x)\n") << QString("deeper than 16");
    QTest::newRow("a class in itself") << QByteArray("class A(nn.Cell):\n    def __init__(self):\n        super().__init__()\n        "
                                                     "self.a = A()\n\n    def construct(self, x):\n        return self.a(x)\n")
                                       << QString("contains itself");
    QByteArray repeat =
        "class Net(nn.Cell):\n    def __init__(self):\n        super().__init__()\n        self.a = nn.CellList([nn.ReLU() for _ in "
        "range(10**9)])\n\n    def construct(self, x):\n        for a in self.a:\n            x = a(x)\n        return x\n";
    QTest::newRow("1e9 layers") << repeat << QString("1000000000 layers");
    QTest::newRow("a power tower") << construct("        return x * 9**9**9**9\n") << QString("no finite number");
    QTest::newRow("a bracket that stays open") << construct("        return f(x\n") << QString("never closed");
    QTest::newRow("nothing") << QByteArray() << QString("no class of cells");
    QTest::newRow("no cell") << QByteArray("class A(Callback):\n    def step_end(self, run_context):\n        pass\n")
                             << QString("derive from nn.Cell");
}
void TestImportCode::hostileSourcesAreRefused() {
    QFETCH(QByteArray, text);
    QFETCH(QString, says);
    const auto read = tryImport(text.toStdString(), {});
    QVERIFY(!read);
    const QString said = QString::fromStdString(read.error().message + " " + read.error().hint);
    QVERIFY2(said.contains(says), qPrintable(said));
    QVERIFY(!read.error().isLimit); // the bounds did it, not the child's
}

QTEST_GUILESS_MAIN(TestImportCode)
#include "tst_import_code.moc"
