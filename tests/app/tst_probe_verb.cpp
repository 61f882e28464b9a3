// The verb probe as a user and as the window runs it: table, lines of JSON, every kind of model and of batch, and what is refused.
#include "../engine/train_helper.h"
#include "engine/checkpoint/safetensors.h"
#include "models/base/files.h"
#include "models/families/families.h"
#include "models/graph/json.h"
#include "verb_helper.h"

#include <ATen/ops/full.h>
#include <QFile>
#include <QTemporaryDir>
#include <QTest>
#include <nlohmann/json.hpp>
#include <set>

using namespace celloom;
using namespace celloom::app::testing;
using nlohmann::json;
namespace fs = std::filesystem;

namespace {

std::vector<json> linesOf(const std::string& text) {
    std::vector<json> out;
    for (const QString& line : QString::fromStdString(text).split('\n', Qt::SkipEmptyParts)) out.push_back(json::parse(line.toStdString()));
    return out;
}

const QString kBaichuan = CELLOOM_FIXTURES "/baichuan_7b";

} // namespace

class TestProbeVerb : public QObject {
    Q_OBJECT
    QTemporaryDir m_folder;
    QString path(const char* name) const { return m_folder.filePath(name); }
    void write(const char* name, const std::string& text) { QVERIFY(writeFileAtomically(path(name).toStdString(), text)); }

private Q_SLOTS:
    void everyWireOfAFolderIsALine() {
        const Outcome outcome = runEngine({"probe", kBaichuan, "--inputs", kBaichuan + "/inputs.safetensors", "--json"});
        QVERIFY2(outcome.code == 0, outcome.err.c_str());
        const auto lines = linesOf(outcome.out);
        auto document = families::openModel(kBaichuan.toStdString());
        const auto expansion = graph::expand(*document);
        std::set<std::string> expected, found;
        for (const graph::ValueInfo& value : expansion.model.values) expected.insert(value.producer);
        for (const json& line : lines)
            for (const json& wire : line.value("wires", json::array())) found.insert(wire["wire"]);
        QVERIFY(found == expected);
        QVERIFY(lines.front()["begin"]["cells"] == expansion.model.cells.size());
        QVERIFY(lines.back()["end"]["cells"] == expansion.model.cells.size() && lines.back()["end"]["not_computed"].empty());
        const json numbers = json::parse(*readFile((kBaichuan + "/expected.json").toStdString()));
        QVERIFY(std::abs(lines.back()["end"]["loss"].get<double>() - numbers["loss_f32"].get<double>()) < 1e-4);
        const at::Tensor logits = tensorOf((kBaichuan + "/expected.safetensors").toStdString(), "logits");
        const json& head = lines[lines.size() - 2];
        QVERIFY(std::abs(head["wires"][0]["deviation"].get<double>() - logits.to(at::kDouble).std(false).item<double>()) < 1e-4);
        std::size_t maps = 0;
        for (const json& line : lines) maps += line.contains("attention");
        QCOMPARE(maps, std::size_t(2)); // of its two layers
    }

    void theTableHasARowAWire() {
        const Outcome outcome = runEngine({"probe", kBaichuan, "--batch", "1", "--length", "6"});
        QVERIFY2(outcome.code == 0, outcome.err.c_str());
        QVERIFY(outcome.out.find("layers.0.self_attn") != std::string::npos && outcome.out.find("[1, 6, 512]") != std::string::npos);
        QVERIFY(outcome.out.find("loss ") != std::string::npos && outcome.out.find("!!") == std::string::npos);
    }

    void textAndPrecisionAndACellsPattern() {
        const QString base = CELLOOM_SOURCE "/resources/models/internlm-small-sanguo";
        const Outcome outcome =
            runEngine({"probe", base, "--text", "却说曹操", "--text", "刘备引军到了", "--amp-level", "O2", "--cells", "layers.0", "--map-size", "0", "--json"});
        QVERIFY2(outcome.code == 0, outcome.err.c_str());
        const auto lines = linesOf(outcome.out);
        QVERIFY(lines.size() > 8);
        bool hasHalf = false;
        for (const json& line : lines)
            if (line.contains("cell")) {
                QVERIFY2(line["cell"].get<std::string>().starts_with("layers.0."), line.dump().c_str());
                QVERIFY(!line.contains("attention"));
                hasHalf = hasHalf || line["wires"][0]["type"] == "bfloat16";
            }
        QVERIFY(hasHalf);
        QVERIFY(lines.back()["end"]["loss"].get<double>() < 8); // it knows the novel; by chance it would be log(vocabulary)
    }

    void aGraphWithoutWeightsIsDrawnFromTheSeed() {
        write("net.cells.json", graph::toJson(engine::perceptron(4, 8, 2)));
        const auto run = [&](const char* seed) { return runEngine({"probe", path("net.cells.json"), "--seed", seed, "--batch", "3", "--json"}); };
        const Outcome once = run("1"), again = run("1"), other = run("2");
        QVERIFY2(once.code == 0, once.err.c_str());
        QVERIFY(once.err.find("drawn from the seed 1") != std::string::npos);
        const auto mean = [](const Outcome& outcome) { return linesOf(outcome.out)[2]["wires"][0]["mean"].get<double>(); };
        QVERIFY(mean(once) == mean(again) && mean(once) != mean(other));
        const Outcome preset = runEngine({"probe", "baichuan-tiny", "--length", "5", "--json"});
        QVERIFY2(preset.code == 0, preset.err.c_str());
    }

    void aRecipeGivesItsFirstBatchItsLossAndGradients() {
        write("net.cells.json", graph::toJson(engine::perceptron(3, 8, 1)));
        QVERIFY(engine::writeSafetensors(path("rows.safetensors").toStdString(), {{"features", engine::drawn({20, 3}, 1)}, {"label", engine::drawn({20, 1}, 2)}}));
        write("recipe.json", json{{"model", {{"source", "net.cells.json"}}}, {"data", {{"format", "tensors"}, {"train", {"rows.safetensors"}}}}, {"loss", {{"type", "MSELoss"}}}}.dump());
        const Outcome outcome = runEngine({"probe", path("net.cells.json"), "--data", path("recipe.json"), "--batch", "7", "--gradients", "--json", "--out", path("report.jsonl")});
        QVERIFY2(outcome.code == 0, outcome.err.c_str());
        const auto lines = linesOf(outcome.out);
        QVERIFY((lines[1]["wires"][0]["shape"] == json{7, 3}));
        std::vector<std::string> gradients;
        for (const json& line : lines)
            if (line.contains("gradient")) gradients.push_back(line["gradient"]);
        QVERIFY((gradients == std::vector<std::string>{"last.out", "act.out", "first.out", "features"}));
        QVERIFY(lines.back()["end"]["loss"].get<double>() > 0);
        QCOMPARE(*readFile(path("report.jsonl").toStdString()), outcome.out);
        const Outcome again = runEngine({"probe", path("net.cells.json"), "--out", path("report.jsonl")});
        QVERIFY(again.code != 0 && again.err.find("exists already") != std::string::npos);
        const Outcome preview = runEngine({"data", "preview", path("recipe.json"), "--rows", "7", "--json"}); // the same batch
        QVERIFY2(preview.code == 0, preview.err.c_str());
        const json columns = json::parse(preview.out)["batch"]["columns"];
        QCOMPARE(columns[0]["name"].get<std::string>(), std::string("features"));
        QVERIFY(std::abs(columns[0]["mean"].get<double>() - lines[1]["wires"][0]["mean"].get<double>()) < 1e-8);
        const Outcome table = runEngine({"data", "preview", path("recipe.json")});
        QVERIFY2(table.code == 0 && table.out.find("features [") != std::string::npos, table.err.c_str());
    }

    void whatDoesNotFitIsRefused_data() {
        QTest::addColumn<QStringList>("arguments");
        QTest::addColumn<QString>("said");
        QTest::newRow("no such model") << QStringList{"nowhere"} << "neither a path nor a run";
        QTest::newRow("no such cell") << QStringList{kBaichuan, "--cells", "layers.9.**"} << "matches no cell";
        QTest::newRow("a pattern that is none") << QStringList{kBaichuan, "--cells", "layers.{3.."} << "layers";
        QTest::newRow("two batches") << QStringList{kBaichuan, "--inputs", "a", "--data", "b"} << "Two batches";
        QTest::newRow("no tokenizer") << QStringList{"baichuan-tiny", "--text", "a"} << "no tokenizer";
        QTest::newRow("a size of nothing") << QStringList{kBaichuan, "--size", "Z=3"} << "not a size of an input";
        QTest::newRow("a size that is none") << QStringList{kBaichuan, "--size", "T"} << "name=number";
        QTest::newRow("a batch beyond bounds") << QStringList{kBaichuan, "--batch", "65536", "--length", "1048576"} << "Give fewer rows";
        QTest::newRow("a row that is not there") << QStringList{kBaichuan, "--row", "7"} << "no row 7";
        QTest::newRow("a graph that is none") << QStringList{CELLOOM_SOURCE "/README.md"} << "README.md";
    }
    void whatDoesNotFitIsRefused() {
        QFETCH(QStringList, arguments);
        QFETCH(QString, said);
        const Outcome outcome = runEngine(QStringList{"probe"} + arguments);
        QVERIFY(outcome.code > 0);
        QVERIFY2(QString::fromStdString(outcome.err).contains(said), outcome.err.c_str());
    }

    void anErrorNamesItsCellAndIsJsonToo() {
        const at::Tensor ids = at::full({1, 4}, 100, at::kLong);
        QVERIFY(engine::writeSafetensors(path("far.safetensors").toStdString(), {{"input_ids", ids + 100000}}));
        const Outcome outcome = runEngine({"probe", kBaichuan, "--inputs", path("far.safetensors"), "--json"});
        QVERIFY(outcome.code > 0);
        QVERIFY(json::parse(outcome.err)["error"]["message"].get<std::string>().find("vocabulary") != std::string::npos);
    }
};

QTEST_GUILESS_MAIN(TestProbeVerb)
#include "tst_probe_verb.moc"
