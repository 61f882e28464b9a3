// Typed callbacks and metrics in whole runs: what they change and measure, killed and resumed, errors stopped or disabled; and check-script.
#include "engine/train/checkpoint.h"
#include "tests/app/run_helper.h"

#include <QRegularExpression>

using namespace celloom;
using namespace celloom::test;
using nlohmann::json;

namespace {

/// Sets the rate from a smoothed loss: what it does at a step hangs on all steps before. Counts what is called.
const char* const kSmoothed = R"(class Smoothed(Callback):
    def __init__(self, weight=0.75):
        super().__init__()
        self.weight = weight
        self.mean = 0
        self.counts = {"begin": 0, "epoch_begin": 0, "epoch_end": 0, "step": 0, "eval": 0}
        self.losses = []

    def begin(self, run_context):
        self.counts["begin"] += 1

    def epoch_begin(self, run_context):
        self.counts["epoch_begin"] += 1

    def epoch_end(self, run_context):
        self.counts["epoch_end"] += 1

    def on_eval_end(self, run_context):
        self.counts["eval"] += 1

    def step_end(self, run_context):
        cb_params = run_context.original_args()
        loss = cb_params.net_outputs
        self.mean = self.weight * self.mean + (1 - self.weight) * loss
        self.losses.append(loss)
        self.counts["step"] += 1
        cb_params.optimizer.learning_rate = base / (1 + self.mean + len(self.losses))
        if cb_params.cur_step_num == 12:
            print(self.counts["begin"], self.counts["epoch_begin"], self.counts["epoch_end"], self.counts["step"])
)";

const char* const kAccuracy = R"(class Accuracy(Metric):
    def clear(self):
        self.correct = 0
        self.total = 0

    def update(self, predictions, labels):
        self.correct += int((predictions.argmax(-1) == labels).sum())
        self.total += labels.numel()

    def eval(self):
        return self.correct / self.total
)";

json withScripts(const json& scripts, const char* onError = "stop") {
    json recipe = smallRecipe();
    recipe["callbacks"] = {{"scripts", scripts}, {"on_error", onError}};
    return recipe;
}

json smoothed() { return {{"name", "smoothed"}, {"code", kSmoothed}, {"values", {{"base", 0.02}}}}; }

std::map<std::int64_t, double> rowsOf(const store::RunFolder& folder, const std::string& name) {
    std::map<std::int64_t, double> out;
    const auto reader = store::RunReader::open(folder.database());
    if (!reader) return out;
    const auto rows = (*reader)->metricsAfter(0, 1000000);
    if (!rows) return out;
    for (const store::MetricRow& row : *rows)
        if (!row.isSuperseded && row.name == name) out[row.step] = row.value;
    return out;
}

struct VerbEnd {
    int code = 0;
    QString output, messages;
};

VerbEnd checkScript(const QString& file, const QStringList& more = {}) {
    QProcess process;
    process.start(QStringLiteral(CELLOOM_BIN "/celloom-engine"), QStringList{QStringLiteral("check-script"), file} + more);
    if (!process.waitForFinished(60000 * CELLOOM_TEST_TIME_FACTOR)) process.kill();
    return {process.exitCode(), QString::fromUtf8(process.readAllStandardOutput()), QString::fromUtf8(process.readAllStandardError())};
}

} // namespace

class TestScripts : public QObject {
    Q_OBJECT
    RunWorkspace m_workspace;
    QTemporaryDir m_folder;

    QString file(const char* name, const std::string& content) {
        const std::string path = m_folder.filePath(QString::fromLatin1(name)).toStdString();
        if (!writeFileAtomically(path, content)) qFatal("cannot write");
        return QString::fromStdString(path);
    }

private Q_SLOTS:
    void aRunWithATypedCallbackIsTheSameKilledAndResumed() {
        const json recipe = withScripts({smoothed(), {{"name", "accuracy"}, {"code", kAccuracy}}});
        const auto reference = m_workspace.create(recipe);
        const ChildEnd whole = m_workspace.run(reference);
        QVERIFY2(!whole.isKilled && whole.code == 0, qPrintable(whole.messages + whole.output));
        const auto rates = rowsOf(reference, "train/lr");
        QCOMPARE(rates.size(), std::size_t(12));
        QVERIFY(rates.at(2) != rates.at(3) && rates.at(12) < 0.02 / 12); // set by the callback, not by the schedule
        const auto printed = events(reference, "script_print");
        QCOMPARE(printed.size(), std::size_t(1));
        QCOMPARE(QString::fromStdString(printed[0].message), QString("1 1 0 12"));
        for (const char* killAt : {"step:7", "evaluation:5", "checkpoint-write:2"}) {
            const auto folder = m_workspace.create(recipe);
            QVERIFY(m_workspace.run(folder, QString::fromLatin1(killAt)).isKilled);
            const ChildEnd resumed = m_workspace.run(folder);
            QVERIFY2(resumed.code == 0, qPrintable(resumed.messages));
            QVERIFY2(rowsOf(folder, "train/lr") == rates, killAt); // bit for bit
            QVERIFY2(rowsOf(folder, "train/loss") == rowsOf(reference, "train/loss"), killAt);
            QVERIFY2(rowsOf(folder, "eval/accuracy") == rowsOf(reference, "eval/accuracy"), killAt);
            const auto last = events(folder, "script_print");
            QVERIFY2(!last.empty() && last.back().message == printed[0].message, killAt);
        }
    }

    void aTypedMetricIsMeasuredInEachEvaluation() {
        const auto folder = m_workspace.create(withScripts({{{"name", "accuracy"}, {"code", kAccuracy}}}));
        const ChildEnd end = m_workspace.run(folder);
        QVERIFY2(end.code == 0, qPrintable(end.messages));
        const auto values = rowsOf(folder, "eval/accuracy");
        QCOMPARE(values.size(), std::size_t(3));
        for (const auto& [step, value] : values) QVERIFY(value >= 0 && value < 1);
    }

    void aScriptThatAsksToStopEndsTheRunWithACheckpoint() {
        const auto folder = m_workspace.create(withScripts({{{"name", "stop"},
                                                             {"code", "class S(Callback):\n    def step_end(self, run_context):\n        if run_context.original_args().cur_step_num == 5:\n"
                                                                      "            run_context.request_stop()\n"}}}));
        const ChildEnd end = m_workspace.run(folder);
        QCOMPARE(end.code, 4); // stopped
        QCOMPARE(rowsOf(folder, "train/loss").size(), std::size_t(5));
        QVERIFY(fs::exists(folder.checkpoints() / "step-000005"));
    }

    void anErrorStopsAfterSavingOrIsGoneOnWithout() {
        const json failing{{"name", "failing"},
                           {"code", "class F(Callback):\n    def step_end(self, run_context):\n        step = run_context.original_args().cur_step_num\n        if step == 6:\n"
                                    "            raise RuntimeError(\"no more\")\n        run_context.original_args().optimizer.learning_rate = 0.001\n"}};
        const auto stopped = m_workspace.create(withScripts(json::array({failing})));
        const ChildEnd end = m_workspace.run(stopped);
        QCOMPARE(end.code, 1);
        QVERIFY(progress(stopped).state == store::RunState::Failed);
        QVERIFY(fs::exists(stopped.checkpoints() / "step-000006"));
        const auto said = events(stopped, "callback_error");
        QCOMPARE(said.size(), std::size_t(1));
        QVERIFY2(said[0].message.find("failing:5:13") != std::string::npos && said[0].message.find("step_end: no more") != std::string::npos, said[0].message.c_str());
        const json data = json::parse(said[0].data);
        QVERIFY(data["method"] == "step_end" && data["line"] == 5 && data["action"] == "stop");

        const auto disabled = m_workspace.create(withScripts(json::array({failing}), "disable"));
        const ChildEnd on = m_workspace.run(disabled);
        QVERIFY2(on.code == 0, qPrintable(on.messages));
        QCOMPARE(rowsOf(disabled, "train/loss").size(), std::size_t(12));
        QCOMPARE(events(disabled, "callback_error").size(), std::size_t(1));
        QCOMPARE(QString::fromStdString(events(disabled, "callback_error")[0].level), QString("warning"));
    }

    void aRateThatIsNoNumberIsRefused() {
        const auto folder = m_workspace.create(withScripts({{{"name", "nan"},
                                                             {"code", "class N(Callback):\n    def step_end(self, run_context):\n        run_context.original_args().optimizer.learning_rate = math.nan\n"}}},
                                                           "disable"));
        const ChildEnd end = m_workspace.run(folder);
        QVERIFY2(end.code == 0, qPrintable(end.messages));
        const auto said = events(folder, "callback_error");
        QVERIFY(said.size() == 1 && said[0].message.find("learning rate NaN is refused") != std::string::npos);
        for (const auto& [step, rate] : rowsOf(folder, "train/lr")) QVERIFY(rate >= 0); // the schedule's
    }

    void aFailingMetricStopsTooAndMeasuresNaNWhereItIsDisabled() {
        const json metric{{"name", "broken"}, {"code", "class B(Metric):\n    def update(self, predictions, labels):\n        print(predictions[100000000])\n    def eval(self):\n        return 1.0\n"}};
        const auto disabled = m_workspace.create(withScripts(json::array({metric}), "disable"));
        const ChildEnd on = m_workspace.run(disabled);
        QVERIFY2(on.code == 0, qPrintable(on.messages));
        QCOMPARE(rowsOf(disabled, "train/loss").size(), std::size_t(12));
        const auto stopped = m_workspace.create(withScripts(json::array({metric})));
        const ChildEnd end = m_workspace.run(stopped);
        QCOMPARE(end.code, 1);
        QVERIFY(fs::exists(stopped.checkpoints() / "step-000004"));
    }

    void aScriptThatCannotRunIsRefusedBeforeTraining_data() {
        QTest::addColumn<QString>("code");
        QTest::addColumn<QString>("place");
        QTest::newRow("syntax") << "class S(Callback):\n    def step_end(self, run_context):\n        x = = 1\n" << "callbacks.scripts: bad:3:13";
        QTest::newRow("name") << "class S(Callback):\n    def step_end(self, run_context):\n        x = run_context.original_args().cur_stepnum\n" << "callbacks.scripts: bad:3:13";
        QTest::newRow("endless") << "class S(Callback):\n    def step_end(self, run_context):\n        while True:\n            pass\n" << "callbacks.scripts: bad:3:9";
    }
    void aScriptThatCannotRunIsRefusedBeforeTraining() {
        QFETCH(QString, code);
        QFETCH(QString, place);
        const auto folder = m_workspace.create(withScripts({{{"name", "bad"}, {"code", code.toStdString()}}}));
        const ChildEnd end = m_workspace.run(folder);
        QCOMPARE(end.code, 3);
        const auto said = events(folder, "failed");
        QVERIFY2(!said.empty() && QString::fromStdString(said.back().message).contains(place), said.empty() ? "" : said.back().message.c_str());
        QVERIFY(rowsOf(folder, "train/loss").empty());
    }

    void checkScriptSaysWhatItIs() {
        const VerbEnd good = checkScript(file("good.py", std::string("base = 0.1\n") + kSmoothed));
        QVERIFY2(good.code == 0, qPrintable(good.messages));
        QVERIFY2(good.output.startsWith("callback Smoothed"), qPrintable(good.output));
        QVERIFY(checkScript(file("open.py", kSmoothed), {"--value", "base=0.1"}).code == 0);
        const VerbEnd metric = checkScript(file("metric.py", kAccuracy), {"--json"});
        QCOMPARE(metric.code, 0);
        const json answer = json::parse(metric.output.toStdString());
        QVERIFY(answer["ok"] == true && answer["kind"] == "metric" && answer["definition"] == "Accuracy" && answer["error"].is_null());
    }

    void checkScriptNamesFileLineAndColumn() {
        const QString path = file("bad.py", "class S(Callback):\n    def step_end(self, run_context):\n        x = run_context.original_args().cur_stepnum\n");
        const VerbEnd end = checkScript(path);
        QCOMPARE(end.code, 3);
        QVERIFY2(end.messages.startsWith(path + ":3:13: error: cb_params has no \"cur_stepnum\". Did you mean cur_step_num?"), qPrintable(end.messages));
        const VerbEnd asJson = checkScript(path, {"--json"});
        QCOMPARE(asJson.code, 3);
        const json answer = json::parse(asJson.output.toStdString());
        QVERIFY(answer["ok"] == false && answer["error"]["line"] == 3 && answer["error"]["column"] == 13);
        const VerbEnd open = checkScript(file("open.py", kSmoothed), {"--json"});
        QCOMPARE(open.code, 3);
        bool isNamed = false;
        const json names = json::parse(open.output.toStdString())["names"];
        for (const json& name : names) isNamed = isNamed || (name["name"] == "base" && name["value"].is_null());
        QVERIFY2(isNamed, qPrintable(open.output));
    }

    void checkScriptRefusesWhatWouldExhaustTheCompiler() {
        std::string doubling = "class S(Callback):\n    def step_end(self, run_context):\n        s = \"aaaaaaaaaaaaaaaa\"\n";
        for (int i = 0; i < 60; ++i) doubling += "        s = s + s\n";
        doubling += "        print(s)\n";
        const VerbEnd end = checkScript(file("doubling.py", doubling));
        QCOMPARE(end.code, 3);
        QVERIFY2(end.messages.contains("memory") || end.messages.contains("grew"), qPrintable(end.messages));
    }
};

QTEST_GUILESS_MAIN(TestScripts)
#include "tst_scripts.moc"
