// What users get wrong, and what mends it: each fix is carried out, and its problem must be gone.
#include "models/graph/edits.h"
#include "models/graph/fixes.h"
#include "models/families/families.h"

#include <QTest>

using namespace celloom;
using namespace celloom::graph;

namespace {

/// ids -> Embedding -> Dense -> RMSNorm -> Dense -> out, of width 64.
Document chain() {
    Document out;
    out.main.name = "chain";
    out.main.hyper = {{"vocab", std::int64_t{100}, ""}, {"hidden", std::int64_t{64}, ""}, {"inner", std::int64_t{96}, ""}};
    out.main.inputs = {{"ids", {"B", "T"}, "int64"}};
    out.main.outputs = {{"out", {"B", "T", "hidden"}, "float"}};
    out.main.cells = {{"embed", "Embedding", {{"vocab_size", std::string("vocab")}, {"embedding_size", std::string("hidden")}}, "", "", {}},
                      {"up", "Dense", {{"in_channels", std::string("hidden")}, {"out_channels", std::string("inner")}}, "", "", {}},
                      {"norm", "RMSNorm", {{"dim", std::string("inner")}}, "", "", {}},
                      {"down", "Dense", {{"in_channels", std::string("inner")}, {"out_channels", std::string("hidden")}}, "", "", {}}};
    out.main.wires = {{{"", "ids"}, {"embed", "ids"}}, {{"embed", "out"}, {"up", "x"}}, {{"up", "out"}, {"norm", "x"}}, {{"norm", "out"}, {"down", "x"}}, {{"down", "out"}, {"", "out"}}};
    return out;
}

Cell& cell(Document& document, const std::string& name) {
    return *findCell(document.main, name);
}

template <class T> void must(const Result<T>& result) {
    if (!result) qFatal("%s", result.error().text().c_str());
}

using Break = std::function<void(Document&)>;

/// q, k, v of one width into an Attention.
void withAttention(Document& document, ParamValue heads, ParamValue keyHeads, ParamValue size) {
    document.main.cells.push_back({"core", "Attention", {{"num_heads", std::move(heads)}, {"num_kv_heads", std::move(keyHeads)}, {"head_dim", std::move(size)}}, "", "", {}});
    document.main.wires.pop_back();
    for (const char* port : {"q", "k", "v"}) document.main.wires.push_back({{"down", "out"}, {"core", port}});
    document.main.wires.push_back({{"core", "out"}, {"", "out"}});
}

bool isListed(const Document& document, const Problem& problem) {
    const auto problems = expand(document).problems;
    return std::any_of(problems.begin(), problems.end(), [&](const Problem& other) { return other.path == problem.path && other.message == problem.message; });
}

} // namespace

class TestFixes : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void aMistakeIsMended_data();
    void aMistakeIsMended();
    void everyFixOfferedMends();
    void aWholeDocumentHasNothingToMend();
    void whatIsNotKnownIsNotGuessed();
    void problemsInsideOfCompositesAreMendedThere();
    void aCompositeIsToldTheWidthThatComesIn();
    void overridesCount();
    void fixesOfALargeModelAreFoundToo();
};

void TestFixes::aMistakeIsMended_data() {
    QTest::addColumn<Break>("breakIt");
    QTest::addColumn<QString>("message"); // a part of the problem's message
    QTest::addColumn<QString>("title");   // of the first fix
    const auto row = [](const char* name, const Break& breakIt, const char* message, const char* title) {
        QTest::newRow(name) << breakIt << QString::fromUtf8(message) << QString::fromUtf8(title);
    };
    row("an input without a wire", [](Document& d) { must(removeWire(d, "", {{"up", "out"}, {"norm", "x"}})); }, "The input x has no wire", "Wire up.out to norm.x");
    row("an output without a wire", [](Document& d) { must(removeWire(d, "", {{"down", "out"}, {"", "out"}})); }, "The output out has no wire", "Wire down.out to out");
    row("a cell that nothing uses, its target free", [](Document& d) { must(removeWire(d, "", {{"down", "out"}, {"", "out"}})); }, "Nothing uses", "Wire down.out to out");
    row("a cell too many", [](Document& d) { must(addCell(d, "", "SiLU")); must(addWire(d, "", {{"up", "out"}, {"silu", "x"}})); }, "Nothing uses", "Remove silu");
    row("keys and values come from where the queries do", [](Document& d) {
        withAttention(d, std::int64_t{4}, std::int64_t{4}, std::int64_t{16});
        must(removeWire(d, "", {{"down", "out"}, {"core", "v"}})); }, "The input v has no wire", "Wire down.out to core.v");
    row("a width that differs from what is wired", [](Document& d) { cell(d, "down").params["in_channels"] = std::int64_t{32}; }, "in_channels = 32", "Set in_channels to inner");
    row("a width that is not given", [](Document& d) { cell(d, "down").params.erase("in_channels"); }, "needs the parameter in_channels", "Set in_channels to inner");
    row("a width that what follows decides", [](Document& d) { cell(d, "up").params.erase("out_channels"); }, "needs the parameter out_channels", "Set out_channels to inner");
    row("key heads that do not divide", [](Document& d) { withAttention(d, std::int64_t{8}, std::int64_t{3}, std::int64_t{8}); }, "no multiple of num_kv_heads = 3", "Set num_kv_heads to 8"); // k is 64 wide, 8 heads of 8
    row("heads that do not divide the width", [](Document& d) {
        d.main.hyper.push_back({"heads", std::int64_t{7}, ""});
        withAttention(d, std::string("heads"), std::string("heads"), std::string("hidden / heads")); }, "hidden / heads", "Set heads to 8");
    row("a number out of range", [](Document& d) { cell(d, "norm").params["eps"] = -1.0; }, "eps is -1", "Set eps to ");
    row("a probability above one", [](Document& d) {
        must(addCell(d, "", "Dropout"));
        must(setParam(d, "", "dropout", "p", ParamValue(1.5)));
        must(insertOnWire(d, "", {{"norm", "out"}, {"down", "x"}}, "dropout", "x", "out")); }, "p is 1.5", "Set p to ");
    row("a choice that is misspelt", [](Document& d) { withAttention(d, std::int64_t{4}, std::int64_t{4}, std::int64_t{16}); cell(d, "core").params["position"] = std::string("alib"); },
        "position is", "Set position to alibi");
    row("a hyper-parameter that is misspelt", [](Document& d) { cell(d, "norm").params["dim"] = std::string("iner"); }, "iner", "Set dim to inner");
    row("a hyper-parameter inside of an expression", [](Document& d) { cell(d, "norm").params["dim"] = std::string("iner * 1"); }, "iner", "Set dim to inner * 1");
    row("a hyper-parameter of a hyper-parameter", [](Document& d) { d.main.hyper[2].value = std::string("hiden * 3 / 2"); }, "hiden", "Set inner to hidden * 3 / 2");
    row("a parameter that is misspelt", [](Document& d) { auto& params = cell(d, "norm").params; auto node = params.extract("dim"); node.key() = "dims"; params.insert(std::move(node)); },
        "has no parameter \"dims\"", "Write dim for dims");
    row("a parameter that the type does not have", [](Document& d) { cell(d, "norm").params["frequency"] = 1.0; }, "has no parameter", "Remove frequency");
    row("a type that is misspelt", [](Document& d) { cell(d, "norm").type = "RMSnorm"; }, "There is no cell type", "Make norm of type RMSNorm");
    row("a composite that is not there", [](Document& d) { d.main.cells.push_back({"ff", "FeedForward", {}, "", "", {}}); }, "There is no cell type \"FeedForward\"", "Take FeedForward from the library");
    row("a port that is misspelt", [](Document& d) { d.main.wires[2].to.port = "X1"; }, "A wire ends at the input \"X1\"", "Move the wire from norm.X1 to norm.x");
    row("an output that is misspelt", [](Document& d) { d.main.wires[2].from.port = "ouput"; }, "A wire starts at the output \"ouput\"", "Move the wire from up.ouput to up.out");
    row("a wire from a cell that is misspelt", [](Document& d) { d.main.wires[2].from.cell = "upp"; }, "names the cell \"upp\"", "Move the wire from upp.out to up.out");
    row("two wires into one port", [](Document& d) { d.main.wires.push_back({{"embed", "out"}, {"down", "x"}}); }, "Two wires end at", "Remove the wire from embed.out to down.x");
    row("two of a shape are joined", [](Document& d) { d.main.wires.push_back({{"up", "out"}, {"down", "x"}}); }, "Two wires end at", "Join both with an Add");
    row("two cells of one name", [](Document& d) { d.main.cells.push_back({"norm", "SiLU", {}, "", "", {}}); }, "Two cells have this name", "Rename norm to norm_2");
    row("two hyper-parameters of one name", [](Document& d) { d.main.hyper.push_back({"hidden", std::int64_t{1}, ""}); }, "Two hyper-parameters are named", "Rename hidden to hidden_2");
    row("a name with a space", [](Document& d) { cell(d, "norm").name = "a norm"; for (Wire& wire : d.main.wires) for (Endpoint* end : {&wire.from, &wire.to}) if (end->cell == "norm") end->cell = "a norm"; },
        "cannot be used", "Rename a norm to a_norm");
    row("an output declared otherwise", [](Document& d) { d.main.outputs[0].shape = {"B", "T", "vocab"}; }, "declares", "Declare out as [B, T, hidden]");
    row("an input without a shape", [](Document& d) { d.main.inputs[0].shape.clear(); }, "has no shape", "Declare ids as [B, T]");
    row("ids that are declared float", [](Document& d) { d.main.inputs[0].dtype = "float"; }, "takes int64", "Declare ids as int64");
    row("a circle", [](Document& d) { d.main.wires.push_back({{"norm", "out"}, {"up", "x"}}); std::erase(d.main.wires, Wire{{"embed", "out"}, {"up", "x"}}); }, "in a circle", "Remove the wire from norm.out to up.x");
    row("a repeat of none", [](Document& d) { cell(d, "norm").repeat = "0"; }, "repeat is 0", "Do not repeat norm");
    row("a repeat by a misspelt name", [](Document& d) { cell(d, "norm").repeat = "hiden"; }, "hiden", "Set repeat to hidden");
    row("the other way round", [](Document& d) { // [B, T, 96] times [B, T, 96] transposed
        must(addCell(d, "", "MatMul"));
        must(addWire(d, "", {{"up", "out"}, {"mat_mul", "a"}}));
        must(addWire(d, "", {{"norm", "out"}, {"mat_mul", "b"}}));
        must(removeWire(d, "", {{"down", "out"}, {"", "out"}}));
        d.main.outputs[0].shape = {"B", "T", "T"};
        must(addWire(d, "", {{"mat_mul", "out"}, {"", "out"}})); }, "the product would need", "Set transpose_b to true");
    row("a Transpose that is missing", [](Document& d) {
        must(addCell(d, "", "Transpose"));
        must(setParam(d, "", "transpose", "perm", ParamValue(std::string("0, 2, 1"))));
        must(insertOnWire(d, "", {{"up", "out"}, {"norm", "x"}}, "transpose", "x", "out")); }, "x is [B, 96, T]", "Put Transpose between transpose.out and norm.x");
}

void TestFixes::aMistakeIsMended() {
    QFETCH(Break, breakIt);
    QFETCH(QString, message);
    QFETCH(QString, title);
    Document document = chain();
    QVERIFY(expand(document).ok());
    breakIt(document);
    const auto problems = expand(document).problems;
    const auto found = std::find_if(problems.begin(), problems.end(), [&](const Problem& problem) { return problem.message.find(message.toStdString()) != std::string::npos; });
    QStringList said;
    for (const Problem& problem : problems) said << QString::fromStdString(problem.path + ": " + problem.message);
    QVERIFY2(found != problems.end(), qPrintable(said.join(QLatin1Char('\n'))));
    const auto fixes = fixesFor(document, *found);
    QStringList titles;
    for (const Fix& fix : fixes) titles << QString::fromStdString(fix.title());
    QVERIFY2(!fixes.empty() && titles.front().startsWith(title), qPrintable(titles.join(QLatin1String("; "))));
    for (const Fix& fix : fixes) {
        Document mended = document;
        QVERIFY2(fix.apply(mended), fix.title().c_str());
        QVERIFY2(!isListed(mended, *found), fix.title().c_str());
    }
}

/// All problems of a graph in which much is wrong, one after the other, by the first fix of each: at the end nothing is left.
void TestFixes::everyFixOfferedMends() {
    Document document = chain();
    must(removeWire(document, "", {{"up", "out"}, {"norm", "x"}}));
    cell(document, "down").params["in_channels"] = std::int64_t{32};
    cell(document, "embed").params["vocab_size"] = std::string("vocabulary");
    for (int step = 0; step < 12 && !expand(document).ok(); ++step) {
        bool isDone = false;
        for (const Problem& problem : expand(document).problems) {
            const auto fixes = fixesFor(document, problem);
            if (fixes.empty()) continue;
            QVERIFY(fixes.front().apply(document));
            QVERIFY2(!isListed(document, problem), problem.message.c_str());
            isDone = true;
            break;
        }
        QVERIFY(isDone);
    }
    QVERIFY2(expand(document).problems.empty(), expand(document).problems.empty() ? "" : expand(document).problems[0].message.c_str());
}

void TestFixes::aWholeDocumentHasNothingToMend() {
    QVERIFY(fixesFor(chain(), {Problem::Severity::Error, "norm", "something else", "", ""}).size() < kMostFixes); // no such problem: nothing to confirm
    QVERIFY(fixesFor(chain(), {Problem::Severity::Error, "no.such.cell", "x", "", ""}).empty());
    QVERIFY(fixesFor(chain(), {Problem::Severity::Error, "Nowhere/x", "x", "", ""}).empty());
}

/// A Dense alone on a canvas: nothing says how wide it should be.
void TestFixes::whatIsNotKnownIsNotGuessed() {
    Document document;
    document.main.name = "empty";
    must(addCell(document, "", "Dense"));
    for (const Problem& problem : expand(document).problems)
        if (isStillMissing(problem)) QVERIFY2(fixesFor(document, problem).empty(), problem.message.c_str());
}

void TestFixes::problemsInsideOfCompositesAreMendedThere() {
    Document document = *families::openModel("baichuan-tiny");
    Graph& mlp = document.composites.at("MLP");
    const auto wire = std::find_if(mlp.wires.begin(), mlp.wires.end(), [](const Wire& one) { return one.to.cell == "down_proj"; });
    QVERIFY(wire != mlp.wires.end());
    const Wire taken = *wire;
    mlp.wires.erase(wire);
    const auto problems = expand(document).problems;
    const auto found = std::find_if(problems.begin(), problems.end(), [](const Problem& problem) { return isStillMissing(problem); });
    QVERIFY(found != problems.end());
    QCOMPARE(found->path, std::string("layers.0.mlp.down_proj"));
    const auto fixes = fixesFor(document, *found);
    QVERIFY(!fixes.empty());
    QVERIFY(fixes.front().apply(document));
    QVERIFY(expand(document).ok());
    const auto& after = document.composites.at("MLP").wires;
    QVERIFY(std::find(after.begin(), after.end(), taken) != after.end());
}

/// A pasted block brings a width of its own: the cell that uses it gets the right one, the block keeps its.
void TestFixes::aCompositeIsToldTheWidthThatComesIn() {
    Document document = chain();
    Graph block;
    block.name = "Block";
    block.hyper = {{"d_model", std::int64_t{512}, ""}};
    block.inputs = {{"x", {}, "float"}};
    block.outputs = {{"out", {}, "float"}};
    block.cells = {{"dense", "Dense", {{"in_channels", std::string("d_model")}, {"out_channels", std::string("d_model")}}, "", "", {}}};
    block.wires = {{{"", "x"}, {"dense", "x"}}, {{"dense", "out"}, {"", "out"}}};
    document.composites["Block"] = block;
    must(addCell(document, "", "Block"));
    must(insertOnWire(document, "", {{"embed", "out"}, {"up", "x"}}, "block", "x", "out"));
    const Expansion broken = expand(document);
    QCOMPARE(broken.problems.size(), std::size_t(1));
    QCOMPARE(broken.problems.front().path, std::string("block.dense"));
    const auto fixes = fixesFor(document, broken.problems.front());
    QVERIFY(!fixes.empty());
    QCOMPARE(fixes.front().title(), std::string("Set d_model to hidden"));
    must(fixes.front().apply(document));
    QVERIFY(expand(document).ok());
    QCOMPARE(std::get<std::int64_t>(document.composites.at("Block").hyper[0].value), std::int64_t{512});
}

/// The problem arises by a recipe's override alone, and the fix must hold under it.
void TestFixes::overridesCount() {
    Document document = chain();
    document.main.hyper.push_back({"heads", std::int64_t{8}, ""});
    withAttention(document, std::string("heads"), std::int64_t{8}, std::int64_t{8});
    QVERIFY(expand(document).ok());
    const std::map<std::string, ParamValue> overrides{{"heads", std::int64_t{6}}};
    const Expansion broken = expand(document, overrides);
    QVERIFY(!broken.ok());
    for (const Fix& fix : fixesFor(document, broken.problems.front(), overrides)) {
        Document mended = document;
        QVERIFY(fix.apply(mended));
        for (const Problem& problem : expand(mended, overrides).problems) QVERIFY(problem.message != broken.problems.front().message);
    }
}

void TestFixes::fixesOfALargeModelAreFoundToo() {
    Document document = *families::openModel("baichuan-13b");
    for (HyperParameter& hyper : document.main.hyper)
        if (hyper.name == "heads") hyper.value = std::int64_t{39};
    const Expansion broken = expand(document);
    QVERIFY(!broken.ok());
    const auto fixes = fixesFor(document, broken.problems.front());
    QVERIFY(!fixes.empty());
    QCOMPARE(fixes.front().title(), std::string("Set heads to 40")); // 5120 / 40
}

QTEST_GUILESS_MAIN(TestFixes)
#include "tst_fixes.moc"
