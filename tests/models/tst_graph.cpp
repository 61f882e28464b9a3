// Graph documents: JSON form, validation with paths, expansion of composites and repeats, shapes.
#include "models/base/files.h"
#include "models/catalog/catalog.h"
#include "models/families/families.h"
#include "models/graph/expand.h"
#include "models/graph/json.h"
#include "tests/slow_builds.h"

#include <QtTest>

#include <set>

using namespace celloom;
using namespace celloom::graph;

namespace {

Endpoint end(const std::string& path) {
    const auto dot = path.find('.');
    return dot == std::string::npos ? Endpoint{"", path} : Endpoint{path.substr(0, dot), path.substr(dot + 1)};
}

/// x [B, T, hidden] -> Dense up -> SiLU act -> Dense down -> out, hidden 8, inner hidden * 2
Document small() {
    Document out;
    Graph& g = out.main;
    g.name = "small";
    g.hyper = {{"hidden", std::int64_t(8), ""}, {"inner", std::string("hidden * 2"), ""}};
    g.inputs = {{"x", {"B", "T", "hidden"}}};
    g.outputs = {{"out", {"B", "T", "hidden"}}};
    g.cells = {{"up", "Dense", {{"in_channels", std::string("hidden")}, {"out_channels", std::string("inner")}}, "", "", {}},
               {"act", "SiLU", {}, "", "", {}},
               {"down", "Dense", {{"in_channels", std::string("inner")}, {"out_channels", std::string("hidden")}}, "", "", {}}};
    for (const auto& [from, to] :
         {std::pair("x", "up.x"), std::pair("up.out", "act.x"), std::pair("act.out", "down.x"), std::pair("down.out", "out")})
        g.wires.push_back({end(from), end(to)});
    return out;
}

/// The same as a composite Block, in a main graph that repeats it.
Document nested(const std::string& repeat) {
    Document out;
    out.composites["Block"] = small().main;
    Graph& g = out.main;
    g.hyper = {{"width", std::int64_t(8), ""}, {"depth", std::int64_t(3), ""}};
    g.inputs = {{"x", {"B", "T", "width"}}};
    g.outputs = {{"y", {"B", "T", "width"}}};
    g.cells = {{"blocks", "Block", {{"hidden", std::string("width")}}, repeat, "", {}}};
    g.wires = {{end("x"), end("blocks.x")}, {end("blocks.out"), end("y")}};
    return out;
}

QStringList problemsOf(const Document& document, const std::map<std::string, ParamValue>& overrides = {}) {
    QStringList out;
    for (const Problem& p : expand(document, overrides).problems)
        out << QString::fromStdString(p.path + " | " + p.message + " | " + p.hint + " | " + p.parameter +
                                      (p.severity == Problem::Severity::Warning ? " | warning" : ""));
    return out;
}

Cell& cell(Graph& graph, const char* name) {
    for (Cell& c : graph.cells)
        if (c.name == name) return c;
    qFatal("no such cell");
}

QString oneProblem(const Document& document) {
    const QStringList all = problemsOf(document);
    return all.size() == 1 ? all.front() : "expected one problem, got:\n" + all.join("\n");
}

#define VERIFY_SAYS(text, ...)                                                                                                             \
    do {                                                                                                                                   \
        const QString whole = text;                                                                                                        \
        for (const QString& part : QStringList{__VA_ARGS__}) QVERIFY2(whole.contains(part), qPrintable(whole + "\nlacks: " + part));       \
    } while (false)

} // namespace

class TestGraph : public QObject {
    Q_OBJECT

private Q_SLOTS:
    // ---- expansion ----

    void flagsAreHandedDownByTheirName() {
        Document document = nested("2");
        document.main.hyper.push_back({"biased", true, ""});
        cell(document.main, "blocks").params["has_bias"] = std::string("biased");
        document.composites["Block"].hyper.push_back({"has_bias", false, ""});
        cell(document.composites["Block"], "up").params["has_bias"] = std::string("has_bias");
        QCOMPARE(expand(document).model.parameterCount(), std::int64_t(2 * (8 * 16 + 16 + 16 * 8)));
        QCOMPARE(expand(document, {{"biased", false}}).model.parameterCount(), std::int64_t(2 * (8 * 16 + 16 * 8)));
        cell(document.composites["Block"], "up").params["has_bias"] = std::string("hidden");
        QVERIFY2(oneProblem(document).contains("expected true or false"), qPrintable(oneProblem(document)));
    }

    void aPlainGraphExpandsInRunningOrder() {
        Document document = small();
        std::reverse(document.main.cells.begin(), document.main.cells.end()); // the order of the document does not matter
        const auto expansion = expand(document);
        QVERIFY2(expansion.problems.empty(), qPrintable(problemsOf(document).join("\n")));
        const auto& model = expansion.model;
        QCOMPARE(model.cells.size(), std::size_t(3));
        QCOMPARE(model.cells[0].path, std::string("up"));
        QCOMPARE(model.cells[2].path, std::string("down"));
        QCOMPARE(model.parameterCount(), 2 * 8 * 16);
        QCOMPARE(toString(model.values[static_cast<std::size_t>(model.cells[1].outputs[0])].shape), std::string("[B, T, 16]"));
        QCOMPARE(model.cells[1].inputs[0], model.cells[0].outputs[0]);
        QCOMPARE(model.outputs[0].value, model.cells[2].outputs[0]);
        QCOMPARE(model.values[static_cast<std::size_t>(model.outputs[0].value)].producer, std::string("down.out"));
    }

    void repeatsFollowEachOther() {
        const auto expansion = expand(nested("depth"));
        QVERIFY(expansion.ok());
        const auto& model = expansion.model;
        QCOMPARE(model.cells.size(), std::size_t(9));
        QCOMPARE(model.cells[0].path, std::string("blocks.0.up"));
        QCOMPARE(model.cells[8].path, std::string("blocks.2.down"));
        QCOMPARE(model.cells[3].inputs[0], model.cells[2].outputs[0]);
        QCOMPARE(expand(nested("depth"), {{"depth", std::int64_t(5)}}).model.cells.size(), std::size_t(15));
        QCOMPARE(expand(nested("")).model.cells[0].path, std::string("blocks.up")); // no repeat: no number
        QCOMPARE(expand(nested("1")).model.cells[0].path, std::string("blocks.0.up"));
    }

    void oneNumberRescalesTheModel() {
        const auto model = expand(nested("2"), {{"width", std::int64_t(16)}}).model;
        QCOMPARE(model.parameterCount(), 2 * 2 * 16 * 32);
    }

    void aRepeatedPrimitiveWorksToo() {
        Document document = small();
        cell(document.main, "act").repeat = "3";
        const auto expansion = expand(document);
        QVERIFY(expansion.ok());
        QCOMPARE(expansion.model.cells[2].path, std::string("act.1"));
    }

    void symbolsOfACompositeStandForWhatIsWiredIn() {
        Document document = nested("");
        document.main.inputs[0].shape = {"N", "2 * S", "width"};
        document.main.inputs.push_back({"s", {"S"}, "int64"}); // S by itself, so that it is known
        document.main.outputs[0].shape = {"N", "2 * S", "width"};
        const auto expansion = expand(document);
        QVERIFY2(expansion.ok(), qPrintable(problemsOf(document).join("\n")));
        QCOMPARE(toString(expansion.model.values[static_cast<std::size_t>(expansion.model.outputs[0].value)].shape),
                 std::string("[N, 2 * S, 8]"));
    }

    void splitAndConcatHaveAsManyPortsAsTheySay() {
        Document document;
        Graph& g = document.main;
        g.hyper = {{"h", std::int64_t(4), ""}};
        g.inputs = {{"x", {"B", "3 * h"}}};
        g.outputs = {{"out", {"B", "3 * h"}}};
        g.cells = {{"cut", "Split", {{"sizes", std::string("h, max(h, 1), roundUp(h, 4)")}}, "", "", {}},
                   {"join", "Concat", {{"inputs", std::int64_t(3)}}, "", "", {}}};
        for (const auto& [from, to] : {std::pair("x", "cut.x"), std::pair("cut.out0", "join.in0"), std::pair("cut.out1", "join.in2"),
                                       std::pair("cut.out2", "join.in1"), std::pair("join.out", "out")})
            g.wires.push_back({end(from), end(to)});
        QVERIFY2(expand(document).ok(), qPrintable(problemsOf(document).join("\n")));
        cell(g, "cut").params["sizes"] = std::string("h, h");
        VERIFY_SAYS(oneProblem(document), "cut |", "[B, 12]", "4,4", "8", "sizes");
    }

    // ---- problems: path, both shapes, the parameter to change ----

    void shapesThatDifferNamePathShapesAndParameter() {
        Document document = nested("depth");
        cell(document.composites["Block"], "down").params["in_channels"] = std::string("inner + 1");
        VERIFY_SAYS(oneProblem(document), "blocks.0.down |", "[B, T, 16]", "in_channels = 17", "[..., 17]", "Set in_channels to 16",
                    "| in_channels");
    }

    void anExpressionThatIsNotWholeNamesPathAndValue() {
        Document document = nested("depth");
        cell(document.composites["Block"], "up").params["out_channels"] = std::string("hidden / 3");
        VERIFY_SAYS(oneProblem(document), "blocks.0.up |", "hidden / 3", "2.6666", "hidden = 8", "whole number", "| out_channels");
    }

    void aHyperParameterThatIsNotWholeIsTracedToItsNumbers() {
        Document document = nested("depth");
        document.composites["Block"].hyper.push_back({"third", std::string("hidden / 3"), ""});
        cell(document.composites["Block"], "up").params["out_channels"] = std::string("third");
        VERIFY_SAYS(oneProblem(document), "blocks.0.up |", "third = 2.6666", "third is \"hidden / 3\" (hidden = 8)", "| out_channels");
    }

    void aCompositesDeclaredShapeIsHeldTo() {
        Document document = nested("");
        document.main.inputs[0].shape[2] = "width + 2";
        VERIFY_SAYS(oneProblem(document), "blocks |", "[B, T, 10]", "[B, T, hidden]", "[B, T, 8]", "| hidden");
        document = nested("");
        document.composites["Block"].outputs[0].shape[2] = "inner";
        VERIFY_SAYS(oneProblem(document), "blocks |", "[B, T, 8]", "[B, T, inner]", "[B, T, 16]", "| inner");
        document = nested("");
        document.main.inputs[0].shape = {"B", "width"};
        VERIFY_SAYS(oneProblem(document), "blocks |", "[B, 8]");
    }

    void wires_data() {
        QTest::addColumn<QStringList>("drop");
        QTest::addColumn<QStringList>("add");
        QTest::addColumn<QString>("path");
        QTest::addColumn<QString>("said");
        QTest::newRow("missing") << QStringList{"up.out", "act.x"} << QStringList{} << "act"
                                 << "The input x has no wire";
        QTest::newRow("to nowhere") << QStringList{} << QStringList{"up.out", "dwn.x"} << ""
                                    << "Did you mean down";
        QTest::newRow("from nowhere") << QStringList{"up.out", "act.x"} << QStringList{"upp.out", "act.x"} << ""
                                      << "Did you mean up";
        QTest::newRow("to no port") << QStringList{} << QStringList{"up.out", "down.y"} << "down"
                                    << "\"y\"";
        QTest::newRow("from no port") << QStringList{"up.out", "act.x"} << QStringList{"up.output", "act.x"} << "up"
                                      << "Outputs are out";
        QTest::newRow("twice") << QStringList{} << QStringList{"x", "act.x"} << "act"
                               << "Two wires";
        QTest::newRow("no such input") << QStringList{"x", "up.x"} << QStringList{"xs", "up.x"} << ""
                                       << "Did you mean x";
        QTest::newRow("output unwired") << QStringList{"down.out", "out"} << QStringList{} << ""
                                        << "output out has no wire";
    }
    void wires() {
        QFETCH(QStringList, drop);
        QFETCH(QStringList, add);
        QFETCH(QString, path);
        QFETCH(QString, said);
        Document document = small();
        auto& all = document.main.wires;
        if (!drop.isEmpty()) {
            const Wire gone{end(drop[0].toStdString()), end(drop[1].toStdString())};
            all.erase(std::remove(all.begin(), all.end(), gone), all.end());
        }
        if (!add.isEmpty()) all.push_back({end(add[0].toStdString()), end(add[1].toStdString())});
        QVERIFY(!expand(document).ok());
        const QStringList problems = problemsOf(document);
        const auto wanted = [&](const QString& p) { return p.startsWith(path + " | ") && p.contains(said) && !p.endsWith("warning"); };
        QVERIFY2(std::any_of(problems.begin(), problems.end(), wanted), qPrintable(problems.join("\n")));
    }

    void circlesAreNamed() {
        Document document = small();
        document.main.wires[0].from = end("down.out"); // x feeds nothing now; up <- down <- act <- up
        QVERIFY(!expand(document).ok());
        VERIFY_SAYS(problemsOf(document).join("\n"), "circle", "up", "act", "down", "->");
        document = small();
        document.main.wires[1].from = end("act.out");
        VERIFY_SAYS(problemsOf(document).join("\n"), "act -> act");
    }

    void compositesThatContainEachOtherAreRefused() {
        Document document = nested("");
        document.composites["Other"] = document.main;
        document.composites["Block"].cells[1].type = "Other";
        VERIFY_SAYS(oneProblem(document), "Block -> Other -> Block");
        document.composites["Block"].cells[1].type = "Block";
        VERIFY_SAYS(problemsOf(document).join("\n"), "Block -> Block");
    }

    void typesThatDifferAreRefused() {
        Document document = small();
        document.main.inputs[0].dtype = "int64";
        VERIFY_SAYS(oneProblem(document), "up |", "takes float", "x gives int64", "Embedding");
        document = small();
        document.main.outputs[0].dtype = "bool";
        VERIFY_SAYS(oneProblem(document), "declared bool", "down.out");
    }

    void parameters_data() {
        QTest::addColumn<QString>("name");
        QTest::addColumn<QVariant>("value");
        QTest::addColumn<QString>("said");
        QTest::newRow("unknown") << "in_chanels" << QVariant(8) << "Did you mean in_channels";
        QTest::newRow("too small") << "out_channels" << QVariant(0) << "is 0, must be 1 to";
        QTest::newRow("expression too small") << "out_channels" << QVariant("hidden - 8") << "is 0, must be 1 to";
        QTest::newRow("text for a flag") << "has_bias" << QVariant("yes") << "expected true or false";
        QTest::newRow("real for a whole") << "out_channels" << QVariant(1.5) << "expected a whole number";
        QTest::newRow("flag for a whole") << "out_channels" << QVariant(true) << "expected a whole number";
        QTest::newRow("unknown name") << "out_channels" << QVariant("hiden") << "Did you mean hidden";
    }
    void parameters() {
        QFETCH(QString, name);
        QFETCH(QVariant, value);
        QFETCH(QString, said);
        Document document = small();
        ParamValue given;
        if (value.typeId() == QMetaType::Bool)
            given = value.toBool();
        else if (value.typeId() == QMetaType::Int)
            given = std::int64_t(value.toInt());
        else if (value.typeId() == QMetaType::Double)
            given = value.toDouble();
        else
            given = value.toString().toStdString();
        cell(document.main, "up").params[name.toStdString()] = given;
        VERIFY_SAYS(oneProblem(document), "up |", said, "| " + name);
    }

    void missingParametersSayWhatTheyAre() {
        Document document = small();
        cell(document.main, "up").params.erase("out_channels");
        VERIFY_SAYS(oneProblem(document), "up |", "needs the parameter out_channels", "Size of the last dimension of out");
    }

    void choicesAreListed() {
        Document document = small();
        cell(document.main, "act").type = "GELU";
        cell(document.main, "act").params["approximate"] = std::string("erf");
        VERIFY_SAYS(oneProblem(document), "act |", "\"erf\"", "none, tanh");
    }

    void unknownTypesSuggestNearOnes() {
        Document document = small();
        cell(document.main, "act").type = "Silu2";
        VERIFY_SAYS(oneProblem(document), "act |", "Silu2", "SiLU");
    }

    void namesAreChecked() {
        for (const char* name : {"", "a.b", "a b", "a/b", "{0..3}", "*"}) {
            Document document = small();
            document.main.cells.push_back({name, "SiLU", {}, "", "", {}});
            QVERIFY2(problemsOf(document).join("\n").contains("cannot be used"), name);
        }
        Document twice = small();
        twice.main.cells.push_back(twice.main.cells[0]);
        VERIFY_SAYS(problemsOf(twice).join("\n"), "up | Two cells have this name");
        Document shadow = nested("");
        shadow.composites["Dense"] = shadow.composites["Block"];
        VERIFY_SAYS(problemsOf(shadow).join("\n"), "Dense/", "Rename it");
        Document chinese = small();
        cell(chinese.main, "act").name = "激活";
        chinese.main.wires[1].to.cell = chinese.main.wires[2].from.cell = "激活";
        QVERIFY(expand(chinese).ok());
    }

    void hyperParametersSeeOnlyThoseBeforeThem() {
        Document document = small();
        std::swap(document.main.hyper[0], document.main.hyper[1]);
        VERIFY_SAYS(oneProblem(document), "unknown name \"hidden\"", "| inner");
        Document foreign = nested("");
        foreign.composites["Block"].cells[0].params["out_channels"] = std::string("width"); // the main graph's, not the composite's
        VERIFY_SAYS(problemsOf(foreign).join("\n"), "blocks.up |", "unknown name \"width\"");
        Document unknown = nested("");
        cell(unknown.main, "blocks").params["hiden"] = std::int64_t(8);
        VERIFY_SAYS(problemsOf(unknown).join("\n"), "blocks |", "no hyper-parameter \"hiden\"", "Did you mean hidden");
    }

    void repeatCountsAreChecked() {
        VERIFY_SAYS(oneProblem(nested("0")), "blocks |", "repeat is 0");
        VERIFY_SAYS(oneProblem(nested("depth / 2")), "blocks |", "1.5", "depth = 3");
        VERIFY_SAYS(oneProblem(nested("1000000")), "blocks |", "repeat is 1000000");
    }

    void aCellThatCannotFollowItselfIsNotRepeated() {
        Document document;
        Graph& g = document.main;
        g.inputs = {{"x", {"B", "8"}}};
        g.outputs = {{"a", {}}, {"b", {}}};
        g.cells = {{"cut", "Split", {{"sizes", std::string("4, 4")}}, "2", "", {}}};
        g.wires = {{end("x"), end("cut.x")}, {end("cut.out0"), end("a")}, {end("cut.out1"), end("b")}};
        VERIFY_SAYS(problemsOf(document).join("\n"), "cut |", "2 outputs but takes 1 inputs", "| repeat");
    }

    void oneMistakeIsReportedOnce() {
        Document document = nested("depth");
        cell(document.composites["Block"], "up").type = "Nothing";
        QCOMPARE(problemsOf(document).size(), 1); // not in each of three layers, nor by the cells behind it
    }

    void unusedCompositesAndCellsAreWarnings() {
        Document document = small();
        document.composites["Spare"] = small().main;
        cell(document.composites["Spare"], "down").params["in_channels"] = std::int64_t(3);
        VERIFY_SAYS(oneProblem(document), "Spare/down |", "in_channels = 3", "warning");
        QVERIFY(expand(document).ok());
        document = small();
        document.main.cells.push_back({"idle", "SiLU", {}, "", "", {}});
        document.main.wires.push_back({end("x"), end("idle.x")});
        VERIFY_SAYS(oneProblem(document), "idle |", "Nothing uses", "warning");
    }

    void noNumberOfWarningsHidesAnError() {
        Document document = small();
        for (int i = 0; i < 500; ++i) {
            document.main.cells.push_back({"idle" + std::to_string(i), "SiLU", {}, "", "", {}});
            document.main.wires.push_back({end("x"), end("idle" + std::to_string(i) + ".x")});
        }
        QVERIFY(expand(document).ok());
        cell(document.main, "down").params["in_channels"] = std::int64_t(3);
        const auto expansion = expand(document);
        QVERIFY(!expansion.ok() && expansion.problems.size() <= 201);
        VERIFY_SAYS(QString::fromStdString(expansion.firstError().text()), "down, in_channels", "in_channels = 3");
    }

    void impossibleAttentionNamesTheParameter() {
        auto document = families::buildPreset("baichuan-tiny-gqa");
        QVERIFY(document);
        VERIFY_SAYS(problemsOf(*document, {{"kv_heads", std::int64_t(3)}}).join("\n"), "layers.0.self_attn.attention |", "num_heads = 4",
                    "num_kv_heads = 3", "| num_kv_heads");
        VERIFY_SAYS(problemsOf(*document, {{"hidden", std::int64_t(252)}}).join("\n"), "layers.0.self_attn.rotary_q |", "odd",
                    "| head_dim");
        VERIFY_SAYS(problemsOf(*document, {{"pad_id", std::int64_t(5000)}}).join("\n"), "embed_tokens |", "padding_idx", "4096");
    }

    // ---- bounds ----

    void explosionsAreStopped() {
        CELLOOM_LEAVE_OUT_WHERE_SLOW("200000 cells are made before it stops");
        Document document = nested("");
        for (int level = 0; level < 28; ++level) { // each level holds the one below 4 times
            Graph g = document.main;
            g.cells = {{"again", level == 0 ? "Block" : "L" + std::to_string(level - 1), {}, "4", "", {}}};
            g.hyper.clear();
            g.inputs[0].shape = g.outputs[0].shape = {"B", "T", "8"};
            g.wires = {{end("x"), end("again.x")}, {end("again." + std::string(level == 0 ? "out" : "y")), end("y")}};
            document.composites["L" + std::to_string(level)] = g;
        }
        document.main.cells = {{"blocks", "L27", {}, "", "", {}}};
        document.main.wires[1].from.port = "y";
        const Expansion expansion = expand(document);
        QVERIFY(!expansion.ok());
        VERIFY_SAYS(QString::fromStdString(expansion.firstError().text()), "more than 200000 cells");
    }

    void tooManyParametersAreStopped() {
        Document document = small();
        document.main.hyper[0].value = std::int64_t(500000000);
        VERIFY_SAYS(problemsOf(document).join("\n"), "up |", "more than 100000000000000000 parameters");
        document.main.hyper[0].value = std::int64_t(5000000000);
        VERIFY_SAYS(problemsOf(document).join("\n"), "up |", "in_channels is 5000000000");
    }

    void deepNestingIsStopped() {
        Document document = nested("");
        for (int level = 0; level < 40; ++level) {
            Graph g = small().main;
            g.cells = {{"inner", level == 0 ? "Block" : "D" + std::to_string(level - 1), {}, "", "", {}}};
            g.wires = {{end("x"), end("inner.x")}, {end("inner.out"), end("out")}};
            document.composites["D" + std::to_string(level)] = g;
        }
        document.main.cells[0].type = "D39";
        VERIFY_SAYS(problemsOf(document).join("\n"), "deeper than 32");
    }

    // ---- JSON ----

    void jsonComesBackTheSame() {
        Document document = nested("depth");
        document.family = "mine";
        document.main.note = "说明 “引号” \"quotes\"\n";
        cell(document.main, "blocks").position = Position{1.5, -2};
        cell(document.main, "blocks").note = "three of them";
        document.main.hyper.push_back({"rate", 0.1, "a real"});
        document.main.hyper.push_back({"flag", true, ""});
        const std::string text = toJson(document);
        auto read = fromJson(text, "a.cells.json");
        QVERIFY2(read, qPrintable(read ? QString() : QString::fromStdString(read.error().text())));
        QCOMPARE(QString::fromStdString(toJson(*read)), QString::fromStdString(text));
        QVERIFY(QString::fromStdString(text).contains("\"blocks.out -> y\""));
    }

    void jsonErrorsNameThePlace_data() {
        QTest::addColumn<QString>("json");
        QTest::addColumn<QString>("said");
        const QString head = R"({"format": "celloom-cells", "schema": 1, )";
        QTest::newRow("not JSON") << "{"
                                  << "line 1";
        for (const auto& [json, said] : {std::pair("{}", "no Cell graph document but an empty object"), std::pair("[]", "no Cell graph document but a list"), std::pair("3", "but the number 3"),
                                         std::pair(R"({"format": "other"})", "its format is the text \"other\""), std::pair(R"({"model_type": "llama"})", "reads like a config.json"),
                                         std::pair(R"({"weight_map": {}})", "reads like an index of weights"), std::pair(R"({"model": {}, "train": {}})", "reads like a recipe"),
                                         std::pair(R"({"a": 1, "b": 2})", "but an object with \"a\""), std::pair(R"({"a":1,"b":2,"c":3,"d":4,"e":5})", " … and 1 more")})
            QTest::newRow(json) << json << said;
        QTest::newRow("no schema") << R"({"format": "celloom-cells", "main": {}})"
                                   << "schema";
        QTest::newRow("newer schema") << R"({"format": "celloom-cells", "schema": 99, "main": {}})"
                                      << "newer Celloom";
        QTest::newRow("huge schema") << R"({"format": "celloom-cells", "schema": 18446744073709551615, "main": {}})"
                                     << "newer Celloom";
        QTest::newRow("schema 0") << R"({"format": "celloom-cells", "schema": 0, "main": {}})"
                                  << "1 or more";
        QTest::newRow("no main") << R"({"format": "celloom-cells", "schema": 1})"
                                 << "main";
        QTest::newRow("unknown key") << head + R"("main": {"cels": []}})"
                                     << "main: has the unknown key \"cels\". Did you mean cells?";
        QTest::newRow("cell without type") << head + R"("main": {"cells": [{"name": "a"}]}})"
                                           << "main.cells[0]: lacks \"type\"";
        QTest::newRow("param is a list") << head + R"("main": {"cells": [{"name": "a", "type": "SiLU", "params": {"p": [1]}}]}})"
                                         << "main.cells[0].params.p";
        QTest::newRow("param too large")
            << head + R"("main": {"cells": [{"name": "a", "type": "SiLU", "params": {"p": 18446744073709551615}}]}})"
            << "64 bits";
        QTest::newRow("wire") << head + R"("main": {"wires": ["a b"]}})"
                              << "main.wires[0]";
        QTest::newRow("wire of numbers") << head + R"("main": {"wires": [3]}})"
                                         << "main.wires[0]";
        QTest::newRow("wire with dots") << head + R"("main": {"wires": ["a.b.c -> d.x"]}})"
                                        << "main.wires[0]";
        QTest::newRow("composite") << head + R"("main": {}, "composites": {"A": {"inputs": [{"name": 3}]}}})"
                                   << "composites.A.inputs[0].name";
        QTest::newRow("shape") << head + R"("main": {"inputs": [{"name": "x", "shape": [1.5]}]}})"
                               << "main.inputs[0].shape[0]";
        QTest::newRow("key twice") << head + R"("main": {}, "main": {}})"
                                   << "twice";
        QTest::newRow("position") << head + R"("main": {"cells": [{"name": "a", "type": "b", "position": {"x": 1}}]}})"
                                  << "position";
    }
    void jsonErrorsNameThePlace() {
        QFETCH(QString, json);
        QFETCH(QString, said);
        auto read = fromJson(json.toStdString(), "a.cells.json");
        QVERIFY(!read);
        VERIFY_SAYS(QString::fromStdString(read.error().text()), "a.cells.json", said);
    }

    void theExampleInTheDocumentationRuns() {
        const auto page = readFile(CELLOOM_SOURCE "/docs/file-formats.md");
        QVERIFY(page);
        const auto begin = page->find("```json\n") + 8, finish = page->find("```", begin);
        auto document = fromJson(page->substr(begin, finish - begin), "docs/file-formats.md");
        QVERIFY2(document, qPrintable(document ? QString() : QString::fromStdString(document.error().text())));
        const auto expansion = expand(*document);
        QVERIFY2(expansion.problems.empty(), qPrintable(problemsOf(*document).join("\n")));
        QCOMPARE(expansion.model.parameterCount(), 2 * 2 * 256 * 704 + 256); // inner = 256 · 8 / 3 = 682.7, up to 704
    }

    // ---- the catalogue ----

    void everyCellTypeIsComplete() {
        std::set<std::string> names;
        const std::set<std::string> categories{"Dense and embedding", "Attention", "Normalisation", "Activation",
                                               "Structure", "Arithmetic", "Image", "Routing", "Output", "Custom"};
        for (const catalog::CellType& type : catalog::all()) {
            const char* name = type.name.c_str();
            QVERIFY2(names.insert(type.name).second, name);
            QVERIFY2(categories.count(type.category), name);
            QVERIFY2(!type.summary.empty() && !type.summaryZh.empty() && !type.inputs.empty() && !type.outputs.empty() && type.shapeRule &&
                         type.cost,
                     name);
            for (const catalog::ParamDef& param : type.params) QVERIFY2(!param.help.empty() && !param.helpZh.empty(), name);
            QCOMPARE(catalog::find(type.name), &type);
        }
        for (const char* needed : {"Dense", "Embedding", "RMSNorm", "LayerNorm", "Dropout", "SiLU", "GELU", "ReLU", "Tanh", "Sigmoid",
                                   "Softmax", "Add", "Subtract", "Multiply", "Divide", "MatMul", "Expression", "ReduceSum", "ReduceMean", "ReduceMax", "Residual", "Split",
                                   "Concat", "Reshape", "Transpose", "Flatten", "Slice", "Parameter", "Conv2d", "BatchNorm2d", "MaxPool2d", "AvgPool2d", "Branch",
                                   "MixtureOfExperts", "RotaryEmbedding", "Attention", "LMHead", "Script", "Plugin"})
            QVERIFY2(names.count(needed), needed);
    }
};

QTEST_GUILESS_MAIN(TestGraph)
#include "tst_graph.moc"
