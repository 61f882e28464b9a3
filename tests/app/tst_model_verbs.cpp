// The verbs about models and machines as a user runs them: what is written, what is said, which exit code.
#include "engine/checkpoint/safetensors.h"
#include "models/base/files.h"
#include "models/protocol/protocol.h"
#include "tests/app/verb_helper.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <QProcess>
#include <QTemporaryDir>
#include <QTest>
#include <nlohmann/json.hpp>

using namespace celloom;
using namespace celloom::engine;
using namespace celloom::app::testing;
namespace fs = std::filesystem;
using nlohmann::json;

class TestModelVerbs : public QObject {
    Q_OBJECT
private Q_SLOTS:
    void forwardEqualsTheFixture_data();
    void forwardEqualsTheFixture();
    void forwardHonoursTheMask();
    void forwardRefusesInputsThatDoNotFit();
    void predictRefusesBeforeItWritesAnything();
    void aVerbThatIsNoneIsNamedWithTheNearest();
    void exportedModelGivesTheSameLogits();
    void estimateCountsAsDerived();
    void estimateOfAPredictionCountsWeightsAndCache();
    void rowsLongerThanTheModelAreWarnedOf();
    void selftestPassesAndSaysWhatItSkipped();
    void aDeviceThatIsNotThereHasItsExitCode();
    void doctorSaysWhatThisMachineHas();

private:
    QTemporaryDir m_folder;
    QString path(const char* name) const { return m_folder.filePath(name); }
};

void TestModelVerbs::forwardEqualsTheFixture_data() {
    QTest::addColumn<QString>("name");
    QTest::newRow("rotary") << QString("baichuan_7b");
    QTest::newRow("ALiBi") << QString("baichuan_13b");
}

void TestModelVerbs::forwardEqualsTheFixture() {
    QFETCH(QString, name);
    const QString folder = QString(CELLOOM_FIXTURES "/%1").arg(name);
    const Outcome outcome =
        runEngine({"forward", "--model", folder, "--inputs", folder + "/inputs.safetensors", "--out", path("o.safetensors"), "--hidden"});
    QVERIFY2(outcome.code == 0, outcome.err.c_str());
    const fs::path written = path("o.safetensors").toStdString(), expected = (folder + "/expected.safetensors").toStdString();
    for (const char* part : {"logits", "hidden.0", "hidden.1", "hidden.2"})
        QVERIFY2(largest(tensorOf(written, part) - tensorOf(expected, part)) < 5e-5, part);
    const json numbers = json::parse(*readFile((folder + "/expected.json").toStdString()));
    QVERIFY(std::abs(tensorOf(written, "loss").item<double>() - numbers["loss_f32"].get<double>()) <
            numbers["suggested_tolerance"]["loss_abs"].get<double>());
}

void TestModelVerbs::forwardHonoursTheMask() {
    const QString folder = CELLOOM_FIXTURES "/baichuan_7b";
    const fs::path inputs = (folder + "/inputs.safetensors").toStdString(), expected = (folder + "/expected.safetensors").toStdString();
    const at::Tensor mask = tensorOf(inputs, "attention_mask_left");
    QVERIFY(writeSafetensors(path("left.safetensors").toStdString(),
                             {{"input_ids", tensorOf(inputs, "input_ids_left")}, {"attention_mask", mask}}));
    const Outcome outcome =
        runEngine({"forward", "--model", folder, "--inputs", path("left.safetensors"), "--out", path("o.safetensors"), "--json"});
    QVERIFY2(outcome.code == 0, outcome.err.c_str());
    QVERIFY(json::parse(outcome.out)["tensors"]["logits"] == json({2, 24, 512}));
    QVERIFY(largest((tensorOf(path("o.safetensors").toStdString(), "logits") - tensorOf(expected, "logits_left")) * mask.unsqueeze(-1)) <
            5e-5);
}

void TestModelVerbs::forwardRefusesInputsThatDoNotFit() {
    const QString folder = CELLOOM_FIXTURES "/baichuan_7b";
    const fs::path inputs = (folder + "/inputs.safetensors").toStdString();
    const at::Tensor ids = tensorOf(inputs, "input_ids");
    const auto refused = [&](const std::map<std::string, at::Tensor>& tensors, const char* says) {
        if (!writeSafetensors(path("bad.safetensors").toStdString(), tensors)) return false;
        const Outcome outcome =
            runEngine({"forward", "--model", folder, "--inputs", path("bad.safetensors"), "--out", path("never.safetensors")});
        return outcome.code == protocol::BadInput && outcome.err.find(says) != std::string::npos &&
               !QFile::exists(path("never.safetensors"));
    };
    QVERIFY(refused({{"ids", ids}}, "input_ids"));
    QVERIFY(refused({{"input_ids", ids[0]}}, "[B, T]"));
    QVERIFY(refused({{"input_ids", ids.to(at::kFloat)}}, "whole numbers"));
    QVERIFY(refused({{"input_ids", ids}, {"labels", ids[0].unsqueeze(0)}}, "another shape"));
    QVERIFY(refused({{"input_ids", ids + 1000}}, "vocabulary"));
    QVERIFY(refused({{"input_ids", ids.to(at::kBool)}}, "whole numbers"));
    QVERIFY(refused({{"input_ids", ids.narrow(1, 0, 0)}}, "holds no token"));
    QVERIFY(refused({{"input_ids", ids}, {"labels", ids + 70000}}, "labels has the value"));
    QVERIFY(refused({{"input_ids", ids}, {"labels", ids * 0 - 3}}, "-3"));
    QVERIFY(refused({{"input_ids", ids}, {"attention_mask", ids * 0 + 7}}, "0 to 1"));
    QVERIFY(refused({{"input_ids", ids}, {"positions", ids * 0 + 99999999}}, "positions has the value 99999999"));
    QVERIFY(refused({{"input_ids", ids}, {"labels", ids * 0 - 100}}, "ignored"));
}

void TestModelVerbs::predictRefusesBeforeItWritesAnything() {
    const QStringList predict{"predict", "--model", CELLOOM_FIXTURES "/baichuan_7b", "--prompt", "a"};
    const Outcome sampling = runEngine(predict + QStringList{"--top-p", "2"});
    QCOMPARE(sampling.code, int(protocol::Usage));
    QVERIFY(sampling.out.empty() && sampling.err.find("top-p") != std::string::npos);
    // What a shell hands over need not be UTF-8, and JSON holds nothing else. QProcess would convert the bytes.
    QProcess shell;
    shell.start("/bin/sh",
                {"-c", "exec \"$0\" predict --json --model m --prompt \"$(printf '\\377\\376')\"", CELLOOM_BIN "/celloom-engine"});
    QVERIFY(shell.waitForFinished(60000 * CELLOOM_TEST_TIME_FACTOR));
    QVERIFY(shell.exitStatus() == QProcess::NormalExit);
    QCOMPARE(shell.exitCode(), int(protocol::BadInput));
    QVERIFY(shell.readAllStandardError().contains("UTF-8"));
}

void TestModelVerbs::aVerbThatIsNoneIsNamedWithTheNearest() {
    const Outcome outcome = runEngine({"--json", "predct", "--model", "x"});
    QCOMPARE(outcome.code, int(protocol::Usage));
    QVERIFY2(outcome.err.find("predct") != std::string::npos && outcome.err.find("Did you mean predict?") != std::string::npos,
             outcome.err.c_str());
}

void TestModelVerbs::exportedModelGivesTheSameLogits() {
    const QString folder = CELLOOM_FIXTURES "/baichuan_13b";
    const Outcome exported = runEngine({"export-model", folder, "--out", path("exported")});
    QVERIFY2(exported.code == 0, exported.err.c_str());
    for (const QString& model : {folder, path("exported")}) {
        const Outcome outcome = runEngine(
            {"forward", "--model", model, "--inputs", folder + "/inputs.safetensors", "--out", path(model == folder ? "a.st" : "b.st")});
        QVERIFY2(outcome.code == 0, outcome.err.c_str());
    }
    QVERIFY(at::equal(tensorOf(path("a.st").toStdString(), "logits"), tensorOf(path("b.st").toStdString(), "logits")));
    QVERIFY(runEngine({"export-model", folder, "--out", path("exported")}).code != 0); // never over another
}

void TestModelVerbs::estimateCountsAsDerived() {
    QVERIFY(writeFileAtomically(path("r.json").toStdString(), R"({"train": {"batch_size": 2, "sequence_length": 16, "accumulation": 3}})"));
    const Outcome outcome = runEngine({"estimate", path("r.json"), "--json"});
    QVERIFY2(outcome.code == 0, outcome.err.c_str());
    const json e = json::parse(outcome.out);
    const std::int64_t parameters = 5261568; // 2·4096·256 + 4·(4·256² + 3·256·688 + 2·256) + 256
    QCOMPARE(e["parameters"].get<std::int64_t>(), parameters);
    QCOMPARE(e["tokens_per_step"].get<std::int64_t>(), 96);
    QCOMPARE(e["memory_bytes"]["weights"].get<std::int64_t>(), 4 * parameters);
    QCOMPARE(e["memory_bytes"]["gradients"].get<std::int64_t>(), 4 * parameters);
    QCOMPARE(e["memory_bytes"]["optimizer"].get<std::int64_t>(), 8 * parameters);
    const json parts = e["memory_bytes"]["peak_parts"];
    QCOMPARE(e["memory_bytes"]["peak"].get<std::int64_t>(), parts["weights"].get<std::int64_t>() + parts["gradients"].get<std::int64_t>() +
                                                                parts["optimizer"].get<std::int64_t>() + parts["activations"].get<std::int64_t>());
    QVERIFY(e["here"]["needed_bytes"].get<std::int64_t>() > e["memory_bytes"]["peak"].get<std::int64_t>());
    QCOMPARE(e["checkpoint_bytes"].get<std::int64_t>(), 12 * parameters);
    // 6 N a token for the matrices (the embedding is looked up), a little more for attention and element-wise work
    const double matrices = 6.0 * static_cast<double>(parameters - 4096 * 256) * 96;
    QVERIFY(e["flops_per_step"].get<double>() > matrices && e["flops_per_step"].get<double>() < 1.05 * matrices);
    QVERIFY(runEngine({"estimate", path("r.json"), "--model.source", "nothing"}).code == protocol::BadInput);
    const Outcome longer =
        runEngine({"estimate", path("r.json"), "--json", "--set", "train.batch_size=4", "--set", "train.accumulation=1"});
    QCOMPARE(json::parse(longer.out)["tokens_per_step"].get<std::int64_t>(), 64); // 4 · 16 · 1
}

void TestModelVerbs::estimateOfAPredictionCountsWeightsAndCache() {
    const Outcome outcome = runEngine({"estimate", "--predict", "internlm2-7b", "--context", "4096", "--batch", "2", "--json"});
    QVERIFY2(outcome.code == 0, outcome.err.c_str());
    const json e = json::parse(outcome.out);
    for (const json& type : e["types"]) {
        const std::int64_t bytes = type["dtype"] == "float32" ? 4 : 2;
        QCOMPARE(type["weight_bytes"].get<std::int64_t>(), 7737708544 * bytes);
        QCOMPARE(type["cache_bytes"].get<std::int64_t>(), 2 * 4096 * 32 * (2 * 8 * 128) * bytes); // rows, tokens, layers, keys and values
    }
    QCOMPARE(e["types"].size(), std::size_t(3));
    QCOMPARE(runEngine({"estimate"}).code, int(protocol::Usage));
}

void TestModelVerbs::rowsLongerThanTheModelAreWarnedOf() {
    QVERIFY(writeFileAtomically(path("long.json").toStdString(), R"({"train": {"sequence_length": 2048}})"));
    const Outcome outcome = runEngine({"estimate", path("long.json"), "--json"}); // baichuan-tiny has 1024 positions
    QCOMPARE(outcome.code, 0);
    QVERIFY2(outcome.err.find("longer than the model's max_positions, 1024") != std::string::npos, outcome.err.c_str());
    QVERIFY(runEngine({"estimate", path("long.json"), "--model.overrides", "max_positions=2048"}).err.empty());
}

void TestModelVerbs::selftestPassesAndSaysWhatItSkipped() {
    const Outcome outcome = runEngine({"selftest", "--device", "cpu"});
    QVERIFY2(outcome.code == 0, outcome.out.c_str());
    QVERIFY(outcome.out.find("all is well on cpu") != std::string::npos);
    QVERIFY(outcome.out.find("skipped: no GPU") != std::string::npos);
}

void TestModelVerbs::aDeviceThatIsNotThereHasItsExitCode() {
    if (fs::exists("/proc/driver/nvidia/version")) QSKIP("skipped: this machine has a GPU");
    const Outcome outcome = runEngine({"selftest", "--device", "cuda"});
    QCOMPARE(outcome.code, int(protocol::NoDevice));
    QVERIFY(outcome.out.find("skipped: no GPU") != std::string::npos);
    QVERIFY(outcome.err.find("no NVIDIA driver was found") != std::string::npos);
}

void TestModelVerbs::doctorSaysWhatThisMachineHas() {
    const Outcome outcome = runEngine({"doctor", "--json"});
    QVERIFY2(outcome.code == 0, outcome.err.c_str());
    const json report = json::parse(outcome.out);
    QCOMPARE(report["libtorch"].get<std::string>().substr(0, 6), std::string("2.11.0"));
    QVERIFY(report["processors"].get<int>() >= 1);
    QVERIFY(report["memory_bytes"].get<std::int64_t>() > 0);
}

QTEST_GUILESS_MAIN(TestModelVerbs)
#include "tst_model_verbs.moc"
