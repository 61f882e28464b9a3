// import, export-model and verify as a user runs them.
#include "engine/checkpoint/safetensors.h"
#include "models/base/files.h"
#include "models/protocol/protocol.h"
#include "tests/app/verb_helper.h"

#include <ATen/TensorOperators.h>
#include <QDir>
#include <QFile>
#include <QProcess>
#include <QTemporaryDir>
#include <QTest>
#include <nlohmann/json.hpp>

using namespace celloom;
using namespace celloom::app::testing;
using namespace celloom::engine;
namespace fs = std::filesystem;
using nlohmann::json;

namespace {

const QString kFixtures = CELLOOM_FIXTURES;

} // namespace

class TestCheckpointVerbs : public QObject {
    Q_OBJECT
private Q_SLOTS:
    void init() { m_folder = std::make_unique<QTemporaryDir>(); }
    void importedCheckpointsComputeAsTheirOriginal_data();
    void importedCheckpointsComputeAsTheirOriginal();
    void aWrappedModelIsImportedWithoutItsPrefix();
    void importRefusesAndWritesNothing_data();
    void importRefusesAndWritesNothing();
    void importRefusesFlippedBytesOfAStorage();
    void exportWritesShardsInTheTypeAsked();
    void verifyFindsAnotherModel();
    void wrongArgumentsAreNamed();

private:
    std::unique_ptr<QTemporaryDir> m_folder;
    QString path(const char* name) const { return m_folder->filePath(name); }
};

/// Rounding the weights moves the logits: bfloat16 keeps 8 bits, float16 11 (the largest logit is 3.8).
void TestCheckpointVerbs::importedCheckpointsComputeAsTheirOriginal_data() {
    QTest::addColumn<QString>("file");
    QTest::addColumn<QString>("model");
    QTest::addColumn<QString>("tolerance");
    QTest::newRow("pytorch_model.bin") << "baichuan_7b.bf16.bin"
                                       << "baichuan_7b"
                                       << "0.08";
    QTest::newRow("MindSpore") << "baichuan_7b.f16.ckpt"
                               << "baichuan_7b"
                               << "0.01";
    QTest::newRow("MindSpore, grouped queries") << "internlm2.bf16.ckpt"
                                                << "internlm2"
                                                << "0.08";
}

void TestCheckpointVerbs::importedCheckpointsComputeAsTheirOriginal() {
    QFETCH(QString, file);
    QFETCH(QString, model);
    QFETCH(QString, tolerance);
    const QString original = kFixtures + "/" + model;
    const Outcome imported =
        runEngine({"import", kFixtures + "/checkpoints/" + file, "--config", original + "/config.json", "--out", path("model"), "--json"});
    QVERIFY2(imported.code == 0, imported.err.c_str());
    QVERIFY(json::parse(imported.out)["tensors"].get<int>() > 10);
    const Outcome verified = runEngine({"verify", path("model"), "--inputs", original + "/inputs.safetensors", "--expected",
                                        original + "/expected.safetensors", "--tolerance", tolerance, "--json", "--threads", "1"});
    QVERIFY2(verified.code == 0, verified.err.c_str());
    const json report = json::parse(verified.out);
    QVERIFY(report["compared"].contains("logits"));
    QVERIFY(report["compared"]["logits"]["largest_difference"].get<double>() > 0); // it was rounded
}

void TestCheckpointVerbs::aWrappedModelIsImportedWithoutItsPrefix() {
    const auto file = SafetensorsFile::open((kFixtures + "/baichuan_7b/model.safetensors").toStdString());
    std::map<std::string, at::Tensor> wrapped;
    for (const std::string& name : (*file)->names()) wrapped["module." + name] = *(*file)->tensor(name);
    QDir().mkpath(path("wrapped"));
    QFile::copy(kFixtures + "/baichuan_7b/config.json", path("wrapped/config.json"));
    QVERIFY(writeSafetensors(path("wrapped/model.safetensors").toStdString(), wrapped));
    const Outcome refused = runEngine({"import", path("wrapped"), "--out", path("out")});
    QCOMPARE(refused.code, int(protocol::BadInput));
    QVERIFY2(refused.err.find("--strip-prefix module.") != std::string::npos, refused.err.c_str());
    QVERIFY(!QFile::exists(path("out")));
    const Outcome imported = runEngine({"import", path("wrapped"), "--out", path("out"), "--strip-prefix", "module."});
    QVERIFY2(imported.code == 0, imported.err.c_str());
}

void TestCheckpointVerbs::importRefusesAndWritesNothing_data() {
    QTest::addColumn<QString>("source");
    QTest::addColumn<QString>("says");
    QTest::newRow("a pickle that names a module's class") << "whole_module.bin"
                                                          << "torch.nn.modules.linear.Linear";
    QTest::newRow("the format before PyTorch 1.6") << "legacy.bin"
                                                   << "before 1.6";
    QTest::newRow("another model") << "internlm2.bf16.ckpt"
                                   << "missing";
    QTest::newRow("nothing") << "nothing.bin"
                             << "not there";
}

void TestCheckpointVerbs::importRefusesAndWritesNothing() {
    QFETCH(QString, source);
    QFETCH(QString, says);
    const Outcome outcome = runEngine({"--json", "import", kFixtures + "/checkpoints/" + source, "--config",
                                       kFixtures + "/baichuan_7b/config.json", "--out", path("out")});
    QCOMPARE(outcome.code, int(protocol::BadInput));
    const json error = json::parse(outcome.err)["error"];
    QVERIFY2(QString::fromStdString(error["message"]).contains(says), outcome.err.c_str());
    QVERIFY(QDir(m_folder->path()).isEmpty());
}

void TestCheckpointVerbs::importRefusesFlippedBytesOfAStorage() {
    QFile source(kFixtures + "/checkpoints/baichuan_7b.bf16.bin");
    QVERIFY(source.open(QIODevice::ReadOnly));
    QByteArray bytes = source.readAll();
    bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
    QVERIFY(writeFileAtomically(path("flipped.bin").toStdString(), bytes.toStdString()));
    const Outcome outcome = runEngine({"import", path("flipped.bin"), "--config", kFixtures + "/baichuan_7b/config.json", "--out", path("out")});
    QCOMPARE(outcome.code, int(protocol::BadInput)); // found while the copy is written, and still the file's fault
    QVERIFY2(outcome.err.find("does not fit its checksum") != std::string::npos, outcome.err.c_str());
    QVERIFY(!QFile::exists(path("out")));
}

void TestCheckpointVerbs::exportWritesShardsInTheTypeAsked() {
    const Outcome outcome = runEngine(
        {"export-model", kFixtures + "/internlm3", "--out", path("out"), "--dtype", "bfloat16", "--max-shard-size", "100KB", "--json"});
    QVERIFY2(outcome.code == 0, outcome.err.c_str());
    const json report = json::parse(outcome.out);
    QCOMPARE(report["dtype"].get<std::string>(), std::string("bfloat16"));
    QVERIFY(QFile::exists(path("out/model.safetensors.index.json")));
    const Outcome verified = runEngine({"verify", path("out"), "--json"});
    QVERIFY2(verified.code == 0, verified.err.c_str());
    QCOMPARE(json::parse(verified.out)["bytes"].get<std::int64_t>(), 2 * json::parse(verified.out)["parameters"].get<std::int64_t>());
    const Outcome again = runEngine({"export-model", kFixtures + "/internlm3", "--out", path("out")});
    QCOMPARE(again.code, int(protocol::Failure));
    QVERIFY(again.err.find("exists") != std::string::npos);

    const QDir out(path("out"));
    QFile shard(out.filePath(out.entryList({"model-00001-of-*.safetensors"}).value(0))); // one weight a little different: nothing but its hash tells
    QVERIFY(shard.open(QIODevice::ReadWrite) && shard.seek(shard.size() - 2));
    const char last = shard.read(1)[0];
    QVERIFY(shard.seek(shard.size() - 2) && shard.putChar(static_cast<char>(last ^ 1)));
    shard.close();
    const Outcome changed = runEngine({"verify", path("out")});
    QCOMPARE(changed.code, int(protocol::BadInput));
    QVERIFY2(changed.err.find("model-00001") != std::string::npos, changed.err.c_str());
}

void TestCheckpointVerbs::verifyFindsAnotherModel() {
    const QString folder = kFixtures + "/baichuan_7b";
    const QStringList compare{"--inputs", folder + "/inputs.safetensors", "--expected", folder + "/expected.safetensors", "--threads", "1"};
    const Outcome fine = runEngine(QStringList{"verify", folder} + compare);
    QVERIFY2(fine.code == 0, fine.err.c_str());
    QVERIFY(fine.out.find("logits: largest difference") != std::string::npos);
    const Outcome strict = runEngine(QStringList{"verify", folder, "--tolerance", "0"} + compare);
    QCOMPARE(strict.code, int(protocol::Failure));
    QVERIFY2(strict.err.find("differs from the reference by") != std::string::npos, strict.err.c_str());
    QCOMPARE(runEngine(QStringList{"verify", folder, "--tolerance", "nan"} + compare).code, int(protocol::Failure));
    const Outcome other = runEngine(QStringList{"verify", kFixtures + "/baichuan2_7b"} + compare);
    QCOMPARE(other.code, int(protocol::Failure));
}

void TestCheckpointVerbs::wrongArgumentsAreNamed() {
    const QString folder = kFixtures + "/baichuan_7b";
    QCOMPARE(runEngine({"verify", folder, "--inputs", folder + "/inputs.safetensors"}).code, int(protocol::Usage));
    QCOMPARE(runEngine({"export-model", folder, "--out", path("out"), "--dtype", "int8"}).code, int(protocol::Usage));
    const Outcome size = runEngine({"export-model", folder, "--out", path("out"), "--max-shard-size", "5 apples"});
    QCOMPARE(size.code, int(protocol::Usage));
    QVERIFY(size.err.find("--max-shard-size") != std::string::npos);
    QVERIFY(!QFile::exists(path("out")));
}

QTEST_GUILESS_MAIN(TestCheckpointVerbs)
#include "tst_checkpoint_verbs.moc"
