// Runs on named columns: a regression and a classifier of the user's own graph, from recipe to finished run.
#include "../engine/train_helper.h"
#include "engine/checkpoint/safetensors.h"
#include "engine/train/checkpoint.h"
#include "models/graph/json.h"
#include "run_helper.h"

#include <ATen/ops/logical_xor.h>
#include <ATen/ops/rand.h>

using namespace celloom;
using namespace celloom::test;
using nlohmann::json;

namespace {

at::Tensor uniform(at::IntArrayRef sizes, std::uint64_t seed) { return at::rand(sizes, at::detail::createCPUGenerator(seed)).mul(2).sub(1); }

} // namespace

class TestTensors : public QObject {
    Q_OBJECT
    QTemporaryDir m_folder;
    RunWorkspace m_workspace;

    fs::path path(const char* name) const { return fs::path(m_folder.path().toStdString()) / name; }
    void write(const char* name, const std::map<std::string, at::Tensor>& columns) {
        if (auto status = engine::writeSafetensors(path(name), columns); !status) qFatal("%s", status.error().text().c_str());
    }
    void writeGraph(const char* name, std::int64_t outputs) {
        if (auto status = writeFileAtomically(path(name), graph::toJson(engine::perceptron(2, 24, outputs))); !status) qFatal("%s", status.error().text().c_str());
    }
    json recipe(const char* graph, const char* train, const char* validation, const char* loss) const {
        return {{"model", {{"source", path(graph).string()}, {"init_std", 0.5}}},
                {"data", {{"format", "tensors"}, {"train", {path(train).string()}}, {"validation", {path(validation).string()}}}},
                {"loss", {{"type", loss}}},
                {"optimizer", {{"lr", 0.02}, {"weight_decay", 0}}},
                {"schedule", {{"type", "constant"}, {"warmup_steps", 0}, {"warmup_ratio", 0}}},
                {"train", {{"batch_size", 32}, {"epochs", 30}}},
                {"evaluate", {{"every_steps", 100}}},
                {"threads", 1}};
    }
    std::map<std::string, double> lastMetrics(const store::RunFolder& folder) {
        std::map<std::string, double> out;
        const auto reader = store::RunReader::open(folder.database());
        const auto metrics = (*reader)->metricsAfter(0, 100000);
        for (const auto& row : *metrics) out[row.name] = row.value;
        return out;
    }
    json eventOf(const store::RunFolder& folder, const std::string& kind) {
        const auto rows = events(folder, kind);
        return rows.empty() ? json() : json::parse(rows.back().data);
    }

private Q_SLOTS:
    void initTestCase() {
        writeGraph("one.cells.json", 1);
        writeGraph("two.cells.json", 2);
        for (const auto& [name, rows, seed] : {std::tuple{"train", 512, 1}, {"validation", 128, 2}}) {
            const at::Tensor x = uniform({rows, 2}, static_cast<std::uint64_t>(seed));
            const at::Tensor isQuadrant = x.select(1, 0).gt(0).logical_xor(x.select(1, 1).gt(0)); // XOR of the signs
            write((std::string(name) + "-numbers.safetensors").c_str(), {{"features", x}, {"label", x.select(1, 0).mul(2).sub(x.select(1, 1)).add(0.5)}});
            write((std::string(name) + "-classes.safetensors").c_str(), {{"features", x}, {"label", isQuadrant.to(at::kLong)}});
        }
    }

    void aRegressionLearnsItsFormula() { // label = 2 x0 - x1 + 0.5, whose variance is 5/3
        json settings = recipe("one.cells.json", "train-numbers.safetensors", "validation-numbers.safetensors", "MSELoss");
        settings["evaluate"]["metrics"] = {"mae"};
        const auto folder = m_workspace.create(settings);
        const ChildEnd end = m_workspace.run(folder);
        QVERIFY2(end.code == 0, qPrintable(end.output + end.messages));
        const auto metrics = lastMetrics(folder);
        QVERIFY2(metrics.at("eval/loss") < 0.01, qPrintable(QString::number(metrics.at("eval/loss"))));
        QVERIFY(metrics.at("eval/mae") < 0.1 && metrics.contains("train/rows_per_s") && !metrics.contains("eval/perplexity"));
        QCOMPARE(eventOf(folder, "data")["rows"].get<int>(), 512);
        QCOMPARE(eventOf(folder, "evaluation")["items"].get<int>(), 128);
    }

    void aClassifierLearnsXor() { // no straight line does better than one half
        json settings = recipe("two.cells.json", "train-classes.safetensors", "validation-classes.safetensors", "SoftmaxCrossEntropyWithLogits");
        settings["evaluate"]["metrics"] = {"accuracy", "F1"};
        const auto folder = m_workspace.create(settings);
        const ChildEnd end = m_workspace.run(folder);
        QVERIFY2(end.code == 0, qPrintable(end.output + end.messages));
        const auto metrics = lastMetrics(folder);
        QVERIFY2(metrics.at("eval/accuracy") > 0.95, qPrintable(QString::number(metrics.at("eval/accuracy"))));
        QVERIFY(metrics.at("eval/F1") > 0.95);
        QCOMPARE(eventOf(folder, "evaluation")["metrics"]["accuracy"].get<double>(), metrics.at("eval/accuracy"));
    }

    void twoLossesOnOneOutput() {
        json settings = recipe("one.cells.json", "train-numbers.safetensors", "validation-numbers.safetensors", "MSELoss");
        settings["loss"] = {{"terms", {"logits -> label: MSELoss", "logits -> label: L1Loss weight=0.5"}}};
        settings["train"]["max_steps"] = 3;
        const auto folder = m_workspace.create(settings);
        const ChildEnd end = m_workspace.run(folder);
        QVERIFY2(end.code == 0, qPrintable(end.output + end.messages));
        QCOMPARE(eventOf(folder, "evaluation")["items"].get<int>(), 256); // of both terms
    }

    void aKilledRunGoesOnExactly() {
        json settings = recipe("one.cells.json", "train-numbers.safetensors", "validation-numbers.safetensors", "MSELoss");
        settings["train"]["max_steps"] = 40;
        settings["checkpoint"] = {{"every_steps", 7}};
        settings["callbacks"] = {{"reduce_lr_patience", 1}, {"reduce_lr_min_delta", 100}}; // lowers the rate at every evaluation after the first
        settings["evaluate"]["every_steps"] = 5;
        const auto whole = m_workspace.create(settings), killed = m_workspace.create(settings);
        QCOMPARE(m_workspace.run(whole).code, 0);
        QVERIFY(m_workspace.run(killed, QStringLiteral("step:23")).isKilled);
        QCOMPARE(m_workspace.run(killed).code, 0);
        QVERIFY(exactRows(whole) == exactRows(killed));
        QCOMPARE(eventOf(whole, "plateau")["monitor"].get<std::string>(), std::string("eval_loss"));
    }

    void earlyStoppingEndsTheRun() {
        json settings = recipe("one.cells.json", "train-numbers.safetensors", "validation-numbers.safetensors", "MSELoss");
        settings["callbacks"] = {{"early_stopping_patience", 2}, {"early_stopping_min_delta", 100}};
        settings["evaluate"]["every_steps"] = 5;
        const auto folder = m_workspace.create(settings);
        const ChildEnd end = m_workspace.run(folder);
        QVERIFY2(end.code == 0, qPrintable(end.output + end.messages));
        const json event = eventOf(folder, "early_stopping");
        QCOMPARE(event["step"].get<int>(), 15); // the first measurement is the best, two more bring nothing
        QCOMPARE(eventOf(folder, "stopped")["step"].get<int>(), 15);
        QCOMPARE(m_workspace.run(folder).code, 0); // resumed: it had ended by itself
        QCOMPARE(eventOf(folder, "stopped")["step"].get<int>(), 15);
    }

    void aRunThatEndsEarlyHasItsBestWeightsAgainAlsoAfterAKill() {
        json settings = recipe("one.cells.json", "train-numbers.safetensors", "validation-numbers.safetensors", "MSELoss");
        settings["callbacks"] = {{"early_stopping_patience", 2}, {"early_stopping_min_delta", 100}, {"early_stopping_restore_best", true}};
        settings["evaluate"]["every_steps"] = 5;
        settings["checkpoint"] = {{"every_steps", 4}};
        const auto whole = m_workspace.create(settings), killed = m_workspace.create(settings), plain = [&] {
            settings["callbacks"]["early_stopping_restore_best"] = false;
            settings["checkpoint"]["every_steps"] = 5;
            return m_workspace.create(settings);
        }();
        QCOMPARE(m_workspace.run(whole).code, 0);
        QCOMPARE(m_workspace.run(plain).code, 0);
        QVERIFY(m_workspace.run(killed, QStringLiteral("step:14")).isKilled); // step 5's are two checkpoints old
        QCOMPARE(m_workspace.run(killed).code, 0);
        const auto weights = [](const store::RunFolder& folder, std::int64_t step) { return *sha256OfFile(folder.checkpoints() / engine::checkpointName(step) / "model.safetensors"); };
        for (const auto& folder : {whole, killed}) {
            QCOMPARE(eventOf(folder, "early_stopping")["restored_step"].get<int>(), 5);
            QCOMPARE(weights(folder, 15), weights(plain, 5));
        }
        QCOMPARE(eventOf(plain, "early_stopping")["restored_step"].get<int>(), 0);
        QVERIFY(weights(plain, 15) != weights(plain, 5));
        QVERIFY(!fs::exists(plain.checkpoints() / engine::checkpointName(15) / "callbacks.safetensors"));
    }

    void measurementsAreToPassTheBaseline() {
        json settings = recipe("one.cells.json", "train-numbers.safetensors", "validation-numbers.safetensors", "MSELoss");
        settings["callbacks"] = {{"early_stopping_patience", 2}, {"early_stopping_baseline", 1e-9}};
        settings["evaluate"]["every_steps"] = 5;
        const auto folder = m_workspace.create(settings);
        QCOMPARE(m_workspace.run(folder).code, 0);
        QCOMPARE(eventOf(folder, "early_stopping")["step"].get<int>(), 10); // both improved, neither enough
    }

    void whatDoesNotFitIsRefusedBeforeTraining_data() {
        QTest::addColumn<QString>("change");
        QTest::addColumn<QString>("said");
        QTest::newRow("an unknown output") << R"({"loss": {"terms": ["score -> label: MSELoss"]}})" << "There are: logits";
        QTest::newRow("an unknown column") << R"({"loss": {"terms": ["logits -> target: MSELoss"]}})" << "There are: label";
        QTest::newRow("another shape") << R"({"loss": {"type": "SoftmaxCrossEntropyWithLogits"}})" << "cannot be compared";
    }
    void whatDoesNotFitIsRefusedBeforeTraining() {
        QFETCH(QString, change);
        QFETCH(QString, said);
        json settings = recipe("one.cells.json", "train-numbers.safetensors", "validation-numbers.safetensors", "MSELoss");
        settings.merge_patch(json::parse(change.toStdString()));
        const ChildEnd end = m_workspace.run(m_workspace.create(settings));
        QVERIFY(end.code != 0);
        QVERIFY2((end.output + end.messages).contains(said), qPrintable(end.output + end.messages));
    }
};

QTEST_GUILESS_MAIN(TestTensors)
#include "tst_tensors.moc"
