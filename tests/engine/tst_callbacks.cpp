// Callbacks: order, parameters and printed lines as MindSpore's traces have them; early stopping, plateaus, schedules, histories, files.
#include "engine/train/callbacks.h"
#include "engine/train/checkpoint_files.h"
#include "engine/train/monitors.h"
#include "models/base/files.h"
#include "train_helper.h"

#include <QRegularExpression>
#include <QTemporaryDir>
#include <nlohmann/json.hpp>
#include <set>

using namespace celloom;
using namespace celloom::engine;
using nlohmann::json;

namespace {

json semantics() { return json::parse(*readFile(std::filesystem::path(CELLOOM_FIXTURES) / "mindspore_semantics.json")); }

std::shared_ptr<Loss> squares() { return std::make_shared<MSELoss>(); }

/// Lines with their numbers taken out: ours are those of another network.
QStringList shapes(const std::vector<std::string>& lines) {
    QStringList out;
    for (const std::string& line : lines) {
        QString text = QString::fromStdString(line);
        text.replace(QRegularExpression("[0-9.]+ ms"), "<t> ms").replace(QRegularExpression("(loss is |'loss': )[-0-9.e]+"), "\\1<x>");
        out << text;
    }
    return out;
}

QStringList shapes(const json& lines) { return shapes(lines.get<std::vector<std::string>>()); }

/// MindSpore's names that are there at the first of each event.
class Names : public Callback {
public:
    std::map<std::string, std::set<std::string>> at;
#define NAMES(method, name)                                                                                                                                    \
    Status method(RunContext& context) override {                                                                                                              \
        const auto names = context.originalArgs().names();                                                                                                     \
        at.try_emplace(name, names.begin(), names.end());                                                                                                      \
        return {};                                                                                                                                             \
    }
    NAMES(onTrainBegin, "on_train_begin")
    NAMES(onTrainEpochBegin, "on_train_epoch_begin")
    NAMES(onTrainStepBegin, "on_train_step_begin")
    NAMES(onTrainStepEnd, "on_train_step_end")
    NAMES(onTrainEpochEnd, "on_train_epoch_end")
    NAMES(onTrainEnd, "on_train_end")
    NAMES(onEvalBegin, "on_eval_begin")
    NAMES(onEvalEpochBegin, "on_eval_epoch_begin")
    NAMES(onEvalStepBegin, "on_eval_step_begin")
    NAMES(onEvalStepEnd, "on_eval_step_end")
    NAMES(onEvalEpochEnd, "on_eval_epoch_end")
    NAMES(onEvalEnd, "on_eval_end")
#undef NAMES
};

/// Purposeful difference: MindSpore spells it "loss_scale_mananger".
std::set<std::string> namesOf(const json& event) {
    std::set<std::string> out;
    for (const auto& [name, value] : event.items()) out.insert(name == "loss_scale_mananger" ? "loss_scale_manager" : name);
    return out;
}

/// A watched number that a test dictates: what an evaluation measured at the end of each epoch.
struct Dictated {
    Small small;
    RunContext context;
    std::int64_t epoch = 0;
    Model model = small.model(squares(), must(metricsNamed({"loss"})));

    Dictated() {
        CallbackParams& params = context.originalArgs();
        params.network = small.network.get();
        params.trainNetwork = &model;
        params.validDataset = &empty();
        params.learningRate = 0.1;
    }
    static const Dataset& empty() {
        static const auto data = numbers(1);
        return *data;
    }
    void measure(Callback& callback, const std::string& name, double value) {
        CallbackParams& params = context.originalArgs();
        params.curEpochNum = ++epoch;
        params.curStepNum = params.evalStep = epoch * 10;
        params.evalResults = {{name, value}};
        params.learningRate = model.state().fixedRate.value_or(params.learningRate);
        if (auto status = callback.onTrainEpochEnd(context); !status) qFatal("%s", status.error().text().c_str());
    }
    /// Epochs until it asks to stop; 0: it does not.
    std::int64_t epochsUntilStop(Callback& callback, const std::vector<double>& values, const std::string& name = "eval_loss") {
        if (auto status = callback.onTrainBegin(context); !status) qFatal("%s", status.error().text().c_str());
        for (const double value : values) {
            measure(callback, name, value);
            if (context.isStopRequested()) return epoch;
        }
        return 0;
    }
};

EarlyStopping stopping(std::int64_t patience, double minDelta = 0, const std::string& monitor = "eval_loss") {
    EarlyStopping::Options options;
    options.monitor.monitor = monitor;
    options.monitor.patience = patience;
    options.monitor.minDelta = minDelta;
    return EarlyStopping(options);
}

} // namespace

class TestCallbacks : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void parametersComeAndGoAsMindSporesDo() {
        const json fixture = semantics();
        for (const bool fits : {false, true}) {
            Small small;
            const auto rows = numbers(fits ? 4 : 6);
            Names names;
            Model model = small.model(squares(), must(metricsNamed({"loss"})));
            QVERIFY(fits ? model.fit(2, *rows, *rows, {&names}) : model.train(2, *rows, {&names}));
            const json events = fixture[fits ? "cb_params_fit" : "cb_params_by_event"];
            QCOMPARE(names.at.size(), events.size());
            for (const auto& [event, params] : events.items()) QVERIFY2(names.at[event] == namesOf(params), event.c_str());
        }
    }

    void linesAreMindSpores() {
        const json fixture = semantics();
        std::vector<std::string> lines;
        const auto print = [&](const std::string& line) { lines.push_back(line); };
        Small small;
        Model model = small.model(squares(), must(metricsNamed({"loss"})));
        LossMonitor loss(1, print);
        TimeMonitor time(print);
        QVERIFY(model.train(2, *numbers(6), {&time, &loss}));
        QCOMPARE(shapes(lines), shapes(fixture["callback_printed"]));
        lines.clear();
        LossMonitor again(1, print);
        QVERIFY(model.fit(2, *numbers(4), *numbers(4), {&again, &time}));
        QCOMPARE(shapes(lines), shapes(fixture["fit_printed"]));
        lines.clear();
        TimeMonitor withData(print, true);
        QVERIFY(model.train(1, *numbers(4), {&withData}));
        QCOMPARE(shapes(lines), shapes(fixture["time_monitor_data_time"]));
    }

    void sinkModeChangesNothing() { // as MindSpore's on a CPU
        const json fixture = semantics();
        std::vector<std::string> lines, plain;
        for (const bool sinks : {true, false}) {
            Small small;
            const auto print = [&](const std::string& line) { (sinks ? lines : plain).push_back(line); };
            LossMonitor loss(1, print);
            TimeMonitor time(print);
            bool asked = !sinks;
            LambdaCallback look({.onTrainStepEnd = [&](RunContext& context) {
                asked = context.originalArgs().datasetSinkMode;
                return Status();
            }});
            QVERIFY(small.model(squares()).train(2, *numbers(6), {&loss, &time, &look}, {.datasetSinkMode = sinks}));
            QCOMPARE(asked, sinks);
        }
        QCOMPARE(shapes(lines), shapes(fixture["sink_mode_true_on_cpu"]["printed"]));
        std::erase_if(lines, [](const std::string& line) { return line.starts_with("Train"); });
        std::erase_if(plain, [](const std::string& line) { return line.starts_with("Train"); });
        QVERIFY(lines == plain); // the losses themselves
    }

    void lossMonitorPrintsAtTheStepsOfTheTable() {
        const json table = semantics()["loss_monitor_per_print_times_(epoch,step)"];
        for (const auto& [every, expected] : table.items()) {
            json printed = json::array();
            LossMonitor monitor(std::stoll(every), [&](const std::string& line) {
                const auto match = QRegularExpression("^epoch: (\\d+) step: (\\d+)").match(QString::fromStdString(line));
                printed.push_back({match.captured(1).toStdString(), match.captured(2).toStdString()});
            });
            Small small;
            QVERIFY(small.model(squares()).train(2, *numbers(6), {&monitor}));
            QCOMPARE(printed.dump(), expected.dump());
        }
    }

    void aNaNEndsTrainingBeforeTheUpdate() { // MindSpore's LossMonitor raises ValueError "In epoch: 1 step: 1, loss is NAN or INF …"
        for (const bool scales : {false, true}) { // also under a loss scale, where MindSpore's sees nothing
            Small small;
            ModelOptions options = Small::options(2, 1e-2);
            if (scales) options.lossScale = *LossScale::dynamic(1024, 2, 1000);
            Model model(*small.network, squares(), small.optimizer.get(), {}, options);
            const at::Tensor before = small.network->parameters()[0].tensor.detach().clone();
            auto rows = must(TensorDataset::create({{"features", drawn({4, 3}, 1)}, {"label", drawn({4, 1}, 2).fill_(NAN)}}));
            QVERIFY(must(model.train(1, *rows)) == Model::End::Diverged);
            QCOMPARE(model.divergence().step, std::int64_t(1));
            QVERIFY(model.divergence().error.message.find("Step 1") != std::string::npos);
            QVERIFY(small.network->parameters()[0].tensor.detach().equal(before));
        }
    }

    void earlyStoppingWaitsAsMindSporeDoes() {
        const auto until = [](EarlyStopping callback, const std::vector<double>& values, const std::string& name = "eval_loss") {
            return Dictated().epochsUntilStop(callback, values, name);
        };
        QCOMPARE(until(stopping(2), {1, 1, 1, 1}), std::int64_t(3)); // MindSpore: constant loss, patience 2
        QCOMPARE(until(stopping(2), {3, 2, 2.5, 1, 1.5, 1.2}), std::int64_t(6));
        QCOMPARE(until(stopping(2), {5, 4, 3, 2}), std::int64_t(0));
        QCOMPARE(until(stopping(2, 0.5), {3, 2.8, 2.6, 2.5}), std::int64_t(3)); // not better by more than 0.5
        QCOMPARE(until(stopping(2, -0.5), {3, 2.8, 2.6, 2.5}), std::int64_t(3)); // the absolute value counts
        QCOMPARE(until(stopping(1, 0, "accuracy"), {0.1, 0.5, 0.4}, "accuracy"), std::int64_t(3)); // auto: it is to rise
        QCOMPARE(until(stopping(1, 0, "eval_accuracy"), {0.1, 0.5, 0.4}, "accuracy"), std::int64_t(3));
        QCOMPARE(until(stopping(2), {2, NAN, NAN}), std::int64_t(3)); // NaN never improves
        QCOMPARE(until(stopping(0), {3, 2, 2}), std::int64_t(3)); // difference: MindSpore's patience 0 stops after epoch 1 although it improved
        EarlyStopping::Options options;
        options.monitor.patience = 2;
        options.baseline = 1;
        QCOMPARE(until(EarlyStopping(options), {3, 2}), std::int64_t(2)); // better than before, but not than the baseline
        options.monitor.mode = Better::Max;
        options.baseline.reset();
        QCOMPARE(until(EarlyStopping(options), {3, 2, 1}), std::int64_t(3));
    }

    void earlyStoppingGoesOnFromItsState() {
        Dictated first;
        EarlyStopping before = stopping(3);
        QVERIFY(before.onTrainBegin(first.context));
        first.measure(before, "eval_loss", 1);
        first.measure(before, "eval_loss", 2);
        EarlyStopping after = stopping(3);
        after.restore(before.state());
        QCOMPARE(first.epochsUntilStop(after, {2, 2, 2}), std::int64_t(4)); // waited once already

        EarlyStopping again = stopping(3), patient = stopping(5);
        again.restore(after.state());
        patient.restore(after.state());
        RunContext resumed, more;
        QVERIFY(again.onTrainBegin(resumed) && patient.onTrainBegin(more));
        QVERIFY(resumed.isStopRequested()); // it had stopped by itself
        QVERIFY(!more.isStopRequested());
    }

    void earlyStoppingBringsTheBestWeightsBack() {
        Dictated run;
        EarlyStopping::Options options;
        options.monitor.patience = 1;
        options.restoresBestWeights = true;
        EarlyStopping callback(options);
        at::Tensor weight = run.small.network->parameters()[0].tensor.detach();
        const at::Tensor best = weight.clone();
        QVERIFY(callback.onTrainBegin(run.context));
        run.measure(callback, "eval_loss", 1);
        weight.fill_(7);
        run.measure(callback, "eval_loss", 2);
        QVERIFY(run.context.isStopRequested());
        QVERIFY(run.small.network->parameters()[0].tensor.detach().equal(best));
    }

    void theBestWeightsArePartOfItsState() {
        Dictated run;
        EarlyStopping::Options options;
        options.monitor.patience = 1;
        options.restoresBestWeights = true;
        EarlyStopping before(options), after(options), other(EarlyStopping::Options{});
        at::Tensor weight = run.small.network->parameters()[0].tensor.detach();
        const at::Tensor best = weight.clone();
        QVERIFY(before.onTrainBegin(run.context));
        run.measure(before, "eval_loss", 1);
        weight.fill_(7);
        after.restore(before.state());
        QVERIFY(after.restoreTensors(before.stateTensors()) && other.restoreTensors(before.stateTensors()));
        QVERIFY(other.stateTensors().empty()); // it is not asked for
        QVERIFY(after.onTrainBegin(run.context));
        run.measure(after, "eval_loss", 2);
        QVERIFY(run.small.network->parameters()[0].tensor.detach().equal(best));
    }

    void whatIsNotMeasuredCannotBeWatched() {
        Small small;
        EarlyStopping callback = stopping(2, 0, "accuracy");
        Model model = small.model(squares(), must(metricsNamed({"loss"})));
        const auto trained = model.train(2, *numbers(4), {&callback});
        QVERIFY(!trained && trained.error().message.find("nothing is evaluated") != std::string::npos);
        EarlyStopping other = stopping(2, 0, "accuracy");
        const auto fitted = model.fit(2, *numbers(4), *numbers(4), {&other});
        QVERIFY(!fitted && fitted.error().hint.find("loss") != std::string::npos);
        EarlyStopping training = stopping(1, 1e9, "loss"); // the training's own loss needs no evaluation
        QVERIFY(must(model.train(5, *numbers(4), {&training})) == Model::End::Stopped);
        QCOMPARE(training.stoppedEpoch(), std::int64_t(2));
    }

    void aPlateauLowersTheRate() {
        Dictated run;
        ReduceLROnPlateau::Options options;
        options.monitor.patience = 2;
        options.factor = 0.5;
        options.cooldown = 1;
        options.minLr = 0.04;
        std::vector<double> rates;
        ReduceLROnPlateau callback(options, [&](RunContext&, double, double after) { rates.push_back(after); });
        QVERIFY(callback.onTrainBegin(run.context));
        // MindSpore's counting: 2 improves; 2 2 -> reduce (0.05); then one epoch of cooldown is used up as the next is measured, which waits again
        const std::vector<std::pair<double, std::size_t>> course{{2, 0}, {2, 0}, {2, 1}, {2, 1}, {2, 2}, {2, 2}, {2, 2}};
        for (const auto& [value, reductions] : course) {
            run.measure(callback, "eval_loss", value);
            QCOMPARE(rates.size(), reductions);
        }
        QVERIFY((rates == std::vector<double>{0.05, 0.04})); // not below min_lr, and at it never again
        QCOMPARE(*run.model.state().fixedRate, 0.04);
    }

    void aScheduleMayBeAFunction() {
        Small small;
        std::vector<double> rates;
        LearningRateScheduler scheduler([](double rate, std::int64_t step) { return step % 2 == 0 ? rate * 0.5 : rate; });
        LambdaCallback look({.onTrainStepBegin = [&](RunContext& context) {
            rates.push_back(context.originalArgs().learningRate);
            return Status();
        }});
        QVERIFY(small.model(squares(), {}, 2, 0.08).train(2, *numbers(6), {&scheduler, &look}));
        QVERIFY((rates == std::vector<double>{0.08, 0.08, 0.04, 0.04, 0.02, 0.02}));
        LearningRateScheduler wrong([](double, std::int64_t) { return -1.0; });
        QVERIFY(!small.model(squares()).train(1, *numbers(6), {&wrong}));
    }

    void aHistoryHoldsEachEpoch() {
        Small small;
        History history;
        Model model = small.model(squares(), must(metricsNamed({"loss", "mae"})));
        QVERIFY(model.fit(3, *numbers(4), *numbers(4), {&history}, {.validFrequency = 2}));
        QVERIFY((history.epoch() == std::vector<std::int64_t>{1, 2, 3}));
        QCOMPARE(history.history().at("net_output").size(), std::size_t(3));
        QCOMPARE(history.history().at("mae").size(), std::size_t(1));
        History restored;
        QVERIFY(restored.restoreJson(history.stateJson()));
        QVERIFY(restored.history() == history.history() && restored.epoch() == history.epoch());
        QVERIFY(!restored.restoreJson("{}"));
    }

    void checkpointFilesHaveMindSporesNames() {
        QTemporaryDir temporary;
        const std::filesystem::path folder = temporary.path().toStdString();
        Small small;
        CheckpointFiles files("net", folder, {.saveCheckpointSteps = 2, .keepCheckpointMax = 2});
        QVERIFY(small.model(squares()).train(2, *numbers(6), {&files}));
        std::set<std::string> names, expected;
        for (const auto& entry : std::filesystem::directory_iterator(folder)) names.insert(entry.path().stem().string());
        const json recorded = semantics()["model_checkpoint_files"];
        for (const std::string name : recorded) expected.insert(std::filesystem::path(name).stem().string());
        QVERIFY(names == expected);

        Small other(3, 8, 1, 2);
        QVERIFY(loadCheckpointFile(files.latest(), *other.network, other.optimizer.get()));
        for (std::size_t p = 0; p < small.network->parameters().size(); ++p)
            QVERIFY(other.network->parameters()[p].tensor.detach().equal(small.network->parameters()[p].tensor.detach()));
        Small larger(3, 9, 1);
        const auto refused = loadCheckpointFile(files.latest(), *larger.network);
        QVERIFY(!refused && refused.error().message.find("[8, 3]") != std::string::npos && refused.error().message.find("[9, 3]") != std::string::npos);

        CheckpointFiles second("net", folder); // files of that prefix lie there already
        QVERIFY(small.model(squares()).train(1, *numbers(2), {&second}));
        QCOMPARE(second.latest().filename().string(), std::string("net_1-1_1.safetensors"));
    }
};

QTEST_GUILESS_MAIN(TestCallbacks)
#include "tst_callbacks.moc"
