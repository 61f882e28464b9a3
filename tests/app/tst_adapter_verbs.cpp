// Adapters from the command line: forward and merge with PEFT's files, what is said and what is refused.
#include "models/base/files.h"
#include "models/protocol/protocol.h"
#include "tests/app/verb_helper.h"

#include <QDir>
#include <QTemporaryDir>
#include <QTest>
#include <nlohmann/json.hpp>

using namespace celloom;
using namespace celloom::engine;
using namespace celloom::app::testing;
using nlohmann::json;

class TestAdapterVerbs : public QObject {
    Q_OBJECT
    QTemporaryDir m_folder;
    const QString m_base = CELLOOM_FIXTURES "/internlm", m_case = CELLOOM_FIXTURES "/lora_internlm_qv", m_adapter = m_case + "/adapter";
    QString path(const char* name) const { return m_folder.filePath(name); }
    at::Tensor expected(const char* name) const { return tensorOf((m_case + "/expected.safetensors").toStdString(), name); }
    Outcome forward(const QString& model, const QStringList& more) const {
        return runEngine(QStringList{"forward", "--model", model, "--inputs", path("inputs.safetensors"), "--out", path("o.safetensors")} + more);
    }
    at::Tensor logits() const { return tensorOf(path("o.safetensors").toStdString(), "logits"); }

private Q_SLOTS:
    void initTestCase() {
        const at::Tensor ids = tensorOf((m_case + "/inputs.safetensors").toStdString(), "input_ids");
        QVERIFY(writeSafetensors(path("inputs.safetensors").toStdString(), {{"input_ids", ids[0].clone()}}));
    }

    void forwardTakesAdapters() {
        Outcome outcome = forward(m_base, {"--adapter", m_adapter});
        QVERIFY2(outcome.code == 0, outcome.err.c_str());
        QVERIFY(largest(logits() - expected("logits_after")) < 2e-4);
        QVERIFY2(outcome.err.find("peft_version") == std::string::npos, outcome.err.c_str()); // PEFT writes it always: not worth a word
        outcome = forward(m_base, {"--adapter", m_adapter, "--adapter-weight", "0", "--adapter", CELLOOM_FIXTURES "/lora_internlm_layers/adapter", "--adapter-weight", "0"});
        QVERIFY2(outcome.code == 0, outcome.err.c_str());
        QVERIFY(largest(logits() - expected("logits_before")) < 2e-4);
    }

    void mergeWritesAModelAndProvesIt() {
        const Outcome merged = runEngine({"merge", "--model", m_base, "--adapter", m_adapter, "--out", path("merged"), "--json"});
        QVERIFY2(merged.code == 0, merged.err.c_str());
        const json said = json::parse(merged.out);
        QVERIFY(said["largest_logit_difference"].get<double>() < 2e-4 && said["adapters_changed"].get<double>() > 0.1);
        QVERIFY(forward(path("merged"), {}).code == 0);
        QVERIFY(largest(logits() - expected("logits_merged")) < 2e-4);
        // Merging twice is refused, and so is writing over a model.
        const Outcome again = runEngine({"merge", "--model", path("merged"), "--adapter", m_adapter, "--out", path("twice")});
        QCOMPARE(again.code, int(protocol::BadInput));
        QVERIFY2(again.err.find("already") != std::string::npos, again.err.c_str());
        QVERIFY(!QDir(path("twice")).exists());
        QVERIFY(runEngine({"merge", "--model", m_base, "--adapter", m_adapter, "--out", path("merged")}).code != 0);
    }

    void mergedWeightsAreRoundedOnce() {
        const Outcome merged = runEngine({"merge", "--model", m_base, "--adapter", m_adapter, "--out", path("half"), "--dtype", "bfloat16"});
        QVERIFY2(merged.code == 0, merged.err.c_str());
        QVERIFY(merged.out.find("written as bfloat16") != std::string::npos);
        const std::string name = "model.layers.0.self_attn.q_proj.weight";
        const at::Tensor written = tensorOf(path("half/model.safetensors").toStdString(), name);
        QCOMPARE(written.scalar_type(), at::kBFloat16);
        QVERIFY(largest(written.to(at::kFloat) - expected(("merged." + name).c_str()).to(at::kBFloat16).to(at::kFloat)) < 1e-2);
    }

    void whatDoesNotFitIsRefusedBeforeAnythingIsWritten() {
        const auto refused = [&](const QStringList& more, const char* says) {
            QFile::remove(path("o.safetensors"));
            const Outcome outcome = forward(m_base, more);
            if (outcome.err.find(says) == std::string::npos) qWarning("%s", outcome.err.c_str());
            return outcome.code == protocol::BadInput && outcome.err.find(says) != std::string::npos && !QFile::exists(path("o.safetensors"));
        };
        QVERIFY(refused({"--adapter", "nothing"}, "nothing"));
        QVERIFY(refused({"--adapter", m_base}, "adapter_config.json"));
        QVERIFY(refused({"--adapter", CELLOOM_FIXTURES "/lora_internlm2_wqkv/adapter"}, "wqkv"));
        QVERIFY(refused({"--adapter", m_adapter, "--adapter-weight", "1", "--adapter-weight", "2"}, "--adapter-weight"));
        const Outcome none = runEngine({"merge", "--model", m_base, "--out", path("none")});
        QCOMPARE(none.code, int(protocol::BadInput));
        QVERIFY(!QDir(path("none")).exists());
    }
};

QTEST_GUILESS_MAIN(TestAdapterVerbs)
#include "tst_adapter_verbs.moc"
