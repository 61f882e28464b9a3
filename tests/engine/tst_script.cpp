// Typed callbacks, schedules and metrics: the article's class as it stands, what MindSpore's users write, state, errors with places, and that
// nothing hostile gets through.
#include "engine/script/trial.h"

#include <ATen/ops/tensor.h>
#include <QtTest>

#include <cmath>

using namespace celloom;
using namespace celloom::engine;

namespace {

const std::string kArticle = R"(class CustomLRScheduler(Callback):
    def step_end(self, run_context):
        cb_params = run_context.original_args()
        step = cb_params.cur_step_num
        new_lr = initial_lr * (0.9 ** (step // 1000))
        cb_params.optimizer.learning_rate = new_lr
)";

/// MindSpore's documentation of Metric, as it stands.
const std::string kMindSporeMetric = R"(import numpy as np
from mindspore import nn, train

class MyMAE(train.Metric):
    def __init__(self):
        super(MyMAE, self).__init__()
        self.clear()

    def clear(self):
        """Clears the internal evaluation result."""
        self.abs_error_sum = 0
        self.samples_num = 0

    def update(self, *inputs):
        """Updates the internal evaluation result."""
        y_pred = inputs[0].asnumpy()
        y = inputs[1].asnumpy()
        error_abs = np.abs(y - y_pred)
        self.abs_error_sum += error_abs.sum()
        self.samples_num += y.shape[0]

    def eval(self):
        return self.abs_error_sum / self.samples_num
)";

std::string method(const std::string& body) {
    std::string out = "class A(Callback):\n    def step_end(self, run_context):\n        cb_params = run_context.original_args()\n";
    for (std::size_t at = 0; at < body.size();) {
        const std::size_t end = std::min(body.find('\n', at), body.size());
        out += "        " + body.substr(at, end - at) + "\n";
        at = end + 1;
    }
    return out;
}

std::unique_ptr<Script> compiled(const std::string& code, std::map<std::string, ScriptValue> values = {}) {
    auto script = Script::compile({"mine", code, std::move(values)});
    if (!script) {
        qWarning("%d:%d %s %s", script.error().line, script.error().column, script.error().message.c_str(), script.error().hint.c_str());
        return nullptr;
    }
    return std::move(*script);
}

/// "line:column message", or "ok".
QString outcome(const ScriptResult<void>& result) {
    if (result) return QStringLiteral("ok");
    return QStringLiteral("%1:%2 %3").arg(result.error().line).arg(result.error().column).arg(QString::fromStdString(result.error().message));
}
QString outcome(const Trial& trial) {
    if (!trial.error) return QStringLiteral("ok");
    return outcome(ScriptResult<void>(tl::unexpected(*trial.error)));
}

CallbackParams atStep(std::int64_t step, double loss = 1.5) {
    CallbackParams params;
    params.curStepNum = step;
    params.curEpochNum = 1;
    params.batchNum = 1000;
    params.epochNum = 2;
    params.netOutputs = loss;
    params.hasNetOutputs = true;
    params.evalResults = {{"eval_loss", 0.75}};
    return params;
}

/// What a step's end asks for.
ScriptRun afterStep(Script& script, const CallbackParams& params, double rate = 0.1) {
    ScriptRun run{params, rate};
    const auto status = script.call("step_end", run);
    if (!status) qWarning("%s", qPrintable(outcome(status)));
    return run;
}

} // namespace

class TestScript : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void theArticlesClassGivesItsRates() {
        auto script = compiled(kArticle, {{"initial_lr", 0.01}});
        QVERIFY(script);
        QCOMPARE(script->report().names.size(), std::size_t(1));
        QCOMPARE(QString::fromStdString(script->report().names[0].name), QString("initial_lr"));
        for (const auto& [step, power] : std::vector<std::pair<std::int64_t, int>>{{1, 0}, {999, 0}, {1000, 1}, {2500, 2}}) {
            const CallbackParams params = atStep(step);
            const ScriptRun run = afterStep(*script, params);
            QVERIFY(run.isRateSet);
            QCOMPARE(run.rate, 0.01 * std::pow(0.9, power));
        }
    }

    void aNameWithoutAValueIsReportedWithItsPlaceAndNearestWord() {
        ScriptReport report;
        const auto script = Script::compile({"mine", kArticle, {}}, &report);
        QVERIFY(!script);
        QCOMPARE(outcome(tl::unexpected(script.error())), QString("5:18 initial_lr has no value."));
        QCOMPARE(report.names.size(), std::size_t(1));
        const auto typo = Script::compile({"mine", method("x = stepp + 1\nstep = 3"), {}});
        QVERIFY(!typo && typo.error().hint.find("step") != std::string::npos);
    }

    void constantsOfTheFileAreValuesThatTheRecipeOverrides() {
        auto script = compiled("initial_lr = 0.5\n" + kArticle);
        QVERIFY(script);
        const CallbackParams params = atStep(1);
        QCOMPARE(afterStep(*script, params).rate, 0.5);
        script = compiled("initial_lr = 0.5\n" + kArticle, {{"initial_lr", 0.25}});
        QVERIFY(script);
        QCOMPARE(afterStep(*script, params).rate, 0.25);
    }

    void paramsCarryMindSporesNames() {
        std::vector<std::string> lines;
        auto script = compiled(method("loss = cb_params.net_outputs\n"
                                      "print(cb_params.cur_step_num, cb_params.cur_epoch_num, cb_params.batch_num, cb_params.epoch_num, cb_params.mode)\n"
                                      "print(loss.asnumpy(), cb_params.optimizer.learning_rate, cb_params.eval_results[\"eval_loss\"], cb_params.loss_scale)\n"
                                      "if cb_params.cur_step_num >= 7:\n    run_context.request_stop()"));
        QVERIFY(script);
        script->setPrint([&](const std::string& line) { lines.push_back(line); });
        const CallbackParams params = atStep(7);
        QVERIFY(afterStep(*script, params, 0.125).isStopAsked);
        QCOMPARE(lines.size(), std::size_t(2));
        QCOMPARE(QString::fromStdString(lines[0]), QString("7 1 1000 2 train"));
        QCOMPARE(QString::fromStdString(lines[1]), QString("1.5 0.125 0.75 1."));
    }

    void attributesAreStateAndComeBackBitForBit() {
        const std::string code = R"(class Smooth(Callback):
    def __init__(self, weight=0.9):
        super().__init__()
        self.weight = weight
        self.mean = 0.0
        self.count = 0
        self.losses = []
        self.best = {}
        self.words = "a"
        self.tensor = torch.zeros([2])

    def step_end(self, run_context):
        cb_params = run_context.original_args()
        loss = cb_params.net_outputs
        self.mean = self.weight * self.mean + (1 - self.weight) * loss
        self.count += 1
        self.losses.append(loss / 3)
        self.best["loss"] = min(loss, self.best.get("loss", math.inf))
        self.words = "{} {}".format(self.count, self.mean)
        self.tensor = self.tensor + loss / 7
        cb_params.optimizer.learning_rate = self.mean + sum(self.losses)
)";
        auto whole = compiled(code), first = compiled(code), second = compiled(code);
        QVERIFY(whole && first && second);
        std::vector<double> rates;
        for (int step = 1; step <= 8; ++step) {
            const CallbackParams params = atStep(step, 1.0 / step);
            rates.push_back(afterStep(*whole, params).rate);
            if (step <= 4) afterStep(*first, params);
        }
        const auto lost = second->restore(first->state());
        QVERIFY(lost && lost->empty());
        for (int step = 5; step <= 8; ++step) {
            const CallbackParams params = atStep(step, 1.0 / step);
            QCOMPARE(afterStep(*second, params).rate, rates[static_cast<std::size_t>(step - 1)]);
        }
        QCOMPARE(QString::fromStdString(second->state()), QString::fromStdString(whole->state()));
    }

    void infiniteAndNaNAttributesAreSaved() {
        auto script = compiled(R"(class A(Callback):
    def __init__(self):
        self.best = math.inf
        self.none = -math.inf
        self.nan = math.nan
    def step_end(self, run_context):
        self.best = min(self.best, 3.5)
)");
        QVERIFY(script);
        const std::string saved = script->state();
        const CallbackParams params = atStep(1);
        afterStep(*script, params);
        QVERIFY(script->state() != saved);
        QVERIFY(script->restore(saved));
        QCOMPARE(QString::fromStdString(script->state()), QString::fromStdString(saved));
    }

    void aChangedClassSaysWhichValuesAreLost() {
        auto before = compiled("class A(Callback):\n    def __init__(self):\n        self.a = 1\n        self.b = 2.0\n        self.c = 3\n    def step_end(self, run_context):\n        pass\n");
        auto after = compiled("class A(Callback):\n    def __init__(self):\n        self.a = 5\n        self.b = \"x\"\n    def step_end(self, run_context):\n        pass\n");
        QVERIFY(before && after);
        const auto lost = after->restore(before->state());
        QVERIFY(lost);
        QCOMPARE(*lost, (std::vector<std::string>{"b", "c"}));
    }

    void wholeNumbersBecomeOthersWhereMoreIsKept() {
        auto script = compiled(R"(class A(Callback):
    def __init__(self):
        self.total = 0
        self.steps = 0
        self.best = 0
    def step_end(self, run_context):
        cb_params = run_context.original_args()
        self.total += cb_params.net_outputs
        self.steps += 1
        if cb_params.net_outputs > self.best:
            self.best = cb_params.net_outputs
        cb_params.optimizer.learning_rate = self.total / self.steps + self.best
)");
        QVERIFY(script);
        const CallbackParams params = atStep(1, 1.5);
        QCOMPARE(afterStep(*script, params).rate, 3.0);
    }

    void mindSporesWaysToSetTheRateAreKnown() {
        for (const char* set : {"cb_params.optimizer.learning_rate.set_data(0.25)", "ops.assign(cb_params.optimizer.learning_rate, 0.25)", "cb_params.optimizer.learning_rate = torch.tensor(0.25)",
                                "opt = cb_params.optimizer\nopt.learning_rate *= 2.5"}) {
            auto script = compiled(method(set));
            QVERIFY2(script, set);
            const CallbackParams params = atStep(1);
            const ScriptRun run = afterStep(*script, params, 0.1);
            QVERIFY2(run.isRateSet && run.rate == 0.25, set);
        }
    }

    void constructorParametersAreFields() {
        const std::string code = "class Stop(Callback):\n    def __init__(self, after, patience=3):\n        self.after = after\n        self.patience = patience\n"
                                 "    def step_end(self, run_context):\n        if run_context.original_args().cur_step_num >= self.after + self.patience:\n            run_context.request_stop()\n";
        ScriptReport report;
        QVERIFY(!Script::compile({"mine", code, {}}, &report));
        QCOMPARE(report.names.size(), std::size_t(2));
        auto script = compiled(code, {{"after", std::int64_t(5)}});
        QVERIFY(script);
        const CallbackParams before = atStep(7), after = atStep(8);
        QVERIFY(!afterStep(*script, before).isStopAsked && afterStep(*script, after).isStopAsked);
    }

    void aScheduleIsAFunction() {
        auto script = compiled("def learning_rate_function(lr, cur_step_num):\n    if cur_step_num % 1000 == 0:\n        lr = lr * 0.1\n    return lr\n");
        QVERIFY(script);
        QCOMPARE(script->report().kind, ScriptKind::Schedule);
        QCOMPARE(*script->rate(0.5, 999), 0.5);
        QCOMPARE(*script->rate(0.5, 1000), 0.5 * 0.1);
    }

    void mindSporesMetricRunsAsItStands() {
        auto script = compiled(kMindSporeMetric);
        QVERIFY(script);
        QCOMPARE(script->report().kind, ScriptKind::Metric);
        QVERIFY(script->clear());
        const at::Tensor predictions = at::tensor(std::vector<float>{0.1f, 0.2f, 0.6f, 0.9f}), labels = at::tensor(std::vector<float>{0.1f, 0.25f, 0.7f, 0.9f});
        QVERIFY(script->update(predictions, labels)); // the documentation's example: 0.037499990314245224
        const auto value = script->eval();
        QVERIFY(value);
        QVERIFY(std::abs(*value - 0.0375) < 1e-6);
        QVERIFY(script->clear());
        QVERIFY(script->update(predictions, predictions));
        QCOMPARE(*script->eval(), 0.0);
    }

    void errorsNameTheirPlace_data() {
        QTest::addColumn<QString>("body");
        QTest::addColumn<QString>("expected");
        QTest::addColumn<QString>("hint");
        QTest::newRow("misspelt parameter") << "x = cb_params.cur_stepnum" << "4:13 cb_params has no \"cur_stepnum\"." << "cur_step_num";
        QTest::newRow("misspelt method") << "run_context.request_stopp()" << "4:9 run_context has no \"request_stopp\"." << "request_stop";
        QTest::newRow("misspelt optimizer") << "cb_params.optimizer.learningrate = 1.0" << "4:9 Nothing is kept under the name" << "learning_rate";
        QTest::newRow("misspelt function") << "x = flaot(1)" << "4:13 There is no function flaot. Did you mean float" << "";
        QTest::newRow("attribute") << "x = self.nothing" << "4:13 self.nothing is not there." << "__init__";
        QTest::newRow("syntax") << "x = = 1" << "4:13 " << "";
        QTest::newRow("types") << "x = 1 + \"a\"" << "4:13 " << "";
        QTest::newRow("two types") << "x = 1\nif cb_params.cur_step_num > 3:\n    x = \"a\"\nprint(x)" << "6:13 x was int and is given str" << "keeps its type";
        QTest::newRow("parameters") << "x = cb_params.train_network" << "4:13 cb_params has no \"train_network\"." << "";
    }
    void errorsNameTheirPlace() {
        QFETCH(QString, body);
        QFETCH(QString, expected);
        QFETCH(QString, hint);
        const auto script = Script::compile({"mine", method(body.toStdString()), {}});
        QVERIFY(!script);
        const QString found = outcome(tl::unexpected(script.error()));
        QVERIFY2(found.startsWith(expected), qPrintable(found));
        QVERIFY2(QString::fromStdString(script.error().hint).contains(hint), script.error().hint.c_str());
    }

    void runningErrorsNameMethodAndLine() {
        auto script = compiled(method("x = [1.0]\nif cb_params.cur_step_num > 3:\n    raise RuntimeError(\"enough\")\nprint(x[cb_params.cur_step_num])"));
        QVERIFY(script);
        const CallbackParams index = atStep(2), raise = atStep(4);
        ScriptRun first{index, 0.1}, second{raise, 0.1};
        const auto outOfRange = script->call("step_end", first), raised = script->call("step_end", second);
        QVERIFY(!outOfRange && !raised);
        QCOMPARE(outOfRange.error().line, 7);
        QCOMPARE(QString::fromStdString(outOfRange.error().method), QString("step_end"));
        QVERIFY2(outcome(raised).startsWith("6:13 enough"), qPrintable(outcome(raised)));
    }

    void lossIsNotThereBeforeTheFirstStep() {
        auto script = compiled("class A(Callback):\n    def begin(self, run_context):\n        x = run_context.original_args().net_outputs\n");
        QVERIFY(script);
        CallbackParams params = atStep(0);
        params.hasNetOutputs = false;
        ScriptRun run{params, 0.1};
        const auto status = script->call("begin", run);
        QVERIFY(!status && status.error().line == 3);
    }

    void hostileScriptsAreRefused_data() {
        QTest::addColumn<QString>("code");
        QTest::addColumn<QString>("expected");
        const auto row = [](const char* name, const std::string& code, const char* expected) { QTest::newRow(name) << QString::fromStdString(code) << QString(expected); };
        row("while True", method("while True:\n    pass"), "4:9 Loops ran more than");
        row("endless counting", method("i = 0\nwhile i >= 0:\n    i += 1"), "5:9 Loops ran more than");
        row("nested loops", method("x = 0\nfor a in range(100000):\n    for b in range(100000):\n        x += 1"), "6:13 Loops ran more than");
        row("doubling a text", method("s = str(cb_params.cur_step_num)\nfor i in range(64):\n    s = s + s"), "6:17 A text grew longer");
        row("doubling a list", method("l = [cb_params.cur_step_num]\nfor i in range(64):\n    l = l + l"), "6:17 A list grew longer");
        row("extending a list", method("l = [cb_params.cur_step_num]\nfor i in range(64):\n    l.extend(l)\nprint(len(l))"), "6:13 A list grew longer");
        row("repeating a list", method("l = [cb_params.cur_step_num] * 100000000000\nprint(len(l))"), "4:13 A repeated list");
        row("a large tensor", method("x = torch.zeros([1000000, 1000000])\nprint(x)"), "4:13 A new tensor would have");
        row("save", method("torch.save(torch.ones([1]), 'x.pt')"), "4:9 torch.save is not available");
        row("from_file", method("x = torch.from_file('/etc/passwd')"), "4:13 torch.from_file is not available");
        row("manual_seed", method("torch.manual_seed(1)"), "4:9 torch.manual_seed is not available");
        row("random", method("x = torch.rand([2])"), "4:13 torch.rand is not available");
        row("open", method("f = open('x')"), "4:13 There is no function open");
        row("eval", method("eval('1')"), "4:9 There is no function eval");
        row("in place", "class M(Metric):\n    def update(self, predictions, labels):\n        predictions.zero_()\n    def eval(self):\n        return 1.0\n", "3:9 Tensors are not changed in place");
        row("slice in place", "class M(Metric):\n    def update(self, predictions, labels):\n        predictions[0] = 1.0\n    def eval(self):\n        return 1.0\n", "3:9 Tensors are not changed in place");
        row("constant texts", method([] {
            std::string body = "s = \"aaaaaaaaaaaaaaaa\"\n";
            for (int i = 0; i < 60; ++i) body += "s = s + s\n";
            return body + "print(s)";
        }()), "");
        row("calls that multiply", [] {
            std::string code = "def f0(x):\n    return x + 1\n";
            for (int i = 1; i < 40; ++i)
                code += "def f" + std::to_string(i) + "(x):\n    return f" + std::to_string(i - 1) + "(x) + f" + std::to_string(i - 1) + "(x)\n";
            return code + method("x = f39(1.0)");
        }(), "");
        row("recursion", "def f(x: float) -> float:\n    return f(x)\n" + method("x = f(1.0)"), "");
        row("200 000 brackets", method("x = " + std::string(200000, '(')), "0:0 The source is longer");
        row("brackets", method("x = " + std::string(30000, '(') + std::string(30000, ')')), "4:45 Brackets are nested deeper");
    }
    void hostileScriptsAreRefused() {
        QFETCH(QString, code);
        QFETCH(QString, expected);
        const Trial trial = tryScript({"mine", code.toStdString(), {}});
        QVERIFY2(trial.error, "was accepted");
        const QString found = outcome(trial);
        QVERIFY2(found.startsWith(expected), qPrintable(found));
    }

    void aTrialAcceptsWhatIsGood() {
        for (const auto& [code, values] : std::vector<std::pair<std::string, std::map<std::string, ScriptValue>>>{
                 {kArticle, {{"initial_lr", 0.1}}}, {kMindSporeMetric, {}}, {"def f(lr, cur_step_num):\n    return lr * 0.5\n", {}}}) {
            const Trial trial = tryScript({"mine", code, values});
            QVERIFY2(!trial.error, qPrintable(outcome(trial)));
            QVERIFY2(trial.report.warnings.empty(), trial.report.warnings.empty() ? "" : trial.report.warnings[0].message.c_str());
        }
    }
};

QTEST_GUILESS_MAIN(TestScript)
#include "tst_script.moc"
