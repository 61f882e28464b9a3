// The trace fixture (20 AdamW steps of a small Baichuan, computed in PyTorch) run as a recipe: losses, rates, norms, final weights.
#include "engine/checkpoint/safetensors.h"
#include "engine/train/llm_trainer.h"
#include "models/base/files.h"


#include <QTemporaryDir>
#include <QTest>
#include <cmath>
#include <nlohmann/json.hpp>

using namespace celloom;
using namespace celloom::engine;
namespace fs = std::filesystem;
using nlohmann::json;

class TestPretrainTrace : public QObject {
    Q_OBJECT
    const fs::path m_fixtures = CELLOOM_FIXTURES;

    json recipe(int batchSize, int accumulation) const {
        const std::string base = (m_fixtures / "baichuan_7b").string();
        return {{"model", {{"source", base}, {"weights", base}}},
                {"data", {{"train", {(m_fixtures / "pretrain_baichuan_7b/inputs.safetensors").string()}}, {"validation_fraction", 0}, {"shuffle", false}}},
                {"train", {{"batch_size", batchSize}, {"accumulation", accumulation}}},
                {"optimizer", {{"type", "AdamW"}, {"lr", 3e-3}, {"beta1", 0.9}, {"beta2", 0.95}, {"eps", 1e-8}, {"weight_decay", 0.1}, {"clip_norm", 1.0}}},
                {"schedule", {{"type", "cosine"}, {"rule", "celloom"}, {"warmup_steps", 5}, {"min_lr", 3e-4}}},
                {"threads", 1}};
    }

private Q_SLOTS:
    void recipeRepeatsTheTrace_data() {
        QTest::addColumn<int>("batchSize");
        QTest::addColumn<int>("accumulation");
        QTest::addColumn<QString>("trace");
        QTest::newRow("one batch of four") << 4 << 1 << "trace_f32";
        QTest::newRow("two accumulated batches of two") << 2 << 2 << "trace_f32_two_accumulated_microbatches";
    }
    void recipeRepeatsTheTrace() {
        QFETCH(int, batchSize);
        QFETCH(int, accumulation);
        QFETCH(QString, trace);
        QTemporaryDir temporary;
        const auto workspace = store::Workspace::open(temporary.path().toStdString());
        QVERIFY(workspace);
        const auto folder = workspace->createRun("trace");
        QVERIFY(folder);
        const auto loaded = recipe::Recipe::fromJson(recipe(batchSize, accumulation).dump());
        QVERIFY2(loaded, loaded ? "" : loaded.error().text().c_str());
        const auto writer = store::RunWriter::open(folder->database());
        QVERIFY(writer);
        LLMTrainer trainer({*folder, workspace->cache(), **writer, nullptr, nullptr, [](const std::string&) {}}, *loaded);
        const RunResult result = trainer.run();
        QVERIFY2(result.code == protocol::Ok, result.error.text().c_str());

        const json fixture = json::parse(*readFile(m_fixtures / "pretrain_baichuan_7b/expected.json"));
        const json& expected = fixture[trace.toStdString()];
        const json& tolerance = fixture["suggested_tolerance"];
        std::map<std::string, std::vector<double>> rows;
        const auto reader = store::RunReader::open(folder->database());
        const auto metrics = (*reader)->metricsAfter(0, 100000);
        QVERIFY(metrics);
        for (const auto& row : *metrics) rows[row.name].push_back(row.value);
        QCOMPARE(rows["train/loss"].size(), std::size_t(20));
        for (std::size_t s = 0; s < 20; ++s) {
            QVERIFY2(std::abs(rows["train/loss"][s] - expected["loss"][s].get<double>()) < tolerance["loss_abs"].get<double>(), qPrintable(QString("loss %1").arg(s)));
            QVERIFY2(std::abs(rows["train/lr"][s] - expected["lr"][s].get<double>()) < 1e-12, qPrintable(QString("rate %1").arg(s)));
            const double norm = expected["grad_norm_before_clip"][s];
            QVERIFY2(std::abs(rows["train/grad_norm"][s] / norm - 1) < tolerance["grad_norm_rel"].get<double>(), qPrintable(QString("norm %1").arg(s)));
        }

        const auto weights = SafetensorsFile::open(folder->checkpoints() / "step-000020/model.safetensors");
        const auto final = SafetensorsFile::open(m_fixtures / "pretrain_baichuan_7b/expected.safetensors");
        QVERIFY(weights && final);
        for (const std::string& name : (*weights)->names()) {
            const at::Tensor difference = (*weights)->tensor(name)->sub(*(*final)->tensor("final." + name)).abs().max();
            QVERIFY2(difference.item<double>() < tolerance["final_weight_abs"].get<double>(), name.c_str());
        }
    }
};

QTEST_GUILESS_MAIN(TestPretrainTrace)
#include "tst_pretrain_trace.moc"
