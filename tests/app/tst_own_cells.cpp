// Cells of the user's own in whole runs. Typed ones: they train, go on after a kill, and are refused with their place before a run begins. Plugins: a library
// built out of the tree does the same, and nothing of a file that is not trusted, has changed or was built for another engine is ever run.
#include "../engine/train_helper.h"
#include "engine/checkpoint/safetensors.h"
#include "models/graph/json.h"
#include "run_helper.h"
#include "verb_helper.h"

using namespace celloom;
using namespace celloom::test;
using nlohmann::json;

namespace {

/// A cell whose library leaves a file behind as soon as it is loaded, and so tells on whoever loads it.
const char* const kTrap = R"(#include <celloom/cell.h>
#include <cstdio>
#include <cstdlib>
namespace {
struct Trap {
    Trap() {
        if (const char* path = std::getenv("CELLOOM_TRAP"))
            if (std::FILE* file = std::fopen(path, "w")) std::fclose(file);
    }
} trap;
struct Same : celloom::plugin::Cell {
    using Cell::Cell;
    std::vector<at::Tensor> construct(const std::vector<at::Tensor>& inputs, const celloom::plugin::Context&) override { return {inputs[0]}; }
};
} // namespace
CELLOOM_PLUGIN(CELLOOM_CELL("Same", Same))
)";

/// features [B,2] -> Dense -> the cell -> Dense -> logits [B,1].
graph::Document documentOf(const std::map<std::string, graph::ParamValue>& params, std::int64_t in = 16, const char* type = "Plugin") {
    graph::Document document;
    document.main.name = "gated";
    document.main.inputs = {{"features", {"B", "2"}}};
    document.main.outputs = {{"logits", {"B", "1"}}};
    document.main.cells = {{"first", "Dense", {{"in_channels", std::int64_t(2)}, {"out_channels", in}, {"has_bias", true}}, {}, {}, {}},
                           {"gate", type, params, {}, {}, {}},
                           {"last", "Dense", {{"in_channels", std::int64_t(8)}, {"out_channels", std::int64_t(1)}, {"has_bias", true}}, {}, {}, {}}};
    document.main.wires = {{{"", "features"}, {"first", "x"}}, {{"first", "out"}, {"gate", "x"}}, {{"gate", "out"}, {"last", "x"}}, {{"last", "out"}, {"", "logits"}}};
    return document;
}

std::map<std::string, graph::ParamValue> gated(const std::string& library = "gated.so", const std::string& settings = {}) {
    return {{"library", library},     {"cell", std::string("GatedActivation")}, {"inputs", std::string("x: [B, 2 * C]")}, {"outputs", std::string("out: [B, C]")},
            {"weights", std::string("scale: [8]")}, {"settings", settings}};
}

std::map<std::string, graph::ParamValue> same(const std::string& library) {
    return {{"library", library}, {"cell", std::string("Same")}, {"inputs", std::string("x: [B, C]")}, {"outputs", std::string("out: [B, C]")}};
}

/// The same as the plugin's, typed.
const char* const kTyped = R"(def construct(self, x):
    a, b = x.chunk(2, -1)
    return ops.silu(a) * b * self.scale
)";

graph::Document typed(const std::string& code = kTyped) {
    return documentOf({{"inputs", std::string("x: [B, 2 * C]")}, {"outputs", std::string("out: [B, C]")}, {"weights", std::string("scale: [8]")}, {"code", code}}, 16, "Script");
}

bool has(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

} // namespace

class TestOwnCells : public QObject {
    Q_OBJECT
    QTemporaryDir m_folder;
    RunWorkspace m_workspace;

    fs::path path(const std::string& name) const { return fs::path(m_folder.path().toStdString()) / name; }
    fs::path trapped() const { return path("trapped"); }

    void build(const fs::path& source, const fs::path& target) {
        for (const QStringList& arguments :
             {QStringList{"-S", QString::fromStdString(source.string()), "-B", QString::fromStdString(target.string()), "-DCELLOOM_DIR=" CELLOOM_SOURCE, "-DCELLOOM_DEPS_DIR=" CELLOOM_DEPS_DIR},
              QStringList{"--build", QString::fromStdString(target.string())}}) {
            QProcess process;
            process.setProcessChannelMode(QProcess::MergedChannels);
            process.start("cmake", arguments);
            QVERIFY(process.waitForFinished(280000 * CELLOOM_TEST_TIME_FACTOR));
            QVERIFY2(process.exitCode() == 0, process.readAll().constData());
        }
    }

    app::testing::Outcome plugin(const QStringList& arguments) { return app::testing::runEngine(QStringList{"--workspace", QString::fromStdString(m_workspace.path().string()), "plugin"} + arguments); }

    store::RunFolder create(const graph::Document& document, int steps = 20, const json& more = json::object()) {
        static int number = 0;
        const fs::path graph = path("graph-" + std::to_string(++number) + ".cells.json");
        if (auto status = writeFileAtomically(graph, graph::toJson(document)); !status) qFatal("%s", status.error().text().c_str());
        json recipe{{"model", {{"source", graph.string()}, {"init_std", 0.5}}},
                                   {"data", {{"format", "tensors"}, {"train", {path("train.safetensors").string()}}, {"validation", {path("validation.safetensors").string()}}}},
                                   {"loss", {{"type", "MSELoss"}}},
                                   {"optimizer", {{"lr", 0.02}, {"weight_decay", 0}}},
                                   {"schedule", {{"type", "constant"}, {"warmup_steps", 0}, {"warmup_ratio", 0}}},
                                   {"train", {{"batch_size", 32}, {"max_steps", steps}}},
                                   {"evaluate", {{"every_steps", 5}}},
                                   {"checkpoint", {{"every_steps", 7}}},
                                   {"threads", 1}};
        recipe.update(more);
        return m_workspace.create(recipe);
    }
    /// Its messages are what the run says and what it prints.
    ChildEnd run(const graph::Document& document) {
        ChildEnd end = m_workspace.run(create(document, 2));
        end.messages += end.output;
        return end;
    }

private Q_SLOTS:
    void initTestCase() {
        for (const auto& [name, rows, seed] : {std::tuple{"train.safetensors", 512, 1}, {"validation.safetensors", 128, 2}}) {
            const at::Tensor x = engine::drawn({rows, 2}, static_cast<std::uint64_t>(seed));
            if (auto status = engine::writeSafetensors(path(name), {{"features", x}, {"label", x.select(1, 0) * x.select(1, 1)}}); !status) qFatal("%s", status.error().text().c_str());
        }
        qputenv("CELLOOM_TRAP", QByteArray::fromStdString(trapped().string()));
        build(CELLOOM_SOURCE "/docs/examples/plugin", path("gated"));
        fs::create_directories(path("trap-source"));
        QVERIFY(writeFileAtomically(path("trap-source") / "trap.cpp", kTrap));
        QVERIFY(writeFileAtomically(path("trap-source") / "CMakeLists.txt", "cmake_minimum_required(VERSION 3.18)\nproject(trap LANGUAGES CXX)\ninclude(${CELLOOM_DIR}/cmake/CelloomPlugin.cmake)\n"
                                                                            "celloom_plugin(trap trap.cpp)\n"));
        build(path("trap-source"), path("trap"));
    }

    void aTypedCellTrainsAndGoesOnExactly() {
        const auto whole = create(typed()), killed = create(typed());
        const ChildEnd end = m_workspace.run(whole);
        QVERIFY2(end.code == 0, qPrintable(end.messages));
        const auto rows = exactRows(whole);
        QVERIFY(rows.at({"train/loss", 20}) < rows.at({"train/loss", 1}));
        QVERIFY(m_workspace.run(killed, QStringLiteral("step:11")).isKilled);
        QCOMPARE(m_workspace.run(killed).code, 0);
        QVERIFY(exactRows(killed) == rows);
    }

    void aTypedCellLearnsAtO2() {
        const auto folder = create(typed(), 20, {{"precision", {{"amp_level", "O2"}}}});
        const ChildEnd end = m_workspace.run(folder);
        QVERIFY2(end.code == 0, qPrintable(end.messages));
        const auto rows = exactRows(folder);
        QVERIFY(rows.at({"train/loss", 20}) < rows.at({"train/loss", 1}));
    }

    void aTypedCellThatCannotRunIsRefusedAtOnce() {
        const auto messageOf = [&](const char* code) {
            const ChildEnd end = run(typed(code));
            return end.code == 3 ? end.messages : QString("ended with %1: %2").arg(end.code).arg(end.messages);
        };
        QVERIFY2(messageOf("def construct(self, x):\n    while True:\n        x = x + 1\n    return x\n").contains("gate, code:2:5: while is not available in a cell"), "while");
        QVERIFY2(messageOf("def construct(self, x):\n    for i in range(64):\n        x = ops.cat([x, x])\n    return x\n").contains("gate, code:3:13: The script asks for more memory than there is."), "memory");
        QVERIFY2(messageOf("def construct(self, x):\n    return ops.sillu(x)\n").contains("gate, code:2:12: ops.sillu is not available in typed code. Did you mean silu"), "name");
        QVERIFY2(run(typed("def construct(self, x):\n    return x\n")).messages.contains("gate: gave [32, 16] for out, but declares [B, C] = [32, 8]."), "shape"); // at the first step
    }

    void checkScriptTriesCells() {
        const auto check = [&](const graph::Document& document, const QStringList& more = {}) {
            if (auto status = writeFileAtomically(path("checked.cells.json"), graph::toJson(document)); !status) qFatal("%s", status.error().text().c_str());
            return app::testing::runEngine(QStringList{"check-script", QString::fromStdString(path("checked.cells.json").string())} + more);
        };
        const auto good = check(typed());
        QVERIFY2(good.code == 0 && has(good.out, "gate: cell construct"), good.err.c_str());
        const auto bad = check(typed("def construct(self, x):\n    return x\n"));
        QVERIFY2(bad.code == 3 && has(bad.err, "gate, code: error: construct gave [2, 16] for out, but declares [B, 8] = [2, 8]. (Tried with B = 2.)"), bad.err.c_str());
        const json answer = json::parse(check(typed("def construct(self, x):\n    return ops.sillu(x)\n"), {"--json"}).out);
        QCOMPARE(answer["cells"].size(), std::size_t(1));
        QVERIFY(!answer["ok"] && answer["cells"][0]["cell"] == "gate" && answer["cells"][0]["error"]["line"] == 2 && answer["cells"][0]["error"]["column"] == 12);
        QVERIFY(writeFileAtomically(path("gate.py"), kTyped));
        const QStringList alone{"check-script", QString::fromStdString(path("gate.py").string()), "--cell", "--inputs", "x: [B, 2 * C]", "--outputs", "out: [B, C]"};
        QVERIFY(has(app::testing::runEngine(alone).err, "gate.py:3:30: error: self.scale is not there."));
        QCOMPARE(app::testing::runEngine(alone + QStringList{"--weights", "scale: []"}).code, 0);
        QCOMPARE(app::testing::runEngine(alone.mid(0, 5)).code, 2); // no output
    }

    void aFileThatIsNotTrustedIsNotRun() {
        for (const std::string& library : {std::string("trap.so"), (path("trap") / "trap.so").string()}) {
            const ChildEnd end = run(documentOf(same(library), 8));
            QCOMPARE(end.code, 3);
            QVERIFY2(end.messages.contains("gate, library: The library \"") && end.messages.contains("is not trusted in this workspace"), qPrintable(end.messages));
            QVERIFY2(end.messages.contains("celloom-engine plugin trust FILE"), qPrintable(end.messages));
        }
        QVERIFY(!fs::exists(trapped()));
    }

    void trustingLoadsNothing() {
        const app::testing::Outcome trusted = plugin({"trust", QString::fromStdString((path("trap") / "trap.so").string())});
        QVERIFY2(trusted.code == 0, trusted.err.c_str());
        QVERIFY(trusted.out.starts_with("trap.so is trusted"));
        QVERIFY(plugin({"list"}).out.find("ready") != std::string::npos);
        QVERIFY(!fs::exists(trapped()));
    }

    void aTrustedFileIsRun() { // the trap works: what the other tests do not find is there when it should be
        const ChildEnd end = run(documentOf(same("trap.so"), 8));
        QVERIFY2(end.code == 0, qPrintable(end.messages));
        QVERIFY(fs::remove(trapped()));
        QCOMPARE(run(documentOf(same((path("trap") / "trap.so").string()), 8)).code, 0); // the same bytes elsewhere
        QVERIFY(fs::remove(trapped()));
    }

    void aChangedFileIsNotRun() {
        const fs::path copy = m_workspace.path() / "plugins" / "trap.so";
        const std::string bytes = *readFile(copy);
        QVERIFY(writeFileAtomically(copy, bytes + " "));
        const ChildEnd end = run(documentOf(same("trap.so"), 8));
        QCOMPARE(end.code, 3);
        QVERIFY2(end.messages.contains("has changed since it was trusted"), qPrintable(end.messages));
        QVERIFY(plugin({"list"}).out.find("has changed") != std::string::npos);
        QVERIFY(!fs::exists(trapped()));
        QVERIFY(writeFileAtomically(copy, bytes));
    }

    void aLibraryOfAnotherBuildIsNotTrusted() {
        std::string bytes = *readFile(path("trap") / "trap.so");
        const auto replace = [&](const std::string& what, const std::string& with) {
            for (std::size_t at = bytes.find(what); at != std::string::npos; at = bytes.find(what, at + 1)) bytes.replace(at, what.size(), with);
        };
        replace("libtorch 2.11.0;", "libtorch 2.10.9;");
        QVERIFY(writeFileAtomically(path("older.so"), bytes));
        const app::testing::Outcome refused = plugin({"trust", QString::fromStdString(path("older.so").string())});
        QCOMPARE(refused.code, 3);
        QVERIFY2(has(refused.err, "was built for \"libtorch 2.10.9\" where this engine is \"libtorch 2.11.0\""), refused.err.c_str());
        // and one that was trusted by an earlier engine
        json list = json::parse(*readFile(m_workspace.path() / "plugins.json"));
        list["trusted"].push_back({{"name", "older.so"}, {"sha256", sha256(bytes)}, {"stamp", "older"}, {"source", ""}, {"time", 0}});
        QVERIFY(writeFileAtomically(m_workspace.path() / "plugins.json", list.dump()));
        QVERIFY(writeFileAtomically(m_workspace.path() / "plugins" / "older.so", bytes));
        const ChildEnd end = run(documentOf(same("older.so"), 8));
        QCOMPARE(end.code, 3);
        QVERIFY2(end.messages.contains("was built for \"libtorch 2.10.9\"") && end.messages.contains("Build it again"), qPrintable(end.messages));
        QVERIFY(!fs::exists(trapped()));
    }

    void whatIsNoPluginIsRefused() {
        QVERIFY(writeFileAtomically(path("text.so"), "celloom-plugin{interface 1}"));
        QVERIFY(has(plugin({"trust", QString::fromStdString(path("text.so").string())}).err, "is no shared library"));
        QVERIFY(has(plugin({"trust", CELLOOM_DEPS_DIR "/libtorch/torch/lib/libgomp.so.1"}).err, "has no stamp"));
        QVERIFY(plugin({"trust", "/nowhere.so"}).code == 3);
        QVERIFY(run(documentOf(same("../trap.so"), 8)).messages.contains("is neither a file name nor a whole path"));
    }

    void anUntrustedOneIsNotRunAgain() {
        QCOMPARE(plugin({"untrust", "trap.so"}).code, 0);
        QVERIFY(!fs::exists(m_workspace.path() / "plugins" / "trap.so"));
        QCOMPARE(run(documentOf(same("trap.so"), 8)).code, 3);
        QVERIFY(!fs::exists(trapped()));
        QVERIFY(has(plugin({"untrust", "trap.so"}).err, "No trusted plugin is called"));
    }

    void aDamagedListTrustsNothing() {
        const std::string kept = *readFile(m_workspace.path() / "plugins.json");
        QVERIFY(writeFileAtomically(m_workspace.path() / "plugins.json", "{\"format\": \"celloom-plugins\", \"schema\": 1, \"trusted\": [{}]}"));
        const ChildEnd end = run(documentOf(gated()));
        const int listed = plugin({"list"}).code;
        QVERIFY(writeFileAtomically(m_workspace.path() / "plugins.json", kept));
        QVERIFY2(end.messages.contains("so no plugin is trusted"), qPrintable(end.messages));
        QCOMPARE(listed, 3);
    }

    void theExampleTrainsAndGoesOnExactly() {
        QCOMPARE(plugin({"trust", QString::fromStdString((path("gated") / "gated.so").string())}).code, 0);
        const auto whole = create(documentOf(gated())), killed = create(documentOf(gated()));
        const ChildEnd end = m_workspace.run(whole);
        QVERIFY2(end.code == 0, qPrintable(end.messages));
        const auto rows = exactRows(whole);
        QVERIFY(rows.at({"train/loss", 20}) < rows.at({"train/loss", 1}));
        QVERIFY(m_workspace.run(killed, QStringLiteral("step:11")).isKilled);
        QCOMPARE(m_workspace.run(killed).code, 0);
        QVERIFY(exactRows(killed) == rows);
        const auto said = events(killed, "plugin"); // once each time that it began
        QCOMPARE(said.size(), std::size_t(2));
        for (const auto& event : said) {
            const json data = json::parse(event.data);
            QCOMPARE(data["library"].get<std::string>(), std::string("gated.so"));
            QCOMPARE(data["sha256"].get<std::string>(), *sha256OfFile(path("gated") / "gated.so"));
            QVERIFY(has(data["stamp"].get<std::string>(), "interface 1;"));
        }
        QVERIFY(m_workspace.run(create(documentOf(gated("gated.so", "relu")))).code == 0);
    }

    void whatItRefusesIsToldWithTheCellsPath() {
        QVERIFY2(run(documentOf(gated("gated.so", "swoosh"))).messages.contains("gate: settings are silu, gelu or relu, not swoosh"), "settings");
        auto other = gated();
        other["cell"] = std::string("GatedActivatoin");
        QVERIFY2(run(documentOf(other)).messages.contains("gate, cell: The library \"gated.so\" has no cell \"GatedActivatoin\". Did you mean GatedActivation?"), "cell");
        auto weightless = gated();
        weightless["weights"] = std::string();
        const ChildEnd end = run(documentOf(weightless));
        QVERIFY2(end.messages.contains("gate: the cell declares no weight scale"), qPrintable(end.messages));
        auto narrow = gated();
        narrow["outputs"] = std::string("out: [B, 8]; more: [B, C]");
        QVERIFY2(run(documentOf(narrow)).messages.contains("gate: gave 1 tensor, but declares 2 outputs."), "outputs");
    }
};

QTEST_GUILESS_MAIN(TestOwnCells)
#include "tst_own_cells.moc"
